/*
 * world: what a seed of the crash simulation has; private to tests/crash.
 */
#ifndef TESTS_CRASH_WORLD_H
#define TESTS_CRASH_WORLD_H

#include "claimd/base/mem.h"
#include "claimd/journal/journal.h"
#include "crash/crash.h"
#include "crash/judge.h"
#include "support/random.h"
#include "support/sim_disk.h"

enum { WORLD_QUEUES = 6, WORLD_KNOWN = 48, WORLD_TRACE = 64, WORLD_LINE = 120 };

/* An id that a client may have, and may come back with. */
struct known {
    struct store_id id;
    int queue;
};

/* What is an answer's as soon as its LSN is durable. */
struct promise_id {
    uint64_t lsn;
    uint64_t hash;   /* of an id; 0: none */
    uint64_t number; /* of a claim */
    int queue;
};

/* Hashes of ids. */
struct idset {
    uint64_t *slots; /* owned */
    size_t count, room;
};

/* Changes in the order of their LSNs, owned. */
struct told_list {
    struct told *first, *last;
};

struct world {
    struct store_log observer; /* first: it stands between the store and its journal */
    struct store_log *journal_side;
    struct random r;
    uint64_t seed;
    struct crash_metrics *metrics;
    struct sim_disk *disk;
    struct disk *process;
    uint64_t segment_bytes;
    uint64_t operations, large_once_in; /* of a life at most; of bodies */
    unsigned checkpoint_percent, lives;

    /* The life under way. */
    struct mem *mem;
    struct journal *journal;
    struct store *store;
    unsigned failures; /* told by the journal */
    enum crash_fault fault;
    bool names_fail; /* a sync of names does: no file system goes on working after that */
    char error[JOURNAL_ERROR_CAP];

    int64_t now_ms;
    struct replica base, live; /* what was durable for sure; what is there */
    struct told_list told;     /* behind base */
    struct told_list before;   /* while it starts: what was told in earlier lives */
    bool starting;
    uint64_t acknowledged; /* LSN up to which answers may have gone out */

    /* The operation under way. */
    uint64_t lsn; /* of the latest change told */
    unsigned kinds[STORE_CHANGE_KINDS];

    uint64_t *waiting; /* owned: LSNs that answers wait for */
    size_t waiting_count, waiting_room;
    struct promise_id *ids; /* owned: likewise */
    size_t id_count, id_room;
    struct idset given;
    uint64_t fences[WORLD_QUEUES];

    struct known messages[WORLD_KNOWN], claims[WORLD_KNOWN];
    size_t message_count, claim_count; /* ever */
    char trace[WORLD_TRACE][WORLD_LINE];
    uint64_t lines;
};

__attribute__((format(printf, 2, 3))) void
world_note(struct world *w, const char *format, ...);
_Noreturn __attribute__((format(printf, 2, 3))) void
world_fail(struct world *w, const char *format, ...);

/* tell.c: the observer. */
void world_observe(struct world *w);

/* An operation begins; it has answered; it has told of no more than one change of a kind. */
void world_begin_operation(struct world *w);
void world_end_operation(struct world *w, enum status st, const struct store_op *op);
void world_judge_operation(struct world *w, enum store_change_kind kind);

/* The answer shows an id that is new (and a claim's number; 0: of a message). */
void world_promise(struct world *w, uint64_t lsn, int queue, const struct store_id *id,
                   uint64_t number);

/* Asks which answers may go out. */
void world_ask(struct world *w);

/* A store is being started; what it tells meanwhile comes behind what is in the log. */
void world_begin_start(struct world *w);
void world_start_failed(struct world *w);

/* It was, from the log up to this LSN. */
void world_started(struct world *w, uint64_t lsn);

void world_tell_fini(struct world *w);

/* operation.c: some operation. */
void world_operate(struct world *w);

const char *world_queue_name(int queue);

#endif
