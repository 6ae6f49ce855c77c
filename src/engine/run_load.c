/*
 * run_load: reads unloaded messages into memory. Declared in run_load.h.
 *
 *     1. An operation finds an unloaded message among those that it needs
 *        (txn_load_...()), or messages were taken at the head of a queue (load_ahead()).
 *     2. load_run() hands the run to the reader (journal/bodies.c). The operation returns
 *        ST_AGAIN with op->loads.
 *     3. The reader calls run_loaded(), which makes the messages, takes the lock and adds
 *        those that are still unloaded: others expired or were purged meanwhile.
 *     4. The log notifies its listeners, and the operation is repeated.
 *
 * Read run_unload.c next.
 */
#include "engine/run_load.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "engine/run_unload.h"

/* AHEAD_MESSAGES: load_ahead() loads more if fewer numbers are between the head and the
 * first unloaded message. AHEAD_RUNS: so many runs at a time. */
enum { AHEAD_MESSAGES = 2048, AHEAD_RUNS = 16 };

/* Bytes that run_move() loads in a checkpoint of a shard. */
enum { MOVE_BYTES = 1 << 20 };

struct run_load {
    struct store_load load;
    struct shard *shard;
    struct run *run;
};

/* Makes the messages of a run, by bit. ST_NO_MEMORY. */
static enum status
make_messages(struct mem *mem, struct store_change *state, struct message **made)
{
    struct store_message_record record;
    enum status st = ST_OK;

    while (st == ST_OK && state->next(state, &record)) {
        struct message *m = message_of_record(mem, &record, false, &st);

        if (m == NULL)
            break;
        m->seq = record.number;
        made[record.number % RUN_MESSAGES] = m;
    }
    return st;
}

/* Adds those messages that are still unloaded to their backlog. */
static void
add_loaded(struct shard *sh, struct run *r, struct message **made)
{
    struct backlog *b = r->backlog;
    const uint64_t bits = r->unloaded;

    if (seqmap_pool_stock(
            &sh->pool, seqmap_nodes_for(&b->messages, r->first, RUN_MESSAGES)) != ST_OK)
        return;
    for (uint64_t rest = bits; rest != 0; rest &= rest - 1) {
        const unsigned bit = run_lowest(rest);
        struct message *m = made[bit];

        ENSURE(m != NULL && m->body_len == r->outlines[bit].length);
        made[bit] = NULL;
        backlog_load(b, &sh->pool, m);
        shard_arm_message(sh, &m->due, m->expires_ms);
        sh->loaded_bytes += m->body_len + sizeof(*m);
    }
    backlog_count_loaded(r, bits);
    run_arm(sh, r);
    r->loaded_at = sh->loaded_bytes;
    r->loaded_ms = sh->now_ms;
    if (r->moving)
        run_mark_changed(r, UINT64_MAX);
    seqmap_pool_trim(&sh->pool);
    if (b->unload_at > r->first / RUN_MESSAGES)
        b->unload_at = r->first / RUN_MESSAGES;
    if (b->queue != NULL)
        shard_consider_unload(sh, b);
    unload_soon(sh);
}

static void
run_loaded(struct store_load *base, struct store_change *state)
{
    struct run_load *l = container_of(base, struct run_load, load);
    struct message *made[RUN_MESSAGES] = {NULL};
    struct shard *sh = l->shard;
    struct mem *mem = sh->core->mem;
    struct run *r = l->run;
    enum status st = state == NULL ? ST_IO : make_messages(mem, state, made);

    lock_acquire(&sh->lock);
    ENSURE(r->loading);
    r->loading = false;
    SOMETIMES_IF(r->backlog == NULL, RUN_LOADED_LATE);
    if (r->backlog == NULL)
        list_add_before(&sh->ended_runs, &r->link);
    else if (st == ST_OK)
        add_loaded(sh, r, made);
    shard_leave(sh);
    for (size_t i = 0; i < RUN_MESSAGES; i++)
        if (made[i] != NULL)
            message_unpin(mem, made[i]);
    mem_free(mem, l);
}

