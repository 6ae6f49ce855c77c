/*
 * core: the data that all shards of an engine share.
 *
 *   Threads  any. Only the directory and the metrics slots, which have locks of their
 *            own, and the atomics change after the start
 */
#ifndef ENGINE_CORE_H
#define ENGINE_CORE_H

#include "claimd/base/hash.h"
#include "claimd/engine/engine.h"
#include "engine/directory.h"
#include "engine/metrics.h"

#include <stdatomic.h>

/* Limits of run_unload.c. */
struct unload_limits {
    size_t backlog_least; /* messages of a backlog in memory, to be searched */
    size_t run_least;     /* messages of a run, to be worth its memory */
    /* These stay in memory at the head of a queue, or as many as. */
    size_t window_messages;
    size_t window_bytes;     /* have so many bytes */
    size_t pressed_messages; /* the same if memory is short */
    uint64_t keep_bytes; /* loaded messages stay until so many more bytes were loaded */
    bool newest;         /* also the newest numbers, of which more will come */
};

struct core {
    struct mem *mem;                   /* borrowed */
    struct store_log *log;             /* borrowed; NULL: none */
    const struct store_sealer *sealer; /* borrowed; NULL: none */
    struct hash_key key;               /* of queue addresses and texts */
    struct directory directory;
    struct project_limits limits;
    struct metrics_slots metrics_slots;
    struct unload_limits unload;
    struct engine_config config;                        /* as given */
    _Atomic(struct store_listener *) delivery_listener; /* borrowed; NULL: none */
    _Atomic bool delivery_notified; /* since it last found nothing due */
    uint64_t tag_start;
    _Atomic uint64_t tags_used;
    _Atomic uint64_t fence;  /* largest fencing token of a deleted queue */
    _Atomic int64_t next_ms; /* least of the shards' next_ms, or earlier */
};

/* Draws the random keys, too. ST_UNAVAILABLE, ST_NO_MEMORY. */
enum status core_init(struct core *core, const struct engine_config *config);
void core_fini(struct core *core);

/* Set in the hash of exactly the queues of schedules. */
#define CORE_OF_SCHEDULES (UINT64_C(1) << 63)

/* Keyed hash of a queue's address. */
uint64_t core_hash(const struct core *core, const struct store_queue *where);

/* Keyed hash of a text that a client chooses. */
static inline uint64_t
core_text_hash(const struct core *core, struct bytes text)
{
    return hash_mix(hash_bytes(&core->key, text));
}

/* The tag of the next queue. */
uint32_t core_next_tag(struct core *core);

/* Reads the numbers that must never be used again; raises them to these. */
void core_marks(struct core *core, struct store_marks *out);
void core_restore_marks(struct core *core, const struct store_marks *marks);

/* Notifies the delivery listener that a delivery is due. Returns the wake-up to fire, or
 * NULL. Needs the lock of a shard. */
struct store_wakeup *core_notify_delivery(struct core *core);

/* Raises the fence: a queue with fencing tokens up to this one was deleted. */
void core_raise_fence(struct core *core, uint64_t number);

/* The time `seconds` after now_ms. */
static inline int64_t
core_deadline_ms(const struct core *core, int64_t now_ms, int64_t seconds)
{
    return now_ms + seconds * 1000 + core->config.round_up_ms;
}

/* Makes core->next_ms at most due_ms. */
void core_wake_at(struct core *core, int64_t due_ms);

#endif
