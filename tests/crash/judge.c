#include "crash/judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 50, QUEUES = 64 };

/* One look at a queue. */
struct look {
    struct store *store;
    const struct replica_queue *queue;
    struct store_queue where;
    int64_t now_ms;
    char *why;
};

__attribute__((format(printf, 2, 3))) static bool
differs(const struct look *l, const char *format, ...)
{
    int len = snprintf(l->why, JUDGE_TEXT_CAP,
                       "%s: ", l->queue == NULL ? "queues" : l->queue->name);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(l->why + len, JUDGE_TEXT_CAP - (size_t)len, format, args);
    va_end(args);
    return false;
}

static bool
same_id(const struct store_id *a, const struct store_id *b)
{
    return strcmp(a->text, b->text) == 0;
}

/* ---------------------------------------------------------------------- messages */

static bool
same_message(const struct look *l, const struct told_message *m,
             const struct store_message *seen)
{
    const struct replica_claim *c = replica_holder(l->queue, m, l->now_ms);
    const char *holder = c == NULL ? "" : c->id.text;

    if (!same_id(&m->id, &seen->id))
        return differs(l, "message %s where %s should be", seen->id.text, m->id.text);
    if (strcmp(holder, seen->claim_id.text) != 0)
        return differs(l, "message %s is held by '%s', not '%s'", m->id.text,
                       seen->claim_id.text, holder);
    if (m->body_len != seen->body.len || m->body != told_hash(seen->body))
        return differs(l, "message %s has another body", m->id.text);
    if (m->summed != (seen->checksum != NULL) ||
        (m->summed && memcmp(&m->checksum, seen->checksum, sizeof(m->checksum)) != 0))
        return differs(l, "message %s has another checksum", m->id.text);
    if (m->claim_count != seen->claim_count)
        return differs(l, "message %s has the claim count %" PRIu32 ", not %" PRIu32,
                       m->id.text, seen->claim_count, m->claim_count);
    if ((m->expires_ms - m->posted_ms) / 1000 != seen->ttl_s ||
        (l->now_ms - m->posted_ms) / 1000 != seen->age_s)
        return differs(l, "message %s has ttl %" PRId64 ", age %" PRId64, m->id.text,
                       seen->ttl_s, seen->age_s);
    return true;
}

/* Does the filter show it? */
static bool
is_shown(const struct look *l, const struct store_filter *filter,
         const struct told_message *m)
{
    return replica_lives(m, l->now_ms) &&
           (filter->include_claimed || replica_holder(l->queue, m, l->now_ms) == NULL) &&
           (filter->include_delayed || m->delayed_until_ms <= l->now_ms) &&
           (!filter->hide_client || m->client != filter->client);
}

/* The next one from *i on that is shown, or NULL. */
static const struct told_message *
next_shown(const struct look *l, const struct store_filter *filter, size_t *i)
{
    while (*i < l->queue->count && !is_shown(l, filter, &l->queue->messages[*i]))
        ++*i;
    return *i < l->queue->count ? &l->queue->messages[(*i)++] : NULL;
}

static bool
same_page(const struct look *l, const struct store_filter *filter,
          const struct store_batch *page, size_t *i)
{
    for (size_t n = 0; n < page->count; n++) {
        const struct told_message *m = next_shown(l, filter, i);

        if (m == NULL)
            return differs(l, "message %s should not be there",
                           page->messages[n].id.text);
        if (!same_message(l, m, &page->messages[n]))
            return false;
    }
    return true;
}

static bool
same_list(const struct look *l, struct store_filter filter)
{
    const struct told_message *m;
    struct store_id marker = {""};
    size_t i = 0, shown;
    bool same = true;

    do {
        struct store_batch page = STORE_BATCH_INIT;
        enum status st;

        filter.marker = store_id_bytes(&marker);
        st = store_message_list(l->store, STORE_AT(l->now_ms), &l->where, &filter, &page);
        if (st != ST_OK)
            return differs(l, "cannot be listed: %s", status_name(st));
        shown = page.count;
        same = same_page(l, &filter, &page, &i);
        marker = page.next;
        store_batch_release(&page);
    } while (same && shown > 0);
    m = same ? next_shown(l, &filter, &i) : NULL;
    return m == NULL ? same : differs(l, "message %s is not there", m->id.text);
}

/* ---------------------------------------------------------------------- claims */

static bool
same_claim(const struct look *l, const struct replica_claim *c,
           const struct store_batch *seen)
{
    size_t n = 0;

    for (size_t i = 0; i < l->queue->count; i++) {
        const struct told_message *m = &l->queue->messages[i];

        if (m->claim != c->number || !replica_lives(m, l->now_ms))
            continue;
        if (n == seen->count)
            return differs(l, "claim %s does not hold %s", c->id.text, m->id.text);
        if (!same_message(l, m, &seen->messages[n++]))
            return false;
    }
    if (n < seen->count)
        return differs(l, "claim %s holds more than it should", c->id.text);
    if (seen->claim_ttl_s != (c->ends_ms - c->started_ms) / 1000 ||
        seen->claim_age_s != (l->now_ms - c->started_ms) / 1000)
        return differs(l, "claim %s has ttl %" PRId64 ", age %" PRId64, c->id.text,
                       seen->claim_ttl_s, seen->claim_age_s);
    if (seen->claim_number != l->queue->fence_base + c->number)
        return differs(l, "claim %s has the number %" PRIu64, c->id.text,
                       seen->claim_number);
    return true;
}

