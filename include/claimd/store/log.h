/*
 * store/log: the log to which a store appends its changes, and on which responses wait.
 * The journal implements it. It is not the log of events (claimd/base/log.h).
 *
 * A store reserves space for a change when everything else that the change needs is
 * reserved, and appends the change when it has happened. It does both under the lock of
 * the shard (MOVE: of both shards), so the log has the changes of a queue in order.
 *
 *   Threads  any. reserve(), append() and unreserve() are called under a lock of the
 *            store
 */
#ifndef CLAIMD_STORE_LOG_H
#define CLAIMD_STORE_LOG_H

#include "claimd/store/record.h"
#include "claimd/store/waiter.h"

enum store_durability {
    STORE_PENDING, /* a crash may still undo it */
    STORE_DURABLE, /* it survives a crash; always so without a log */
    STORE_LOST     /* it will never be durable: no client may learn what happened there */
};

struct store_log {
    size_t largest; /* bytes that one change may take in the log; 0: any number */

    /*
     * Reserves space for a change of `count` messages with `bytes` bytes of bodies,
     * addresses and metadata; `checkpoint`: as in the change. Not called for expiries,
     * nor for messages of transient queues. If the status is not ST_OK, the store must
     * not make the change. ST_BEYOND_LOG: it is larger than `largest`. A granted change
     * is appended under the same lock, except for a QUEUE that a POST or a MOVE creates:
     * if that is refused, neither happens.
     *
     * *space grows by the reservation. It belongs to the caller, and the same lock guards
     * it.
     */
    enum status (*reserve)(struct store_log *log, enum store_change_kind kind,
                           bool checkpoint, size_t count, size_t bytes, size_t *space);

    /*
     * Appends a change and those that follow it by `then`. *space was reserved for all of
     * them, and together they have at most `largest` bytes. *space shrinks by the bytes
     * written. Returns the LSN of the last one; 0: no response waits for it.
     */
    uint64_t (*append)(struct store_log *log, struct store_change *change, size_t *space);

    /* Returns reserved space that was not used. */
    void (*unreserve)(struct store_log *log, size_t space);

    /* The rest may be NULL in a log that is durable at once. */
    enum store_durability (*durability)(struct store_log *log, uint64_t lsn);

    /* Starts a commit of all changes that were appended so far. */
    void (*flush)(struct store_log *log);

    /* Number of loads of runs that ended (store/runs.h). */
    uint64_t (*loaded)(struct store_log *log);

    /* Notifies the listener (STORE_READY) whenever the durability of an LSN or the number
     * of loads may have changed. */
    void (*listen)(struct store_log *log, struct store_listener *listener);
    void (*unlisten)(struct store_log *log, struct store_listener *listener);
};

/* The same for a log that may be NULL: a store without a log. */

static inline enum store_durability
store_log_durability(struct store_log *log, uint64_t lsn)
{
    return log == NULL || log->durability == NULL ? STORE_DURABLE
                                                  : log->durability(log, lsn);
}

static inline void
store_log_flush(struct store_log *log)
{
    if (log != NULL && log->flush != NULL)
        log->flush(log);
}

static inline uint64_t
store_log_loaded(struct store_log *log)
{
    return log == NULL || log->loaded == NULL ? 0 : log->loaded(log);
}

static inline void
store_log_listen(struct store_log *log, struct store_listener *listener)
{
    if (log != NULL && log->listen != NULL)
        log->listen(log, listener);
}

static inline void
store_log_unlisten(struct store_log *log, struct store_listener *listener)
{
    if (log != NULL && log->unlisten != NULL)
        log->unlisten(log, listener);
}

#endif
