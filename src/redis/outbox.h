/*
 * outbox: transfers from a queue to another one, which may be in another slot: dead
 * letters, dead letters that are put back, and posts of store_claim_finish(). Scripts:
 *
 *     claim_create, claim_finish, redrive   move a message out of its queue into key X
 *                                           of the queue (the outbox), or put a post
 *                                           there
 *     dead_letter_post, transfer_post       add it to the other queue, up to 64 messages
 *                                           in a call
 *     outbox_done                           removes it from X
 *     transfer_return                       takes it out of X and puts it back, if the
 *                                           other queue has refused it
 *     transfer_forget                       ends the memory of its id in the other queue
 *
 * So a message is in one of the queues or in X, and is never lost. outbox.c has the
 * steps, also for a process that ends in between. The other queue refuses a message of a
 * redrive if another one holds its key.
 */
#ifndef REDIS_OUTBOX_H
#define REDIS_OUTBOX_H

#include "redis/call.h"

/* One transfer. */
struct transfer {
    struct bytes id;      /* borrowed, as the content */
    struct bytes content; /* as in X (lib/outbox.lua) */
    struct store_id *ids; /* of a post: gets the ids of the messages; NULL: not wanted */
    bool arrived;         /* out: it has left X, */
    bool returned;        /* out: because the other queue has refused it */
    bool existing;        /* out: of a post that has arrived: as store_op.existing */
};

/*
 * Sends transfers out of this queue, in order, for at most a minute from `begun_ns` on.
 * It ends with the first that cannot arrive now. That one and those behind it stay in X,
 * and other processes may send them later. Messages that cannot be encrypted stay, too,
 * but hold up no others. Only a caller that needs all of them sent needs the status.
 */
enum status outbox_send(struct redis_store *s, const struct store_op *op,
                        const struct store_queue *where, struct transfer *all,
                        size_t count, int64_t begun_ns);

/* Sends transfers out of this queue that began so long ago that their process may have
 * ended. */
void outbox_resume(struct redis_store *s, const struct store_op *op,
                   const struct store_queue *where);

/* Sorts transfers of one queue by age. */
void outbox_sort(struct transfer *all, size_t count);

/* Writes the content of the transfer of a post. */
void
outbox_write_post(struct buf *out, struct bytes queue, const struct store_post *post);

#endif
