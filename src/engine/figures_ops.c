#include "engine/claim.h"
#include "engine/figures.h"
#include "engine/instance.h"
#include "engine/settle.h"

static void
add_counts(const struct figures *f, struct store_figures *out)
{
    for (size_t i = 0; i < STORE_COUNTERS; i++)
        out->counts[i] += counter_read(&f->counts[i]);
    for (size_t i = 0; i < STORE_SPANS; i++)
        buckets_merge(&out->spans[i], &f->spans[i]);
}

/* How long something has been due, for which housekeeping has not come yet. */
static int64_t
lag_of(const struct shard *sh, int64_t now_ms)
{
    int64_t next_ms = atomic_load_explicit(&sh->next_ms, memory_order_relaxed);

    return next_ms < now_ms ? now_ms - next_ms : 0;
}

static void
add_population(const struct shard *sh, struct store_figures *out)
{
    const struct tally *t = &sh->alive;

    out->all.claimable += t->messages - t->claimed - t->delayed;
    out->all.claimed += t->claimed;
    out->all.delayed += t->delayed;
    out->all.dead_letters += t->original;
    out->all.claims += t->claims;
    out->all.bytes += t->bytes;
    out->rest.messages += sh->figures.rest.messages;
    out->rest.unread += sh->figures.rest.unread;
    out->rest.dead_letters += sh->figures.rest.dead_letters;
    out->queues += sh->queues.count;
    out->subscriptions += sh->subscriptions;
    out->feed_bytes += sh->feed_bytes;
    out->garbage += sh->buried.messages;
}

enum status
engine_figures(struct store *s, struct store_visit *visit, struct store_figures *out)
{
    struct engine *e = engine_of(s);

    *out = (struct store_figures){.queues = 0};
    for (size_t i = 0; i <= e->shard_mask; i++) {
        struct shard *sh = &e->shards[i];
        int64_t lag_ms = lag_of(sh, visit->now_ms);

        if (out->lag_ms < lag_ms)
            out->lag_ms = lag_ms;
        add_counts(&sh->figures, out);
        (void)shard_enter(sh, visit->now_ms);
        add_population(sh, out);
        shard_leave(sh);
    }
    return ST_OK;
}

static void
copy_text(char *to, struct bytes from)
{
    if (from.len > 0)
        memcpy(to, from.data, from.len);
    to[from.len] = '\0';
}

static int64_t
age_of(int64_t from_ms, int64_t now_ms)
{
    return from_ms < now_ms ? now_ms - from_ms : 0;
}

static void
show(const struct queue *q, int64_t now_ms, struct store_queue_figures *out)
{
    const struct backlog *b = q->backlog;
    const struct message *oldest;
    const struct claim *first; /* claim numbers ascend with time */
    uint64_t seq = 0, number = 0;

    copy_text(out->project, q->where.project);
    copy_text(out->name, q->where.name);
    out->project_len = q->where.project.len;
    out->name_len = q->where.name.len;
    out->kind = q->where.kind;
    out->here = (struct store_population){
        .claimable = backlog_ready(b),
        .claimed = b->claimed,
        .delayed = backlog_delayed(b),
        .dead_letters = b->original.count,
        .claims = b->claims.live,
        .bytes = b->bytes,
    };
    oldest = backlog_next_ready(b, &seq);
    out->has_oldest = oldest != NULL;
    out->age_ms = oldest == NULL ? 0 : age_of(oldest->posted_ms, now_ms);
    first = backlog_next_claim(b, &number);
    out->claimed_age_ms = first == NULL ? 0 : age_of(first->made_ms, now_ms);
    out->expired =
        *metrics_slots_expired(&q->shard->core->metrics_slots, q->metrics_slot);
}

/* Settles what is due, as far as a few slices go: who only looks does not do all the work. */
static int64_t
enter_settled(struct shard *sh, int64_t now_ms)
{
    return settle_enter(sh, &now_ms, SETTLE_ALL) == ST_OK ? now_ms
                                                          : shard_enter(sh, now_ms);
}

enum status
engine_queue_figures(struct store *s, struct store_visit *visit, size_t *at,
                     struct store_queue_figures *out)
{
    const struct metrics_slots *slots = &engine_of(s)->core.metrics_slots;
    struct shard *sh;

    while ((sh = metrics_slots_next(slots, at)) != NULL) {
        int64_t now_ms = enter_settled(sh, visit->now_ms);
        const struct queue *q = metrics_slots_queue(slots, *at, sh);

        if (q != NULL)
            show(q, now_ms, out);
        shard_leave(sh);
        if (q == NULL)
            continue; /* it went, or another took its place: look again */
        ++*at;
        return ST_OK;
    }
    return ST_NOT_FOUND;
}
