#include "engine/core.h"
#include "claimd/ds/wheel.h"
#include "engine/ident.h"

static const struct unload_limits unload_usual = {.backlog_least = 256,
                                                  .run_least = 8,
                                                  .window_messages = 4096,
                                                  .window_bytes = 4 << 20,
                                                  .pressed_messages = 64,
                                                  .keep_bytes = 16 << 20};
static const struct unload_limits unload_all = {
    .backlog_least = 1, .run_least = 1, .newest = true};

enum status
core_init(struct core *core, const struct engine_config *config)
{
    uint64_t words[5];
    struct entropy entropy;
    enum status st;

    if (config->seeded)
        entropy_init_seeded(&entropy, config->seed);
    else
        entropy_init_system(&entropy);
    st = entropy_reserve(&entropy, sizeof(words));
    if (st != ST_OK)
        return st;
    entropy_take(&entropy, words, sizeof(words));
    *core = (struct core){.mem = config->mem,
                          .log = config->log,
                          .sealer = config->sealer,
                          .key = {words[0], words[1]},
                          .config = *config,
                          .tag_start = words[4] >> 32};
    core->unload = config->unload_all ? unload_all : unload_usual;
    atomic_init(&core->next_ms, WHEEL_NEVER);
    atomic_init(&core->tags_used, 0);
    atomic_init(&core->fence, 0);
    atomic_init(&core->delivery_listener, NULL);
    atomic_init(&core->delivery_notified, false);
    st = metrics_slots_init(&core->metrics_slots, core->mem, config->shown_queues);
    if (st != ST_OK)
        return st;
    directory_init(&core->directory, core->mem, (struct hash_key){words[2], words[3]});
    return ST_OK;
}

void
core_fini(struct core *core)
{
    directory_fini(&core->directory);
    metrics_slots_fini(&core->metrics_slots, core->mem);
}

uint64_t
core_hash(const struct core *core, const struct store_queue *where)
{
    const uint64_t hash =
        hash_mix(hash_bytes(&core->key, where->name) * 3 +
                 hash_bytes(&core->key, where->project) + (uint64_t)where->kind);

    return where->kind == STORE_SCHEDULES ? hash | CORE_OF_SCHEDULES
                                          : hash & ~CORE_OF_SCHEDULES;
}

uint32_t
core_next_tag(struct core *core)
{
    return ident_tag(core->tag_start, atomic_fetch_add(&core->tags_used, 1));
}

/* Raises *number to `least`. */
static void
raise_atomic(_Atomic uint64_t *number, uint64_t least)
{
    uint64_t now = atomic_load(number);

    while (now < least && !atomic_compare_exchange_weak(number, &now, least))
        continue;
}

void
core_marks(struct core *core, struct store_marks *out)
{
    *out = (struct store_marks){.tag_start = core->tag_start,
                                .tags_used = atomic_load(&core->tags_used),
                                .fence = atomic_load(&core->fence)};
}

void
core_restore_marks(struct core *core, const struct store_marks *marks)
{
    core->tag_start = marks->tag_start;
    raise_atomic(&core->tags_used, marks->tags_used);
    raise_atomic(&core->fence, marks->fence);
}

struct store_wakeup *
core_notify_delivery(struct core *core)
{
    struct store_listener *delivery_listener = atomic_load(&core->delivery_listener);

    return delivery_listener == NULL || atomic_exchange(&core->delivery_notified, true)
               ? NULL
               : delivery_listener->notify(delivery_listener, STORE_READY);
}

void
core_raise_fence(struct core *core, uint64_t number)
{
    raise_atomic(&core->fence, number);
}

void
core_wake_at(struct core *core, int64_t due_ms)
{
    int64_t next_ms = atomic_load(&core->next_ms);

    while (due_ms < next_ms &&
           !atomic_compare_exchange_weak(&core->next_ms, &next_ms, due_ms))
        continue;
}
