/*
 * journal: the log of a store, on a disk (docs/journal.md).
 *
 *     journal_open()     locks the directory
 *     the store is opened with journal_log()
 *     journal_recover()  replays the log into the store, and begins to log
 *     journal_start()    starts the threads: one commits, one writes body files, one
 *                        reads them. Or the owner calls journal_step(),
 *                        journal_write_runs() and journal_load_run()
 *     journal_close()    makes all changes durable; the store is closed afterwards
 *
 * An operation writes a change into a buffer under the store's lock, and the change has
 * an LSN. The committer writes the buffer as a frame, syncs, and then announces that its
 * LSNs are durable. So hundreds of responses share one sync, and none waits for a timer.
 *
 *   Threads   the log's functions, journal_checkpoint() and journal_metrics(): any; open,
 *             recover, step and close: one
 *   Failure   after a failed write or sync nothing becomes durable any more (STORE_LOST),
 *             and nothing is retried: the process has to end (journal_config.failed)
 */
#ifndef CLAIMD_JOURNAL_JOURNAL_H
#define CLAIMD_JOURNAL_JOURNAL_H

#include "claimd/base/clock.h"
#include "claimd/base/counter.h"
#include "claimd/base/log.h"
#include "claimd/journal/disk.h"
#include "claimd/store/runs.h"
#include "claimd/store/store.h"

struct journal; /* opaque */

enum { JOURNAL_BOOT_ID_BYTES = 16 };

#define JOURNAL_ERROR_CAP 512

/* Longest life of a message. A clock that is further ahead of the log is rejected. */
#define JOURNAL_LIFE_MAX_MS (INT64_C(14) * 24 * 3600 * 1000)

/* The progress of a recovery. */
struct journal_progress {
    uint64_t segments, of_segments; /* read completely, and all */
    uint64_t bytes, of_bytes;       /* of their files, and of all */
    uint64_t records;
    uint64_t messages;           /* in records with bodies: posts, moves, checkpoints */
    int64_t elapsed_ms, left_ms; /* since it began; an estimate, by the bytes */
};

struct journal_config {
    struct disk *disk;         /* borrowed, until journal_close() */
    const struct log *log;     /* borrowed; NULL: logs nothing */
    const struct clock *clock; /* the store's, borrowed; NULL: time is that of changes */
    struct clock *continued;   /* the same, if journal_recover() sets it; or NULL */
    uint64_t segment_bytes;    /* 0: 8 MiB; 4 if space is short, more for large posts */
    size_t change_bytes;       /* of a change that must fit */
    uint64_t max_bytes;        /* of all segments; 0: no limit */
    const uint8_t *boot_id;    /* of the machine: JOURNAL_BOOT_ID_BYTES; NULL: unknown */
    bool test_api;             /* the test API runs: allow only journals of a test API */
    bool seeded;               /* repeatable nonces from `seed`: for simulation */
    uint64_t seed;

    /* Called by journal_recover() once a second of the stopwatch, between two frames,
     * after the first second. */
    void (*progress)(void *arg, const struct journal_progress *progress);
    void *progress_arg;
    /* Real time, borrowed; NULL: no progress is reported. */
    const struct clock *stopwatch;

    /* Called once, by a thread of the journal, when nothing can become durable any
     * more. */
    void (*failed)(void *arg, const char *text, int error); /* an errno */
    void *failed_arg;
};

/* ST_NO_MEMORY; ST_UNAVAILABLE: another process uses the directory; ST_IO: an error of
 * the system. error[] is for people. */
enum status journal_open(const struct journal_config *config, struct journal **out,
                         char error[JOURNAL_ERROR_CAP]);

/* The log of the store's changes; lives as long as the journal. */
struct store_log *journal_log(struct journal *j);

/* The body files for its store's messages; likewise. */
struct store_runs *journal_runs(struct journal *j);

/*
 * The time of a store goes on for as long as the process was down. If the machine was not
 * booted again, its boot id and stopwatch_ns tell how long that was. Otherwise the wall
 * clock does, less the distance that it had from the clock of the store at the last
 * frame. down_ms overrides both. The time never goes back behind the last frame.
 */
struct journal_recovery {
    uint64_t segments, records, bytes;
    int64_t last_ms;      /* time of the last frame; 0: there was none */
    int64_t now_ms;       /* in: the wall clock; out: the time of the store */
    int64_t stopwatch_ns; /* in: clock_stopwatch_ns() at that time */
    bool down_given;      /* in: down_ms is valid */
    int64_t down_ms;      /* in: for how long the process was down */
    bool accept_clock;    /* in: accept that it was down for longer than any TTL */
    bool torn;            /* the last frame was torn; no response showed its changes */
    uint64_t torn_bytes;
};

/*
 * Replays the journal, makes its contents durable, and begins a new segment. ST_IO;
 * ST_NO_MEMORY; ST_BAD_VALUE: the journal is damaged, belongs to another journal, is
 * newer than this program, or the clock cannot be right (exit status 3: docs/journal.md).
 * After a failure only journal_close() is allowed.
 */
enum status
journal_recover(struct journal *j, struct store *store, struct journal_recovery *recovery,
                char error[JOURNAL_ERROR_CAP]);

/* Starts the threads. ST_UNAVAILABLE. */
enum status journal_start(struct journal *j);

/* Commits once, and writes checkpoint records within their credit. False: there was
 * nothing to do, or the journal is lost. */
bool journal_step(struct journal *j);

/* Write what was unloaded, and read one run that was requested. Threads of the journal
 * call them, or the owner. False: there was nothing to do. */
bool journal_write_runs(struct journal *j);
bool journal_load_run(struct journal *j);

/* Writes a seal: all before it was durable, so a torn end before it counts as damage. It
 * also stores the time. */
void journal_seal(struct journal *j);

/* Notes that the clock of the store was moved to this time. The next seal stores it in
 * about a second. Any thread. */
void journal_age(struct journal *j, int64_t now_ms);

/* Starts a checkpoint with the next commit, whatever the size of the log; for tests. Any
 * thread. */
void journal_checkpoint(struct journal *j);

struct journal_metrics {
    uint64_t segments, bytes; /* of the directory */
    uint64_t commits, records, checkpoints;
    int64_t checkpoint_ms; /* time of the last checkpoint since the start, or 0 */
    uint64_t lsn, durable;
    uint64_t left;       /* bytes that it may still take, when last read */
    bool short_of_space; /* posts are refused */
    bool lost;           /* nothing becomes durable any more */
    uint64_t body_files, body_bytes;
    uint64_t loads; /* reads of runs from body files that ended */
    /* By disk_bounds_us: durations of syncs, and of loads from their request on. */
    struct buckets syncs, loads_us;
};

/* Any thread. During a commit each value is right by itself, and at most one commit
 * old. */
void journal_metrics(struct journal *j, struct journal_metrics *out);

/* Commits the rest, marks a clean stop, and frees the journal. The store must still
 * exist, but append no more changes. */
void journal_close(struct journal *j);

#endif
