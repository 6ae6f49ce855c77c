/*
 * journal_private: the journal, private to src/journal.
 *
 *   Locks   `lock` guards the buffer that changes are appended to. It is taken under
 *           shards' locks, and no lock is taken under it. `watching` guards the
 *           listeners. The rest belongs to the committer. Members that other threads read
 *           or request are atomic.
 */
#ifndef JOURNAL_JOURNAL_PRIVATE_H
#define JOURNAL_JOURNAL_PRIVATE_H

#include "claimd/base/lock.h"
#include "claimd/ds/list.h"
#include "claimd/journal/journal.h"
#include "journal/bodies.h"
#include "journal/record.h"
#include "journal/segment.h"

#include <stdatomic.h>

/* The lock file: its lock means that a process uses the directory. */
#define JOURNAL_LOCK "lock"

/* Bytes of the buffer for changes that may be refused. The rest is for deletions and
 * releases. */
#define BUFFER_POSTS ((size_t)64 << 20)
#define BUFFER_BYTES ((size_t)96 << 20)

/*
 * Records to be written, already as frames. There are two buffers: changes are appended
 * to one while the other is written. They are so large that they never grow (untouched
 * pages take no memory). The journal limits how much is appended.
 */
struct buffer {
    uint8_t *bytes; /* owned */
    size_t used;
    size_t frame_max;  /* limit of a frame with its head; set by the owner */
    size_t head;       /* offset of the head of the open frame */
    struct frame open; /* the open frame; count == 0: none */
};

/* The state of checkpoints */
struct journal_checkpoints {
    _Atomic bool wanted; /* start one as soon as possible; any thread sets it */
    bool under_way;      /* its records are being written */
    bool ready;          /* space was enough when it was last looked at */
    uint64_t since;      /* LSN of its begin mark */
    uint64_t end;        /* journal.checkpointed at its end, by the live data */
    uint64_t ended; /* LSN of its end mark, or 0. When it is durable, older segments go */
    int64_t credit; /* bytes of checkpoint records that may be written now */
    uint64_t activity; /* journal.activity when the last one began */
    /* When sparse body files were looked for: the time and journal.activity. */
    int64_t looked_ms;
    uint64_t looked_activity;
    _Atomic uint64_t done;   /* number of complete checkpoints */
    _Atomic int64_t done_ms; /* time of the last of them, or 0 */
};

struct journal {
    struct store_log store_log;
    struct journal_config config;
    struct store *store; /* borrowed; NULL until it is recovered */
    struct disk_file *lock_file;
    bool recovered; /* false: journal_recover() reports failures */
    int lost_error; /* the errno of the failure that set `lost` */

    struct lock lock;
    pthread_cond_t work;
    struct buffer buffers[2];
    struct buffer *filling; /* the one that changes are appended to */
    size_t granted;         /* bytes reserved in it, not used yet */
    size_t writing;         /* used bytes of the other one, while it is written */
    /* Limits of the bytes that are not durable yet: all of them, */
    size_t space;
    size_t post_space;       /* those of posts; 0: posts are refused */
    size_t checkpoint_space; /* those of a checkpoint */
    bool short_of_space;     /* posts are refused; written by the committer */
    bool limited;            /* by max_bytes, not by the disk */
    uint64_t next_lsn;       /* of the next record */
    uint64_t appended;       /* bytes of changes since the last commit took them */
    uint64_t checkpointed;   /* bytes of checkpoints, likewise */
    uint64_t activity;       /* counts changes and expiries */
    int64_t time_ms;         /* the time of the latest change or expiry */
    bool aged;               /* there was an expiry after the last frame */
    bool waiting;            /* the committer waits for work */
    bool stopping;
    bool starting; /* during recovery: one thread, and space is not checked */

    _Atomic uint64_t durable;  /* records up to this LSN are durable */
    _Atomic bool lost;         /* nothing more becomes durable */
    _Atomic unsigned features; /* that segments need for the records */

    struct lock watching;
    struct list listeners;

    struct segments segments;
    uint64_t disk_free; /* free bytes at `counted` segments, less those used since */
    size_t counted;     /* segments when disk_free was read */
    struct journal_checkpoints checkpoint;
    bool sealed; /* the last frame is a seal */
    _Atomic uint64_t commits;
    struct buckets syncs; /* durations in microseconds; written by the committer */
    _Atomic uint64_t count_shown, bytes_shown; /* of segments, for journal_metrics() */
    _Atomic uint64_t left_shown;
    struct bodies bodies;
    char damage[JOURNAL_ERROR_CAP]; /* of a body file; empty: none */
    pthread_t thread, writer, loader;
    bool started, writes, loads; /* the threads */
};

static inline struct journal *
journal_of(struct store_log *log)
{
    return container_of(log, struct journal, store_log);
}

/* append.c */

/* Sets the functions of the store's log. */
void journal_init_log(struct journal *j);

/* ST_NO_MEMORY. */
enum status buffer_init(struct buffer *b);
void buffer_fini(struct buffer *b);

/* Completes the last frame. Each frame has its struct frame in the place of its head
 * then. */
void buffer_close(struct buffer *b);

/* Empties the buffer, and frees most of its memory. */
void buffer_reset(struct buffer *b);

/* Appends a mark; returns its LSN. */
uint64_t journal_mark(struct journal *j, enum record_mark what, uint64_t since);

/* The time of the next frame. Needs the lock. */
int64_t journal_now_ms(struct journal *j);

/* The wall clock less the clock of the store. 0: the owner moves that clock. */
int64_t journal_wall_ahead_ms(const struct journal *j);

/* commit.c */

/*
 * Runs when nothing came for a second: writes a seal and, if space is short, reads the
 * free space and checkpoints. Otherwise an idle server would never recover from a full
 * disk.
 */
void journal_idle(struct journal *j);

/* Is it useful to look for sparse body files? Needs the lock. */
bool journal_may_have_sparse(const struct journal *j);

/* Nothing becomes durable any more, because of this errno. */
void journal_lose(struct journal *j, const char *what, int error);

/* space.c */

/* Rough bytes of a checkpoint. */
uint64_t journal_live_bytes(struct journal *j, struct store_live *live);

/* Bytes that a checkpoint that began now would free. */
uint64_t journal_bytes_freed(const struct segments *s);

/* Bytes that a slice of a checkpoint rarely exceeds. */
uint64_t journal_slice_most(const struct segments *s);

/* Bytes of segments that a checkpoint of so much live data takes, with those that its
 * frames leave unused. It is worth that if it frees more. */
uint64_t journal_checkpoint_bytes(const struct segments *s, uint64_t live);

/* Checks whether a checkpoint, or the rest of the one that is under way, fits into the
 * space and leaves so many bytes free. */
bool journal_checkpoint_fits(struct journal *j, uint64_t leaves);

/* Reads the free space of the disk, and makes spares. */
void journal_update_space(struct journal *j);

#endif
