/* The store's operations on messages. */
#include "engine/batch.h"
#include "engine/claim.h"
#include "engine/shard.h"

/* ---------------------------------------------------------------------- post */

/* Bytes that a post will take, roughly: bodies and what goes with each message. */
static size_t
post_bytes(const struct store_post *post)
{
    size_t total = 0;

    for (size_t i = 0; i < post->count; i++)
        total += sizeof(struct message) + 32 + post->drafts[i].body.len;
    return total;
}

/* Makes all messages of a post, linked by due.link in order. On failure the list is
 * empty. */
static enum status
make_messages(struct engine *e, const struct store_post *post, struct list *messages)
{
    for (size_t i = 0; i < post->count; i++) {
        struct message *m = message_new(
            e->mem, post->drafts[i].body,
            post->checksums == NULL ? NULL : &post->checksums[i], post->client);

        if (m == NULL) {
            message_unpin_all(e->mem, messages);
            return ST_NO_MEMORY;
        }
        list_add_before(messages, &m->due.link);
    }
    return ST_OK;
}

/* The first value that is set. */
static int64_t
first_set(int64_t a, int64_t b, int64_t c)
{
    if (a != STORE_UNSET)
        return a;
    return b != STORE_UNSET ? b : c;
}

/* Adds the messages to the queue's end; all room is reserved, nothing can fail. */
static void
append(struct queue *q, const struct store_post *post, struct list *messages,
       int64_t now_ms)
{
    const struct store_settings *set = queue_settings(q);
    struct shard *sh = q->shard;
    const struct engine *e = sh->engine;

    for (size_t i = 0; i < post->count; i++) {
        const struct store_draft *draft = &post->drafts[i];
        struct message *m = container_of(list_pop(messages), struct message, due.link);
        int64_t ttl_s = first_set(draft->ttl_s, set->message_ttl_s, e->message_ttl_s);
        int64_t delay_s =
            first_set(draft->delay_s, set->message_delay_s, e->message_delay_s);
        int64_t due_ms;

        m->seq = ++q->last_seq;
        m->posted_ms = now_ms;
        m->expires_ms = now_ms + ttl_s * 1000;
        m->delayed = delay_s > 0;
        due_ms = m->delayed ? now_ms + delay_s * 1000 : m->expires_ms;
        if (due_ms > m->expires_ms)
            due_ms = m->expires_ms;
        backlog_add(q->backlog, &sh->pool, m);
        shard_arm_message(sh, m, due_ms);
    }
}

/* Finds the queue, or makes it; *made then has to be linked. */
static enum status
find_or_make(struct shard *sh, const struct store_queue *where, uint64_t hash,
             const struct store_post *post, struct queue **out, bool *made)
{
    struct queue *q = shard_find(sh, where, hash);

    *made = false;
    if (q == NULL) {
        if (!post->create_queue)
            return ST_NOT_FOUND;
        q = queue_new(sh, where, NULL);
        if (q == NULL)
            return ST_NO_MEMORY;
        *made = true;
    }
    *out = q;
    return ST_OK;
}

static bool
too_large(const struct queue *q, const struct store_post *post)
{
    int64_t max = queue_settings(q)->max_post_bytes;

    return max != STORE_UNSET && post->request_bytes > (uint64_t)max;
}

enum status
engine_message_post(struct store *s, int64_t now_ms, const struct store_queue *where,
                    const struct store_post *post, struct store_id *ids)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct ident id = {0, 0};
    struct list messages;
    struct queue *q;
    enum status st;
    bool made;

    engine_pay(e, now_ms, post->count, post_bytes(post));
    if (!mem_admits(e->mem, post_bytes(post)))
        return ST_OVER_BUDGET;
    list_init(&messages);
    st = make_messages(e, post, &messages);
    if (st != ST_OK)
        return st;

    /* Reserve: whatever can fail, fails here, while nothing has changed. */
    now_ms = shard_enter(sh, now_ms);
    st = find_or_make(sh, where, hash, post, &q, &made);
    if (st != ST_OK)
        goto out;
    if (too_large(q, post))
        st = ST_TOO_LARGE;
    if (st == ST_OK)
        st = backlog_reserve(q->backlog, &sh->pool, q->last_seq, post->count, 0);
    if (st == ST_OK && made)
        st = queue_link(q, hash);
    if (st != ST_OK) {
        if (made)
            queue_free(q);
        goto out;
    }

    /* Commit. */
    id = (struct ident){q->tag, q->last_seq};
    append(q, post, &messages, now_ms);
