/*
 * store/key: the Idempotency-Key of an operation (docs/api.md 27, promise "one key, one
 * effect").
 *
 * An operation with a key happens once within the window of the store. Called again with
 * the same key, on the same queue, it has no effect and returns the result of the first
 * call. The store keeps the key in the same step as the effect. An operation that had no
 * effect, because it failed or found no message, keeps no key.
 *
 *     message_post   returns the ids of the first call
 *     claim_create   returns the claim as claim_get() does. ST_KEY_ENDED: it has ended
 *     message_pop    returns the messages of the first call
 *     claim_finish   returns the results of the first call, with the ids of its posts. On
 *                    Redis the posts are `pending`
 *
 *     ST_KEY_REUSED  the key belongs to another operation, or to one with another digest
 *     ST_KEYS_FULL   the project has as many keys as the store has free places
 *
 * Deleting a queue deletes its keys. A purge keeps them.
 */
#ifndef CLAIMD_STORE_KEY_H
#define CLAIMD_STORE_KEY_H

#include "claimd/store/types.h"

/* The key of one client for one request. Both are parts of cryptographic hashes. */
struct store_key {
    uint64_t hash[2];   /* of all that must be equal for a request to be the same */
    uint64_t digest[2]; /* of all else of the request */
};

/* The journal and Redis store these numbers: never change or reuse them. */
enum store_key_kind {
    STORE_KEY_POST = 1,
    STORE_KEY_CLAIM = 2,
    STORE_KEY_POP = 3,
    STORE_KEY_FINISH = 4
};

/* A key with the result of its operation, for a log. */
struct store_key_record {
    struct store_key key;
    enum store_key_kind kind;
    int64_t made_ms;
    uint64_t first; /* POST: number of the first message; the others follow it */
    uint32_t count; /* POST: number of messages */
    struct store_id claim_id; /* CLAIM */
    struct bytes result;      /* FINISH: private to the store */
};

#endif
