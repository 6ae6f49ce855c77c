/*
 * message_ops: the store's operations on messages that exist: listing, reading, deleting
 * and popping them. Declared in txn.h. Posts are in post.c. Read txn.h next.
 */
#include "claimd/base/sometimes.h"
#include "engine/keyed.h"
#include "engine/run_load.h"
#include "engine/subscription.h"
#include "engine/txn.h"
#include "engine/unique.h"

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

/* Adds messages behind *seq, which becomes the number of the last one read. ST_OK: the
 * page is complete, or ends early because it has a message. ST_AGAIN. ST_CHANGED: an
 * unloaded message is next. */
static enum status
list_slice(const struct queue *q, const struct store_filter *filter, int64_t now_ms,
           uint64_t *seq, struct store_batch *out)
{
    const uint64_t unloaded = backlog_next_unloaded(q->backlog, *seq + 1);
    bool only_ready = !filter->include_claimed && !filter->include_delayed;

    for (int left_out = 0; left_out < LIST_SLICE;) {
        uint64_t next = *seq + 1;
        struct message *m = only_ready ? seqmap_next_ready(&q->backlog->messages, &next)
                                       : seqmap_next_live(&q->backlog->messages, &next);

        if (unloaded != RUN_NONE && (m == NULL || next > unloaded))
            return ST_CHANGED;
        if (m == NULL)
            return ST_OK;
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
            return ST_OK;
    }
    if (out->count > 0)
        ident_write_marker(&out->next, *seq); /* the next page starts behind it */
    return out->count > 0 ? ST_OK : ST_AGAIN;
}

/* The same, and requests the next messages if they are unloaded. The page begins again
 * then. */
static enum status
list_page(struct txn *t, const struct store_filter *filter, uint64_t *seq,
          struct store_batch *out)
{
    const uint64_t begin = *seq;
    enum status st = list_slice(t->queue, filter, t->now_ms, seq, out);

    if (st == ST_CHANGED) {
        st = txn_load_from(t, backlog_next_unloaded(t->queue->backlog, *seq + 1),
                           filter->limit - out->count);
        *seq = begin;
    }
    return st;
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
        st = list_page(&t, filter, &seq, &batch);
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
    st = txn_load_ids(&t, ids, count);
    for (size_t i = 0; st == ST_OK && t.queue != NULL && i < count; i++) {
        struct message *m = txn_find_message(&t, ids[i]);

        if (m != NULL)
            batch_add(out, m, t.queue->tag, t.now_ms);
    }
    txn_end(&t);
    if (st != ST_OK)
        store_batch_release(out);
    return st;
}

enum status
engine_message_find(struct store *s, struct store_op *op, const struct store_queue *where,
                    struct bytes key, struct store_batch *out)
{
    struct message *m;
    struct txn t;
    enum status st = batch_open(engine_of(s), 1, out);

    if (st != ST_OK)
        return st;
    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING); /* which cannot fail */
    m = t.queue == NULL ? NULL : unique_find(t.queue, key, t.now_ms);
    if (m != NULL)
        batch_add(out, m, t.queue->tag, t.now_ms);
    txn_end(&t);
    return ST_OK;
}

/* ---------------------------------------------------------------------- remove */

/* Counts and logs the removed messages, with the key of a pop (NULL: a deletion), ends
 * the transaction, and drops the pins. */
static void
end_discarding(struct txn *t, struct discarded *d, enum store_counter which,
               struct keyed *key)
{
    metrics_count(&t->shard->metrics, which, d->count);
    if (d->count > 0)
        queue_count(t->queue, STORE_QUEUE_DELETED, d->count);
    if (has_log(&t->engine->core) && d->count > 0)
        changelog_delete(t->queue, &d->messages, d->count, t->now_ms);
    if (key != NULL) {
        keyed_commit_pop(key, &d->messages);
        keyed_end(key);
    }
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
        const struct message *m = txn_find_message(t, which->ids[i]);

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
    st = txn_load_ids(&t, which->ids, which->count);
    if (st == ST_OK && t.queue != NULL && which->rule != STORE_DELETE_ANY)
        st = check_rule(&t, which);
    /* A message that is marked twice counts twice: the reservation may be larger than
     * needed. */
    for (size_t i = 0;
         st == ST_OK && t.queue != NULL && has_log(&t.engine->core) && i < which->count;
         i++)
        live += txn_find_message(&t, which->ids[i]) != NULL;
    if (st == ST_OK && live > 0)
        st = txn_reserve_messages(&t, STORE_CHANGE_DELETE, live, 0);
    for (size_t i = 0; t.queue != NULL && st == ST_OK && i < which->count; i++) {
        struct message *m = txn_find_message(&t, which->ids[i]);

        if (m != NULL)
            txn_remove_message(&t, m, &d);
    }
    end_discarding(&t, &d, STORE_COUNT_DELETED, NULL);
    return st;
}

/* Fills a batch with the messages of an earlier pop with the same key. ST_NO_MEMORY. */
static enum status
repeat_pop(const struct txn *t, const struct key *key, struct store_batch *out)
{
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = batch_open(t->engine, key->count, &batch);

    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < key->count; i++)
        batch_add(&batch, key->messages[i], t->queue->tag, t->now_ms);
    store_batch_release(out);
    *out = batch;
    return ST_OK;
}

/* Reserves a pop of the first `count` messages that the operation may take. */
static enum status
reserve_pop(struct txn *t, size_t count, struct keyed *key, struct store_batch *out)
{
    enum status st = batch_check(t, count, out);

    if (st == ST_OK)
        st = txn_reserve_messages(t, STORE_CHANGE_DELETE, count, 0);
    if (st != ST_OK || t->op->key == NULL)
        return st;
    return keyed_reserve(key, STORE_KEY_POP, count, t->checked_bytes);
}

/* Takes the messages out of the queue. Cannot fail. */
static void
take_messages(struct txn *t, size_t count, struct store_batch *batch, struct discarded *d)
{
    for (uint64_t seq = t->from_seq; count > 0; count--) {
        struct message *m = seqmap_next_ready(&t->queue->backlog->messages, &seq);

        batch_add(batch, m, t->queue->tag, t->now_ms);
        if (m->claim_count == 0)
            metrics_span(&t->shard->metrics, STORE_SPAN_WAITED, m->posted_ms, t->now_ms);
        txn_remove_message(t, m, d);
    }
    load_ahead(t->shard, t->queue->backlog);
    txn_stop_waiting(t);
}

enum status
engine_message_pop(struct store *s, struct store_op *op, const struct store_queue *where,
                   size_t limit, struct store_batch *out)
{
    struct store_batch batch = STORE_BATCH_INIT;
    struct discarded d = {.count = 0};
    struct keyed key;
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
    st = keyed_begin(&key, &t, STORE_KEY_POP);
    count = txn_available(&t);
    if (count > limit)
        count = limit;
    if (st == ST_OK && key.known != NULL) {
        st = repeat_pop(&t, key.known, &batch);
        if (st == ST_OK)
            txn_stop_waiting(&t);
    } else if (st == ST_OK && count == 0) {
        st = txn_wait(&t, limit);
    } else if (st == ST_OK) {
        st = txn_load_ready(&t, count);
        if (st == ST_OK)
            st = reserve_pop(&t, count, &key, out);
        if (st == ST_OK)
            take_messages(&t, count, &batch, &d);
    }
    end_discarding(&t, &d, STORE_COUNT_POPPED, &key);
    if (st == ST_OK)
        *out = batch;
    else
        store_batch_release(&batch);
    return st;
}
