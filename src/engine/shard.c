#include "engine/shard.h"
#include "engine/claim.h"
#include "engine/graveyard.h"

#include <assert.h>

/* How much is done before the lock is let go: some tens of microseconds' worth. */
enum { SLICE = 256 };

/* After so many slices an operation lets others of its thread go first. */
enum { SETTLE_SLICES = 4 };

enum status
shard_init(struct shard *sh, struct engine *e, const struct engine_config *config,
           uint64_t seed)
{
    *sh = (struct shard){.engine = e, .now_ms = config->now_ms};
    lock_init(&sh->lock);
    hashmap_init(&sh->queues, e->mem);
    seqmap_pool_init(&sh->pool, e->mem);
    list_init(&sh->dead_backlogs);
    atomic_init(&sh->next_ms, WHEEL_NEVER);
    if (config->seeded)
        entropy_init_seeded(&sh->entropy, seed);
    else
        entropy_init_system(&sh->entropy);
    sh->claim_wheel = wheel_new(e->mem, config->now_ms);
    sh->message_wheel = wheel_new(e->mem, config->now_ms);
    if (sh->claim_wheel != NULL && sh->message_wheel != NULL)
        return ST_OK;
    shard_fini(sh);
    return ST_NO_MEMORY;
}

void
shard_fini(struct shard *sh)
{
    struct hashnode *node;

    lock_acquire(&sh->lock);
    while ((node = hashmap_walk(&sh->queues, NULL)) != NULL)
        queue_bury(container_of(node, struct queue, node));
    while (!graveyard_empty(sh)) {
        size_t budget = SLICE;

        (void)graveyard_slice(sh, &budget);
    }
    lock_release(&sh->lock);
    hashmap_fini(&sh->queues);
    seqmap_pool_fini(&sh->pool);
    wheel_free(sh->claim_wheel);
    wheel_free(sh->message_wheel);
    lock_fini(&sh->lock);
}

void
shard_wake_at(struct shard *sh, int64_t due_ms)
{
    lock_assert_held(&sh->lock);
    if (due_ms >= atomic_load_explicit(&sh->next_ms, memory_order_relaxed))
        return;
    atomic_store(&sh->next_ms, due_ms);
    engine_wake_at(sh->engine, due_ms);
}

void
shard_arm_claim(struct shard *sh, struct claim *c, int64_t due_ms)
{
    wheel_arm(sh->claim_wheel, &c->due, due_ms);
    shard_wake_at(sh, wheel_calm_ms(sh->claim_wheel)); /* may be earlier than due_ms */
}

void
shard_arm_message(struct shard *sh, struct message *m, int64_t due_ms)
{
    wheel_arm(sh->message_wheel, &m->due, due_ms);
    shard_wake_at(sh, wheel_calm_ms(sh->message_wheel)); /* may be earlier than due_ms */
}

void
shard_remove_message(struct shard *sh, struct message *m)
{
    struct foreign *foreign = m->foreign;
    struct claim *holder = m->claim;

    lock_assert_held(&sh->lock);
    wheel_disarm(sh->message_wheel, &m->due);
    backlog_remove(m->backlog, &sh->pool, m);
    if (holder != NULL)
        claim_lose(sh, holder);
    seqmap_pool_trim(&sh->pool);
    m->foreign = NULL;
    mem_free(sh->engine->mem, foreign);
}

/* Takes what was done off a budget. */
static void
spend(size_t *budget, size_t done)
{
    *budget -= done < *budget ? done : *budget;
}

/* Ends claims that are due, as far as the budget goes. True when none is left. */
static bool
settle_claims(struct shard *sh, int64_t now_ms, size_t *budget)
{
    bool whole = wheel_advance(sh->claim_wheel, now_ms, *budget);

    while (*budget > 0) {
        struct deadline *d = wheel_drain(sh->claim_wheel);

        if (d == NULL)
            return whole;
        spend(budget, 1 + claim_of(d)->held);
        claim_end(sh, claim_of(d));
    }
    return false;
}

/* The end of a message's delay or life has come. */
static void
message_due(struct shard *sh, struct message *m, int64_t now_ms)
{
    if (!message_live(m, now_ms)) {
        shard_remove_message(sh, m);
        message_unpin(sh->engine->mem, m);
        return;
    }
    m->delayed = false;
    seqmap_set_ready(&m->backlog->messages, m->seq, true);
    shard_arm_message(sh, m, m->expires_ms);
}

/* Ends delays and lives that are due, as far as the budget goes. True when none is left. */
static bool
settle_messages(struct shard *sh, int64_t now_ms, size_t *budget)
{
    bool whole = wheel_advance(sh->message_wheel, now_ms, *budget);

    while (*budget > 0) {
        struct deadline *d = wheel_drain(sh->message_wheel);

        if (d == NULL)
            return whole;
        spend(budget, 1);
        message_due(sh, message_of(d), now_ms);
    }
    return false;
}

