/*
 * metrics: GET and HEAD /metrics (docs/api.md 6.6). Declared in handlers.h. It writes
 * the metrics of the store, of shown queues and of the API, then those that other parts
 * have added (claimd/metrics/exposition.h). docs/metrics.md lists all of them, in this
 * order.
 */
#include "api/caller.h"
#include "api/handlers/handlers.h"
#include "api/quota.h"
#include "api/response.h"
#include "claimd/base/hash.h"
#include "claimd/metrics/exposition.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ------------------------------------------------------------- counters of the store */

static const struct {
    enum store_counter which;
    const char *name, *help;
} totals[] = {
    {STORE_COUNT_POSTED, "claimd_messages_posted",
     "Number of messages that producers posted."},
    {STORE_COUNT_CLAIMED, "claimd_messages_claimed",
     "Number of message deliveries by claims. Redeliveries count again."},
    {STORE_COUNT_DELETED, "claimd_messages_deleted",
     "Number of messages that clients deleted, individually or in bulk."},
    {STORE_COUNT_POPPED, "claimd_messages_popped",
     "Number of messages that clients popped."},
    {STORE_COUNT_EXPIRED, "claimd_messages_expired", "Number of messages that expired."},
    {STORE_COUNT_DROPPED, "claimd_messages_dropped",
     "Number of messages removed with their queue or by a purge."},
    {STORE_COUNT_DEAD_LETTERS, "claimd_dead_letters_moved",
     "Number of messages moved to a dead-letter queue."},
    {STORE_COUNT_LATE_DELETES, "claimd_late_deletions_refused",
     "Number of deletions refused because the claim no longer held the message."},
    {STORE_COUNT_CLAIMS, "claimd_claims_made", "Number of claims created."},
    {STORE_COUNT_RENEWALS, "claimd_claims_renewed", "Number of claim renewals."},
    {STORE_COUNT_QUEUES_MADE, "claimd_queues_made", "Number of queues created."},
    {STORE_COUNT_QUEUES_GONE, "claimd_queues_deleted", "Number of queues deleted."},
    {STORE_COUNT_NOTIFIED, "claimd_notifications_delivered",
     "Number of messages delivered to subscribers, counted once per subscriber."},
    {STORE_COUNT_FAILED, "claimd_notifications_failed",
     "Number of failed notification attempts that claimd retries."},
    {STORE_COUNT_PERMANENT_FAILURES, "claimd_notifications_given_up",
     "Number of messages with a permanent delivery failure, counted once per "
     "subscriber."},
    {STORE_COUNT_FEED_DROPPED, "claimd_notifications_fallen_out",
     "Number of messages dropped before their notification, counted once per "
     "subscriber."},
};

static const struct family given_back = {
    "claimd_messages_given_back", FAMILY_COUNTER, NULL,
    "Number of messages requeued, by reason: the worker released the claim, the lease "
    "expired, or the client disconnected before it got the response."};

static const struct {
    const char *reason;
    enum store_counter which;
} reasons[] = {
    {"released", STORE_COUNT_BACK_RELEASED},
    {"expired", STORE_COUNT_BACK_EXPIRED},
    {"client_gone", STORE_COUNT_BACK_GONE},
};

static const struct {
    struct family family;
    unsigned digits;
} spans[STORE_SPANS] = {
    [STORE_SPAN_WAITED] =
        {{"claimd_message_wait_seconds", FAMILY_HISTOGRAM, "seconds",
          "Time from the post of a message to its first claim or pop, in seconds."},
         3},
    [STORE_SPAN_WORKED] =
        {{"claimd_message_work_seconds", FAMILY_HISTOGRAM, "seconds",
          "Time from the claim of a message to its deletion, in seconds."},
         3},
    [STORE_SPAN_ATTEMPTS] = {{"claimd_message_attempts", FAMILY_HISTOGRAM, NULL,
                              "Number of deliveries of a message until its deletion."},
                             0},
};

