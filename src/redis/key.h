/*
 * key: the names of keys. Those of a queue are in one slot:
 *
 *     claimd:1:{PROJECT/NAME}:X      of a queue; {PROJECT//NAME} of a topic
 *     claimd:1:{PROJECT}:n           the names of a project's queues; :t of its topics
 *     claimd:1:projects:n            the projects that have had queues; :t topics
 *     claimd:1:due:K                 queues that somebody is subscribed to (delivery.h)
 *
 * 1 is the version of the layout. In projects and names { } / % and whatever is no printing ASCII
 * character stands as %XX.
 */
#ifndef REDIS_KEY_H
#define REDIS_KEY_H

#include "claimd/base/buf.h"
#include "claimd/store/types.h"

#define KEY_PREFIX "claimd:1:"

/* Behind that of a queue: the channel where it is said that it has changed. */
#define KEY_CHANNEL "w"

/* Up to the colon: "claimd:1:{p/q}:". If there is no memory, out->failed. */
void key_of_queue(struct buf *out, const struct store_queue *queue);

/* The whole key. */
void key_of_names(struct buf *out, struct bytes project, enum store_kind kind);
void key_of_projects(struct buf *out, enum store_kind kind);
void key_of_due(struct buf *out, unsigned part);

#endif
