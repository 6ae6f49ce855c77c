/*
 * keyed: the Idempotency-Key of an operation (store/key.h), in the steps of its
 * transaction.
 *
 *     struct keyed k;
 *
 *     keyed_begin()          behind txn_begin(): finds the result of an earlier call
 *       keyed_reserve()      last of what can fail
 *       keyed_commit_post()  with the effect, or keyed_commit_claim(), keyed_commit_pop()
 *     keyed_end()            before txn_end(), in any case
 *
 * From keyed_begin() to keyed_end() all changes of the transaction are a group of the
 * log, so no crash separates an effect from its key. If the shard has a group already,
 * the caller ends it. Without a key each of these costs a comparison.
 *
 *   Threads  the shard's lock
 */
#ifndef ENGINE_KEYED_H
#define ENGINE_KEYED_H

#include "engine/keys.h"
#include "engine/txn.h"

/* Changes of an operation with a key: QUEUE, POST, the numbers of a transient queue,
 * KEY. */
enum { KEYED_CHANGES = 4 };

struct keyed {
    struct txn *txn;                /* borrowed */
    const struct key *known;        /* of an earlier call; NULL: none */
    struct key *fresh;              /* reserved and not committed; NULL: none */
    bool grouped;                   /* `group` is that of the shard */
    struct store_key_record record; /* for the log */
    struct change_group group;
    struct grouped_change changes[KEYED_CHANGES];
};

/* The rest of keyed_begin(), keyed_reserve() and keyed_end() for an operation with a
 * key. */
enum status keyed_begin_with_key(struct keyed *k, enum store_key_kind kind);
enum status keyed_reserve_with_key(struct keyed *k, enum store_key_kind kind,
                                   size_t messages, size_t bytes);
void keyed_end_with_key(struct keyed *k);

/* Finds the key of the operation, if it has one. Sets op->repeated if k->known is set.
 * ST_KEY_REUSED. */
static inline enum status
keyed_begin(struct keyed *k, struct txn *t, enum store_key_kind kind)
{
    k->txn = t;
    k->known = NULL;
    k->fresh = NULL;
    return __builtin_expect(t->op->key == NULL, 1) ? ST_OK
                                                   : keyed_begin_with_key(k, kind);
}

/*
 * Reserves the key, for a pop of so many messages with so many bytes of bodies, for a
 * finish with a result of so many bytes (else 0). ST_KEYS_FULL, ST_OVER_BUDGET,
 * ST_NO_MEMORY; statuses of the log.
 */
static inline enum status
keyed_reserve(struct keyed *k, enum store_key_kind kind, size_t messages, size_t bytes)
{
    return __builtin_expect(k->txn->op->key == NULL, 1)
               ? ST_OK
               : keyed_reserve_with_key(k, kind, messages, bytes);
}

/* Keep the key with the result of the operation. No effect without a key. */
void keyed_keep(struct keyed *k, uint64_t first, uint32_t count);

static inline void
keyed_commit_post(struct keyed *k, uint64_t first, size_t count)
{
    if (__builtin_expect(k->fresh != NULL, 0))
        keyed_keep(k, first, (uint32_t)count);
}

static inline void
keyed_commit_claim(struct keyed *k, struct ident id)
{
    if (__builtin_expect(k->fresh != NULL, 0)) {
        k->fresh->high = id.high;
        keyed_keep(k, id.low, 0);
    }
}

/* Copies the result. */
void keyed_keep_result(struct keyed *k, struct bytes result);

/* The messages were taken out of the queue, and are linked by due.link. */
void keyed_keep_messages(struct keyed *k, const struct list *messages);

static inline void
keyed_commit_pop(struct keyed *k, const struct list *messages)
{
    if (__builtin_expect(k->fresh != NULL, 0) && !list_empty(messages))
        keyed_keep_messages(k, messages);
}

/* Appends the changes to the log, and discards a key that was not committed. */
static inline void
keyed_end(struct keyed *k)
{
    if (__builtin_expect(k->txn->op->key != NULL, 0))
        keyed_end_with_key(k);
}

#endif
