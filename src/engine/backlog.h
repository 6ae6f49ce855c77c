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
 *   - a message holds its key exactly if it is in `unique` under that key
 *   - a message is in `messages`, or unloaded in one of `runs`
 *
 *   Threads  the lock of the shard
 */
#ifndef ENGINE_BACKLOG_H
#define ENGINE_BACKLOG_H

#include "claimd/ds/hashmap.h"
#include "claimd/ds/seqmap.h"
#include "engine/message.h"
#include "engine/run.h"

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
    uint64_t bytes;          /* of bodies */
    size_t unloaded;         /* messages that are in a body file only, and */
    uint64_t unloaded_bytes; /* of their bodies; both are part of the above */
};

struct backlog {
    struct queue *queue;    /* NULL on the reclaim list */
    struct tally *tally;    /* borrowed: a sum of the shard that counts it */
    struct seqmap messages; /* number -> struct message, owned */
    struct seqmap claims; /* number -> struct claim, owned; the ready bits are not used */
    /* Number / 64 -> struct run, owned; ready: has unloaded messages. */
    struct seqmap runs;
    size_t unloaded;         /* messages that are in a body file only (run.h), */
    uint64_t unloaded_bytes; /* of their bodies, */
    uint64_t unload_at;      /* where the search for messages to unload continues, */
    struct list unload_link; /* in the shard's long_backlogs, */
    int64_t unload_ms;       /* and when it begins again */
    bool unload_passed;      /* it passed messages that had just been loaded, */
    int64_t unload_after_ms; /* so it waits until then */
    size_t claimed;
    size_t dead_letters;
    size_t sealed;            /* messages with an encrypted body */
    uint64_t bytes;           /* of bodies */
    struct hashmap originals; /* ids from other queues -> struct extra */
    struct hashmap unique;    /* keys -> struct extra of the messages that hold them */
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

/* Mark a ready message as held by c, a held one as ready, a delayed one as ready. The
 * first claim frees a key that was held until then. */
void backlog_claim_message(struct backlog *b, struct message *m, struct claim *c);
void backlog_release(struct backlog *b, struct message *m);
void backlog_end_delay(struct backlog *b, struct message *m);

/* Marks a ready message as delayed. The caller arms m->due. */
void backlog_delay(struct backlog *b, struct message *m);

/* Number of messages, and of ready ones, in memory or not. */
static inline size_t
backlog_live(const struct backlog *b)
{
    return b->messages.live + b->unloaded;
}

static inline size_t
backlog_ready(const struct backlog *b)
{
    return b->messages.ready + b->unloaded;
}

/* Number of delayed messages. */
static inline size_t
backlog_delayed(const struct backlog *b)
{
    return b->messages.live - b->messages.ready - b->claimed;
}

/* Puts a message that the backlog counts back into memory, or takes it out. It is
 * ready. */
void backlog_load(struct backlog *b, struct seqmap_pool *pool, struct message *m);
void backlog_unload(struct backlog *b, struct seqmap_pool *pool, struct message *m);

/* Replaces a message by another one with the same number and a body of the same length.
 * The backlog's pin goes to `fresh`. */
void backlog_exchange(struct backlog *b, struct seqmap_pool *pool, struct message *m,
                      struct message *fresh);

/* The message in memory with this id in a queue with this tag; NULL if there is none. */
struct message *backlog_find(const struct backlog *b, uint32_t tag, struct ident id);

/* Adds m's original id. The caller has reserved an entry of `originals`. */
void backlog_add_original(struct backlog *b, struct message *m);

/* Replaces the details of a message of the backlog that has an `extra`. Takes over the
 * pin. It does not hold a key afterwards. */
void backlog_set_details(struct backlog *b, struct mem *mem, struct message *m,
                         struct details *details);

/*
 * Lets a message hold the key of its details, if they have one that it may hold
 * (store_holds_key()). hash: core_text_hash() of the key. Another holder, which has
 * expired or is about to leave, loses it. The caller has reserved an entry of `unique`.
 */
void backlog_hold_key(struct backlog *b, struct message *m, uint64_t hash);

/* The message that holds this key; NULL if there is none. */
struct message *
backlog_find_key(const struct backlog *b, struct bytes key, uint64_t hash);

/* The run with this number; NULL: there is none. */
static inline struct run *
backlog_run(const struct backlog *b, uint64_t seq)
{
    return b->runs.live == 0 ? NULL : seqmap_find(&b->runs, seq / RUN_MESSAGES);
}

/* The first unloaded message from number `from` on; RUN_NONE: there is none. */
uint64_t backlog_find_unloaded(const struct backlog *b, uint64_t from);
static inline uint64_t
backlog_next_unloaded(const struct backlog *b, uint64_t from)
{
    return b->unloaded == 0 ? RUN_NONE : backlog_find_unloaded(b, from);
}

/* The first ready message from number `from` on, in memory or not; RUN_NONE: none. */
uint64_t backlog_next_ready(const struct backlog *b, uint64_t from);

static inline bool
backlog_is_unloaded(const struct backlog *b, uint64_t seq)
{
    const struct run *r = backlog_run(b, seq);

    return r != NULL && (r->unloaded & run_bit(seq)) != 0;
}

/* True if a RUN says all about a message in memory: a checkpoint need not repeat it. */
static inline bool
backlog_is_stored(const struct backlog *b, uint64_t seq)
{
    const struct run *r = backlog_run(b, seq);

    return r != NULL && (r->stored & ~r->changed & run_bit(seq)) != 0;
}

/* Count messages of a run as being in memory, or as unloaded. They are ready. */
void backlog_count_loaded(struct run *r, uint64_t bits);
void backlog_count_unloaded(struct run *r, uint64_t bits);

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