/* Does it hold something yet? */
static bool
is_alive(const struct look *l, const struct replica_claim *c)
{
    for (size_t i = 0; c->ends_ms > l->now_ms && i < l->queue->count; i++)
        if (l->queue->messages[i].claim == c->number &&
            replica_lives(&l->queue->messages[i], l->now_ms))
            return true;
    return false;
}

static bool
same_claims(const struct look *l)
{
    for (size_t i = 0; i < l->queue->claim_count; i++) {
        const struct replica_claim *c = &l->queue->claims[i];
        struct store_batch seen = STORE_BATCH_INIT;
        enum status st = store_claim_get(l->store, STORE_AT(l->now_ms), &l->where,
                                         store_id_bytes(&c->id), &seen);
        bool alive = is_alive(l, c), same;

        if (st != (alive ? ST_OK : ST_NOT_FOUND))
            return differs(l, "claim %s %s: %s", c->id.text,
                           alive ? "should be there" : "is over", status_name(st));
        same = !alive || same_claim(l, c, &seen);
        store_batch_release(&seen);
        if (!same)
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------------- queues */

static bool
same_stats(const struct look *l)
{
    struct store_stats stats = {0};
    uint64_t total = 0, claimed = 0;

    (void)store_queue_stats(l->store, STORE_AT(l->now_ms), &l->where, &stats);
    for (size_t i = 0; i < l->queue->count; i++) {
        const struct told_message *m = &l->queue->messages[i];

        if (!replica_lives(m, l->now_ms))
            continue;
        total++;
        claimed += replica_holder(l->queue, m, l->now_ms) != NULL;
    }
    return total == stats.total && claimed == stats.claimed
               ? true
               : differs(l, "%" PRIu64 " messages, %" PRIu64 " claimed", stats.total,
                         stats.claimed);
}

static bool
is_empty(const struct look *l)
{
    struct store_stats stats = {0};

    (void)store_queue_stats(l->store, STORE_AT(l->now_ms), &l->where, &stats);
    return stats.total == 0 ? true : differs(l, "is not empty after a restart");
}

static bool
same_content(const struct look *l)
{
    struct store_filter all = {
        .limit = PAGE, .include_claimed = true, .include_delayed = true};
    struct store_filter free_ones = {.limit = PAGE};
    struct store_filter others = all;

    others.hide_client = true;
    others.client = 1;
    return same_list(l, all) && same_list(l, free_ones) && same_list(l, others) &&
           same_claims(l) && same_stats(l);
}

static bool
same_queue(struct look *l, const struct store_queue_view *view, bool fresh)
{
    struct told_metadata seen;

    told_metadata_copy(&seen, &view->metadata);
    if (!told_metadata_same(&seen, &l->queue->metadata))
        return differs(l, "has metadata '%s', not '%s'", seen.json,
                       l->queue->metadata.json);
    if (l->queue->metadata.settings.transient)
        return !fresh || is_empty(l);
    return same_content(l);
}

static const struct replica_queue *
find(const struct replica *r, struct bytes name)
{
    for (size_t i = 0; i < r->count; i++)
        if (bytes_equal(bytes_str(r->queues[i].name), name))
            return &r->queues[i];
    return NULL;
}

static bool
same_queues(struct look *l, const struct replica *r, const struct store_queues *seen,
            bool fresh)
{
    for (size_t i = 0; i < seen->count; i++) {
        struct bytes name = seen->queues[i].name;

        l->queue = find(r, name);
        if (l->queue == NULL)
            return differs(l, "%.*s should not be there", (int)name.len, name.data);
        l->where = (struct store_queue){.project = bytes_str("p"), .name = name};
        if (!same_queue(l, &seen->queues[i], fresh))
            return false;
        l->queue = NULL;
    }
    return seen->count == r->count
               ? true
               : differs(l, "%zu of them, not %zu", seen->count, r->count);
}

bool
judge(struct store *s, const struct replica *r, int64_t now_ms, bool fresh,
      char why[JUDGE_TEXT_CAP])
{
    struct store_page page = {
        .project = bytes_str("p"), .limit = QUEUES, .with_metadata = true};
    struct look l = {.store = s, .now_ms = now_ms, .why = why};
    struct store_queues seen = STORE_QUEUES_INIT;
    enum status st = store_queue_list(s, STORE_AT(now_ms), &page, &seen);
    bool same;

    if (st != ST_OK)
        return differs(&l, "cannot be listed: %s", status_name(st));
    same = same_queues(&l, r, &seen, fresh);
    store_queues_release(&seen);
    return same;
}