static void
write_done(struct exposition *x, const struct store_metrics *f)
{
    for (size_t i = 0; i < COUNT_OF(totals); i++)
        metric_write(x, FAMILY_COUNTER, totals[i].name, NULL, totals[i].help,
                     f->counts[totals[i].which], 0);
    exposition_family(x, &given_back);
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        const struct label reason = {"reason", bytes_str(reasons[i].reason)};

        exposition_sample(x, &reason, 1, f->counts[reasons[i].which]);
    }
    for (size_t i = 0; i < STORE_SPANS; i++) {
        exposition_family(x, &spans[i].family);
        exposition_buckets(x, NULL, 0, &f->spans[i], &store_span_bounds[i],
                           spans[i].digits);
    }
}

/* ------------------------------------------------------------------ gauges of queues */

/* The queues with samples of their own, and the sum of all others. */
struct shown_queues {
    struct store_queue_metrics *queues; /* from the arena, as the marks */
    uint64_t *marks;                    /* hashes of their names */
    size_t count;
    struct store_queue_metrics rest; /* without names */
    bool unloads;                    /* of struct store_metrics */
};

static const struct family queue_messages = {
    "claimd_queue_messages", FAMILY_GAUGE, NULL,
    "Number of messages of a queue, by state. The sample with an empty project and queue "
    "is the sum of all queues that are not shown individually."};

static const struct family queue_paused = {
    "claimd_queue_paused", FAMILY_GAUGE, NULL,
    "1 for each queue and kind of request that an operator has paused."};

/* A family with a sample for each queue. */
struct queue_number {
    struct family family;
    size_t offset;   /* in struct store_queue_metrics */
    unsigned digits; /* behind the point; 0: an integer */
};