static bool
settle_slice(struct shard *sh, int64_t now_ms, enum settle settle)
{
    size_t claims = SLICE, messages = SLICE;

    return settle_claims(sh, now_ms, &claims) &&
           (settle < SETTLE_ALL || settle_messages(sh, now_ms, &messages));
}

int64_t
shard_enter(struct shard *sh, int64_t now_ms)
{
    lock_acquire(&sh->lock);
    if (sh->now_ms < now_ms)
        sh->now_ms = now_ms;
    return sh->now_ms;
}

enum status
shard_settle(struct shard *sh, int64_t *now_ms, enum settle settle)
{
    for (int i = 0; i < SETTLE_SLICES; i++) {
        *now_ms = shard_enter(sh, *now_ms);
        if (settle_slice(sh, *now_ms, settle))
            return ST_OK;
        shard_leave(sh); /* much is due: let others in between the slices */
    }
    return ST_AGAIN;
}

void
shard_leave(struct shard *sh)
{
    lock_release(&sh->lock);
}

static bool
queue_equal(const struct hashnode *node, const void *key)
{
    const struct queue *q = container_of(node, const struct queue, node);
    const struct store_queue *where = key;

    return bytes_equal(q->name, where->name) && bytes_equal(q->project, where->project);
}

struct queue *
shard_find(const struct shard *sh, const struct store_queue *where, uint64_t hash)
{
    struct hashnode *node = hashmap_find(&sh->queues, hash, queue_equal, where);

    return node == NULL ? NULL : container_of(node, struct queue, node);
}

uint64_t
shard_number(struct shard *sh)
{
    lock_assert_held(&sh->lock);
    return ++sh->last_number;
}

/* A part of housekeeping, as far as the budget goes. True when none of it is left. */
typedef bool chore_fn(struct shard *sh, int64_t now_ms, size_t *budget);

static bool
clear_graveyard(struct shard *sh, int64_t now_ms, size_t *budget)
{
    (void)now_ms; /* what lies there has no time any more */
    return graveyard_slice(sh, budget);
}

int64_t
shard_housekeep(struct shard *sh, int64_t now_ms, size_t *budget)
{
    static chore_fn *const chores[] = {settle_claims, settle_messages, clear_graveyard};
    int64_t next_ms, messages_ms;
    bool settled = true;

    now_ms = shard_enter(sh, now_ms);
    for (size_t i = 0; i < sizeof(chores) / sizeof(chores[0]); i++) {
        size_t slice = *budget < SLICE ? *budget : SLICE, left = slice;

        settled = chores[i](sh, now_ms, &left) && settled;
        *budget -= slice - left;
    }
    seqmap_pool_trim(&sh->pool);
    next_ms = wheel_next_ms(sh->claim_wheel);
    messages_ms = wheel_next_ms(sh->message_wheel);
    if (next_ms > messages_ms)
        next_ms = messages_ms;
    if (!settled)
        next_ms = now_ms;
    atomic_store(&sh->next_ms, next_ms);
    shard_leave(sh);
    return next_ms;
}

enum status
shard_count(struct shard *sh, int64_t now_ms, struct store_totals *totals)
{
    enum status st = shard_settle(sh, &now_ms, SETTLE_ALL);

    if (st != ST_OK)
        return st;
    totals->queues += sh->queues.count;
    totals->messages += sh->alive.messages;
    totals->claimed += sh->alive.claimed;
    shard_leave(sh);
    return ST_OK;
}

/* The tally of the queues agrees with what they have. */
static bool
tally_audit(const struct shard *sh)
{
    const struct hashnode *node = NULL;
    struct tally sum = {0, 0};

    while ((node = hashmap_walk(&sh->queues, node)) != NULL) {
        const struct queue *q = container_of(node, const struct queue, node);

        sum.messages += q->backlog->messages.live;
        sum.claimed += q->backlog->claimed;
    }
    return sum.messages == sh->alive.messages && sum.claimed == sh->alive.claimed;
}

bool
shard_audit(struct shard *sh, size_t *queues)
{
    const struct hashnode *node = NULL;
    bool sound;

    lock_acquire(&sh->lock);
    sound = hashmap_audit(&sh->queues) && wheel_audit(sh->claim_wheel) &&
            wheel_audit(sh->message_wheel) && graveyard_audit(sh) && tally_audit(sh);
    *queues = sh->queues.count;
    while (sound && (node = hashmap_walk(&sh->queues, node)) != NULL) {
        const struct queue *q = container_of(node, const struct queue, node);

        sound = q->shard == sh && queue_audit(q);
    }
    lock_release(&sh->lock);
    return sound;
}
