#include "engine/visit.h"
#include "claimd/base/invariant.h"

enum status
visit_enter(struct visit *v, struct store *s, struct store_visit *outer,
            const struct store_queue *where, enum settle settle)
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
    outer->waits = false;
    if (settle == SETTLE_NOTHING)
        v->now_ms = shard_enter(v->shard, v->now_ms);
    else
        st = settle_enter(v->shard, &v->now_ms, settle);
    if (st != ST_OK)
        return st;
    v->shard->actor = outer->actor;
    v->queue = shard_find(v->shard, where, v->hash);
    return ST_OK;
}

void
visit_leave(struct visit *v)
{
    uint64_t position = v->queue != NULL ? v->queue->position : v->shard->gone_position;

    if (v->outer->position < position)
        v->outer->position = position;
    v->shard->actor = NULL;
    shard_leave(v->shard);
    if (!v->outer->flush_later)
        store_log_flush(v->engine->core.log);
}

static struct waitqueue *
waitqueue_here(const struct visit *v)
{
    return v->queue != NULL ? v->queue->waitqueue
                            : shard_waitqueue(v->shard, v->where, v->hash);
}

size_t
visit_share(struct visit *v)
{
    size_t ready = v->queue == NULL ? 0 : backlog_ready(v->queue->backlog), reserved = 0;
    const struct waitqueue *waitqueue;

    v->from_seq = 0;
    if (v->outer->waiter == NULL || ready == 0)
        return ready;
    waitqueue = waitqueue_here(v);
    if (waitqueue != NULL)
        reserved = waitqueue_reserved(waitqueue, v->outer->waiter);
    if (reserved >= ready)
        return 0;
    for (size_t i = 0; i < reserved; i++, v->from_seq++)
        (void)backlog_next_ready(v->queue->backlog, &v->from_seq);
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
