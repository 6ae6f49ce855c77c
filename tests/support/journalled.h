/*
 * journalled: an engine over a journal on a simulated disk, as one process.
 *
 *     struct journalled p = {.disk = disk, .segment_bytes = SEGMENT, .seed = 1};
 *     journalled_start(&p, now_ms);    what is on the disk is there again
 *     journalled_commit(&p);           there is no thread that does
 *     journalled_stop(&p);             in peace, or because its disk is dead
 *
 * It may be started again afterwards: its seed is another one then.
 */
#ifndef TESTS_SUPPORT_JOURNALLED_H
#define TESTS_SUPPORT_JOURNALLED_H

#include "claimd/engine/engine.h"
#include "claimd/journal/journal.h"
#include "support/sim_disk.h"

struct journalled {
    struct sim_disk *disk; /* borrowed */
    uint64_t segment_bytes;
    uint64_t max_bytes;        /* of the journal; 0: no limit */
    bool require_confirmation; /* of subscriptions */
    bool unload;               /* every message that can be; also CLAIMD_TEST_UNLOAD */
    uint64_t backlog_memory;   /* otherwise; 0: no message leaves memory */
    uint64_t seed;             /* of the process, counted up by journalled_start() */
    struct clock *clock;       /* of the store, borrowed; NULL: none */
    const uint8_t *boot_id;    /* of the machine; NULL: unknown */
    int64_t stopwatch_ns;      /* of the machine at the start */

    /* Of the process that runs. */
    struct disk *seen; /* the disk, as it has it; borrowed */
    struct journal *journal;
    struct journal_recovery recovery;
    struct mem *mem;
    struct store *store; /* a patient one */
};

/* The process begins; ck_assert()s that it can. Any clock is believed. */
void journalled_start(struct journalled *p, int64_t now_ms);

/* All that has happened is durable. */
void journalled_commit(struct journalled *p);

/* The store must have given back all its memory. */
void journalled_stop(struct journalled *p);

#endif
