/*
 * run: messages of a backlog that a body file has (claimd/store/runs.h).
 *
 * A run has messages with 64 neighboring numbers, the first a multiple of 64. Each is in
 * one of these states:
 *
 *     in memory, without a run
 *         | run_unload.c writes it, and logs a RUN
 *         v
 *     stored, unloaded --- run_load.c ---> stored, in memory
 *         ^                                   |        |
 *         +---- memory is needed again -------+        | it is claimed or changed
 *                                                      v
 *                                          stored, changed, in memory
 *
 *     and from any state: deleted, purged, expired, moved
 *
 * An unloaded message is ready, and was not changed since it was written. A stored
 * message needs its body file after a crash, until it is gone or a checkpoint has logged
 * it whole. A run ends with its last stored message. backlog.h finds and counts the
 * messages of runs. run_ops.h makes, ends and expires runs.
 *
 *   Memory   about 650 bytes for 64 messages
 *   Threads  the lock of the shard
 */
#ifndef ENGINE_RUN_H
#define ENGINE_RUN_H

#include "claimd/ds/seqmap.h"
#include "claimd/ds/wheel.h"
#include "claimd/store/runs.h"

struct backlog;

/* RUN_KEEP_MS: loaded messages stay for so long, because an operation needs them. */
enum { RUN_MESSAGES = 64, RUN_KEEP_MS = 1000 };

/* A number that no message has. */
#define RUN_NONE UINT64_MAX

struct run {
    /* In the shard's run_wheel: the next expiry of an unloaded one. */
    struct deadline due;
    struct list link;        /* in the shard's ended_runs */
    struct backlog *backlog; /* NULL: the run ended, or was never linked */
    uint64_t first;
    /* Bit i: number first + i. */
    uint64_t stored, unloaded, changed, unread, sealed;
    int64_t posted_ms;  /* of the first one when it was written */
    int64_t expires_ms; /* see outlines */
    uint64_t loaded_at; /* the shard's loaded_bytes behind it; 0: not loaded, */
    int64_t loaded_ms;  /* and when */
    struct store_place place;
    bool loading;
    bool moving;  /* once it is loaded, the next checkpoint has all of it */
    bool adopted; /* the body file counts it */
    struct store_outline outlines[RUN_MESSAGES]; /* by bit */
};

static inline uint64_t
run_bit(uint64_t seq)
{
    return UINT64_C(1) << (seq % RUN_MESSAGES);
}

static inline int64_t
run_expires_ms(const struct run *r, unsigned bit)
{
    return r->expires_ms + (int64_t)r->outlines[bit].life;
}

static inline unsigned
run_lowest(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

static inline size_t
run_count(uint64_t bits)
{
    return (size_t)__builtin_popcountll(bits);
}

/* The bytes of the bodies of these messages. */
uint64_t run_bytes(const struct run *r, uint64_t bits);

/* Notes that these messages, which are in memory, need not be as they were written. The
 * next checkpoint logs them whole. */
static inline void
run_mark_changed(struct run *r, uint64_t bits)
{
    r->changed |= r->stored & bits;
}

/* Describes a run for the log. `packed` has space for 64 outlines. */
void run_record(const struct run *r, struct store_outline *packed,
                struct store_run_record *out);

/* Makes a run of a record, which is not linked yet. NULL without memory. */
struct run *run_of_record(struct mem *mem, const struct store_run_record *record);

#endif
