/*
 * replay_feed: subscriptions and feeds while a log is replayed (state_replay.c).
 *
 * They live in the replay shard, where nobody has a cursor yet: what is in front of whom is known when
 * all has been replayed. A feed then has more entries than anybody needs, the newest that its
 * bytes allow; the rest is let go at the end. What its bytes did not allow is remembered, so that
 * whoever had it in front is known to have lost it.
 */
#ifndef ENGINE_REPLAY_FEED_H
#define ENGINE_REPLAY_FEED_H

#include "engine/subscription.h"

/* There is a feed: what is posted is entered from now on. ST_NO_MEMORY. */
enum status replay_feed_open(struct shard *sh, struct feed **feed);

/* Puts a subscription there as recorded, for the queue of this name; makes the feed if it is
 * the first. ST_NO_MEMORY; ST_BAD_VALUE. */
enum status replay_feed_subscription(struct shard *sh, struct feed **feed,
                                     const struct store_queue *where,
                                     const struct store_subscription_record *record);

/* How far it had come; fine if it is not there. */
void
replay_feed_cursor(const struct feed *f, const struct store_subscription_record *record);

/* It has gone; fine if it is not there. */
void replay_feed_gone(struct shard *sh, struct feed *f,
                      const struct store_subscription_record *record);

/* All have gone, with the feed. */
void replay_feed_none(struct shard *sh, struct feed **feed);

/* Enters a message, which it pins, if there is a feed. ST_NO_MEMORY. */
enum status replay_feed_post(struct shard *sh, struct feed *f, struct message *m,
                             const struct store_message_record *record);

/* Gives the queue, which is in its shard now, its feed: cursors are set. */
void replay_feed_end(struct shard *sh, struct queue *q, struct feed *f);

#endif
