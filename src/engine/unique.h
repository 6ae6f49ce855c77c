/*
 * unique: finds the message that holds a key (store_message_post() in
 * claimd/store/store.h). backlog.h has the table of keys.
 */
#ifndef ENGINE_UNIQUE_H
#define ENGINE_UNIQUE_H

#include "engine/queue.h"

/*
 * The live message of q that holds this key; NULL if there is none. A message whose last
 * claim has ended is a dead letter, although it may not have moved yet. O(1).
 */
struct message *unique_find(const struct queue *q, struct bytes key, int64_t now_ms);

/* Lets a message of q hold its key, if it has one: see backlog_hold_key(). */
void unique_hold(struct queue *q, struct message *m);

#endif
