/*
 * backlog: the messages of a queue and the claims on them, from its creation or last
 * purge to the next.
 *
 * A purge or a deletion detaches the whole backlog in O(1). The reclaim list frees it
 * later. A message or a claim belongs to a queue only if its backlog still does.
 *
 * Invariants (backlog_audit):
 *   - each message is in `messages` under its seq, and points back here
 *   - the ready bit is set exactly if a message is neither claimed nor delayed
 *   - each claim is in `claims` under its number, and holds at least one message
 *   - `claimed` counts the messages with a claim
 *   - a message has an original id exactly if it is in `originals` under that id
 *   - `dead_letters` counts the dead letters
 *
 *   Threads  the lock of the shard
 */
#ifndef ENGINE_BACKLOG_H
#define ENGINE_BACKLOG_H

#include "claimd/ds/hashmap.h"
#include "claimd/ds/seqmap.h"
#include "engine/message.h"

struct queue;
struct claim;

/* Raises *number to `least`. */
static inline void
raise_number(uint64_t *number, uint64_t least)
{
    if (*number < least)
        *number = least;
}

/* Sums over the backlogs of a shard: those of queues, or those on the reclaim list. */
struct tally {
    size_t messages, claimed, delayed, dead_letters;
    size_t claims;
    uint64_t bytes; /* of bodies */
};

struct backlog {
    struct queue *queue;    /* NULL on the reclaim list */
    struct tally *tally;    /* borrowed: a sum of the shard that counts it */
    struct seqmap messages; /* number -> struct message, owned */
    struct seqmap claims; /* number -> struct claim, owned; the ready bits are not used */
    size_t claimed;
    size_t dead_letters;
    size_t sealed;            /* messages with an encrypted body */
    uint64_t bytes;           /* of bodies */
    struct hashmap originals; /* ids from other queues -> struct extra */
    struct list reclaim_link; /* in the shard's reclaim list */
};

/* Adds the contents of a backlog to a tally (times 1), or subtracts them (times
 * SIZE_MAX). */
void tally_backlog(struct tally *t, const struct backlog *b, size_t times);

/* Makes an empty backlog; NULL without memory. */
struct backlog *backlog_new(struct mem *mem, struct tally *tally);

/* Counts the backlog in another tally from now on. O(1). */
void backlog_count_in(struct backlog *b, struct tally *tally);

/* Frees an empty backlog. */
void backlog_free(struct mem *mem, struct backlog *b);

/* Reserves memory to add `count` messages behind last_seq, and `spare` more nodes of the
 * pool. ST_NO_MEMORY. */
enum status backlog_reserve(struct backlog *b, struct seqmap_pool *pool,
                            uint64_t last_seq, size_t count, size_t spare);

/* Adds a message under m->seq, ready unless delayed. Needs backlog_reserve(). */
void backlog_add(struct backlog *b, struct seqmap_pool *pool, struct message *m);

/* Removes a message, which keeps its original id. The caller owns the backlog's pin, and
 * updates the claim that held the message. */
void backlog_remove(struct backlog *b, struct seqmap_pool *pool, struct message *m);

/* Mark a ready message as held by c, a held one as ready, a delayed one as ready. */
void backlog_claim_message(struct backlog *b, struct message *m, struct claim *c);
void backlog_release(struct backlog *b, struct message *m);
void backlog_end_delay(struct backlog *b, struct message *m);

/* Marks a ready message as delayed. The caller arms m->due. */
void backlog_delay(struct backlog *b, struct message *m);

/* Number of delayed messages. */
static inline size_t
backlog_delayed(const struct backlog *b)
{
    return b->messages.live - b->messages.ready - b->claimed;
}

/* The message with this id in a queue with this tag; NULL if there is none. */
struct message *backlog_find(const struct backlog *b, uint32_t tag, struct ident id);

/* Adds m's original id. The caller has reserved an entry of `originals`. */
void backlog_add_original(struct backlog *b, struct message *m);

/* Replaces the details of a message of the backlog that has an `extra`. Takes over the
 * pin. */
void backlog_set_details(struct backlog *b, struct mem *mem, struct message *m,
                         struct details *details);

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