out:
    shard_leave(sh);
    message_unpin_all(e->mem, &messages);
    for (size_t i = 0; st == ST_OK && i < post->count; i++) {
        id.low++;
        ident_write(&ids[i], id);
    }
    return st;
}

/* ---------------------------------------------------------------------- read */

/*
 * How many messages one call of a listing looks at: some tens of microseconds' worth. What
 * a filter leaves out in front of the page may be the whole queue.
 */
enum { LIST_SLICE = 1024 };

/* The number a listing goes on behind; 0: from the head. */
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

static bool
listed(const struct message *m, const struct store_filter *filter)
{
    return (filter->include_claimed || m->claim == NULL) &&
           (filter->include_delayed || !m->delayed) &&
           !(filter->hide_client && m->client == filter->client);
}

/*
 * Shows messages behind *seq, which moves on to the last one looked at. True when the page
 * is complete, or ends here because it shows something.
 */
static bool
list_slice(const struct queue *q, const struct store_filter *filter, int64_t now_ms,
           uint64_t *seq, struct store_batch *out)
{
    bool only_ready = !filter->include_claimed && !filter->include_delayed;
    const struct seqmap *messages = &q->backlog->messages;

    for (int i = 0; i < LIST_SLICE; i++) {
        uint64_t next = *seq + 1;
        struct message *m = only_ready ? seqmap_next_ready(messages, &next)
                                       : seqmap_next_live(messages, &next);

        if (m == NULL)
            return true;
        *seq = next;
        if (!listed(m, filter))
            continue;
        batch_add(out, m, q->tag, now_ms);
        ident_write_marker(&out->next, m->seq);
        if (out->count == filter->limit)
            return true;
    }
    if (out->count > 0)
        ident_write_marker(&out->next, *seq); /* what was left out needs no second look */
    return out->count > 0;
}

enum status
engine_message_list(struct store *s, int64_t now_ms, const struct store_queue *where,
                    const struct store_filter *filter, struct store_batch *out)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    uint64_t tag = out->resume[0]; /* of the queue it began with; 0: not begun */
    uint64_t seq = out->resume[1];
    struct store_batch batch;
    enum status st;
    struct queue *q;

    st = batch_open(e, filter->limit, &batch);
    if (st != ST_OK)
        return st;
    st = shard_settle(sh, &now_ms, SETTLE_ALL);
    if (st != ST_OK)
        goto out;
    q = shard_find(sh, where, hash);
    /* A queue made anew is not the one the listing began in: that one has no more. */
    if (q != NULL && (tag == 0 || tag == q->tag)) {
        if (tag == 0)
            seq = marker_seq(q, filter->marker);
        tag = q->tag;
        st = list_slice(q, filter, now_ms, &seq, &batch) ? ST_OK : ST_AGAIN;
    }
    shard_leave(sh);
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

/* The live message with this id; NULL if there is none. */
static struct message *
find_live(const struct queue *q, struct bytes text, int64_t now_ms)
{
    struct message *m;
    struct ident id;

    if (!ident_read(text, &id))
        return NULL;
    m = backlog_find(q->backlog, q->tag, id);
    return m != NULL && message_live(m, now_ms) ? m : NULL;
}

enum status
engine_message_get(struct store *s, int64_t now_ms, const struct store_queue *where,
                   const struct bytes *ids, size_t count, struct store_batch *out)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct queue *q;
    enum status st;

    st = batch_open(e, count, out);
    if (st != ST_OK)
        return st;
    st = shard_settle(sh, &now_ms, SETTLE_CLAIMS);
    if (st != ST_OK) {
        store_batch_release(out);
        return st;
    }
    q = shard_find(sh, where, hash);
    for (size_t i = 0; q != NULL && i < count; i++) {
        struct message *m = find_live(q, ids[i], now_ms);

        if (m != NULL)
            batch_add(out, m, q->tag, now_ms);
    }
    shard_leave(sh);
    return ST_OK;
}

/* ---------------------------------------------------------------------- remove */

