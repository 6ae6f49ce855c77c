/*
 * queue_index: the list of each project's queues, and the list of projects. Queue and list are in different
 * slots, so they change one after the other:
 *
 *     create   the queue, marked as not listed; the entry, with the queue's tag; then the mark goes, or, if
 *              the queue was deleted meanwhile, the entry
 *     delete   the queue; the entry, if its tag is still that of the queue
 *
 * The list of projects keeps those without queues. If a process ends in between, the name of a deleted queue
 * may stay in the list. It has no effect on another queue of the same name, which has another tag.
 */
#ifndef REDIS_QUEUE_INDEX_H
#define REDIS_QUEUE_INDEX_H

#include "redis/call.h"

/* Lists a new queue. ST_UNCONFIRMED: it may exist, but not be listed; the next post to it lists it. */
enum status queue_index_add(struct redis_store *s, const struct store_visit *visit,
                            const struct store_queue *where, struct bytes tag);

/* Removes the entry of a deleted queue. */
enum status queue_index_remove(struct redis_store *s, const struct store_queue *where,
                               struct bytes tag);

/* Removes the entries of deleted queues of this name. */
enum status queue_index_tidy(struct redis_store *s, const struct store_visit *visit,
                             const struct store_queue *where);

/* Some entries of a list, and how many it has. */
struct index_page {
    struct redis_store *store;
    redisReply *response; /* owned: index_page_release() */
    size_t count;
    uint64_t total;
};

/* Reads `limit` entries at most of a project's queues, or of the list of projects (NULL), behind those
 * with the name `marker` (absent: from the first one). To be released in any case. */
enum status
queue_index_page(struct redis_store *s, const struct bytes *project, enum store_kind kind,
                 struct bytes marker, size_t limit, struct index_page *out);

/* The i-th name of a page; behind that of a queue follows its tag (NULL: not wanted). */
struct bytes index_page_name(const struct index_page *page, size_t i, struct bytes *tag);
void index_page_release(struct index_page *page);

/* How many queues of this kind a project has. */
enum status queue_index_count(struct redis_store *s, struct bytes project,
                              enum store_kind kind, uint64_t *count);

#endif
