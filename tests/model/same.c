#include "model/same.h"

#include "support/store_fixture.h"

enum { PAGE = 100, NAME_MAX_BYTES = 64 };

/* Two stores, a queue that is read from both, and what there was so far. */
struct both {
    struct store *a, *b;
    int64_t now_ms;
    bool with_transient; /* b has the contents of transient queues */
    struct store_queue queue;
    uint64_t queues, messages, claimed; /* of b */
};

static void
same_settings(const struct store_settings *a, const struct store_settings *b)
{
    ck_assert_int_eq(a->max_post_bytes, b->max_post_bytes);
    ck_assert_int_eq(a->message_ttl_s, b->message_ttl_s);
    ck_assert_int_eq(a->message_delay_s, b->message_delay_s);
    ck_assert_int_eq(a->claim_ttl_s, b->claim_ttl_s);
    ck_assert_int_eq(a->claim_grace_s, b->claim_grace_s);
    ck_assert_int_eq(a->max_claim_count, b->max_claim_count);
    ck_assert_int_eq(a->dead_letter_ttl_s, b->dead_letter_ttl_s);
    ck_assert_int_eq(bytes_present(a->dead_letter), bytes_present(b->dead_letter));
    ck_assert(bytes_equal(a->dead_letter, b->dead_letter));
    ck_assert_int_eq(a->transient, b->transient);
    ck_assert_int_eq(a->encrypt, b->encrypt);
    ck_assert_uint_eq(a->paused, b->paused);
    ck_assert(bytes_equal(a->paused_by, b->paused_by));
}

/* Returns whether it is transient. */
static bool
same_metadata(const struct both *s)
{
    struct store_queues a = STORE_QUEUES_INIT, b = STORE_QUEUES_INIT;
    bool transient;

    ck_assert_status(store_queue_get(s->a, STORE_AT(s->now_ms), &s->queue, &a), ST_OK);
    ck_assert_status(store_queue_get(s->b, STORE_AT(s->now_ms), &s->queue, &b), ST_OK);
    ck_assert(bytes_equal(a.queues[0].metadata.json, b.queues[0].metadata.json));
    same_settings(&a.queues[0].metadata.settings, &b.queues[0].metadata.settings);
    transient = a.queues[0].metadata.settings.transient;
    store_queues_release(&a);
    store_queues_release(&b);
    return transient;
}