/* Takes a message out of the store; its backlog's pin is dropped with the list. */
static void
discard(struct shard *sh, struct message *m, struct list *discarded)
{
    shard_remove_message(sh, m);
    list_add_before(discarded, &m->due.link);
}

/* May m be deleted by somebody who names this claim (absent: none)? docs/api.md 8.6. */
static enum status
may_delete(const struct queue *q, const struct message *m, struct bytes claim_id,
           int64_t now_ms)
{
    const struct claim *c;

    if (!bytes_present(claim_id))
        return m->claim == NULL ? ST_OK : ST_CLAIMED;
    c = claim_find(q, claim_id, now_ms);
    if (c == NULL || m->claim == NULL)
        return ST_NOT_CLAIMED;
    return m->claim == c ? ST_OK : ST_CLAIMED;
}

enum status
engine_message_delete(struct store *s, int64_t now_ms, const struct store_queue *where,
                      struct bytes id, struct bytes claim_id)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct message *m = NULL;
    struct list discarded;
    struct queue *q;
    enum status st = shard_settle(sh, &now_ms, SETTLE_CLAIMS);

    if (st != ST_OK)
        return st;
    list_init(&discarded);
    q = shard_find(sh, where, hash);
    if (q != NULL)
        m = find_live(q, id, now_ms);
    if (m != NULL)
        st = may_delete(q, m, claim_id, now_ms);
    if (m != NULL && st == ST_OK)
        discard(sh, m, &discarded);
    shard_leave(sh);
    message_unpin_all(e->mem, &discarded);
    return st;
}

/*
 * ST_CLAIMED unless every live one of the messages is held by one of the claims. O(ids +
 * claims): the claims are marked, and looked at from the messages.
 */
static enum status
check_holders(const struct queue *q, const struct bytes *ids, size_t count,
              const struct bytes *claim_ids, size_t claim_count, int64_t now_ms)
{
    enum status st = ST_OK;

    claim_name(q, claim_ids, claim_count, true, now_ms);
    for (size_t i = 0; st == ST_OK && i < count; i++) {
        const struct message *m = find_live(q, ids[i], now_ms);

        if (m != NULL && (m->claim == NULL || !m->claim->named))
            st = ST_CLAIMED;
    }
    claim_name(q, claim_ids, claim_count, false, now_ms);
    return st;
}

enum status
engine_message_delete_many(struct store *s, int64_t now_ms,
                           const struct store_queue *where, const struct bytes *ids,
                           size_t count, const struct bytes *claim_ids,
                           size_t claim_count)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct list discarded;
    struct message *m;
    struct queue *q;
    enum status st = shard_settle(sh, &now_ms, SETTLE_CLAIMS);

    if (st != ST_OK)
        return st;
    list_init(&discarded);
    q = shard_find(sh, where, hash);
    if (claim_ids != NULL && q != NULL)
        st = check_holders(q, ids, count, claim_ids, claim_count, now_ms);
    for (size_t i = 0; st == ST_OK && q != NULL && i < count; i++) {
        m = find_live(q, ids[i], now_ms);
        if (m != NULL)
            discard(sh, m, &discarded);
    }
    shard_leave(sh);
    message_unpin_all(e->mem, &discarded);
    return st;
}

enum status
engine_message_pop(struct store *s, int64_t now_ms, const struct store_queue *where,
                   size_t limit, struct store_batch *out)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct store_batch batch = STORE_BATCH_INIT;
    struct list discarded;
    struct queue *q;
    uint64_t seq = 0;
    enum status st;

    list_init(&discarded);
    st = batch_open(e, limit, &batch);
    if (st != ST_OK)
        return st;
    st = shard_settle(sh, &now_ms, SETTLE_ALL);
    if (st != ST_OK) {
        store_batch_release(&batch);
        return st;
    }
    q = shard_find(sh, where, hash);
    if (q != NULL)
        st = batch_fits(&q->backlog->messages, limit, out);
    while (st == ST_OK && q != NULL && batch.count < limit) {
        struct message *m = seqmap_next_ready(&q->backlog->messages, &seq);

        if (m == NULL)
            break;
        batch_add(&batch, m, q->tag, now_ms);
        discard(sh, m, &discarded);
    }
    shard_leave(sh);
    message_unpin_all(e->mem, &discarded);
    if (st == ST_OK)
        *out = batch;
    else
        store_batch_release(&batch);
    return st;
}
