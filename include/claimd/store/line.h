/*
 * line: who waits for messages of one queue, longest first (store/waiter.h); for stores.
 *
 * A line exists while anybody is in it, whether its queue does or not. In the engine, changes that
 * may mean that somebody has to be called put it on its shard's list of stirred lines; the
 * shard calls when its lock is about to be let go (shard_leave), so it does so once for
 * all that an operation did.
 *
 * Invariants (line_audit), when the lock is free: the line has a waiter; each waiter for which
 * a ready message is left (store/waiter.h) is called.
 *
 *   Cost     enter, leave O(1); reserved and call O(STORE_RESERVED)
 *   Threads  the lock of whoever has it: the engine's shard
 */
#ifndef CLAIMD_STORE_LINE_H
#define CLAIMD_STORE_LINE_H

#include "claimd/base/mem.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/wheel.h"
#include "claimd/store/types.h"
#include "claimd/store/waiter.h"

struct queue; /* the engine's */

struct line {
    struct hashnode node; /* in the lines of whoever has it; hash of the address */
    struct list link;     /* the engine's: in the shard's stirred, or its ended lines */
    struct list *stirred; /* likewise: the shard's, borrowed */
    struct list waiters;
    size_t count;
    struct queue *queue;      /* the engine's; NULL: there is none of this address */
    struct deadline look;     /* of a store that asks somebody else: when to do so, */
    size_t ready;             /* and what it heard the last time: messages ready */
    bool ended;               /* its queue was deleted: all are about to be told */
    struct store_queue where; /* points behind this structure */
    char text[];
};

/* Bells to be rung when the lock has been let go; what does not fit is rung at once. */
enum { BELLS_KEPT = 8 };
struct bells {
    struct store_bell *kept[BELLS_KEPT];
    size_t count;
};
void bells_ring(struct bells *bells);

/* Keeps a bell, NULL: none, until then. */
void bells_keep(struct bells *bells, struct store_bell *bell);

/* Makes an empty line; NULL without memory. */
struct line *
line_new(struct mem *mem, const struct store_queue *where, struct list *stirred);

/* Puts a waiter that is outside at the end, or has one that is in it wait on. It asks for
 * `wants` messages, at least one. */
void line_enter(struct line *line, struct store_waiter *w, size_t wants);

/* Takes a waiter out, whatever it is. */
void line_leave(struct line *line, struct store_waiter *w);

/* How many ready messages are reserved for the waiters in front of w, which may not be in line
 * yet; SIZE_MAX: STORE_RESERVED or more. */
size_t line_reserved(const struct line *line, const struct store_waiter *w);

/* Calls each waiter for which one of so many ready messages is left. */
void line_call(struct line *line, size_t ready, struct bells *bells);

/* Tells the first one that the queue has gone, and takes it out. */
void line_dismiss(struct line *line, struct bells *bells);

/* Somebody may have to be called. */
static inline void
line_stir(struct line *line)
{
    if (!list_linked(&line->link))
        list_add_before(line->stirred, &line->link);
}

bool line_audit(const struct line *line, size_t ready);

#endif
