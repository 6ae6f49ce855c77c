#include "engine/visit.h"

enum status
visit_enter(struct visit *v, struct store *s, struct store_visit *outer,
            const struct store_queue *where, enum expiry which)
{
    struct engine *e = engine_of(s);
    enum status st = ST_OK;

    v->engine = e;
    v->outer = outer;
    v->where = where;
    v->hash = core_hash(&e->core, where);
    v->shard = engine_shard(e, v->hash);
    v->now_ms = outer->now_ms;
    v->from_seq = 0;
    v->made = false;
    outer->waits = false;
    if (which == EXPIRE_NOTHING)
        v->now_ms = shard_enter(v->shard, v->now_ms);
    else
        st = expire_enter(v->shard, &v->now_ms, which);
    if (st != ST_OK)
        return st;
    v->shard->actor = outer->actor;
    v->queue = shard_find(v->shard, where, v->hash);
    return ST_OK;
}

/* Out of line: nearly no visit comes here. */
static void __attribute__((noinline)) discard_queue(struct visit *v)
{
    shard_discard(v->shard, v->queue);
    v->queue = NULL;
}

void
visit_leave(struct visit *v)
{
    uint64_t position;

    if (__builtin_expect(v->made, 0))
        discard_queue(v);
    position = v->queue != NULL ? v->queue->position : v->shard->gone_position;
    if (v->outer->position < position)
        v->outer->position = position;
    v->shard->actor = NULL;
    shard_leave(v->shard);
    if (!v->outer->flush_later)
        store_log_flush(v->engine->core.log);
}

enum status
visit_make_queue(struct visit *v, const struct store_metadata *metadata)
{
    v->queue = shard_new_queue(v->shard, v->where, metadata);
    v->made = v->queue != NULL;
    return v->made ? ST_OK : ST_NO_MEMORY;
}

enum status
visit_reserve_queue(const struct visit *v)
{
    enum status st = ST_OK;

    if (v->made)
        st =
            shard_enlist(v->shard, v->queue, atomic_load(&v->engine->core.limits.queues));
    return v->made && st == ST_OK
               ? visit_reserve(v, STORE_CHANGE_QUEUE, 0,
                               queue_bytes(v->where, &v->queue->metadata->document))
               : st;
}

bool
visit_link_queue(struct visit *v)
{
    if (!v->made)
        return false;
    v->made = false;
    shard_link(v->shard, v->queue, v->hash);
    figures_count(&v->shard->figures, STORE_COUNT_QUEUES_MADE, 1);
    return true;
}

size_t
visit_share(struct visit *v)
{
    size_t ready = v->queue == NULL ? 0 : v->queue->backlog->messages.ready, reserved = 0;
    const struct waitqueue *waitqueue;

    v->from_seq = 0;
    if (v->outer->waiter == NULL || ready == 0)
        return ready;
    waitqueue = v->queue->waitqueue;
    if (waitqueue != NULL)
        reserved = waitqueue_reserved(waitqueue, v->outer->waiter);
    if (reserved >= ready)
        return 0;
    for (size_t i = 0; i < reserved; i++, v->from_seq++)
        (void)seqmap_next_ready(&v->queue->backlog->messages, &v->from_seq);
    return ready - reserved;
}

enum status
visit_wait(struct visit *v, size_t wants)
{
    struct store_waiter *w = v->outer->waiter;
    enum status st;

    if (w == NULL)
        return ST_OK;
    /* Its queue was deleted, and it is about to hear of that. */
    if (w->waitqueue != NULL && ((struct waitqueue *)w->waitqueue)->ended) {
        shard_stop_waiting(v->shard, w);
        return ST_OK;
    }
    st = shard_wait(v->shard, v->where, v->hash, v->queue, w, wants);
    v->outer->waits = st == ST_OK;
    /* Dead letters that could not be moved are in its way: it is called to try again. */
    if (st == ST_OK && visit_share(v) > 0)
        waitqueue_mark_dirty(w->waitqueue);
    return st;
}

enum status
batch_open(struct engine *e, size_t room, struct store_batch *out)
{
    struct store_batch batch = STORE_BATCH_INIT;

    if (room > SIZE_MAX / sizeof(*batch.messages))
        return ST_NO_MEMORY;
    batch.messages = mem_alloc(e->core.mem, room * sizeof(*batch.messages));
    if (batch.messages == NULL)
        return ST_NO_MEMORY;
    batch.store = &e->store;
    *out = batch;
    return ST_OK;
}

enum status
batch_fits(const struct visit *v, size_t count, struct store_batch *out)
{
    const struct backlog *b = v->queue->backlog;
    const struct message *m;
    size_t need = 0;

    if (out->room == 0)
        return ST_OK;
    for (uint64_t seq = v->from_seq;
         count > 0 && (m = seqmap_next_ready(&b->messages, &seq)) != NULL; count--, seq++)
        need += m->body_len;
    if (need <= out->room)
        return ST_OK;
    out->room = need;
    return ST_NO_ROOM;
}

/* True if none of the first `count` messages that the visit may take is sealed and missing in
 * `opened`; both are in the order of their queue. */
static bool
are_opened(const struct visit *v, size_t count, const struct store_batch *opened)
{
    const struct backlog *b = v->queue->backlog;
    const struct message *m;
    size_t at = 0;

    for (uint64_t seq = v->from_seq;
         count > 0 && (m = seqmap_next_ready(&b->messages, &seq)) != NULL;
         count--, seq++) {
        if (!store_is_sealed(message_body(m)))
            continue;
        while (at < opened->count && opened->messages[at].pin != m)
            at++;
        if (at == opened->count)
            return false;
    }
    return true;
}

enum status
batch_opened(const struct visit *v, size_t count, struct store_batch *out)
{
    const struct backlog *b = v->queue->backlog;
    struct message *m;
    enum status st;

    if (out->opened == NULL || are_opened(v, count, out->opened))
        return ST_OK;
    st = batch_open(v->engine, count, out);
    if (st != ST_OK)
        return st;
    for (uint64_t seq = v->from_seq;
         count > 0 && (m = seqmap_next_ready(&b->messages, &seq)) != NULL; count--, seq++)
        batch_add(out, m, v->queue->tag, v->now_ms);
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
    out->claim_count = m->claim_count;
    out->pin = m;
    message_pin(m);
}

void
engine_batch_release(const struct store *s, struct store_batch *batch)
{
    struct mem *mem = ((const struct engine *)s)->core.mem;

    for (size_t i = 0; i < batch->count; i++)
        message_unpin(mem, batch->messages[i].pin);
    mem_free(mem, batch->messages);
}
