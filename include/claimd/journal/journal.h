/*
 * journal: the log of a store, on a disk (docs/journal.md).
 *
 *     journal_open()     takes the directory; nobody else has it meanwhile
 *     the store is opened with journal_log()
 *     journal_recover()  replays the log into the store, and begins to log
 *     journal_start()    a thread commits; or the owner does with journal_step()
 *     journal_close()    what was logged is durable; the store is closed after it
 *
 * A change is written into a buffer under the store's lock and has a LSN. The committer
 * takes the buffer, writes it as a frame, syncs, and only then says that the LSNs in it
 * are durable: hundreds of answers wait for one sync, and nobody waits for a timer.
 *
 *   Threads   the log's functions, journal_checkpoint() and journal_figures() from any; open,
 *             recover, step and close from one
 *   Failure   when a write or a sync fails nothing is durable any more (STORE_LOST), and
 *             nothing is tried again: the process has to end (journal_config.failed)
 */
#ifndef CLAIMD_JOURNAL_JOURNAL_H
#define CLAIMD_JOURNAL_JOURNAL_H

#include "claimd/base/clock.h"
#include "claimd/base/counter.h"
#include "claimd/base/log.h"
#include "claimd/journal/disk.h"
#include "claimd/store/log.h"
#include "claimd/store/store.h"

struct journal; /* opaque */

#define JOURNAL_ERROR_CAP 512

/* Longest life of a message: a clock that is further ahead of the log is not believed. */
#define JOURNAL_LIFE_MAX_MS (INT64_C(14) * 24 * 3600 * 1000)

/* How far a recovery has come. */
struct journal_progress {
    uint64_t segments, of_segments; /* read whole, and of how many */
    uint64_t bytes, of_bytes;       /* of their files */
    uint64_t records;
    uint64_t messages; /* in records that have their bodies: posted, moved, shown again */
    int64_t elapsed_ms, left_ms; /* since it began; an estimate, by the bytes */
};

struct journal_config {
    struct disk *disk;         /* borrowed, until journal_close() */
    const struct log *log;     /* borrowed; NULL: says nothing */
    const struct clock *clock; /* the store's, borrowed; NULL: time is that of changes */
    uint64_t segment_bytes;    /* 0: 8 MiB; 4 if space is short, more for large posts */
    size_t change_bytes;       /* of a change that must be possible: then not so few */
    uint64_t max_bytes;        /* of all segments; 0: as the disk has room for */
    bool test_api; /* made by one, and reads what was made by one, and nothing else */
    bool seeded;   /* repeatable nonces from `seed`: for simulation */
    uint64_t seed;

    /*
     * Called by journal_recover() between two frames, once a second of the stopwatch, and not
     * in the first one.
     */
    void (*progress)(void *arg, const struct journal_progress *progress);
    void *progress_arg;
    const struct clock
        *stopwatch; /* real time, borrowed; NULL: no progress is reported */

    /* Called once, by who commits, when nothing can become durable any more. */
    void (*failed)(void *arg, const char *text, int error); /* an errno */
    void *failed_arg;
};

/*
 * ST_NO_MEMORY; ST_UNAVAILABLE: another process has the directory; ST_IO: the system
 * refuses. error[] is for people.
 */
enum status journal_open(const struct journal_config *config, struct journal **out,
                         char error[JOURNAL_ERROR_CAP]);

/* The log of the store's changes; lives as long as the journal. */
struct store_log *journal_log(struct journal *j);

struct journal_recovery {
    uint64_t segments, records, bytes;
    int64_t last_ms;   /* time of the last frame; 0: there was none */
    int64_t now_ms;    /* in: the wall clock; out: the time that the store goes on from */
    bool accept_clock; /* in: believe a clock that is far ahead */
    bool torn;         /* the last frame was not whole, which no response has shown */
    uint64_t torn_bytes;
};

/*
 * Replays what is there, makes sure that it is durable, and begins a new segment. ST_IO;
 * ST_NO_MEMORY; ST_BAD_VALUE: what is there is damaged, of another journal, newer than this
 * program, or the clock cannot be right (exit status 3: docs/journal.md). After a failure
 * only journal_close().
 */
enum status
journal_recover(struct journal *j, struct store *store, struct journal_recovery *recovery,
                char error[JOURNAL_ERROR_CAP]);

/* Starts the thread that commits. ST_UNAVAILABLE. */
enum status journal_start(struct journal *j);

/*
 * Commits once, by hand, and checkpoints as far as that commit pays for. False: there was nothing
 * to do, or all is lost.
 */
bool journal_step(struct journal *j);

/*
 * Writes a seal: what stands before it was durable, so a torn end shows as damage then, and
 * the time that it has become is not forgotten.
 */
void journal_seal(struct journal *j);

/* The store's clock was moved to this time, which the next seal tells: in a second or so. Any thread. */
void journal_age(struct journal *j, int64_t now_ms);

/* Has the journal in a checkpoint as soon as it commits, whatever its size. Any thread. */
void journal_checkpoint(struct journal *j);

struct journal_figures {
    uint64_t segments, bytes; /* of the directory */
    uint64_t commits, records, checkpoints;
    uint64_t lsn, durable;
    uint64_t left;        /* bytes that it may still take, when that was looked at */
    bool short_of_room;   /* posts are refused */
    bool lost;            /* nothing becomes durable any more */
    struct buckets syncs; /* how long they took, in microseconds */
};

extern const struct bucket_bounds journal_sync_bounds;

/* Any thread. Beside who commits each figure is right by itself, and at most a commit old. */
void journal_figures(struct journal *j, struct journal_figures *out);

/*
 * Commits what is left, says that the end was peaceful, and frees. No change is told
 * meanwhile, but the store is still there.
 */
void journal_close(struct journal *j);

#endif
