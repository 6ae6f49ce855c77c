/*
 * bodies_check: body files of a journal that is only read: checks their runs, and reads
 * them for verify and salvage (struct journal_bodies of claimd/journal/inspect.h).
 *
 * Damaged runs that follow each other in a file and in a queue are reported together.
 */
#ifndef JOURNAL_BODIES_CHECK_H
#define JOURNAL_BODIES_CHECK_H

#include "claimd/journal/inspect.h"
#include "journal/bodies.h"

/* Runs whose messages are lost, which are not reported yet. */
struct lost_runs {
    uint32_t file;
    uint64_t offset;      /* of the first one */
    const char *flaw;     /* of the file */
    uint64_t first, last; /* numbers of messages */
    uint64_t messages;    /* 0: there are no such runs */
    char queue[512];      /* "the queue q of the project p" */
};

struct journal_bodies {
    struct bodies bodies;
    uint8_t journal[NONCE_BYTES];
    _Atomic bool lost; /* never */
    char text[JOURNAL_ERROR_CAP];
    enum status (*adopt)(struct store_runs *runs, const struct store_queue *queue,
                         const struct store_run_record *run); /* of bodies.c */
    struct lost_runs damaged;

    /* Called for each damage. NULL: it is not wanted. */
    void (*report)(void *arg, const struct journal_damage *damage, uint64_t messages);
    void *arg;
};

/* Sets the id of the journal: that of its segments, or, if `journal` is NULL, that of
 * the note beside them. 0 or an errno. */
int bodies_check_identify(struct journal_bodies *bodies, const uint8_t *journal);

/*
 * Reads a run and checks it, and calls done() with its messages. ST_NOT_FOUND: it is
 * damaged, which is noted, or the log says that its file is gone. Otherwise the status of
 * done(), or ST_IO with a text, or ST_NO_MEMORY.
 */
enum status
bodies_check_read(struct journal_bodies *bodies, const struct store_queue *queue,
                  const struct store_run_record *run,
                  enum status (*done)(void *arg, struct store_change *state), void *arg);

/* Reports the damage that is not reported yet. */
void bodies_check_flush(struct journal_bodies *bodies);

#endif
