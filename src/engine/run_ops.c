#include "engine/run_ops.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "engine/changelog.h"
#include "engine/feed.h"

size_t
run_nodes(const struct backlog *b, uint64_t first)
{
    return seqmap_nodes_for(&b->runs, first / RUN_MESSAGES, 1);
}

/* Ends a run. Its body file counts it until shard_release_runs(). */
static void
run_end(struct shard *sh, struct run *r)
{
    struct backlog *b = r->backlog;

    ENSURE(r->unloaded == 0 && b != NULL);
    (void)seqmap_remove(&b->runs, &sh->pool, r->first / RUN_MESSAGES);
    r->stored = 0;
    r->backlog = NULL;
    if (!r->loading) /* else run_loaded() continues */
        list_add_before(&sh->ended_runs, &r->link);
}

void
run_link(struct shard *sh, struct backlog *b, struct run *r)
{
    struct run *old = backlog_run(b, r->first);

    ENSURE(r->stored != 0 && r->backlog == NULL);
    if (old != NULL)
        run_end(sh, old);
    r->backlog = b;
    seqmap_insert(&b->runs, &sh->pool, r->first / RUN_MESSAGES, r, r->unloaded != 0);
}

enum status
runs_prepare(struct shard *sh)
{
    if (sh->run_wheel == NULL)
        sh->run_wheel = wheel_new(sh->core->mem, sh->now_ms);
    return sh->run_wheel == NULL ? ST_NO_MEMORY : ST_OK;
}

void
run_arm(struct shard *sh, struct run *r)
{
    int64_t first_ms = INT64_MAX;

    if (r->unloaded == 0) {
        wheel_disarm(sh->run_wheel, &r->due);
        return;
    }
    for (uint64_t rest = r->unloaded; rest != 0; rest &= rest - 1) {
        int64_t ms = run_expires_ms(r, run_lowest(rest));

        first_ms = ms < first_ms ? ms : first_ms;
    }
    wheel_arm(sh->run_wheel, &r->due, first_ms);
    shard_wake_at(sh, wheel_next_hint_ms(sh->run_wheel));
}

void
run_add(struct shard *sh, struct backlog *b, struct run *r)
{
    const uint64_t bytes = run_bytes(r, r->stored);

    run_link(sh, b, r);
    b->bytes += bytes;
    b->tally->bytes += bytes;
    b->tally->messages += run_count(r->stored);
    b->sealed += run_count(r->sealed);
    backlog_count_unloaded(r, r->stored);
}

uint64_t
run_remove(struct shard *sh, struct run *r, uint64_t bits)
{
    struct backlog *b = r->backlog;
    const uint64_t bytes = run_bytes(r, bits);

    backlog_count_loaded(r, bits);
    b->bytes -= bytes;
    b->tally->bytes -= bytes;
    b->tally->messages -= run_count(bits);
    b->sealed -= run_count(bits & r->sealed);
    r->stored &= ~bits;
    if (r->unloaded == 0 && sh->run_wheel != NULL)
        wheel_disarm(sh->run_wheel, &r->due);
    if (r->stored == 0)
        run_end(sh, r);
    return bytes;
}

void
run_forget_one(struct shard *sh, struct backlog *b, uint64_t seq)
{
    struct run *r = backlog_run(b, seq);

    if (r == NULL || (r->stored & run_bit(seq)) == 0)
        return;
    ENSURE((r->unloaded & run_bit(seq)) == 0);
    r->stored &= ~run_bit(seq);
    r->changed &= ~run_bit(seq);
    if (r->stored == 0)
        run_end(sh, r);
}

/* The bits of unloaded messages that have expired. */
static uint64_t
expired_bits(const struct run *r, int64_t now_ms)
{
    uint64_t bits = 0;

    for (uint64_t rest = r->unloaded; rest != 0; rest &= rest - 1)
        if (run_expires_ms(r, run_lowest(rest)) <= now_ms)
            bits |= rest & -rest;
    return bits;
}

/* The next expiry of a run is due. */
static size_t
expire_run(struct shard *sh, struct run *r, int64_t now_ms)
{
    const uint64_t bits = expired_bits(r, now_ms);
    const size_t count = run_count(bits);
    struct queue *q = r->backlog->queue; /* NULL: on the reclaim list */
    const bool rest = bits != r->unloaded;
    uint64_t bytes;

    SOMETIMES_IF(rest, RUN_EXPIRES_PARTLY);
    SOMETIMES_IF(r->loading, RUN_EXPIRES_LOADING);
    for (uint64_t at = bits; q != NULL && at != 0; at &= at - 1)
        queue_count_expired(q, (r->unread & at & -at) != 0 && !feed_listens(q->feed),
                            false);
    if (q != NULL)
        metrics_count(&sh->metrics, STORE_COUNT_EXPIRED, count);
    if (q != NULL && has_log(sh->core))
        changelog_run_expired(q, now_ms);
    bytes = run_remove(sh, r, bits);
    if (q != NULL)
        directory_uncharge(&q->entry, count, bytes);
    if (rest)
        run_arm(sh, r);
    return count;
}

bool
expire_runs(struct shard *sh, int64_t now_ms, size_t *budget)
{
    bool whole;

    lock_assert_held(&sh->lock);
    if (sh->run_wheel == NULL)
        return true;
    whole = wheel_advance(sh->run_wheel, now_ms, *budget);
    while (*budget > 0) {
        struct deadline *d = wheel_drain(sh->run_wheel);
        size_t count;

        if (d == NULL)
            return whole;
        count = expire_run(sh, container_of(d, struct run, due), now_ms);
        *budget -= count < *budget ? count : *budget;
    }
    return false;
}