#define NUMBER(member, digits, name, kind, unit, help)                                   \
    {                                                                                    \
        {name, FAMILY_##kind, unit, help}, offsetof(struct store_queue_metrics, member), \
            digits                                                                       \
    }

/* The aliases, and state="claimable" above, go in the release after 0.2.0. */
static const struct queue_number queue_numbers[] = {
    NUMBER(here.ready, 0, "claimd_queue_messages_ready", GAUGE, NULL,
           "Number of ready messages of a queue."),
    NUMBER(here.claims, 0, "claimd_queue_claims", GAUGE, NULL,
           "Number of live claims of a queue."),
    NUMBER(here.dead_letters, 0, "claimd_queue_dead_letters", GAUGE, NULL,
           "Number of messages in a queue that were dead-lettered from another queue."),
    NUMBER(here.bytes, 0, "claimd_queue_bytes", GAUGE, "bytes",
           "Size of the message bodies of a queue, in bytes."),
    NUMBER(
        age_ms, 3, "claimd_queue_oldest_ready_age_seconds", GAUGE, "seconds",
        "Time since the post of the oldest ready message, in seconds. 0 if no message is "
        "ready."),
    NUMBER(age_ms, 3, "claimd_queue_oldest_claimable_age_seconds", GAUGE, "seconds",
           "Alias of claimd_queue_oldest_ready_age_seconds. Deprecated."),
    NUMBER(
        claimed_age_ms, 3, "claimd_queue_oldest_claimed_age_seconds", GAUGE, "seconds",
        "Time since the creation of the oldest live claim, in seconds. Renewals do not "
        "reset "
        "it. 0 if there is no claim."),
    NUMBER(counts[STORE_QUEUE_POSTED], 0, "claimd_queue_messages_posted", COUNTER, NULL,
           "Number of messages that producers posted to a queue."),
    NUMBER(
        counts[STORE_QUEUE_DELIVERED], 0, "claimd_queue_messages_delivered", COUNTER,
        NULL,
        "Number of message deliveries of a queue by claims. Redeliveries count again."),
    NUMBER(counts[STORE_QUEUE_DELETED], 0, "claimd_queue_messages_deleted", COUNTER, NULL,
           "Number of messages of a queue that clients deleted or popped."),
    NUMBER(counts[STORE_QUEUE_REQUEUED], 0, "claimd_queue_messages_requeued", COUNTER,
           NULL, "Number of messages of a queue that were requeued after a claim."),
    NUMBER(counts[STORE_QUEUE_DEAD_LETTERED], 0, "claimd_queue_messages_dead_lettered",
           COUNTER, NULL,
           "Number of messages of a queue that moved to its dead-letter queue."),
    NUMBER(expired.messages, 0, "claimd_queue_messages_expired", COUNTER, NULL,
           "Number of messages of a queue that expired."),
    NUMBER(expired.unread, 0, "claimd_queue_messages_expired_unread", COUNTER, NULL,
           "Number of messages of a queue that expired before a worker claimed them."),
    NUMBER(expired.dead_letters, 0, "claimd_queue_dead_letters_expired", COUNTER, NULL,
           "Number of dead-lettered messages that expired in a queue."),
};

/* Behind those, if messages may be on the disk only. */
static const struct queue_number unloaded_numbers[] = {
    NUMBER(here.unloaded, 0, "claimd_queue_messages_unloaded", GAUGE, NULL,
           "Number of messages of a queue that are unloaded: in body files only."),
    NUMBER(here.unloaded_bytes, 0, "claimd_queue_unloaded_bytes", GAUGE, "bytes",
           "Size of the unloaded bodies of a queue, in bytes."),
};

/* Behind those. The sum of all other queues has none of them. */
static const struct queue_number single_numbers[] = {
    NUMBER(waiters, 0, "claimd_queue_waiters", GAUGE, NULL,
           "Number of long-polling requests that wait for messages of a queue."),
    NUMBER(subscriptions, 0, "claimd_queue_subscriptions", GAUGE, NULL,
           "Number of subscriptions of a queue."),
};

enum { LABELS = 3 };

/* The i-th queue and its labels. Behind the last queue, `rest`. */
static const struct store_queue_metrics *
name_queue(const struct shown_queues *shown, size_t i, struct label labels[LABELS])
{
    const struct store_queue_metrics *q =
        i < shown->count ? &shown->queues[i] : &shown->rest;

    labels[0] = (struct label){"project", bytes_of(q->project, q->project_len)};
    labels[1] = (struct label){q->kind == STORE_TOPIC ? "topic" : "queue",
                               bytes_of(q->name, q->name_len)};
    return q;
}

/* count: number of the shown queues, and 1 more with `rest`. */
static void
write_number(struct exposition *x, const struct shown_queues *shown, size_t count,
             const struct queue_number *number)
{
    struct label labels[LABELS];

    exposition_family(x, &number->family);
    for (size_t i = 0; i < count; i++) {
        const char *metrics = (const char *)name_queue(shown, i, labels);
        uint64_t value;

        memcpy(&value, metrics + number->offset, sizeof(value));
        if (number->digits == 0)
            exposition_sample(x, labels, 2, value);
        else
            exposition_decimal(x, labels, 2, value, number->digits);
    }
}

/* Without samples of queues that are not paused: nearly all. */
static void
write_paused(struct exposition *x, const struct shown_queues *shown)
{
    static const struct {
        enum store_pause bit;
        const char *name;
    } kinds[] = {{STORE_PAUSE_CLAIMS, "claims"}, {STORE_PAUSE_POSTS, "posts"}};

    exposition_family(x, &queue_paused);
    for (size_t i = 0; i < shown->count; i++) {
        struct label labels[LABELS];
        const unsigned paused = name_queue(shown, i, labels)->paused;

        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            labels[2] = (struct label){"what", bytes_str(kinds[k].name)};
            if ((paused & kinds[k].bit) != 0)
                exposition_sample(x, labels, 3, 1);
        }
    }
}

static void
write_queues(struct exposition *x, const struct shown_queues *shown)
{
    static const char *const names[] = {"claimable", "claimed", "delayed"};

    exposition_family(x, &queue_messages);
    for (size_t i = 0; i <= shown->count; i++) {
        struct label labels[LABELS];
        const struct store_population *here = &name_queue(shown, i, labels)->here;
        const uint64_t counts[] = {here->ready, here->claimed, here->delayed};

        for (size_t k = 0; k < COUNT_OF(counts); k++) {
            labels[2] = (struct label){"state", bytes_str(names[k])};
            exposition_sample(x, labels, 3, counts[k]);
        }
    }
    for (size_t i = 0; i < COUNT_OF(queue_numbers); i++)
        write_number(x, shown, shown->count + (queue_numbers[i].digits == 0),
                     &queue_numbers[i]);
    for (size_t i = 0; shown->unloads && i < COUNT_OF(unloaded_numbers); i++)
        write_number(x, shown, shown->count + 1, &unloaded_numbers[i]);
    for (size_t i = 0; i < COUNT_OF(single_numbers); i++)
        write_number(x, shown, shown->count, &single_numbers[i]);
    write_paused(x, shown);
}