/* Requests a run, unless it is requested already. ST_NO_MEMORY. */
static enum status
load_run(struct shard *sh, struct run *r)
{
    struct store_runs *runs = sh->core->config.runs;
    struct run_load *l;

    if (r->loading)
        return ST_OK;
    l = mem_alloc(sh->core->mem, sizeof(*l));
    if (l == NULL)
        return ST_NO_MEMORY;
    *l = (struct run_load){
        .load = {.place = r->place, .done = run_loaded}, .shard = sh, .run = r};
    r->loading = true;
    runs->load(runs, &l->load);
    return ST_OK;
}

/* Requests runs with `count` unloaded messages from number seq on. Returns the status of
 * the operation that needs them. */
static enum status
load_runs(struct txn *t, uint64_t seq, size_t count)
{
    const struct seqmap *runs = &t->queue->backlog->runs;
    uint64_t block = seq / RUN_MESSAGES;
    enum status st = ST_OK;
    struct run *r;

    for (size_t got = 0;
         st == ST_OK && got < count && (r = seqmap_next_ready(runs, &block)) != NULL;
         block++) {
        got += run_count(r->unloaded);
        st = load_run(t->shard, r);
    }
    t->op->loads = st == ST_OK;
    return st == ST_OK ? ST_AGAIN : st;
}

/* Requests what is unloaded of the first `count` messages from number seq on that next()
 * finds. */
static enum status
load_unless_here(struct txn *t, uint64_t seq, size_t count,
                 void *next(const struct seqmap *map, uint64_t *seq))
{
    const struct backlog *b = t->queue->backlog;
    const uint64_t unloaded = backlog_next_unloaded(b, seq);

    for (; unloaded != RUN_NONE && count > 0; count--, seq++)
        if (next(&b->messages, &seq) == NULL || seq > unloaded)
            return load_runs(t, unloaded, count);
    return ST_OK;
}

void
run_move(struct shard *sh, struct run *r)
{
    if (r->unloaded == 0)
        run_mark_changed(r, UINT64_MAX);
    if (r->unloaded == 0 || sh->checkpoint.moved > MOVE_BYTES)
        return;
    sh->checkpoint.moved += r->place.length;
    r->moving = true;
    SOMETIMES(RUN_MOVED);
    (void)load_run(sh, r); /* without memory the next checkpoint tries again */
}

enum status
load_ready(struct txn *t, size_t count)
{
    return load_unless_here(t, t->from_seq, count, seqmap_next_ready);
}

enum status
txn_load_from(struct txn *t, uint64_t seq, size_t count)
{
    return load_unless_here(t, seq, count, seqmap_next_live);
}

enum status
load_ids(struct txn *t, const struct bytes *ids, size_t count)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < count; i++) {
        struct ident id;
        enum status one;

        if (!ident_read(ids[i], &id) || id.high != t->queue->tag ||
            !backlog_is_unloaded(t->queue->backlog, id.low))
            continue;
        one = load_runs(t, id.low, 1);
        if (st == ST_OK || one != ST_AGAIN)
            st = one;
    }
    return st;
}

void
load_next(struct shard *sh, struct backlog *b)
{
    const uint64_t unloaded = backlog_next_unloaded(b, 0);
    uint64_t first = 0, block = unloaded / RUN_MESSAGES;
    struct run *r;

    if (unloaded == RUN_NONE)
        return;
    if (seqmap_next_ready(&b->messages, &first) == NULL)
        first = unloaded;
    if (unloaded > first && unloaded - first > AHEAD_MESSAGES)
        return;
    for (int i = 0; i < AHEAD_RUNS && (r = seqmap_next_ready(&b->runs, &block)) != NULL;
         i++, block++)
        if (load_run(sh, r) != ST_OK)
            return; /* the operation that needs it requests it again */
}
