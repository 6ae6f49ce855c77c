/*
 * replay_end: the last steps of a replay, with the numbers of state_replay.c.
 */
#include "claimd/base/invariant.h"
#include "engine/keys.h"
#include "engine/replay.h"
#include "engine/replay_feed.h"
#include "engine/run_unload.h"

/* The messages of a run that lack their bodies, while those are read. */
struct reading {
    struct replay *replay;
    struct run *run;
};

static enum status
put_bodies(void *arg, struct store_change *state)
{
    const struct reading *reading = arg;
    struct replay *r = reading->replay;
    struct backlog *b = reading->run->backlog;
    struct store_message_record record;
    enum status st = ST_OK;

    while (st == ST_OK && state->next(state, &record)) {
        struct message *old = seqmap_find(&b->messages, record.number), *m;

        if (old == NULL || !old->lacks_body)
            continue;
        m = message_of_record(r->core->mem, &record, false, &st);
        if (m == NULL)
            break;
        backlog_exchange(b, &r->shard.pool, old, m);
        message_unpin(r->core->mem, old);
    }
    return st;
}

/* Connects a run with its body file, and reads the bodies of its messages in memory. If
 * the file is gone, the messages had expired. */
static enum status
adopt_run(struct replay *r, const struct queue *q, struct run *run)
{
    struct store_runs *runs = r->core->config.runs;
    struct reading reading = {r, run};
    struct store_outline packed[RUN_MESSAGES];
    struct store_run_record record;
    enum status st;

    run_record(run, packed, &record);
    st = runs->adopt(runs, &q->where, &record);
    if (st == ST_NOT_FOUND) {
        replay_drop_stored(r, run->backlog, run, run->stored);
        return ST_OK;
    }
    if (st != ST_OK)
        return st;
    run->adopted = true;
    return run->stored == run->unloaded
               ? ST_OK
               : runs->read(runs, &run->place, put_bodies, &reading);
}

static enum status
adopt_runs(struct replay *r, const struct replayed_queue *v)
{
    enum status st = ST_OK;
    struct run *run;

    for (uint64_t at = 0;
         st == ST_OK && (run = seqmap_next_live(&v->backlog->runs, &at)) != NULL; at++)
        st = adopt_run(r, v->queue, run);
    shard_release_runs(&r->shard);
    seqmap_pool_trim(&r->shard.pool);
    return st;
}

/* Arms the deadlines of the queue's messages. ST_NO_MEMORY. */
static enum status
arm_messages(struct shard *sh, struct backlog *b)
{
    struct message *m;
    struct run *run;
    uint64_t at;

    if (b->runs.live > 0 && runs_prepare(sh) != ST_OK)
        return ST_NO_MEMORY;
    for (at = 0; (m = seqmap_next_live(&b->messages, &at)) != NULL; at++)
        shard_arm_message(sh, &m->due, m->due.due_ms);
    for (at = 0; (run = seqmap_next_live(&b->runs, &at)) != NULL; at++)
        run_arm(sh, run);
    shard_consider_unload(sh, b);
    return ST_OK;
}

