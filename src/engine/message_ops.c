/* The store's operations on messages. */
#include "claimd/base/sometimes.h"
#include "engine/subscription.h"
#include "engine/txn.h"

/* ---------------------------------------------------------------------- post */

/* Bytes of the bodies of a post: its size in the log, and its charge to the project. */
static size_t
body_bytes(const struct store_post *post)
{
    size_t total = 0;

    for (size_t i = 0; i < post->count; i++)
        total += post->drafts[i].body.len;
    return total;
}

/* Bytes of memory that a post takes, roughly. */
static size_t
post_bytes(const struct store_post *post)
{
    return post->count * (sizeof(struct message) + 32) + body_bytes(post);
}

/* Makes the messages of a post, linked by due.link in order. After a failure the list is
 * empty. */
static enum status
make_messages(struct mem *mem, const struct store_post *post, struct list *messages)
{
    for (size_t i = 0; i < post->count; i++) {
        struct message *m = message_new(
            mem, post->drafts[i].body,
            post->checksums == NULL ? NULL : &post->checksums[i], post->client);

        SOMETIMES_IF(m == NULL && i > 0, POST_CUT);
        if (m == NULL) {
            message_unpin_all(mem, messages);
            return ST_NO_MEMORY;
        }
        list_add_before(messages, &m->due.link);
    }
    return ST_OK;
}

static int64_t
first_set(int64_t a, int64_t b, int64_t c)
{
    if (a != STORE_UNSET)
        return a;
    return b != STORE_UNSET ? b : c;
}

/* Adds the messages to the end of the queue. Cannot fail: memory is reserved. */
static void
append_messages(struct queue *q, const struct store_post *post, struct list *messages,
                int64_t now_ms)
{
    const struct store_settings *set = queue_settings(q);
    struct shard *sh = q->shard;
    const struct core *core = sh->core;
    const bool listened = feed_listens(q->feed);

    for (size_t i = 0; i < post->count; i++) {
        const struct store_draft *draft = &post->drafts[i];
        struct message *m = container_of(list_pop(messages), struct message, due.link);
        int64_t ttl_s =
            first_set(draft->ttl_s, set->message_ttl_s, core->config.message_ttl_s);
        int64_t delay_s =
            first_set(draft->delay_s, set->message_delay_s, core->config.message_delay_s);
        int64_t due_ms;

        m->seq = ++q->last_seq;
        m->posted_ms = now_ms;
        m->expires_ms = core_deadline_ms(core, now_ms, ttl_s);
        m->delayed = delay_s > 0;
        due_ms = m->delayed ? core_deadline_ms(core, now_ms, delay_s) : m->expires_ms;
        if (due_ms > m->expires_ms)
            due_ms = m->expires_ms;
        backlog_add(q->backlog, &sh->pool, m);
        shard_arm_message(sh, &m->due, due_ms);
        if (listened)
            feed_append(q->feed, &sh->pool, m, ttl_s, delay_s > 0 ? delay_s : 0);
    }
    ENSURE(list_empty(messages));
    if (listened)
        feed_grown(sh, q->feed);
}

/* Does everything that can fail, before anything changes. */
static enum status
reserve_post(struct txn *t, const struct store_post *post)
{
    struct queue *q = t->queue;
    const struct store_settings *set = queue_settings(q);
    size_t bytes = body_bytes(post), spare = 0;
    enum status st = ST_OK;

    if (set->max_post_bytes != STORE_UNSET &&
        post->request_bytes > (uint64_t)set->max_post_bytes)
        return ST_TOO_LARGE;
    for (size_t i = 0; set->encrypt && i < post->count; i++)
        if (!store_is_sealed(post->drafts[i].body))
            return ST_NOT_SEALED;
    if (st == ST_OK && feed_listens(q->feed)) {
        spare = feed_nodes(q->feed, q->last_seq, post->count);
        st = feed_stock(q->feed, t->engine->core.mem, post->count);
    }
    if (st == ST_OK)
        st =
            backlog_reserve(q->backlog, &t->shard->pool, q->last_seq, post->count, spare);
    if (st == ST_OK)
        st = t->queue_is_new ? txn_reserve_queue(t)
                             : changelog_reserve_numbers(q, post->count, 0);
    if (st == ST_OK)
        st = directory_charge(&q->entry, post->count, bytes, &t->engine->core.limits);
    if (st != ST_OK)
        return st;
    st = txn_reserve_messages(t, STORE_CHANGE_POST, post->count, bytes);
    if (st != ST_OK) {
        SOMETIMES(POST_NOT_LOGGED);
        directory_uncharge(&q->entry, post->count, bytes);
    }
    return st;
}

