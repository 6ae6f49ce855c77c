/*
 * keys: the Idempotency-Keys of a shard, with the results of their operations
 * (store/key.h).
 *
 * A shard keeps the keys of its queues in the order of their age. All keys live equally
 * long, so the first one ends first. A key names the incarnation of its queue by its tag:
 * the keys of a deleted queue are not found any more, and are freed when they end.
 * keyed.h adds them.
 *
 *   Memory   104 bytes and a slot in the table for each key; the messages of a pop stay
 *   Threads  the shard's lock
 */
#ifndef ENGINE_KEYS_H
#define ENGINE_KEYS_H

#include "engine/changelog.h"

struct key {
    struct hashnode node;    /* in the shard's keys */
    struct list link;        /* in the shard's key_order */
    struct key_share *share; /* counts the key; NULL: none yet */
    struct store_key key;
    int64_t made_ms;
    uint64_t first; /* POST: number of the first message; CLAIM: the id, with `high` */
    uint32_t high;
    uint32_t tag;               /* of the queue */
    uint32_t count;             /* POST, POP: messages; FINISH: bytes of the result */
    uint8_t kind;               /* enum store_key_kind */
    bool transient;             /* the key does not survive a restart */
    struct message *messages[]; /* POP: pinned; FINISH: key_result() */
};

static inline struct bytes
key_result(const struct key *key)
{
    return bytes_of((const char *)key->messages, key->count);
}

/* Makes a key with space for so many messages or a result of so many bytes. It has no
 * share yet. NULL without memory. */
struct key *key_new(struct core *core, size_t messages, size_t result);

/* Frees a key that is in no shard, and its place in the share of its project. */
void key_free(struct core *core, struct key *key);

/* The key of an operation on the queue with this tag; NULL: there is none. It may have
 * ended. */
struct key *keys_find(const struct shard *sh, const struct store_key *key, uint32_t tag);

/* Adds a key behind all others. The caller has reserved a place in the table. */
void key_add(struct shard *sh, struct key *key);

/* When a key ends. */
static inline int64_t
key_ends_ms(const struct shard *sh, const struct key *key)
{
    return key->made_ms + sh->core->config.key_window_ms;
}

/* Number of messages of a key. */
static inline size_t
key_messages(const struct key *key)
{
    return key->kind == STORE_KEY_POP ? key->count : 0;
}

/* Describes a key for the log. */
void key_describe(const struct key *key, struct store_key_record *out);

/* The id of the claim of a key. */
static inline struct ident
key_claim(const struct key *key)
{
    return (struct ident){key->high, key->first};
}

/* Frees the keys that have ended, as far as the budget goes. True: none of them is
 * left. */
bool keys_expire(struct shard *sh, int64_t now_ms, size_t *budget);

/* The same as a task of housekeeping, which frees all keys of a shard without queues. */
bool keys_chore(struct shard *sh, int64_t now_ms, size_t *budget);

/* When the first key ends; INT64_MAX: there are no keys. */
int64_t keys_next_ms(const struct shard *sh);

/* Frees all keys. */
void keys_free(struct shard *sh);

/* Appends the keys to the log for a checkpoint, until `left` is spent. *done: there are
 * no more. Statuses of the log. */
enum status keys_checkpoint(struct shard *sh, struct allowance *left, bool *done);

/* KEY of a replay: adds the key to the replay shard, or replaces it. */
enum status keys_replay(struct shard *sh, struct store_change *change);

/* Sorts the keys by age. ST_NO_MEMORY. */
enum status keys_sort(struct shard *sh);

/* Moves a key of a replay to the shard of its queue, behind its keys. It counts for the
 * project beyond any limit. The caller has both locks. ST_NO_MEMORY. */
enum status
key_move(struct shard *from, struct key *key, struct shard *to, struct bytes project);

/* Frees a key. */
void key_drop(struct shard *sh, struct key *key);

bool keys_audit(const struct shard *sh);

#endif
