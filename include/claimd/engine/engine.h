/*
 * engine: the in-memory store (docs/engine.md).
 *
 * A keyed hash of (project, name) spreads queues over shards. A shard is a mutex with its
 * queues, claims and timing wheels. Callers use the engine through store/store.h; this
 * header only opens and limits one.
 */
#ifndef CLAIMD_ENGINE_ENGINE_H
#define CLAIMD_ENGINE_ENGINE_H

#include "claimd/base/entropy.h"
#include "claimd/base/mem.h"
#include "claimd/store/runs.h"
#include "claimd/store/sealer.h"
#include "claimd/store/store.h"

/* Limits of each project; 0: no limit. */
struct engine_limits {
    uint64_t queues, messages, bytes; /* bytes of bodies */
};

struct engine_config {
    struct mem *mem;           /* borrowed for the engine's life */
    size_t shards;             /* a power of two, 1..1024 */
    int64_t now_ms;            /* the present at the start */
    int64_t message_ttl_s;     /* default_message_ttl */
    int64_t message_delay_s;   /* default_message_delay */
    int64_t claim_ttl_s;       /* default_claim_ttl */
    int64_t claim_grace_s;     /* default_claim_grace */
    int64_t max_message_ttl_s; /* limit of a claim's ttl + grace */
    int64_t dead_letter_ttl_s; /* minimum, unless the queue sets one */
    int64_t round_up_ms;       /* added to deadlines: 1 if the clock rounds down */
    size_t shown_queues;       /* limit of queues with metrics of their own */
    struct engine_limits project_limits;
    uint64_t feed_bytes;       /* of a queue's feed (store/subscription.h); 0: no limit */
    int64_t key_window_ms;     /* idempotency_window */
    uint64_t keys;             /* limit of kept keys (store/key.h) */
    bool require_confirmation; /* subscriptions receive messages only if confirmed */
    struct store_log *log;     /* borrowed; NULL: none */
    struct store_runs *runs;   /* borrowed; NULL: all messages stay in memory */
    uint64_t backlog_memory;   /* bytes in use from which on messages are unloaded */
    bool unload_all;           /* all that can be, at once: for tests */
    const struct store_sealer *sealer; /* borrowed; NULL: no encryption */
    bool seeded; /* repeatable ids from `seed`: for tests and simulation */
    uint64_t seed;
};

/* Makes an empty store; the caller calls store_close(). ST_NO_MEMORY, ST_UNAVAILABLE (no
 * entropy). */
enum status engine_open(const struct engine_config *config, struct store **out);

/* Changes the limits of projects. A project that exceeds them keeps its contents, and can
 * add nothing until it is within them. Dead letters move in any case. Any thread. */
void engine_limit(struct store *s, const struct engine_limits *limits);

#endif
