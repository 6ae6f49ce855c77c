/*
 * run_load: reads unloaded messages into memory. Declared in run_load.h.
 *
 *     1. An operation finds an unloaded message among those that it needs
 *        (txn_load_...()), or messages were taken at the head of a queue (load_ahead()).
 *     2. run_read() hands the run to the reader (journal/bodies.c). The operation returns
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
#include "engine/run_read.h"

/* AHEAD_MESSAGES: load_ahead() loads more if fewer numbers are between the head and the
 * first unloaded message. AHEAD_RUNS: so many runs at a time. */
enum { AHEAD_MESSAGES = 2048, AHEAD_RUNS = 16 };

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
        st = run_read(t->shard, r);
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
        if (run_read(sh, r) != ST_OK)
            return; /* the operation that needs it requests it again */
}
