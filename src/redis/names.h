/*
 * names: which queues a project has. Queue and list are in different slots, so they change one after
 * the other:
 *
 *     make     the queue, marked as not listed; the name, with the queue's tag; the mark goes, or, if
 *              the queue has gone meanwhile, the name
 *     delete   the queue; the name, if its tag is still that of the queue
 *
 * The list of projects keeps those that have none any more.
 *
 * A name whose queue is gone may stay in the list if a process dies in between; it has no effect on
 * another queue of the same name, which has another tag.
 */
#ifndef REDIS_NAMES_H
#define REDIS_NAMES_H

#include "redis/call.h"

/* A queue was made, and is not listed yet. ST_UNCONFIRMED: it may be there, but not in the list: whatever
 * comes to it next enters it. */
enum status names_enter(struct redis_store *s, const struct store_visit *visit,
                        const struct store_queue *where, struct bytes tag);

/* A queue was deleted. */
enum status
names_leave(struct redis_store *s, const struct store_queue *where, struct bytes tag);

/* Takes off what was left of queues of this name that have gone. */
enum status names_tidy(struct redis_store *s, const struct store_visit *visit,
                       const struct store_queue *where);

/* Some names of a list, and how many it has. */
struct names {
    struct redis_store *store;
    redisReply *answer; /* owned: names_release() */
    size_t count;
    uint64_t total;
};

/* A page: `count` names at most (0: none) from `from` on, which is written as ZRANGEBYLEX has it (absent:
 * from the first one). */
enum status names_page(struct redis_store *s, struct bytes key, struct bytes from,
                       size_t count, struct names *out);
/* How many queues of this kind a project has. */
enum status names_count(struct redis_store *s, struct bytes project, enum store_kind kind,
                        uint64_t *count);

/* The i-th name of a page. */
struct bytes names_at(const struct names *names, size_t i);
void names_release(struct names *names);

#endif
