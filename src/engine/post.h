/*
 * post: adds messages to the end of a queue, in the steps of a transaction (txn.h).
 *
 *     post_make_messages()   without a lock
 *     post_reserve()         everything else that can fail
 *     post_commit()          cannot fail
 */
#ifndef ENGINE_POST_H
#define ENGINE_POST_H

#include "engine/txn.h"

/* Bytes of memory that a post takes, roughly. */
size_t post_bytes(const struct store_post *post);

/* Makes the messages, linked by due.link in order, one with its key. After a failure the
 * list is empty. ST_NO_MEMORY. */
enum status
post_make_messages(struct mem *mem, const struct store_post *post, struct list *messages);

/* The message that holds the key of the post, which therefore adds nothing, in the queue
 * of the transaction, which exists. NULL: there is none, the post has no key, or
 * post_reserve() refuses it. */
struct message *post_existing(const struct txn *t, const struct store_post *post);

/* Nodes of the shard's pool that the post takes at most. */
size_t post_nodes(const struct queue *q, const struct store_post *post);

/*
 * Reserves a post to the queue of the transaction, which exists or was made. Leaves
 * `spare` nodes of the pool to others. ST_TOO_LARGE, ST_NOT_SEALED, ST_PROJECT_...,
 * ST_NO_MEMORY; statuses of the log. Nothing is charged to the project after a failure.
 */
enum status post_reserve(struct txn *t, const struct store_post *post, size_t spare);

/* Undoes post_reserve(): nothing is charged to the project any more. */
void post_unreserve(struct txn *t, const struct store_post *post);

/* Adds the messages, and logs them. `messages` becomes empty. */
void post_commit(struct txn *t, const struct store_post *post, struct list *messages);

#endif
