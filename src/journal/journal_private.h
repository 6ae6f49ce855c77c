/*
 * journal_private: the journal as its own files see it.
 *
 *   Locks   `lock` guards what changes are appended to; it is taken under shards' locks and
 *           takes none. `watching` guards the listeners. Everything else is the committer's;
 *           what others may ask for or look at meanwhile is atomic.
 */
#ifndef JOURNAL_JOURNAL_PRIVATE_H
#define JOURNAL_JOURNAL_PRIVATE_H

#include "claimd/base/lock.h"
#include "claimd/ds/list.h"
#include "claimd/journal/journal.h"
#include "journal/record.h"
#include "journal/segment.h"

#include <stdatomic.h>

/* The file whose lock says that a process uses the directory. */
#define JOURNAL_LOCK "lock"

/* Of changes that may be refused for want of room; the rest is for those that go on longer. */
#define BUFFER_POSTS ((size_t)64 << 20)
#define BUFFER_ROOM  ((size_t)96 << 20)

/*
 * Records on their way to the disk, as the frames that they will be. There are two buffers: changes
 * are appended to one while the other is written. They are so large that they need never grow
 * (pages that were never touched take no memory). The journal says how much may be appended.
 */
struct buffer {
    uint8_t *bytes; /* owned */
    size_t used;
    size_t frame_max;  /* bytes of a frame with its head, at most; the owner sets it */
    size_t head;       /* where the frame that is being filled has its head, */
    struct frame open; /* and what will stand in it; count == 0: none is begun */
};

/* A checkpoint on its way (store/state.h). */
struct journal_checkpoints {
    _Atomic bool wanted; /* as soon as possible; set by anybody */
    bool under_way;      /* its records are being written */
    uint64_t since;      /* LSN of its begin mark */
    uint64_t
        ended; /* of its end mark; 0: none yet. Older segments go when it is durable */
    int64_t credit;        /* bytes of checkpoints that appended bytes have paid for */
    uint64_t known;        /* what had happened when the last one began: journal.news */
    _Atomic uint64_t done; /* how many have been */
};

struct journal {
    struct store_log store_log;
    struct journal_config config;
    struct store *store; /* borrowed; NULL until it is recovered */
    struct disk_file *lock_file;
    bool recovered; /* until then journal_recover() reports whatever fails */
    int lost_error; /* the errno that `lost` came from */

    struct lock lock;
    pthread_cond_t work;
    struct buffer buffers[2];
    struct buffer *filling; /* one of them */
    size_t granted;         /* bytes set aside in it, not used yet */
    size_t writing;         /* bytes of the other one, while it is written */
    /* What is not durable yet must fit into: bytes of all together, */
    size_t room;
    size_t room_for_more;       /* of what makes the log longer: 0, posts are refused */
    size_t room_for_checkpoint; /* and of a checkpoint's, which makes room */
    bool short_of_room;         /* posts are refused; written by the committer */
    bool limited;               /* by max_bytes, and not by the disk */
    uint64_t next_lsn;          /* of the next record */
    uint64_t appended;          /* bytes of changes since the last commit took them */
    uint64_t checkpointed;      /* bytes of checkpoints, likewise */
    uint64_t news;              /* counts changes, and what time did */
    int64_t time_ms;            /* the latest of a change, or of what time did */
    bool aged;                  /* time did something that no frame tells the time of */
    bool waiting;               /* the committer waits for work */
    bool stopping;
    bool starting; /* what was there begins anew: there is one thread, and always room */

    _Atomic uint64_t durable; /* LSN: up to it everything is */
    _Atomic bool lost;        /* nothing more will be */

    struct lock watching;
    struct list listeners;

    struct segments segments;
    uint64_t disk_free; /* as it was, less what was taken, when */
    size_t counted;     /* there were so many segments */
    struct journal_checkpoints checkpoint;
    bool sealed; /* the last frame is a seal */
    _Atomic uint64_t commits;
    struct buckets syncs; /* microseconds that they took; written by the committer */
    _Atomic uint64_t count_shown, bytes_shown; /* of segments, for journal_figures() */
    _Atomic uint64_t left_shown;
    pthread_t thread;
    bool started;
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

/* No more comes. The buffer is frames then, each with its struct frame instead of its head. */
void buffer_close(struct buffer *b);

/* Empties it; keeps a little of its memory. */
void buffer_reset(struct buffer *b);

/* Appends a mark; returns its LSN. */
uint64_t journal_mark(struct journal *j, enum record_mark what, uint64_t since);

/* The time that the next frame tells. Needs the lock. */
int64_t journal_now_ms(struct journal *j);

/* commit.c */

/* Nothing can become durable any more. */
void journal_lose(struct journal *j, const char *what, int error);

/*
 * What there is to do when nothing has come for a second: a seal, and if room is short, to
 * look whether there is some, and a checkpoint that makes some. Nobody else may bring anything.
 */
void journal_idle(struct journal *j);

/* Looks how much room the disk has, and makes spares. */
void journal_look_for_room(struct journal *j);

#endif