static void
commit_post(struct txn *t, const struct store_post *post, struct list *messages)
{
    const uint64_t first = t->queue->last_seq + 1;
    const bool made = txn_link_queue(t);

    append_messages(t->queue, post, messages, t->now_ms);
    ENSURE(t->queue->last_seq == first + post->count - 1);
    metrics_count(&t->shard->metrics, STORE_COUNT_POSTED, post->count);
    queue_wake_waiters(t->queue);
    if (!has_log(&t->engine->core))
        return;
    if (made)
        changelog_queue(t->queue, STORE_CHANGE_QUEUE, t->now_ms);
    changelog_row(t->queue, STORE_CHANGE_POST, first, post->count, t->now_ms);
    changelog_numbers(t->queue, t->now_ms);
}

enum status
engine_message_post(struct store *s, struct store_op *op, const struct store_queue *where,
                    const struct store_post *post, struct store_id *ids)
{
    struct engine *e = engine_of(s);
    struct ident id = {0, 0};
    struct list messages;
    struct txn t;
    enum status st;

    ENSURE(post->count > 0);
    housekeep_pay(e, op->now_ms, post->count, post_bytes(post));
    if (!mem_admits(e->core.mem, post_bytes(post)))
        return ST_OVER_BUDGET;
    list_init(&messages);
    st = make_messages(e->core.mem, post, &messages);
    if (st != ST_OK)
        return st;
    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING); /* which cannot fail */
    if (t.queue == NULL)
        st = post->create_queue ? txn_make_queue(&t, NULL) : ST_NOT_FOUND;
    if (st == ST_OK)
        st = reserve_post(&t, post);
    if (st == ST_OK) {
        id = (struct ident){t.queue->tag, t.queue->last_seq};
        commit_post(&t, post, &messages);
    }
    txn_end(&t);
    if (st == ST_BEYOND_LOG)
        op->log_most = e->core.log->largest;
    message_unpin_all(e->core.mem, &messages);
    for (size_t i = 0; st == ST_OK && i < post->count; i++) {
        id.low++;
        ident_write(&ids[i], id);
    }
    return st;
}

/* ---------------------------------------------------------------------- read */

/* Messages that one call of a listing may skip: some tens of microseconds under the lock.
 * A filter may skip a whole queue in front of the page. The page itself has a limit. */
enum { LIST_SLICE = 1024 };

/* The number behind which a listing continues; 0: from the head. */
static uint64_t
marker_seq(const struct queue *q, struct bytes marker)
{
    struct ident id;
    uint64_t seq;

    if (ident_read(marker, &id)) {
        const struct message *m = backlog_find(q->backlog, q->tag, id);

        if (m != NULL)
            return m->seq;
        return id.high == q->tag && id.low <= q->last_seq ? id.low : 0;
    }
    if (marker.len < IDENT_DIGITS && bytes_to_u64(marker, &seq) && seq <= q->last_seq)
        return seq;
    return 0;
}

/* Adds messages behind *seq, which becomes the number of the last one read. True: the
 * page is complete, or ends early because it has a message. */
static bool
list_slice(const struct queue *q, const struct store_filter *filter, int64_t now_ms,
           uint64_t *seq, struct store_batch *out)
{
    bool only_ready = !filter->include_claimed && !filter->include_delayed;

    for (int left_out = 0; left_out < LIST_SLICE;) {
        uint64_t next = *seq + 1;
        struct message *m = only_ready ? seqmap_next_ready(&q->backlog->messages, &next)
                                       : seqmap_next_live(&q->backlog->messages, &next);

        if (m == NULL)
            return true;
        *seq = next;
        if ((m->claim != NULL && !filter->include_claimed) ||
            (m->delayed && !filter->include_delayed) ||
            (filter->hide_client && m->client == filter->client)) {
            left_out++;
            continue;
        }
        batch_add(out, m, q->tag, now_ms);
        ident_write_marker(&out->next, m->seq);
        if (out->count == filter->limit)
            return true;
    }
    if (out->count > 0)
        ident_write_marker(&out->next, *seq); /* the next page starts behind it */
    return out->count > 0;
}

