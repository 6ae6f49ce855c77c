/*
 * core: what all shards of an engine share.
 *
 * Nothing in here changes after the start but the directory and the slots of metrics, which
 * have locks of their own, and the atomics.
 */
#ifndef ENGINE_CORE_H
#define ENGINE_CORE_H

#include "claimd/base/hash.h"
#include "claimd/engine/engine.h"
#include "engine/directory.h"
#include "engine/figures.h"

#include <stdatomic.h>

struct core {
    struct mem *mem;                   /* borrowed */
    struct store_log *log;             /* borrowed; NULL: none */
    const struct store_sealer *sealer; /* borrowed; NULL: none */
    struct hash_key key;               /* of queue addresses */
    struct directory directory;
    struct project_limits limits;
    struct metrics_slots metrics_slots;
    struct engine_config config;                        /* as given */
    _Atomic(struct store_listener *) delivery_listener; /* borrowed; NULL: none */
    _Atomic bool
        delivery_notified; /* that something is due, since it last found nothing */
    uint64_t tag_start;
    _Atomic uint64_t tags_used;
    _Atomic uint64_t fence;  /* largest claim number of a queue that is gone */
    _Atomic int64_t next_ms; /* least of the shards' next_ms, or earlier */
};

/* Draws the secrets, too. ST_UNAVAILABLE, ST_NO_MEMORY. */
enum status core_init(struct core *core, const struct engine_config *config);
void core_fini(struct core *core);

/* Keyed hash of a queue's address. */
uint64_t core_hash(const struct core *core, const struct store_queue *where);

/* The tag of the next queue. */
uint32_t core_next_tag(struct core *core);

/* What is used up by now, and: so much was used up. */
void core_marks(struct core *core, struct store_marks *out);
void core_use_up(struct core *core, const struct store_marks *marks);

/* Something is due for delivery; returns the wakeup to fire for it. Under the lock of a shard. */
struct store_wakeup *core_notify_delivery(struct core *core);

/* A queue with claim numbers up to this one is gone. */
void core_raise_fence(struct core *core, uint64_t number);

/* When so many seconds that begin at now_ms are over. */
static inline int64_t
core_deadline_ms(const struct core *core, int64_t now_ms, int64_t seconds)
{
    return now_ms + seconds * 1000 + core->config.round_up_ms;
}

/* Makes core->next_ms at most due_ms. */
void core_wake_at(struct core *core, int64_t due_ms);

#endif