static bool
same_text(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool
same_details(const struct store_details *a, const struct store_details *b)
{
    static const struct store_details none = {.released_ms = 0};

    a = a == NULL ? &none : a;
    b = b == NULL ? &none : b;
    return same_text(a->reason, b->reason) && same_text(a->client, b->client) &&
           same_text(a->origin, b->origin) && a->released_ms == b->released_ms &&
           a->dead_lettered_ms == b->dead_lettered_ms && a->cause == b->cause &&
           a->attempts == b->attempts && same_text(a->unique.key, b->unique.key) &&
           a->unique.until_claimed == b->unique.until_claimed &&
           a->unique.due_ms == b->unique.due_ms;
}

/* The name of a member that differs in the two messages; NULL: none does. */
static const char *
difference(const struct store_message *a, const struct store_message *b)
{
    if (!id_same(a->id, b->id))
        return "id";
    if (!id_same(a->claim_id, b->claim_id))
        return "claim";
    if (!bytes_equal(a->body, b->body))
        return "body";
    if ((a->checksum == NULL) != (b->checksum == NULL) ||
        (a->checksum != NULL && memcmp(a->checksum, b->checksum, sizeof(*a->checksum))))
        return "checksum";
    if (a->ttl_s != b->ttl_s || a->age_s != b->age_s)
        return "life";
    if (a->posted_ms != b->posted_ms || a->expires_ms != b->expires_ms ||
        a->delayed_until_ms != b->delayed_until_ms)
        return "times";
    if (!same_details(a->details, b->details))
        return "details";
    return a->claim_count != b->claim_count ? "claim count" : NULL;
}

/* Without an assertion each: Check writes every one of them to a file, and these are
 * many. */
static void
same_message(const struct store_message *a, const struct store_message *b)
{
    const char *what = difference(a, b);

    if (what != NULL)
        ck_abort_msg("message %s: another %s", a->id.text, what);
}

static void
same_batch(const struct store_batch *a, const struct store_batch *b)
{
    ck_assert_uint_eq(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        same_message(&a->messages[i], &b->messages[i]);
}

static void
same_claim(const struct both *s, const struct store_id *id)
{
    struct store_batch a = STORE_BATCH_INIT, b = STORE_BATCH_INIT;
    struct bytes text = store_id_bytes(id);

    ck_assert_status(store_claim_get(s->a, STORE_AT(s->now_ms), &s->queue, text, &a),
                     ST_OK);
    ck_assert_status(store_claim_get(s->b, STORE_AT(s->now_ms), &s->queue, text, &b),
                     ST_OK);
    ck_assert_int_eq(a.claim_ttl_s, b.claim_ttl_s);
    ck_assert_int_eq(a.claim_age_s, b.claim_age_s);
    ck_assert_uint_eq(a.claim_number, b.claim_number);
    same_batch(&a, &b);
    store_batch_release(&a);
    store_batch_release(&b);
}

/* A page of both; returns how many messages it has. */
static size_t
same_page(const struct both *s, const struct store_filter *filter, bool with_claims,
          struct store_id *next)
{
    struct store_batch a = STORE_BATCH_INIT, b = STORE_BATCH_INIT;
    size_t count;

    ck_assert_status(store_message_list(s->a, STORE_AT(s->now_ms), &s->queue, filter, &a),
                     ST_OK);
    ck_assert_status(store_message_list(s->b, STORE_AT(s->now_ms), &s->queue, filter, &b),
                     ST_OK);
    same_batch(&a, &b);
    ck_assert_str_eq(a.next.text, b.next.text);
    for (size_t i = 0; with_claims && i < a.count; i++)
        if (a.messages[i].claim_id.text[0] != '\0')
            same_claim(s, &a.messages[i].claim_id);
    count = a.count;
    *next = a.next;
    store_batch_release(&a);
    store_batch_release(&b);
    return count;
}

/* A listing of both; returns how many messages it has. */
static size_t
same_listing(const struct both *s, struct store_filter filter, bool with_claims)
{
    size_t count, all = 0;
    struct store_id next;

    while ((count = same_page(s, &filter, with_claims, &next)) > 0) {
        all += count;
        filter.marker = store_id_bytes(&next);
    }
    return all;
}

static void
same_end(const struct store_end *a, const struct store_end *b)
{
    ck_assert_str_eq(a->id.text, b->id.text);
    ck_assert_int_eq(a->age_s, b->age_s);
    ck_assert_int_eq(a->created_ms, b->created_ms);
}

static struct store_stats
stats_of(struct store *store, const struct both *s)
{
    struct store_stats stats;

    ck_assert_status(store_queue_stats(store, STORE_AT(s->now_ms), &s->queue, &stats),
                     ST_OK);
    return stats;
}

static void
same_messages(const struct both *s, const struct store_stats *a,
              const struct store_stats *b)
{
    struct store_filter filter = {
        .limit = PAGE, .include_claimed = true, .include_delayed = true};

    ck_assert_uint_eq(a->total, b->total);
    ck_assert_uint_eq(a->claimed, b->claimed);
    if (a->total > 0) {
        same_end(&a->oldest, &b->oldest);
        same_end(&a->newest, &b->newest);
    }
    ck_assert_uint_eq(same_listing(s, filter, true), a->total);
    filter.include_delayed = false;
    (void)same_listing(s, filter, false);
    filter.include_claimed = false;
    (void)same_listing(s, filter, false);
    filter.hide_client = true;
    for (filter.client = 0; filter.client < 3; filter.client++)
        (void)same_listing(s, filter, false);
}

/* How many messages a subscription has had in front of it, ever. */
static uint64_t
fed(const struct store_progress *p)
{
    return p->delivered + p->permanent_failures + p->dropped + p->behind;
}

/* A delivery may be logged later. It is repeated then, but never lost. */
static void
same_subscription(const struct store_subscription *a, const struct store_subscription *b,
                  bool transient)
{
    ck_assert_str_eq(a->id.text, b->id.text);
    ck_assert(bytes_equal(a->subscriber, b->subscriber));
    ck_assert(bytes_equal(a->options, b->options));
    ck_assert_int_eq(a->ttl_s, b->ttl_s);
    ck_assert_int_eq(a->age_s, b->age_s);
    ck_assert_int_eq(a->confirmed, b->confirmed);
    if (transient)
        return;
    ck_assert_uint_eq(fed(&a->progress), fed(&b->progress));
    ck_assert_uint_ge(a->progress.delivered, b->progress.delivered);
}

static void
same_subscriptions(const struct both *s, bool transient)
{
    struct store_subscriptions a, b;
    struct store_id marker = {""};
    size_t count;

    do {
        struct bytes behind = store_id_bytes(&marker);

        ck_assert_status(store_subscription_list(s->a, STORE_AT(s->now_ms), &s->queue,
                                                 behind, PAGE, &a),
                         ST_OK);
        ck_assert_status(store_subscription_list(s->b, STORE_AT(s->now_ms), &s->queue,
                                                 behind, PAGE, &b),
                         ST_OK);
        ck_assert_uint_eq(a.count, b.count);
        for (size_t i = 0; i < a.count; i++)
            same_subscription(&a.views[i], &b.views[i], transient);
        count = a.count;
        marker = a.next;
        store_subscriptions_release(&a);
        store_subscriptions_release(&b);
    } while (count > 0);
}

static void
same_queue(struct both *s)
{
    bool transient = same_metadata(s) && !s->with_transient;
    struct store_stats a = stats_of(s->a, s), b = stats_of(s->b, s);

    s->queues++;
    s->messages += b.total;
    s->claimed += b.claimed;
    same_subscriptions(s, transient);
    if (transient)
        ck_assert_uint_eq(b.total, 0);
    else
        same_messages(s, &a, &b);
}

/* A page of a project's queues; *marker moves behind it. False: it was the last. */
static bool
same_queues(struct both *s, struct bytes project, struct bytes *marker, char *name)
{
    const struct store_page page = {.project = project, .marker = *marker, .limit = PAGE};
    struct store_queues a = STORE_QUEUES_INIT, b = STORE_QUEUES_INIT;
    bool more;

    ck_assert_status(store_queue_list(s->a, STORE_AT(s->now_ms), &page, &a), ST_OK);
    ck_assert_status(store_queue_list(s->b, STORE_AT(s->now_ms), &page, &b), ST_OK);
    ck_assert_uint_eq(a.total, b.total);
    ck_assert_uint_eq(a.count, b.count);
    for (size_t i = 0; i < a.count; i++) {
        ck_assert(bytes_equal(a.queues[i].name, b.queues[i].name));
        s->queue = (struct store_queue){.project = project, .name = a.queues[i].name};
        same_queue(s);
    }
    more = a.count == PAGE;
    if (more) {
        ck_assert_uint_le(s->queue.name.len, NAME_MAX_BYTES);
        memcpy(name, s->queue.name.data, s->queue.name.len);
        *marker = bytes_of(name, s->queue.name.len);
    }
    store_queues_release(&a);
    store_queues_release(&b);
    return more;
}

/* Queues that were not compared, being of another project, are missing from the sums. */
static void
same_totals(const struct both *s)
{
    struct store_totals a, b;

    ck_assert_status(store_totals(s->a, STORE_AT(s->now_ms), &a), ST_OK);
    ck_assert_status(store_totals(s->b, STORE_AT(s->now_ms), &b), ST_OK);
    ck_assert_uint_eq(a.queues, s->queues);
    ck_assert_uint_eq(b.queues, s->queues);
    ck_assert_uint_eq(b.messages, s->messages);
    ck_assert_uint_eq(b.claimed, s->claimed);
}

static size_t
same_stores(struct both s, const char *const *projects)
{
    char name[NAME_MAX_BYTES];

    for (; *projects != NULL; projects++) {
        struct bytes marker = BYTES_NONE;

        while (same_queues(&s, bytes_str(*projects), &marker, name))
            continue;
    }
    same_totals(&s);
    ck_assert(store_audit(s.a));
    ck_assert(store_audit(s.b));
    return s.messages;
}

size_t
expect_same(struct store *a, struct store *b, int64_t now_ms, const char *const *projects)
{
    return same_stores((struct both){.a = a, .b = b, .now_ms = now_ms}, projects);
}

size_t
expect_same_transient(struct store *a, struct store *b, int64_t now_ms,
                      const char *const *projects)
{
    return same_stores(
        (struct both){.a = a, .b = b, .now_ms = now_ms, .with_transient = true},
        projects);
}
