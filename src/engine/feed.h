/*
 * feed: the messages of a queue that its subscribers have still to receive, and their
 * cursors (claimd/store/subscription.h).
 *
 * An entry has the number of its message, whose body it pins, and counts the cursors that
 * have it in front of them. Entries before the first one with such a cursor are freed. A
 * cursor at the end has no entry in front. The next entry is in front of all of those, so
 * a post costs the same for any number of cursors.
 *
 *      entries        11        12        14        15
 *      waiting         2         0         1         0       at_end 4
 *                      ^                   ^                 ^
 *      cursors         after 9, 10         after 12          after 15
 *
 * Ordinals count entries without gaps, so a cursor knows how many entries it has missed.
 *
 * Invariants (feed_audit):
 *   - each entry is in `entries` under the number of its message; ordinals ascend
 *   - waiting and at_end count the attached cursors that stand there
 *   - bytes is the sum of the costs of the entries
 *
 *   Cost     each function O(levels of the tree), feed_trim() for each entry it frees
 *   Threads  the shard's lock
 */
#ifndef ENGINE_FEED_H
#define ENGINE_FEED_H

#include "claimd/ds/seqmap.h"
#include "engine/message.h"

struct queue;

/* A place in a feed; embedded in a subscription. */
struct cursor {
    uint64_t after;   /* number of the last message that was delivered or missed */
    uint64_t ordinal; /* of that message */
    bool attached;
};

struct feed_entry {
    struct feed_entry *next; /* in feed.stock */
    struct message *message; /* owned pin; its number may have changed since */
    uint64_t ordinal;
    int64_t expires_ms;
    int64_t ttl_s, delay_s; /* as posted; delay_s: 0 without */
    size_t waiting;
};

/* A range of numbers of dropped entries, and the number of entries in the ranges
 * before. */
struct feed_range {
    uint64_t first, last, before;
};

struct feed {
    struct queue *queue; /* NULL: detached, or not attached yet */
    struct seqmap entries;
    struct feed_entry *stock; /* spare entries for the next posts; owned */
    size_t in_stock;
    uint64_t last_ordinal;
    uint64_t bytes;
    uint64_t *tally; /* borrowed: a sum of the shard that `bytes` counts in; NULL: none */
    size_t at_end;
    struct feed_range *dropped; /* by feed_keep_newest(), ascending; owned */
    size_t dropped_count, dropped_capacity;
    struct seqmap subscriptions; /* number -> struct subscription, owned */
    struct hashmap subscribers;  /* by their subscriber */
    struct list idle;            /* subscriptions at the end */
    struct list due;             /* subscriptions with a delivery due, oldest first */
    struct list link;            /* in the shard's due_feeds, while `due` is not empty */
    struct list stale; /* in the shard's stale_feeds, while there is something to free */
};

/* Makes an empty feed; NULL without memory. */
struct feed *feed_new(struct mem *mem);

/* Frees a feed without entries and subscriptions. */
void feed_free(struct mem *mem, struct feed *f);

/* True if a post must be appended: there is an attached cursor or an entry. */
static inline bool
feed_listens(const struct feed *f)
{
    return f != NULL && (f->at_end > 0 || f->entries.live > 0);
}

/* Allocates entries for `count` messages. ST_NO_MEMORY. The caller reserves feed_nodes()
 * in the pool. */
enum status feed_stock(struct feed *f, struct mem *mem, size_t count);

/* Nodes of the pool that `count` messages behind last_seq take. */
static inline size_t
feed_nodes(const struct feed *f, uint64_t last_seq, size_t count)
{
    return seqmap_nodes_for(&f->entries, last_seq + 1, count);
}

/* Appends and pins a message, whose number is larger than all before. Needs feed_stock()
 * and nodes. */
void feed_append(struct feed *f, struct seqmap_pool *pool, struct message *m,
                 int64_t ttl_s, int64_t delay_s);

/* Counts the bytes of the feed in this sum from now on; NULL: in none. */
void feed_count_in(struct feed *f, uint64_t *tally);

/*
 * During a replay, while there is no cursor: inserts a message anywhere, unless the
 * number is there. `as` has the times and the TTL of the entry. Needs feed_stock() and
 * nodes. feed_number() gives all entries their ordinals at the end.
 */
void feed_put(struct feed *f, struct seqmap_pool *pool, struct message *m,
              uint64_t number, const struct feed_entry *as);
void feed_number(struct feed *f);

/*
 * During a replay: drops and records the oldest entries, until the feed has at most
 * `bytes` (0: any number). ST_NO_MEMORY. feed_dropped_behind() returns the number of
 * those behind a number.
 */
enum status feed_keep_newest(struct feed *f, struct seqmap_pool *pool, uint64_t bytes);
uint64_t feed_dropped_behind(const struct feed *f, uint64_t number);

/* Frees the first entries that no cursor needs, within the budget. True: there are no
 * more of them. */
bool feed_trim(struct feed *f, struct mem *mem, struct seqmap_pool *pool, size_t *budget);

/* Drops the first of two or more entries. Returns the number of cursors that miss it. */
size_t feed_drop(struct feed *f, struct mem *mem, struct seqmap_pool *pool);

/* Attaches a detached cursor behind this number, or right in front of the next entry. */
void feed_attach(struct feed *f, struct cursor *c, uint64_t after);

/* Detaches a cursor; no effect if it is detached. */
void feed_detach(struct feed *f, struct cursor *c);

/* The next entry of a cursor, and its number; NULL: there is none, or it is detached. */
struct feed_entry *
feed_next(const struct feed *f, const struct cursor *c, uint64_t *number);

/* Moves an attached cursor forward, behind this number, whose entry has this ordinal.
 * Returns the number of entries that it missed on the way. */
uint64_t
feed_advance(struct feed *f, struct cursor *c, uint64_t number, uint64_t ordinal);

/* Number of entries that a cursor has missed since its last one, and its place behind
 * them. */
uint64_t feed_missed(const struct feed *f, const struct cursor *c, uint64_t *after);

/* Number of entries that a cursor has in front of it or has missed. */
static inline uint64_t
feed_behind(const struct feed *f, const struct cursor *c)
{
    return c->attached ? f->last_ordinal - c->ordinal : 0;
}

#endif
