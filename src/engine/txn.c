#include "engine/txn.h"
#include "claimd/base/sometimes.h"

static enum status
begin(struct txn *t, struct store *s, struct store_op *op,
      const struct store_queue *where, enum expiry which, bool locked)
{
    struct engine *e = engine_of(s);
    enum status st = ST_OK;

    t->engine = e;
    t->op = op;
    t->where = where;
    t->hash = core_hash(&e->core, where);
    t->shard = engine_shard(e, t->hash);
    t->now_ms = op->now_ms;
    t->from_seq = 0;
    t->queue_is_new = false;
    op->waits = op->paused = op->loads = false;
    if (which == EXPIRE_NOTHING)
        t->now_ms = shard_enter(t->shard, t->now_ms);
    else
        st = (locked ? expire_enter_locked : expire_enter)(t->shard, &t->now_ms, which);
    if (st != ST_OK)
        return st;
    t->shard->actor = op->actor;
    t->queue = shard_find(t->shard, where, t->hash);
    return ST_OK;
}

enum status
txn_begin(struct txn *t, struct store *s, struct store_op *op,
          const struct store_queue *where, enum expiry which)
{
    return begin(t, s, op, where, which, false);
}

enum status
txn_begin_locked(struct txn *t, struct store *s, struct store_op *op,
                 const struct store_queue *where, enum expiry which)
{
    return begin(t, s, op, where, which, true);
}

/* Out of line: almost no transaction needs it. */
static void __attribute__((noinline)) discard_queue(struct txn *t)
{
    SOMETIMES(NEW_QUEUE_DISCARDED);
    shard_discard(t->shard, t->queue);
    t->queue = NULL;
}

void
txn_end(struct txn *t)
{
    uint64_t lsn;

    ENSURE(t->queue == NULL || (t->queue->shard == t->shard) != t->queue_is_new);
    if (__builtin_expect(t->queue_is_new, 0))
        discard_queue(t);
    lsn = t->queue != NULL ? t->queue->lsn : t->shard->gone_lsn;
    if (t->op->lsn < lsn)
        t->op->lsn = lsn;
    t->shard->actor = NULL;
    shard_leave(t->shard);
    if (!t->op->flush_later)
        store_log_flush(t->engine->core.log);
}

enum status
txn_make_queue(struct txn *t, const struct store_metadata *metadata)
{
    t->queue = shard_new_queue(t->shard, t->where, metadata);
    t->queue_is_new = t->queue != NULL;
    return t->queue_is_new ? ST_OK : ST_NO_MEMORY;
}

enum status
txn_reserve_queue(const struct txn *t)
{
    enum status st = ST_OK;

    if (t->queue_is_new)
        st =
            shard_enlist(t->shard, t->queue, atomic_load(&t->engine->core.limits.queues));
    return t->queue_is_new && st == ST_OK
               ? txn_reserve(t, STORE_CHANGE_QUEUE, 0,
                             queue_bytes(t->where, &t->queue->metadata->document))
               : st;
}

bool
txn_link_queue(struct txn *t)
{
    if (!t->queue_is_new)
        return false;
    t->queue_is_new = false;
    shard_link(t->shard, t->queue, t->hash);
    metrics_count(&t->shard->metrics, STORE_COUNT_QUEUES_MADE, 1);
    return true;
}

size_t
txn_available(struct txn *t)
{
    size_t ready = t->queue == NULL ? 0 : queue_ready_count(t->queue), reserved = 0;
    const struct waitqueue *waitqueue;

    t->op->paused = t->queue != NULL && queue_is_paused(t->queue, STORE_PAUSE_CLAIMS);
    t->from_seq = 0;
    if (t->op->waiter == NULL || ready == 0)
        return ready;
    waitqueue = t->queue->waitqueue;
    if (waitqueue != NULL)
        reserved = waitqueue_reserved(waitqueue, t->op->waiter);
    if (reserved >= ready)
        return 0;
    for (size_t i = 0; i < reserved; i++)
        t->from_seq = backlog_next_ready(t->queue->backlog, t->from_seq) + 1;
    return ready - reserved;
}