/* Subtracts, but not below 0: the queues are read after the sums. */
static void
subtract(uint64_t *rest, uint64_t part)
{
    *rest -= part < *rest ? part : *rest;
}

/*
 * Adds the queue behind the last one, unless it is there already: a queue that is deleted
 * and created again meanwhile may be read twice, and no series may appear twice.
 * O(queues).
 */
static void
add_queue(struct shown_queues *shown)
{
    static const struct hash_key none; /* a collision costs a comparison */
    const struct store_queue_metrics *q = &shown->queues[shown->count];
    const struct bytes project = bytes_of(q->project, q->project_len);
    const struct bytes name = bytes_of(q->name, q->name_len);
    const uint64_t mark = hash_mix(hash_bytes(&none, project)) ^ hash_bytes(&none, name);
    struct store_population *rest = &shown->rest.here;

    for (size_t i = 0; i < shown->count; i++) {
        const struct store_queue_metrics *p = &shown->queues[i];

        if (shown->marks[i] == mark && p->kind == q->kind &&
            bytes_equal(bytes_of(p->project, p->project_len), project) &&
            bytes_equal(bytes_of(p->name, p->name_len), name))
            return;
    }
    subtract(&rest->ready, q->here.ready);
    subtract(&rest->claimed, q->here.claimed);
    subtract(&rest->delayed, q->here.delayed);
    subtract(&rest->dead_letters, q->here.dead_letters);
    subtract(&rest->claims, q->here.claims);
    subtract(&rest->bytes, q->here.bytes);
    subtract(&rest->unloaded, q->here.unloaded);
    subtract(&rest->unloaded_bytes, q->here.unloaded_bytes);
    shown->marks[shown->count++] = mark;
}

static enum status
read_queues(struct context *ctx, const struct store_metrics *f, struct shown_queues *out)
{
    const size_t slots = ctx->config->metrics->shown_queues;
    enum status st = ST_OK;
    size_t at = 0;

    *out = (struct shown_queues){.rest = {.here = f->all, .expired = f->rest},
                                 .unloads = f->unloads};
    memcpy(out->rest.counts, f->rest_counts, sizeof(out->rest.counts));
    if (slots > 0) {
        out->queues = arena_alloc(ctx->req->arena, slots * sizeof(*out->queues));
        out->marks = arena_alloc(ctx->req->arena, slots * sizeof(*out->marks));
        if (out->queues == NULL || out->marks == NULL)
            return ST_NO_MEMORY;
    }
    while (st == ST_OK && out->count < slots) {
        st = store_queue_metrics(ctx->store, &ctx->op, &at, &out->queues[out->count]);
        if (st == ST_OK)
            add_queue(out);
    }
    return st == ST_NOT_FOUND ? ST_OK : st;
}

static const char *const limit_names[QUOTA_KINDS] = {
    [ST_PROJECT_QUEUES - ST_PROJECT_QUEUES] = "queues",
    [ST_PROJECT_MESSAGES - ST_PROJECT_QUEUES] = "messages",
    [ST_PROJECT_BYTES - ST_PROJECT_QUEUES] = "bytes",
    [ST_PROJECT_REQUESTS - ST_PROJECT_QUEUES] = "requests_per_second",
    [ST_PROJECT_CONNECTIONS - ST_PROJECT_QUEUES] = "connections",
    [ST_PROJECT_WAITERS - ST_PROJECT_QUEUES] = "waiters",
};