enum status
engine_message_list(struct store *s, struct store_op *op, const struct store_queue *where,
                    const struct store_filter *filter, struct store_batch *out)
{
    uint64_t tag = out->resume[0]; /* of the listed queue; 0: not begun */
    uint64_t seq = out->resume[1];
    struct store_batch batch;
    struct txn t;
    enum status st;

    ENSURE(filter->limit > 0);
    st = batch_open(engine_of(s), filter->limit, &batch);
    if (st != ST_OK)
        return st;
    st = txn_begin(&t, s, op, where, EXPIRE_ALL);
    if (st != ST_OK)
        goto out;
    /* If the queue was deleted and made again meanwhile, the listing has no more
     * messages. */
    if (t.queue != NULL && (tag == 0 || tag == t.queue->tag)) {
        if (tag == 0)
            seq = marker_seq(t.queue, filter->marker);
        tag = t.queue->tag;
        st = list_slice(t.queue, filter, t.now_ms, &seq, &batch) ? ST_OK : ST_AGAIN;
    }
    txn_end(&t);
out:
    if (st == ST_OK) {
        *out = batch;
        return ST_OK;
    }
    store_batch_release(&batch);
    out->resume[0] = tag;
    out->resume[1] = seq;
    return st;
}

static struct message *
find_live_message(const struct queue *q, struct bytes text, int64_t now_ms)
{
    struct message *m;
    struct ident id;

    if (!ident_read(text, &id))
        return NULL;
    m = backlog_find(q->backlog, q->tag, id);
    return m != NULL && message_live(m, now_ms) ? m : NULL;
}

enum status
engine_message_get(struct store *s, struct store_op *op, const struct store_queue *where,
                   const struct bytes *ids, size_t count, struct store_batch *out)
{
    struct txn t;
    enum status st = batch_open(engine_of(s), count, out);

    if (st != ST_OK)
        return st;
    st = txn_begin(&t, s, op, where, EXPIRE_CLAIMS);
    if (st != ST_OK) {
        store_batch_release(out);
        return st;
    }
    for (size_t i = 0; t.queue != NULL && i < count; i++) {
        struct message *m = find_live_message(t.queue, ids[i], t.now_ms);

        if (m != NULL)
            batch_add(out, m, t.queue->tag, t.now_ms);
    }
    txn_end(&t);
    return ST_OK;
}

/* ---------------------------------------------------------------------- remove */

/* Messages that were removed. Their pins are dropped without the lock. */
struct discarded {
    struct list messages;
    size_t count;
};

static void
remove_message(struct txn *t, struct message *m, struct discarded *d)
{
    if (m->claim != NULL) {
        struct shard_metrics *metrics = &t->shard->metrics;

        metrics_span(metrics, STORE_SPAN_WORKED, m->claim->made_ms, t->now_ms);
        buckets_add(&metrics->spans[STORE_SPAN_ATTEMPTS],
                    &store_span_bounds[STORE_SPAN_ATTEMPTS], m->claim_count);
    }
    message_detach(t->shard, m);
    list_add_before(&d->messages, &m->due.link);
    d->count++;
}

/* Counts and logs the removed messages, ends the transaction, and drops the pins. */
static void
end_discarding(struct txn *t, struct discarded *d, enum store_counter which)
{
    metrics_count(&t->shard->metrics, which, d->count);
    if (has_log(&t->engine->core) && d->count > 0)
        changelog_delete(t->queue, &d->messages, d->count, t->now_ms);
    txn_end(t);
    message_unpin_all(t->engine->core.mem, &d->messages);
}

/* Checks whether the rule allows to delete m. The marked claims are marked; any_live: one
 * of them exists. */
