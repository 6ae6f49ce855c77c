/*
 * show: views of messages out of the answers of scripts.
 *
 * A batch keeps the answer it shows.
 */
#ifndef REDIS_SHOW_H
#define REDIS_SHOW_H

#include "redis/call.h"
#include "redis/message_head.h"

/*
 * Shows the messages of an answer: from its `from`-th word on there are four words each (number,
 * head, body, claim), up to the end, or to an empty one in the place of a number: as many as the call
 * has asked for at most, which call_run() has made sure of. The batch takes the
 * answer over. ST_NO_MEMORY.
 */
enum status show_messages(struct call *c, size_t from, int64_t now_ms, struct bytes tag,
                          struct store_batch *out);

/*
 * Room for the views of so many messages, for operations that must not take what they cannot show;
 * owned: show_in() uses it up, else show_free(). NULL: no memory.
 */
struct shown;
struct shown *show_room(struct redis_store *s, size_t count);
void show_free(struct redis_store *s, struct shown *room);

/* As show_messages(), in that room; cannot fail. */
void show_in(struct shown *room, struct call *c, size_t from, int64_t now_ms,
             struct bytes tag, struct store_batch *out);

/* Counts how long messages have waited that were taken just now, for the first time. */
void show_waited(struct redis_store *s, const struct store_batch *taken);

/* A word of the answer, which is the head of a message; its texts are valid as long as the answer. */
struct message_head show_head(const struct call *c, size_t i);

/* Writes the id of a message: that of its number, or the original one (absent: none). */
void
show_id(struct bytes tag, uint64_t number, struct bytes original, struct store_id *out);

/* The id of a claim: what it is known by, and its number. */
void show_claim_id(struct bytes secret, uint64_t number, struct store_id *out);

#endif