static void
write_quotas(struct exposition *x, const struct quotas *q)
{
    static const struct family limit = {
        "claimd_project_limit", FAMILY_GAUGE, NULL,
        "Limit of each project (project_max_...). 0 means no limit."};
    static const struct family refused = {
        "claimd_project_limit_refusals", FAMILY_COUNTER, NULL,
        "Number of requests refused because their project reached a limit."};
    struct api_project_limits set;
    struct label label = {.name = "limit"};

    quotas_get(q, &set);
    const int64_t values[QUOTA_KINDS] = {set.queues,      set.messages,
                                         set.bytes,       set.requests_per_second,
                                         set.connections, set.waiters};

    exposition_family(x, &limit);
    for (size_t i = 0; i < QUOTA_KINDS; i++) {
        label.value = bytes_str(limit_names[i]);
        exposition_sample(x, &label, 1, (uint64_t)values[i]);
    }
    exposition_family(x, &refused);
    for (size_t i = 0; i < QUOTA_KINDS; i++) {
        label.value = bytes_str(limit_names[i]);
        exposition_sample(x, &label, 1, quotas_refused(q, i));
    }
    metric_write(x, FAMILY_COUNTER, "claimd_paused_posts_refused", NULL,
                 "Number of posts refused because an operator paused the queue.",
                 quotas_refused_paused(q), 0);
}

static void
write_unloaded(struct exposition *x, const struct store_population *all)
{
    metric_write(x, FAMILY_GAUGE, "claimd_messages_unloaded", NULL,
                 "Number of messages that are unloaded: in body files only.",
                 all->unloaded, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_unloaded_bytes", "bytes",
                 "Size of the unloaded bodies, in bytes.", all->unloaded_bytes, 0);
}

/* ------------------------------------------------------------------ the request */

/* Writes all families but those of single queues, which `shown` has. NULL: without
 * those. */
static void
write_metrics(struct context *ctx, const struct store_metrics *metrics,
              const struct shown_queues *shown, struct exposition *x)
{
    metric_write(
        x, FAMILY_GAUGE, "claimd_ready", NULL,
        "1 if claimd accepts requests. 0 while it stops, refuses posts or cannot use its "
        "store.",
        health_reservation(ctx) == NULL && store_ping(ctx->store, &ctx->op) == ST_OK, 0);
    if (shown != NULL)
        write_queues(x, shown);
    metric_write(x, FAMILY_GAUGE, "claimd_queues", NULL,
                 "Number of queues in all projects.", metrics->queues, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_subscriptions", NULL,
                 "Number of subscriptions in all projects.", metrics->subscriptions, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_subscription_backlog_bytes", "bytes",
                 "Size of the messages that subscribers have not received yet, in bytes.",
                 metrics->feed_bytes, 0);
    metric_write(
        x, FAMILY_GAUGE, "claimd_garbage_messages", NULL,
        "Number of messages of purged or deleted queues that still occupy memory.",
        metrics->garbage, 0);
    if (metrics->unloads)
        write_unloaded(x, &metrics->all);
    metric_write(x, FAMILY_GAUGE, "claimd_expiry_lag_seconds", "seconds",
                 "Delay of the background processing of expired leases, delays and TTLs, "
                 "in seconds. Responses are always up to date.",
                 (uint64_t)metrics->lag_ms, 3);
    write_done(x, metrics);
    write_quotas(x, ctx->api->quotas);
    metrics_write(ctx->config->metrics, x);
}

void
metrics_collect(struct context *ctx, const struct store_metrics *metrics,
                exposition_take *take, void *arg)
{
    struct exposition x;

    exposition_collect(&x, take, arg);
    write_metrics(ctx, metrics, NULL, &x);
}

enum status
handle_metrics(struct context *ctx)
{
    static const struct bytes open = BYTES_LIT("application/openmetrics-text");
    enum exposition_format format =
        caller_names_type(ctx->req->headers[API_HEADER_ACCEPT], open)
            ? EXPOSITION_OPENMETRICS
            : EXPOSITION_PROMETHEUS;
    bool per_queue = true;
    struct store_metrics metrics;
    struct shown_queues shown;
    struct exposition x;
    enum status st;

    if (ctx->config->metrics == NULL)
        return ST_NO_PATH;
    st = context_read_bool(ctx, "per_queue", &per_queue);
    if (st == ST_OK)
        st = store_metrics(ctx->store, &ctx->op, &metrics);
    if (st == ST_OK && per_queue)
        st = read_queues(ctx, &metrics, &shown);
    if (st != ST_OK)
        return st;
    exposition_begin(&x, &ctx->res->body, format);
    write_metrics(ctx, &metrics, per_queue ? &shown : NULL, &x);
    exposition_end(&x);
    ctx->op.lsn = 0; /* metrics need not be durable */
    return response_typed(ctx, 200, exposition_type(format));
}
