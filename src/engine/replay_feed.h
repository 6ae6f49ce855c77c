/*
 * replay_feed: subscriptions and feeds during a replay (state_replay.c).
 *
 * They live in the replay shard, where no cursor is attached: which entries are in front
 * of a cursor is known at the end. Until then a feed keeps the newest entries that its
 * limit of bytes allows. The end frees those that no cursor needs. Dropped entries are
 * recorded, so that the cursors that missed them count them.
 */
#ifndef ENGINE_REPLAY_FEED_H
#define ENGINE_REPLAY_FEED_H

#include "engine/subscription.h"

/* Makes the feed, if there is none. Messages that are posted from here on get entries.
 * ST_NO_MEMORY. */
enum status replay_feed_open(struct shard *sh, struct feed **feed);

/* Adds or replaces a subscription as recorded, of the queue at `where`; makes the feed if
 * needed. ST_NO_MEMORY; ST_BAD_VALUE. */
enum status replay_feed_subscription(struct shard *sh, struct feed **feed,
                                     const struct store_queue *where,
                                     const struct store_subscription_record *record);

/* Applies the progress of a subscription, if it is there. */
void
replay_feed_cursor(const struct feed *f, const struct store_subscription_record *record);

/* Removes a subscription, if it is there. */
void replay_feed_gone(struct shard *sh, struct feed *f,
                      const struct store_subscription_record *record);

/* Removes all subscriptions, and frees the feed. */
void replay_feed_none(struct shard *sh, struct feed **feed);

/* Adds a message to the feed, if there is one. ST_NO_MEMORY. */
enum status replay_feed_post(struct shard *sh, struct feed *f, struct message *m,
                             const struct store_message_record *record);

/* Gives the queue, which is in its shard now, its feed, and attaches the cursors. */
void replay_feed_end(struct shard *sh, struct queue *q, struct feed *f);

#endif
