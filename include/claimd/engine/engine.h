/*
 * engine: the in-memory store (docs/engine.md).
 *
 * Queues are spread over shards by a keyed hash of (project, name); a shard is one mutex
 * with its queues, claims and timing wheels. Everything above talks to it through
 * store/store.h; this header only makes one.
 */
#ifndef CLAIMD_ENGINE_ENGINE_H
#define CLAIMD_ENGINE_ENGINE_H

#include "claimd/base/entropy.h"
#include "claimd/base/mem.h"
#include "claimd/store/log.h"
#include "claimd/store/sealer.h"
#include "claimd/store/store.h"

/* What each project may have; 0: any number. */
struct engine_limits {
    uint64_t queues, messages, bytes; /* bytes of bodies */
};

struct engine_config {
    struct mem *mem;           /* borrowed for the engine's life */
    size_t shards;             /* a power of two, 1..1024 */
    int64_t now_ms;            /* the present at the start */
    int64_t message_ttl_s;     /* default_message_ttl */
    int64_t message_delay_s;   /* default_message_delay */
    int64_t max_message_ttl_s; /* caps a claim's ttl + grace */
    int64_t dead_letter_ttl_s; /* a dead letter lives at least this long, unless its queue
                                  sets another TTL */
    int64_t round_up_ms; /* added to each deadline: 1 if the caller's clock rounds down to
                            milliseconds, so that nothing ends early; 0 if it is exact */
    size_t shown_queues; /* whose figures are shown one by one, at most */
    struct engine_limits project_limits;
    uint64_t feed_bytes; /* of a queue's feed (store/subscription.h); 0: any number */
    bool require_confirmation; /* subscriptions get messages once they are confirmed */
    struct store_log *log;     /* borrowed; NULL: none */
    const struct store_sealer *sealer; /* borrowed; NULL: it cannot seal */
    bool seeded; /* repeatable ids from `seed`: for tests and simulation */
    uint64_t seed;
};

/* Makes an empty store, owned: store_close() it. ST_NO_MEMORY, ST_UNAVAILABLE (no
 * entropy). */
enum status engine_open(const struct engine_config *config, struct store **out);

/*
 * From now on each project may have so much. What it has beyond that stays; nothing more is
 * taken in until it is less. Dead letters are moved whatever their project has. Any thread.
 */
void engine_limit(struct store *s, const struct engine_limits *limits);

#endif