static enum status
move_to_shard(struct engine *e, struct replayed_queue *v)
{
    struct replay *r = e->replay;
    struct queue *q = v->queue;
    uint64_t hash, at;
    struct claim *c;
    struct shard *sh;
    enum status st;

    if (q == NULL)
        return ST_BAD_VALUE; /* the log never named it */
    hash = core_hash(&e->core, &q->where);
    sh = engine_shard(e, hash);
    if (shard_find(sh, &q->where, hash) != NULL)
        return ST_BAD_VALUE; /* two queues have this name */
    if (v->feed != NULL && v->feed->subscriptions.live == 0)
        replay_feed_none(&r->shard, &v->feed);
    st = adopt_runs(r, v);
    if (st == ST_OK && v->feed != NULL)
        st = subscription_reserve(sh, v->feed, 1);
    if (st == ST_OK)
        st = shard_enlist(sh, q, 0);
    if (st != ST_OK)
        return st;
    ENSURE(q->shard == NULL && q->feed == NULL);
    q->version = ++sh->last_number;
    q->last_seq = q->reserved_seq = v->last_seq;
    q->last_claim = q->reserved_claim = v->last_claim;
    for (at = 0; (c = seqmap_next_live(&v->backlog->claims, &at)) != NULL; at++)
        if (c->held == 0) /* its messages are gone, or other claims hold them */
            claim_end(&r->shard, c);
    backlog_count_in(v->backlog, &sh->alive);
    (void)directory_charge(&q->entry, backlog_live(v->backlog), v->backlog->bytes, NULL);
    shard_link(sh, q, hash);
    for (at = 0; (c = seqmap_next_live(&v->backlog->claims, &at)) != NULL; at++)
        shard_arm_claim(sh, &c->due, c->due.due_ms);
    st = arm_messages(sh, v->backlog);
    if (v->feed != NULL)
        replay_feed_end(sh, q, v->feed);
    hashmap_remove(&r->queues, &v->node);
    mem_free(e->core.mem, v);
    /* Logs the next reservation of a transient queue, which continues behind the numbers
     * that it may have used. One record does both, so no crash loses it. */
    if (queue_transient(q) && st == ST_OK)
        st = changelog_reserve(sh, STORE_CHANGE_QUEUE, 0,
                               queue_bytes(&q->where, &q->metadata->document));
    if (queue_transient(q) && st == ST_OK) {
        queue_reserve_numbers(q);
        changelog_queue(q, STORE_CHANGE_QUEUE, sh->now_ms);
    }
    return st;
}

/* Moves the keys to the shards of their queues. Those of deleted and transient queues
 * end. */
static enum status
move_keys_to_shards(struct engine *e, int64_t now_ms)
{
    struct replay *r = e->replay;
    enum status st;

    lock_acquire(&r->shard.lock);
    st = keys_sort(&r->shard);
    while (st == ST_OK && !list_empty(&r->shard.key_order)) {
        struct key *key = container_of(r->shard.key_order.next, struct key, link);
        const struct replayed_queue *v = replayed_find(r, key->tag);
        struct shard *sh;

        if (v == NULL || v->queue == NULL || queue_transient(v->queue)) {
            key_drop(&r->shard, key);
            continue;
        }
        sh = engine_shard(e, core_hash(&e->core, &v->queue->where));
        (void)shard_enter(sh, now_ms);
        st = key_move(&r->shard, key, sh, v->queue->where.project);
        shard_leave(sh);
    }
    lock_release(&r->shard.lock);
    return st;
}

static enum status
move_all_to_shards(struct engine *e, int64_t now_ms)
{
    struct hashmap *queues = &e->replay->queues;
    struct hashnode *node = hashmap_walk(queues, NULL);
    enum status st = move_keys_to_shards(e, now_ms);

    while (st == ST_OK && node != NULL) {
        struct replayed_queue *v = container_of(node, struct replayed_queue, node);
        const struct queue *q = v->queue;
        struct shard *sh =
            q == NULL ? &e->shards[0] : engine_shard(e, core_hash(&e->core, &q->where));

        node = hashmap_walk(queues, node);
        lock_acquire(&e->replay->shard.lock);
        (void)shard_enter(sh, now_ms);
        st = move_to_shard(e, v);
        shard_leave(sh);
        lock_release(&e->replay->shard.lock);
    }
    return st;
}

enum status
engine_replay_end(struct store *s, int64_t now_ms)
{
    struct engine *e = engine_of(s);
    enum status st = ST_OK;
    int64_t next_ms;

    /* The wall clock at the start may be ahead of the time that the log continues. */
    for (size_t i = 0; i < e->shard_count; i++)
        shard_restart(&e->shards[i], now_ms);
    if (e->replay != NULL)
        st = move_all_to_shards(e, now_ms);
    engine_replay_drop(e);
    if (st != ST_OK)
        return st;
    /* Messages first: one that was requeued, and expired before the process ended, is no
     * dead letter. */
    for (size_t i = 0; i < e->shard_count; i++)
        expire_messages_only(&e->shards[i], now_ms);
    do /* expires what became due meanwhile */
        store_housekeep(&e->store, now_ms, &next_ms);
    while (next_ms <= now_ms);
    return ST_OK;
}
