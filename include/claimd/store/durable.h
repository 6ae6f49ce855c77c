/*
 * store/durable: a store as its log sees it.
 *
 * A log is told of every change (store/log.h). After a restart it tells them again, in
 * the same order, to a store in which nothing has happened yet:
 *
 *     replay() ... replay() replay_end()   and then the store's operations
 *
 * What is told is what was there after the change, so telling twice does no harm, nor does
 * beginning in the middle, if everything that was there in the beginning is shown again in
 * between: that is what a checkpoint does, slice by slice, while the store goes on working.
 *
 *     checkpoint_begin() checkpoint() checkpoint() ... until it says that all has been shown
 *
 * Whoever replays what was told since a checkpoint began has the whole store at its end: what
 * was there when it began is in the checkpoint, what came or changed since is in the log, too.
 * Images say which claim holds a message, and a claim is shown before its messages.
 */
#ifndef CLAIMD_STORE_DURABLE_H
#define CLAIMD_STORE_DURABLE_H

#include "claimd/store/record.h"

struct store_durable {
    /*
     * Tells of a change as it was told (EXPIRED, DELAY_OVER, CLAIM_OVER: not needed, they
     * follow from time). ST_NO_MEMORY; ST_BAD_VALUE: it contradicts what was told before.
     * From one thread, before any other operation; after a failure only store_close().
     */
    enum status (*replay)(struct store_durable *durable, struct store_change *change);

    /* These were used up. */
    void (*replay_marks)(struct store_durable *durable, const struct store_marks *marks);

    /*
     * All has been told, it is now_ms: what is due happens, unseen. Transient queues begin
     * anew, behind the numbers that were lent to them; the log is told of the next
     * ones. ST_BAD_VALUE: there is a queue that was never named, or two of one name.
     * Statuses of the log's reserve().
     */
    enum status (*replay_end)(struct store_durable *durable, int64_t now_ms);

    /* What is used up by now. */
    void (*marks)(struct store_durable *durable, struct store_marks *out);

    /* How many messages, and bytes of bodies, live where the log knows of them. O(parts). */
    void (*live)(struct store_durable *durable, uint64_t *messages, uint64_t *bytes);

    /* Begins a checkpoint; one that is under way is given up. */
    void (*checkpoint_begin)(struct store_durable *durable);

    /*
     * Shows a slice: at most 256 messages, and not much more than 64 KiB. True: all has
     * been shown. Takes one lock of the store, as long as an operation would; from one
     * thread at a time. Statuses of the log's reserve(): then it has shown less.
     */
    enum status (*checkpoint)(struct store_durable *durable, bool *done);
};

#endif
