/*
 * journal_private: the journal as its own files see it.
 *
 *   Locks   `lock` guards what changes are appended to; it is taken under shards' locks and
 *           takes none. `watching` guards the watchers. Everything else is the committer's.
 */
#ifndef JOURNAL_JOURNAL_PRIVATE_H
#define JOURNAL_JOURNAL_PRIVATE_H

#include "claimd/base/lock.h"
#include "claimd/ds/list.h"
#include "claimd/journal/journal.h"
#include "journal/buffer.h"
#include "journal/segment.h"

#include <stdatomic.h>

/* The file whose lock says that a process uses the directory. */
#define JOURNAL_LOCK "lock"

/* What the disk has room for. */
enum room {
    ROOM_ANY,    /* everything */
    ROOM_NEEDED, /* what gives back, and what was taken already: no posts */
    ROOM_NONE
};

/* A sweep on its way (store/durable.h). */
struct journal_sweep {
    bool wanted;    /* as soon as possible */
    bool under_way; /* images are being shown */
    uint64_t since; /* position of its begin mark */
    uint64_t
        ended; /* of its end mark; 0: not there yet. What is older goes when it is durable */
    int64_t credit; /* bytes of images that appended bytes have paid for */
    uint64_t done;  /* how many have been */
};

struct journal {
    struct store_observer observer;
    struct journal_config config;
    struct store_durable *store; /* borrowed; NULL until it is recovered */
    struct disk_file *lock_file;

    struct lock lock;
    pthread_cond_t work;
    struct buffer buffers[2];
    struct buffer *filling; /* one of them */
    size_t granted;         /* bytes set aside in it, not used yet */
    uint64_t next_lsn;      /* of the next record */
    uint64_t appended;      /* bytes of changes since the last commit took them */
    uint64_t imaged;        /* bytes of images, likewise */
    int64_t time_ms;        /* the latest of a change */
    bool waiting;           /* the committer waits for work */
    bool stopping;

    _Atomic uint64_t durable; /* position: up to it everything is */
    _Atomic bool lost;        /* nothing more will be */
    _Atomic int room;         /* enum room */

    struct lock watching;
    struct list watchers;

    struct segments segments;
    struct journal_sweep sweep;
    bool sealed; /* the last frame is a seal */
    uint64_t commits;
    pthread_t thread;
    bool started;
};

static inline struct journal *
journal_of(struct store_observer *observer)
{
    return container_of(observer, struct journal, observer);
}

/* append.c: the observer's functions. */
void journal_observe(struct journal *j);

/* Appends a mark; returns its position. */
uint64_t journal_mark(struct journal *j, enum record_mark what, uint64_t since);

/* commit.c */

/* Nothing can become durable any more. */
void journal_lose(struct journal *j, const char *what, int error);

/* Looks how much room the disk has, and makes spares. */
void journal_look_for_room(struct journal *j);

#endif
