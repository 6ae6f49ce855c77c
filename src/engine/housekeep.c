#include "engine/housekeep.h"
#include "engine/graveyard.h"
#include "engine/settle.h"
#include "engine/subscription.h"

/* A part of housekeeping, as far as the budget goes. True when none of it is left. */
typedef bool chore_fn(struct shard *sh, int64_t now_ms, size_t *budget);

static bool
clear_graveyard(struct shard *sh, int64_t now_ms, size_t *budget)
{
    (void)now_ms; /* what lies there has no time any more */
    return graveyard_slice(sh, budget);
}

int64_t
housekeep_shard(struct shard *sh, int64_t now_ms, size_t *budget)
{
    static chore_fn *const chores[] = {settle_claims, settle_messages, clear_graveyard,
                                       settle_subscriptions, feed_chores};
    int64_t next_ms, messages_ms;
    bool settled = true;

    now_ms = shard_enter(sh, now_ms);
    for (size_t i = 0; i < sizeof(chores) / sizeof(chores[0]); i++) {
        size_t slice = *budget < SETTLE_SLICE ? *budget : SETTLE_SLICE, left = slice;

        settled = chores[i](sh, now_ms, &left) && settled;
        *budget -= slice - left;
    }
    seqmap_pool_trim(&sh->pool);
    next_ms = wheel_next_ms(sh->claim_wheel);
    messages_ms = wheel_next_ms(sh->message_wheel);
    if (next_ms > messages_ms)
        next_ms = messages_ms;
    if (sh->subscription_wheel != NULL && next_ms > wheel_next_ms(sh->subscription_wheel))
        next_ms = wheel_next_ms(sh->subscription_wheel);
    if (!settled)
        next_ms = now_ms;
    atomic_store(&sh->next_ms, next_ms);
    shard_leave(sh); /* may lower it */
    return next_ms;
}

/* A piece frees at least so many bytes: a message's structure, its header, its index. */
enum { PIECE_BYTES = 128, PAY_AT_LEAST = 8 };

void
housekeep_pay(struct engine *e, int64_t now_ms, size_t count, size_t bytes)
{
    size_t budget = PAY_AT_LEAST + 2 * (count + bytes / PIECE_BYTES);

    if (atomic_load_explicit(&e->core.next_ms, memory_order_relaxed) > now_ms)
        return;
    for (size_t i = 0; i <= e->shard_mask && budget > 0; i++) {
        struct shard *sh = &e->shards[i];

        if (atomic_load_explicit(&sh->next_ms, memory_order_relaxed) > now_ms)
            continue;
        while (budget > 0 && housekeep_shard(sh, now_ms, &budget) <= now_ms)
            continue;
    }
}

static int64_t
housekeep(struct shard *sh, int64_t now_ms)
{
    size_t budget = SIZE_MAX; /* a slice is bounded by itself */

    return housekeep_shard(sh, now_ms, &budget);
}

void
engine_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    struct engine *e = engine_of(s);

    /* Whoever arms something from here on lowers next_ms again; nobody's wish is lost. */
    atomic_store(&e->core.next_ms, WHEEL_NEVER);
    for (size_t i = 0; i <= e->shard_mask; i++)
        core_wake_at(&e->core, housekeep(&e->shards[i], now_ms));
    store_log_flush(e->core.log);
    *next_ms = atomic_load(&e->core.next_ms);
}

int64_t
engine_next_ms(struct store *s)
{
    return atomic_load_explicit(&engine_of(s)->core.next_ms, memory_order_relaxed);
}
