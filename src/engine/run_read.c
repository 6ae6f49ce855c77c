#include "engine/run_read.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"

/* MOVE_BYTES: run_move() reads them in a checkpoint of a shard. */
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

/* Has run_unload.c look at loaded messages when no operation needs them any more. */
static void
look_later(struct shard *sh)
{
    if (list_empty(&sh->long_backlogs) || sh->unload_ms != WHEEL_NEVER)
        return;
    sh->unload_ms = sh->now_ms + RUN_KEEP_MS;
    shard_wake_at(sh, sh->unload_ms);
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
    look_later(sh);
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

enum status
run_read(struct shard *sh, struct run *r)
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
    (void)run_read(sh, r); /* without memory the next checkpoint tries again */
}
