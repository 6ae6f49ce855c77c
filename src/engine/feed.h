/*
 * feed: what was posted to a queue that somebody is subscribed to, and the cursors in it
 * (claimd/store/subscription.h).
 *
 * An entry has the number of its message, whose body it pins, and how many cursors have it in
 * front of them. Nobody needs what stands before the first entry that has any: it is trimmed. A
 * cursor at the end has nothing in front; the next entry has all of those in front, so a
 * post costs the same whatever their number.
 *
 *      entries        11        12        14        15
 *      waiting         2         0         1         0       at_end 4
 *                      ^                   ^                 ^
 *      cursors         after 9, 10         after 12          after 15
 *
 * Ordinals count entries without gaps, so a cursor knows how many it has missed.
 *
 * Invariants (feed_audit):
 *   - each entry is in `entries` under the number of its message; ordinals ascend
 *   - waiting and at_end count the attached cursors that stand there
 *   - bytes is the sum of what the entries cost
 *
 *   Cost     each function O(levels of the tree); trimming as said there
 *   Threads  the shard's lock
 */
#ifndef ENGINE_FEED_H
#define ENGINE_FEED_H

#include "claimd/ds/seqmap.h"
#include "engine/message.h"

struct queue;

/* A place in a feed; embedded in a subscription. */
struct cursor {
    uint64_t after;   /* number of the last message that it has done with */
    uint64_t ordinal; /* of that */
    bool attached;
};

struct feed_entry {
    struct feed_entry *next; /* in the stock */
    struct message *message; /* owned pin; its number may be another one by now */
    uint64_t ordinal;
    int64_t expires_ms;
    int64_t ttl_s, delay_s; /* as it was posted; delay_s: 0 without */
    size_t waiting;
};

/* Numbers in a row of entries that were dropped, and how many were before them. */
struct feed_span {
    uint64_t first, last, before;
};

struct feed {
    struct queue *queue; /* NULL: its queue has gone, or has no name yet */
    struct seqmap entries;
    struct feed_entry *stock; /* for the next posts; owned */
    size_t in_stock;
    uint64_t last_ordinal;
    uint64_t bytes;
    uint64_t *tally; /* where they count, too: the shard's; NULL: nowhere */
    size_t at_end;
    struct feed_span *lost; /* while a log is replayed, ascending; owned */
    size_t lost_count, lost_room;
    struct seqmap subscriptions; /* number -> struct subscription, owned */
    struct hashmap subscribers;  /* by their address */
    struct list idle;            /* subscriptions at the end */
    struct list due;             /* those who have something to get now, longest first */
    struct list link;            /* in the shard's news, while `due` is not empty */
    struct list stale; /* in the shard's stale feeds: there is something to free */
};

/* Makes an empty feed; NULL without memory. */
struct feed *feed_new(struct mem *mem);

/* Frees a feed without entries and subscriptions. */
void feed_free(struct mem *mem, struct feed *f);

/* True if a post has to be entered: somebody has a cursor. */
static inline bool
feed_listens(const struct feed *f)
{
    return f != NULL && (f->at_end > 0 || f->entries.live > 0);
}

/* Makes sure that the next `count` messages can be appended, whose nodes are reserved. */
enum status feed_stock(struct feed *f, struct mem *mem, size_t count);

/* How many nodes of the pool that takes, behind this number. */
static inline size_t
feed_nodes(const struct feed *f, uint64_t last_seq, size_t count)
{
    return seqmap_nodes_for(&f->entries, last_seq + 1, count);
}

/* Appends a message, whose number is larger than all before; pins it. */
void feed_append(struct feed *f, struct seqmap_pool *pool, struct message *m,
                 int64_t ttl_s, int64_t delay_s);

/* From now on its bytes count there; NULL: nowhere. */
void feed_count_in(struct feed *f, uint64_t *tally);

/*
 * While a log is replayed, and nobody has a cursor: enters a message anywhere, if it is not there
 * yet; its node and an entry are in stock. Entries get their ordinals with feed_number().
 */
void feed_put(struct feed *f, struct seqmap_pool *pool, struct message *m,
              uint64_t number, const struct feed_entry *as);
void feed_number(struct feed *f);

/*
 * Likewise: drops first entries until there are no more than so many bytes (0: any number), and
 * remembers their numbers. ST_NO_MEMORY. feed_lost_behind(): how many of those are behind this one.
 */
enum status feed_keep_newest(struct feed *f, struct seqmap_pool *pool, uint64_t bytes);
uint64_t feed_lost_behind(const struct feed *f, uint64_t number);

/*
 * Lets go of the first entries, as many as nobody needs and the budget allows; true if there
 * are no more of them.
 */
bool feed_trim(struct feed *f, struct mem *mem, struct seqmap_pool *pool, size_t *budget);

/*
 * Lets go of the first entry, but not of the last one: whoever has it in front has lost it.
 * Returns how many those are.
 */
size_t feed_drop(struct feed *f, struct mem *mem, struct seqmap_pool *pool);

/* Puts a cursor that is detached at the end, behind last_seq. */
void feed_attach(struct feed *f, struct cursor *c, uint64_t last_seq);

/* Puts a cursor that is detached behind this number, or right in front of the next entry. */
void feed_attach_at(struct feed *f, struct cursor *c, uint64_t after);

/* Fine if it is detached. */
void feed_detach(struct feed *f, struct cursor *c);

/* What an attached cursor has in front, and its number; NULL: nothing. */
struct feed_entry *
feed_next(const struct feed *f, const struct cursor *c, uint64_t *number);

/* Moves an attached cursor behind a number that is larger than its. Returns how many it has
 * missed on the way. */
uint64_t
feed_advance(struct feed *f, struct cursor *c, uint64_t number, uint64_t ordinal);

/* How many entries an attached cursor has missed up to now, and where it stands behind them. */
uint64_t feed_missed(const struct feed *f, const struct cursor *c, uint64_t *after);

/* How many entries a cursor has in front of it, or has missed. */
static inline uint64_t
feed_behind(const struct feed *f, const struct cursor *c)
{
    return c->attached ? f->last_ordinal - c->ordinal : 0;
}

#endif