enum status
txn_wait(struct txn *t, size_t wants)
{
    struct store_waiter *w = t->op->waiter;
    enum status st;

    if (w == NULL)
        return ST_OK;
    /* The queue was deleted, and its waiters are about to be notified. */
    if (w->waitqueue != NULL && ((struct waitqueue *)w->waitqueue)->closed) {
        SOMETIMES(WAITER_OF_GONE);
        shard_stop_waiting(t->shard, w);
        return ST_OK;
    }
    st = shard_wait(t->shard, t->where, t->hash, t->queue, w, wants);
    t->op->waits = st == ST_OK;
    /* Dead letters that could not be moved block the waiter: wake it to try again. */
    if (st == ST_OK && txn_available(t) > 0)
        waitqueue_mark_dirty(w->waitqueue);
    return st;
}

struct message *
txn_find_message(const struct txn *t, struct bytes text)
{
    struct message *m;
    struct ident id;

    if (!ident_read(text, &id))
        return NULL;
    m = backlog_find(t->queue->backlog, t->queue->tag, id);
    return m != NULL && message_live(m, t->now_ms) ? m : NULL;
}

void
txn_remove_message(struct txn *t, struct message *m, struct discarded *d)
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

enum status
batch_open(struct engine *e, size_t capacity, struct store_batch *out)
{
    struct store_batch batch = STORE_BATCH_INIT;

    if (capacity > SIZE_MAX / sizeof(*batch.messages))
        return ST_NO_MEMORY;
    batch.messages = mem_alloc(e->core.mem, capacity * sizeof(*batch.messages));
    if (batch.messages == NULL)
        return ST_NO_MEMORY;
    batch.store = &e->store;
    *out = batch;
    return ST_OK;
}

enum status
batch_check(struct txn *t, size_t count, struct store_batch *out)
{
    const struct seqmap *messages = &t->queue->backlog->messages;
    /* In the order of the queue. NULL: no message is encrypted, or that does not
     * matter. */
    const struct store_batch *opened = t->queue->backlog->sealed > 0 ? out->opened : NULL;
    size_t need = 0, at = 0, left = count;
    bool complete = true;
    struct message *m;
    enum status st;

    if (out->capacity == 0 && opened == NULL && t->op->key == NULL)
        return ST_OK;
    for (uint64_t seq = t->from_seq;
         left > 0 && (m = seqmap_next_ready(messages, &seq)) != NULL; left--, seq++) {
        need += m->body_len;
        if (opened == NULL || !store_is_sealed(message_body(m)))
            continue;
        while (at < opened->count && opened->messages[at].pin != m)
            at++;
        complete = complete && at < opened->count;
    }
    t->checked_bytes = need;
    if (out->capacity > 0 && need > out->capacity) {
        out->capacity = need;
        return ST_OVER_CAPACITY;
    }
    if (complete)
        return ST_OK;
    st = batch_open(t->engine, count, out);
    if (st != ST_OK)
        return st;
    for (uint64_t seq = t->from_seq;
         count > 0 && (m = seqmap_next_ready(messages, &seq)) != NULL; count--, seq++)
        batch_add(out, m, t->queue->tag, t->now_ms);
    return ST_SEALED;
}

void
batch_add(struct store_batch *batch, struct message *m, uint32_t tag, int64_t now_ms)
{
    struct store_message *out = &batch->messages[batch->count++];

    ident_write(&out->id, message_ident(m, tag));
    out->claim_id = batch->claim_id;
    if (batch->claim_id.text[0] == '\0' && m->claim != NULL)
        ident_write(&out->claim_id, claim_ident(m->claim));
    out->body = message_body(m);
    out->checksum = message_checksum(m);
    out->ttl_s = (m->expires_ms - m->posted_ms) / 1000;
    out->age_s = (now_ms - m->posted_ms) / 1000;
    out->posted_ms = m->posted_ms;
    out->expires_ms = m->expires_ms;
    out->delayed_until_ms = m->delayed && now_ms < m->due.due_ms ? m->due.due_ms : 0;
    out->details = message_details(m) == NULL ? NULL : details_pin(message_details(m));
    out->claim_count = m->claim_count;
    out->pin = m;
    message_pin(m);
}

void
engine_batch_release(const struct store *s, struct store_batch *batch)
{
    struct mem *mem = ((const struct engine *)s)->core.mem;

    for (size_t i = 0; i < batch->count; i++) {
        const struct store_details *details = batch->messages[i].details;

        if (details != NULL)
            details_unpin(mem, details_of(details));
        message_unpin(mem, batch->messages[i].pin);
    }
    mem_free(mem, batch->messages);
}
