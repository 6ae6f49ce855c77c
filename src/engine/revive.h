/*
 * revive: subscriptions and feeds while a log is replayed (replay.c).
 *
 * They live in the nursery, where nobody has a cursor yet: what is in front of whom is known when
 * all has been told. A feed then has more entries than anybody needs, the newest that its
 * bytes allow; the rest is let go at the end. What its bytes did not allow is remembered, so that
 * whoever had it in front is known to have lost it.
 */
#ifndef ENGINE_REVIVE_H
#define ENGINE_REVIVE_H

#include "claimd/store/log.h"
#include "engine/subscription.h"

/* There is a feed: what is posted is entered from now on. ST_NO_MEMORY. */
enum status revive_feed(struct shard *nursery, struct feed **feed);

/* Puts a subscription there as it was told, for the queue of this name; makes the feed if it is
 * the first. ST_NO_MEMORY; ST_BAD_VALUE. */
enum status revive_subscription(struct shard *nursery, struct feed **feed,
                                const struct store_queue *where,
                                const struct store_subscription_record *told);

/* How far it had come; fine if it is not there. */
void revive_cursor(const struct feed *f, const struct store_subscription_record *told);

/* It has gone; fine if it is not there. */
void revive_gone(struct shard *nursery, struct feed *f,
                 const struct store_subscription_record *told);

/* All have gone, with the feed. */
void revive_none(struct shard *nursery, struct feed **feed);

/* Enters a message, which it pins, if there is a feed. ST_NO_MEMORY. */
enum status revive_post(struct shard *nursery, struct feed *f, struct message *m,
                        const struct store_message_record *told);

/* Makes sure that the shard has what the feed needs. ST_NO_MEMORY. */
enum status revive_reserve(struct shard *sh, struct feed *f);

/* Gives the queue, which is in its shard now, its feed: cursors are set. */
void revive_end(struct shard *sh, struct queue *q, struct feed *f);

#endif
