/*
 * backlog: the messages of a queue, from its making or last purge to the next.
 *
 * Purging or deleting a queue takes its backlog away whole, in O(1), with the claims on its
 * messages; the reclaim list frees both later. A message or a claim belongs to its queue only
 * if its backlog still does.
 *
 * Invariants (backlog_audit):
 *   - each message is in `messages` under its seq, and points back here
 *   - ready bit == neither claimed nor delayed
 *   - each claim is in `claims` under its number, and holds at least one message
 *   - `claimed` counts the messages with a claim
 *   - a message has an original id exactly if it is in `originals` under that id
 */
#ifndef ENGINE_BACKLOG_H
#define ENGINE_BACKLOG_H

#include "claimd/ds/hashmap.h"
#include "claimd/ds/seqmap.h"
#include "engine/message.h"

struct queue;
struct claim;

/* Makes a number at least this one. */
static inline void
raise_number(uint64_t *number, uint64_t least)
{
    if (*number < least)
        *number = least;
}

/* What the backlogs of a shard have together: those alive, or those on the reclaim list. */
struct tally {
    size_t messages, claimed, delayed, original;
    size_t claims;
    uint64_t bytes; /* of bodies */
};

struct backlog {
    struct queue *queue;    /* NULL once it lies on the reclaim list */
    struct tally *tally;    /* where its messages count; the shard's */
    struct seqmap messages; /* number -> struct message, owned */
    struct seqmap claims;   /* number -> struct claim, owned; none is ever ready */
    size_t claimed;
    uint64_t bytes;           /* of bodies */
    struct hashmap original;  /* ids from other queues -> struct original, owned */
    struct list reclaim_link; /* in the shard's reclaim list */
};

/* Counts what a backlog has, so many times: 1, or SIZE_MAX to take it back. */
void tally_backlog(struct tally *t, const struct backlog *b, size_t times);

/* Makes an empty backlog; NULL without memory. */
struct backlog *backlog_new(struct mem *mem, struct tally *tally);

/* From now on its messages count there. O(1). */
void backlog_count_in(struct backlog *b, struct tally *tally);

/* Frees an empty backlog. */
void backlog_free(struct mem *mem, struct backlog *b);

/*
 * Makes sure that the next `count` messages can be added behind last_seq, and that the
 * pool then has `spare` nodes left.
 */
enum status backlog_reserve(struct backlog *b, struct seqmap_pool *pool,
                            uint64_t last_seq, size_t count, size_t spare);

/* Adds a message under m->seq, ready unless delayed; room must have been reserved. */
void backlog_add(struct backlog *b, struct seqmap_pool *pool, struct message *m);

/*
 * Takes a message out: out of the index, the count of claimed ones and the original ids. Its
 * original id stays with it; the caller owns the backlog's pin now, and tells its claim.
 */
void backlog_remove(struct backlog *b, struct seqmap_pool *pool, struct message *m);

/* Marks a free message as held by c, a held one as free, a delayed one as ready. */
void backlog_hold(struct backlog *b, struct message *m, struct claim *c);
void backlog_give_back(struct backlog *b, struct message *m);
void backlog_end_delay(struct backlog *b, struct message *m);

/* How many wait for the end of their delay. */
static inline size_t
backlog_delayed(const struct backlog *b)
{
    return b->messages.live - b->messages.ready - b->claimed;
}

/* The message with this id in a queue with this tag; NULL if there is none. */
struct message *backlog_find(const struct backlog *b, uint32_t tag, struct ident id);

/* Enters m's original id, whose room must have been reserved. */
void backlog_add_original(struct backlog *b, struct message *m);

static inline void
backlog_add_claim(struct backlog *b, struct seqmap_pool *pool, uint64_t number,
                  struct claim *c)
{
    seqmap_insert(&b->claims, pool, number, c, false);
    b->tally->claims++;
}

static inline void
backlog_remove_claim(struct backlog *b, struct seqmap_pool *pool, uint64_t number)
{
    (void)seqmap_remove(&b->claims, pool, number);
    b->tally->claims--;
}

bool backlog_audit(const struct backlog *b);

#endif