static enum status
may_delete(enum store_delete_rule rule, const struct message *m, bool any_live)
{
    if (rule == STORE_DELETE_READY)
        return m->claim == NULL ? ST_OK : ST_CLAIMED;
    if (!any_live || m->claim == NULL)
        return ST_NOT_CLAIMED;
    return m->claim->marked ? ST_OK : ST_CLAIMED;
}

/* Checks whether the rule allows to delete all live messages. O(ids + claims). */
static enum status
check_rule(const struct txn *t, const struct store_delete *which)
{
    const bool any_live =
        claims_mark(t->queue, which->claim_ids, which->claim_count, true, t->now_ms) > 0;
    enum status st = ST_OK;

    SOMETIMES_IF(which->claim_count > 0 && !any_live, DELETE_TOO_LATE);
    for (size_t i = 0; st == ST_OK && i < which->count; i++) {
        const struct message *m = find_live_message(t->queue, which->ids[i], t->now_ms);

        if (m != NULL)
            st = may_delete(which->rule, m, any_live);
    }
    (void)claims_mark(t->queue, which->claim_ids, which->claim_count, false, t->now_ms);
    if (st != ST_OK && which->rule == STORE_DELETE_HELD)
        metrics_count(&t->shard->metrics, STORE_COUNT_LATE_DELETES, 1);
    return st;
}

enum status
engine_message_delete(struct store *s, struct store_op *op,
                      const struct store_queue *where, const struct store_delete *which)
{
    struct discarded d = {.count = 0};
    size_t live = 0;
    struct txn t;
    enum status st = txn_begin(&t, s, op, where, EXPIRE_CLAIMS);

    if (st != ST_OK)
        return st;
    list_init(&d.messages);
    if (t.queue != NULL && which->rule != STORE_DELETE_ANY)
        st = check_rule(&t, which);
    /* A message that is marked twice counts twice: the reservation may be larger than
     * needed. */
    for (size_t i = 0; t.queue != NULL && has_log(&t.engine->core) && i < which->count;
         i++)
        live += find_live_message(t.queue, which->ids[i], t.now_ms) != NULL;
    if (st == ST_OK && live > 0)
        st = txn_reserve_messages(&t, STORE_CHANGE_DELETE, live, 0);
    for (size_t i = 0; t.queue != NULL && st == ST_OK && i < which->count; i++) {
        struct message *m = find_live_message(t.queue, which->ids[i], t.now_ms);

        if (m != NULL)
            remove_message(&t, m, &d);
    }
    end_discarding(&t, &d, STORE_COUNT_DELETED);
    return st;
}

enum status
engine_message_pop(struct store *s, struct store_op *op, const struct store_queue *where,
                   size_t limit, struct store_batch *out)
{
    struct store_batch batch = STORE_BATCH_INIT;
    struct discarded d = {.count = 0};
    struct txn t;
    enum status st;
    size_t count;

    list_init(&d.messages);
    st = batch_open(engine_of(s), limit, &batch);
    if (st != ST_OK)
        return st;
    st = txn_begin(&t, s, op, where, EXPIRE_ALL);
    if (st != ST_OK) {
        store_batch_release(&batch);
        return st;
    }
    count = txn_available(&t);
    if (count > limit)
        count = limit;
    if (count == 0) {
        st = txn_wait(&t, limit);
    } else {
        st = batch_check(&t, count, out);
        if (st == ST_OK)
            st = txn_reserve_messages(&t, STORE_CHANGE_DELETE, count, 0);
        if (st == ST_OK) {
            for (uint64_t seq = t.from_seq; count > 0; count--) {
                struct message *m = seqmap_next_ready(&t.queue->backlog->messages, &seq);

                batch_add(&batch, m, t.queue->tag, t.now_ms);
                if (m->claim_count == 0)
                    metrics_span(&t.shard->metrics, STORE_SPAN_WAITED, m->posted_ms,
                                 t.now_ms);
                remove_message(&t, m, &d);
            }
            txn_stop_waiting(&t);
        }
    }
    end_discarding(&t, &d, STORE_COUNT_POPPED);
    if (st == ST_OK)
        *out = batch;
    else
        store_batch_release(&batch);
    return st;
}
