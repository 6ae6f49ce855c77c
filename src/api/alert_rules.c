#include "api/alert_rules.h"

#include <math.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { MINUTE_MS = 60000 };

/* ---------------------------------------------------------------- samples of /metrics */

static bool
has_label(const struct exposition_sample *s, const char *name, const char *value)
{
    for (size_t i = 0; i < s->label_count; i++)
        if (strcmp(s->labels[i].name, name) == 0)
            return bytes_equal_str(s->labels[i].value, value);
    return false;
}

static bool
back_expired(const struct exposition_sample *s)
{
    return has_label(s, "reason", "expired");
}

static bool
waits_for_message(const struct exposition_sample *s)
{
    return has_label(s, "reason", "message");
}

static bool
failed_for_good(const struct exposition_sample *s)
{
    return has_label(s, "result", "refused") || has_label(s, "result", "given_up");
}

static bool
ended(const struct exposition_sample *s)
{
    return !has_label(s, "result", "failed");
}

static struct bytes
label_of(const struct exposition_sample *s, const char *name)
{
    for (size_t i = 0; i < s->label_count; i++)
        if (strcmp(s->labels[i].name, name) == 0)
            return s->labels[i].value;
    return bytes_str("");
}

/* A route of posts. */
static bool
is_post_route(struct bytes route)
{
    static const struct bytes ends[] = {BYTES_LIT("/messages"), BYTES_LIT("/raw")};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (route.len >= ends[i].len &&
            memcmp(route.data + route.len - ends[i].len, ends[i].data, ends[i].len) == 0)
            return true;
    return false;
}

static bool
refuses_post(const struct exposition_sample *s)
{
    return has_label(s, "method", "POST") && is_post_route(label_of(s, "route")) &&
           (has_label(s, "code", "429") || has_label(s, "code", "503"));
}

static bool
is_server_error(const struct exposition_sample *s)
{
    const struct bytes code = label_of(s, "code");

    return code.len == 3 && code.data[0] == '5' && !has_label(s, "route", "/readyz");
}

static const struct {
    const char *family;
    enum alert_input input;
    bool (*fits)(const struct exposition_sample *s); /* NULL: all samples */
} sources[] = {
    {"claimd_ready", ALERT_READY, NULL},
    {"claimd_messages_given_back", ALERT_BACK_EXPIRED, back_expired},
    {"claimd_messages_claimed", ALERT_CLAIMED, NULL},
    {"claimd_late_deletions_refused", ALERT_LATE_DELETIONS, NULL},
    {"claimd_http_requests", ALERT_POSTS_REFUSED, refuses_post},
    {"claimd_http_requests", ALERT_RESPONSES_5XX, is_server_error},
    {"claimd_http_requests", ALERT_RESPONSES, NULL},
    {"claimd_paused_posts_refused", ALERT_PAUSED_POSTS_REFUSED, NULL},
    {"claimd_http_connections", ALERT_CONNECTIONS, NULL},
    {"claimd_http_max_connections", ALERT_MAX_CONNECTIONS, NULL},
    {"claimd_http_connections_refused", ALERT_CONNECTIONS_REFUSED, NULL},
    {"claimd_http_requests_parked", ALERT_WAITERS, waits_for_message},
    {"claimd_http_max_waiters", ALERT_MAX_WAITERS, NULL},
    {"claimd_notification_tries", ALERT_TRIES_FAILED, failed_for_good},
    {"claimd_notification_tries", ALERT_TRIES_ENDED, ended},
    {"claimd_notifications_fallen_out", ALERT_NOTIFICATIONS_DROPPED, NULL},
    {"claimd_notifications_fallen_out", ALERT_NOTIFICATIONS_ENDED, NULL},
    {"claimd_notifications_delivered", ALERT_NOTIFICATIONS_ENDED, NULL},
    {"claimd_notifications_given_up", ALERT_NOTIFICATIONS_ENDED, NULL},
    {"claimd_subscription_backlog_bytes", ALERT_BACKLOG_BYTES, NULL},
    {"claimd_notifications_put_off", ALERT_POSTPONED, NULL},
    {"claimd_notification_slow_hosts", ALERT_SLOW_HOSTS, NULL},
    {"claimd_notifications_kept_out", ALERT_NOT_ALLOWED, NULL},
    {"claimd_schedule_refused", ALERT_SCHEDULE_REFUSED, NULL},
    {"claimd_memory_used_bytes", ALERT_MEMORY_USED, NULL},
    {"claimd_memory_budget_bytes", ALERT_MEMORY_BUDGET, NULL},
    {"claimd_journal_failed", ALERT_JOURNAL_FAILED, NULL},
    {"claimd_journal_full", ALERT_JOURNAL_FULL, NULL},
    {"claimd_journal_left_bytes", ALERT_JOURNAL_LEFT, NULL},
    {"claimd_redis_slots_without_owner", ALERT_SLOTS_WITHOUT_OWNER, NULL},
    {"claimd_redis_unconfirmed", ALERT_UNCONFIRMED, NULL},
    {"claimd_redis_map_age_seconds", ALERT_MAP_AGE, NULL},
    {"claimd_redis_primaries", ALERT_PRIMARIES, NULL},
    {"claimd_redis_outbox_age_seconds", ALERT_OUTBOX_AGE, NULL},
    {"claimd_decryption_failures", ALERT_DECRYPTION_FAILURES, NULL},
    {"claimd_last_reload_successful", ALERT_RELOAD_OK, NULL},
    {"claimd_log_lines_dropped", ALERT_LOG_LINES_DROPPED, NULL},
    {"claimd_expiry_lag_seconds", ALERT_EXPIRY_LAG, NULL},
};

enum { NOTIFICATION_SECONDS, SYNC_SECONDS, LOAD_WAIT_SECONDS, CONFIRMATION_SECONDS };

static const char *const histograms[ALERT_HISTOGRAMS] = {
    [NOTIFICATION_SECONDS] = "claimd_notification_seconds",
    [SYNC_SECONDS] = "claimd_journal_sync_seconds",
    [LOAD_WAIT_SECONDS] = "claimd_http_load_wait_seconds",
    [CONFIRMATION_SECONDS] = "claimd_redis_confirmation_seconds"};

/* ------------------------------------------------------------------ minutes */

static const struct alert_minute *
minute_get(const struct alert_minutes *m, uint64_t number)
{
    return &m->minutes[number % ALERT_MINUTES];
}

static const struct alert_minute *
minute_last(const struct alert_minutes *m)
{
    return minute_get(m, m->count - 1);
}

void
alert_minutes_begin(struct alert_minutes *m, int64_t now_ms)
{
    struct alert_minute *minute = &m->minutes[m->count++ % ALERT_MINUTES];

    *minute = (struct alert_minute){.at_ms = now_ms};
    for (size_t i = 0; i < ALERT_INPUTS; i++)
        minute->inputs[i] = NAN;
}

void
alert_minutes_add(struct alert_minutes *m, enum alert_input input, double value)
{
    double *sum = &m->minutes[(m->count - 1) % ALERT_MINUTES].inputs[input];

    *sum = isnan(*sum) ? value : *sum + value;
}

static void
add_bucket(struct alert_minutes *m, size_t histogram, double bound, double value)
{
    size_t i = 0;

    while (i < m->bound_counts[histogram] && m->bounds[histogram][i] < bound)
        i++;
    if (i == ALERT_BUCKETS)
        return;
    if (i == m->bound_counts[histogram]) { /* bounds come in ascending order */
        m->bounds[histogram][i] = bound;
        m->bound_counts[histogram]++;
    }
    m->minutes[(m->count - 1) % ALERT_MINUTES].buckets[histogram][i] += value;
}

void
alert_minutes_take(void *arg, const struct exposition_sample *s)
{
    struct alert_minutes *m = arg;

    if (s->family->kind == FAMILY_HISTOGRAM) {
        for (size_t i = 0; i < ALERT_HISTOGRAMS; i++)
            if (strcmp(s->family->name, histograms[i]) == 0)
                add_bucket(m, i, s->bound, s->value);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(sources); i++)
        if (strcmp(s->family->name, sources[i].family) == 0 &&
            (sources[i].fits == NULL || sources[i].fits(s)))
            alert_minutes_add(m, sources[i].input, s->value);
}

/* The oldest minute that is at most so old. */
static const struct alert_minute *
minute_ago(const struct alert_minutes *m, unsigned minutes)
{
    const int64_t from_ms = minute_last(m)->at_ms - (int64_t)minutes * MINUTE_MS;
    uint64_t at = m->count > ALERT_MINUTES ? m->count - ALERT_MINUTES : 0;

    while (minute_get(m, at)->at_ms < from_ms)
        at++; /* the last minute is not older */
    return minute_get(m, at);
}

static double
input_now(const struct alert_minutes *m, enum alert_input input)
{
    return minute_last(m)->inputs[input];
}

/* The increase of a counter. It was 0 before its first sample. */
static double
increase(const struct alert_minutes *m, enum alert_input input, unsigned minutes)
{
    const double before = minute_ago(m, minutes)->inputs[input];

    return input_now(m, input) - (isnan(before) ? 0 : before);
}

/* As histogram_quantile() of Prometheus. NAN: the histogram saw nothing. */
static double
quantile(const struct alert_minutes *m, double q, size_t histogram, unsigned minutes)
{
    const double *now = minute_last(m)->buckets[histogram];
    const double *before = minute_ago(m, minutes)->buckets[histogram];
    const double *bounds = m->bounds[histogram];
    const size_t count = m->bound_counts[histogram];
    double wanted, low = 0, below = 0;
    size_t i = 0;

    if (count == 0 || now[count - 1] - before[count - 1] <= 0)
        return NAN;
    wanted = q * (now[count - 1] - before[count - 1]);
    while (now[i] - before[i] < wanted)
        i++;
    if (i > 0) {
        low = bounds[i - 1];
        below = now[i - 1] - before[i - 1];
    }
    if (isinf(bounds[i]))
        return low;
    return low + (bounds[i] - low) * (wanted - below) / (now[i] - before[i] - below);
}

/* The slope of a line through points, by least squares. */
struct fit {
    double n, x, y, xx, xy;
};

static void
fit_add(struct fit *f, double x, double y)
{
    f->n++;
    f->x += x;
    f->y += y;
    f->xx += x * x;
    f->xy += x * y;
}

/* NAN with one point. */
static double
fit_slope(const struct fit *f)
{
    return (f->n * f->xy - f->x * f->y) / (f->n * f->xx - f->x * f->x);
}

/* Whether a gauge is over 50 % higher than an hour ago, and still grows. */
static bool
grows(const struct alert_minutes *m, enum alert_input input)
{
    const struct alert_minute *last = minute_last(m), *old = minute_ago(m, 60);
    struct fit fit = {.n = 0};

    for (uint64_t i = m->count > 16 ? m->count - 16 : 0; i < m->count; i++)
        if (last->at_ms - minute_get(m, i)->at_ms <= 15 * MINUTE_MS)
            fit_add(&fit, (double)(minute_get(m, i)->at_ms - last->at_ms) / 1000,
                    minute_get(m, i)->inputs[input]);
    return last->at_ms - old->at_ms > 59 * MINUTE_MS &&
           last->inputs[input] > 1.5 * old->inputs[input] && fit_slope(&fit) > 0;
}

/* ------------------------------------------------------------------ queues */

void
alert_queue_read(struct alert_queue *q, const struct store_sample *samples, size_t count,
                 int64_t now_ms)
{
    struct fit fit = {.n = 0};

    q->least_ready = (double)q->ready;
    q->ready_hour_ago = NAN;
    q->delivered = q->worked = 0;
    q->was_paused = q->paused;
    q->dead_lettered = q->unread = q->letters_expired = 0;
    for (size_t i = 0; i < count; i++) {
        const struct store_sample *s = &samples[i];
        const int64_t age_ms = now_ms - s->at_ms;

        /* The last sample that is so old. There is one each 5 seconds, for an hour. */
        if (age_ms >= 60 * MINUTE_MS - 2 * SAMPLER_INTERVAL_MS)
            q->ready_hour_ago = s->ready;
        if (age_ms <= 30 * MINUTE_MS && s->ready < q->least_ready)
            q->least_ready = s->ready;
        if (age_ms <= 15 * MINUTE_MS)
            fit_add(&fit, (double)-age_ms / 1000, s->ready);
        /* A counter of a sample is the increase before it. */
        if (age_ms < 30 * MINUTE_MS)
            q->delivered += s->counts[STORE_QUEUE_DELIVERED];
        if (age_ms <= 30 * MINUTE_MS && s->paused)
            q->was_paused = true;
        if (age_ms < 2 * MINUTE_MS)
            q->worked +=
                s->counts[STORE_QUEUE_DELIVERED] + s->counts[STORE_QUEUE_DELETED];
        if (age_ms < 15 * MINUTE_MS) {
            q->dead_lettered += s->counts[STORE_QUEUE_DEAD_LETTERED];
            q->unread += s->unread;
            q->letters_expired += s->letters_expired;
        }
    }
    q->ready_slope = fit_slope(&fit);
}

static bool
exceeds(double value, double limit, double *out)
{
    *out = value;
    return value > limit;
}

/* Its ready messages may wait: they are dead letters, or for subscribers. */
static bool
may_wait(const struct alert_queue *q)
{
    return q->is_topic || q->dead_letters > 0 || q->only_subscribers;
}

static bool
no_worker(const struct alert_queue *q, double *value)
{
    return exceeds((double)q->ready, 0, value) && q->waiters == 0 && q->claims == 0 &&
           q->worked == 0 && !q->paused && !may_wait(q);
}

static bool
oldest_message_too_old(const struct alert_queue *q, double *value)
{
    return exceeds(q->ready_age_s, 1800, value) && q->least_ready > 0 &&
           (double)q->ready > q->delivered && !q->was_paused && !may_wait(q);
}

static bool
oldest_claim_too_old(const struct alert_queue *q, double *value)
{
    return exceeds(q->claim_age_s, 3600, value);
}

static bool
backlog_growing(const struct alert_queue *q, double *value)
{
    return exceeds((double)q->ready, 1000, value) && !q->was_paused && !may_wait(q) &&
           (double)q->ready > 1.5 * q->ready_hour_ago && q->ready_slope > 0;
}

static bool
paused_long(const struct alert_queue *q, double *value)
{
    return exceeds((double)q->ready, 0, value) && q->paused;
}

static bool
dead_letters(const struct alert_queue *q, double *value)
{
    return exceeds(q->dead_lettered, 0, value);
}

static bool
expired_unread(const struct alert_queue *q, double *value)
{
    return exceeds(q->unread - q->letters_expired, 0, value);
}

static bool
dead_letters_expired(const struct alert_queue *q, double *value)
{
    return exceeds(q->letters_expired, 0, value);
}

/* ------------------------------------------------------------------ forms of rules */

static bool
is_above(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    return exceeds(input_now(m, r->part), r->limit, value);
}

static bool
is_zero(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    *value = 0;
    return input_now(m, r->part) == 0;
}

/* A gauge is above a share of another one, which is not 0. */
static bool
is_above_share(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    const double whole = input_now(m, r->whole);

    return exceeds(input_now(m, r->part), r->limit * whole, value) && whole > 0;
}

static bool
grew(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    return exceeds(increase(m, r->part, r->minutes), r->limit, value);
}

static bool
grew_above_share(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    return exceeds(increase(m, r->part, r->minutes),
                   r->limit * increase(m, r->whole, r->minutes), value);
}

/* ------------------------------------------------------------------ special rules */

static bool
rest_backlog_growing(const struct alert_rule *r, const struct alert_minutes *m,
                     double *value)
{
    return is_above(r, m, value) && grows(m, ALERT_REST_READY);
}

/* The increase of a counter beyond that of another one. */
static bool
grew_beyond(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    const double whole = increase(m, r->whole, r->minutes);

    return exceeds(increase(m, r->part, r->minutes) - (isnan(whole) ? 0 : whole),
                   r->limit, value);
}

static bool
subscribers_behind(const struct alert_rule *r, const struct alert_minutes *m,
                   double *value)
{
    return is_above(r, m, value) && grows(m, r->part);
}

static bool
hosts_slow(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    return is_above(r, m, value) &&
           quantile(m, 0.9, NOTIFICATION_SECONDS, r->minutes) > 2.5;
}

static bool
journal_space_small(const struct alert_rule *r, const struct alert_minutes *m,
                    double *value)
{
    const double unloaded = input_now(m, ALERT_UNLOADED_BYTES);
    const double live = input_now(m, ALERT_BYTES) - (isnan(unloaded) ? 0 : unloaded) +
                        120 * input_now(m, ALERT_MESSAGES) +
                        input_now(m, ALERT_BACKLOG_BYTES);

    *value = input_now(m, r->part);
    return *value < 67108864 + 1.5 * live;
}

static bool
syncs_slow(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    return exceeds(quantile(m, 0.99, SYNC_SECONDS, r->minutes), r->limit, value);
}

static bool
reads_slow(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    return exceeds(quantile(m, 0.99, LOAD_WAIT_SECONDS, r->minutes), r->limit, value);
}

static bool
confirmations_slow(const struct alert_rule *r, const struct alert_minutes *m,
                   double *value)
{
    return exceeds(quantile(m, 0.99, CONFIRMATION_SECONDS, r->minutes), r->limit, value);
}

static bool
map_old(const struct alert_rule *r, const struct alert_minutes *m, double *value)
{
    return is_above(r, m, value) && input_now(m, ALERT_PRIMARIES) > 1;
}

/* ------------------------------------------------------------------ the table */

#define WARNING  "warning"
#define CRITICAL "critical"

const struct alert_rule alert_rules[] = {
    {"ClaimdNotReady", WARNING, 10, "claimd is not ready",
     "It is in maintenance, drains, or has no store. /readyz says which.", NULL, is_zero,
     .part = ALERT_READY},
    {"ClaimdNoWorker", WARNING, 5, "Messages are ready and no worker claims them",
     "Start a worker, or check that yours run and name this queue and project.",
     "messages", .queue = no_worker},
    {"ClaimdOldestMessageTooOld", WARNING, 5, "A message waits too long for a worker",
     "Check that workers claim from the queue.", "seconds",
     .queue = oldest_message_too_old},
    {"ClaimdOldestClaimTooOld", WARNING, 5, "A worker holds a claim for too long",
     "If the worker hangs, stop it or release its claim.", "seconds",
     .queue = oldest_claim_too_old},
    {"ClaimdBacklogGrowing", WARNING, 15,
     "A queue grows faster than workers delete its messages",
     "Start more workers, or slow down the producers.", "messages", rest_backlog_growing,
     backlog_growing, .part = ALERT_REST_WAITING, .limit = 1000},
    {"ClaimdQueuePausedLong", WARNING, 240, "A paused queue may have been forgotten",
     "Resume the queue. The TTL of its messages goes on.", "messages",
     .queue = paused_long},
    {"ClaimdClaimsExpiring", WARNING, 10,
     "Claims expire because workers crash or are too slow",
     "Look for workers that crash. Let slow ones renew their claims or ask for a longer "
     "TTL.",
     "messages", grew_above_share, .minutes = 10, .part = ALERT_BACK_EXPIRED,
     .whole = ALERT_CLAIMED, .limit = 0.05},
    {"ClaimdLateDeletions", WARNING, 0,
     "Workers delete messages after their claim expired",
     "Let workers renew their claims. These jobs may have run twice.", "messages", grew,
     .minutes = 15, .part = ALERT_LATE_DELETIONS, .limit = 5},
    {"ClaimdDeadLetters", WARNING, 0, "Messages were dead-lettered",
     "Open the dead letters of the queue and read the reasons.", "messages", grew,
     dead_letters, .minutes = 15, .part = ALERT_REST_DEAD_LETTERED},
    {"ClaimdMessagesExpiredUnread", WARNING, 0,
     "Messages expired before a worker claimed them",
     "Check that workers claim from the right queue. Post with a longer TTL.", "messages",
     grew_beyond, expired_unread, .minutes = 15, .part = ALERT_REST_UNREAD,
     .whole = ALERT_REST_LETTERS_EXPIRED},
    {"ClaimdDeadLettersExpired", WARNING, 0, "Dead letters expired",
     "Look at dead letters earlier, or raise dead_letter_ttl.", "messages", grew,
     dead_letters_expired, .minutes = 15, .part = ALERT_REST_LETTERS_EXPIRED},
    {"ClaimdPostsRefused", CRITICAL, 5, "claimd refuses posts",
     "Check the limits of projects, the memory and the journal.", "requests", grew_beyond,
     .minutes = 5, .part = ALERT_POSTS_REFUSED, .whole = ALERT_PAUSED_POSTS_REFUSED},
    {"ClaimdServerErrors", WARNING, 5, "claimd returns server errors",
     "For 503, see the other alerts. 500 is a bug. Report it with the log.", "requests",
     grew_above_share, .minutes = 5, .part = ALERT_RESPONSES_5XX,
     .whole = ALERT_RESPONSES, .limit = 0.01},
    {"ClaimdConnectionsNearLimit", WARNING, 5,
     "The number of connections is near the limit",
     "Lower idle_seconds if most of them wait. Otherwise raise max_connections.",
     "connections", is_above_share, .part = ALERT_CONNECTIONS,
     .whole = ALERT_MAX_CONNECTIONS, .limit = 0.8},
    {"ClaimdConnectionsRefused", CRITICAL, 0, "claimd refuses connections",
     "Find the client that opens them, or raise max_connections.", "connections", grew,
     .minutes = 5, .part = ALERT_CONNECTIONS_REFUSED},
    {"ClaimdWaitersNearLimit", WARNING, 5,
     "The number of long-polling requests is near the limit",
     "Raise max_waiters, or let workers claim from several queues at once.", "requests",
     is_above_share, .part = ALERT_WAITERS, .whole = ALERT_MAX_WAITERS, .limit = 0.8},
    {"ClaimdNotificationsGivenUp", WARNING, 10, "Notifications fail permanently",
     "The log names the hosts of the subscribers.", "notifications", grew_above_share,
     .minutes = 10, .part = ALERT_TRIES_FAILED, .whole = ALERT_TRIES_ENDED,
     .limit = 0.05},
    {"ClaimdNotificationsFallenOut", WARNING, 10,
     "Messages are dropped before subscribers receive them",
     "Fix the subscriber that is behind, or delete its subscription.", "notifications",
     grew_above_share, .minutes = 10, .part = ALERT_NOTIFICATIONS_DROPPED,
     .whole = ALERT_NOTIFICATIONS_ENDED, .limit = 0.05},
    {"ClaimdSubscribersBehind", WARNING, 15, "Subscribers fall behind",
     "Find the subscriber that is slow.", "bytes", subscribers_behind,
     .part = ALERT_BACKLOG_BYTES, .limit = 8388608},
    {"ClaimdNotificationsPutOff", WARNING, 15, "Notifications are postponed",
     "Find slow hosts, or raise max_notifier_workers.", "notifications", grew,
     .minutes = 5, .part = ALERT_POSTPONED},
    {"ClaimdNotificationHostsSlow", WARNING, 15, "Hosts of subscribers are slow",
     "Ask the receivers to respond before they work.", "hosts", hosts_slow, .minutes = 10,
     .part = ALERT_SLOW_HOSTS},
    {"ClaimdNotificationsKeptOut", WARNING, 0,
     "Subscribers have addresses that claimd may not reach",
     "Check notify_allow and the log.", "notifications", grew, .minutes = 15,
     .part = ALERT_NOT_ALLOWED},
    {"ClaimdScheduleRefused", WARNING, 5, "Schedules cannot post",
     "The view of the schedules has the reasons.", "posts", grew, .minutes = 10,
     .part = ALERT_SCHEDULE_REFUSED},
    {"ClaimdMemoryNearBudget", WARNING, 5, "The memory budget is nearly used up",
     "Work off or purge large queues, or raise max_memory. From 75 % on, claimd refuses "
     "posts.",
     "bytes", is_above_share, .part = ALERT_MEMORY_USED, .whole = ALERT_MEMORY_BUDGET,
     .limit = 0.65},
    {"ClaimdJournalFailed", CRITICAL, 0, "claimd cannot write the journal",
     "Check the disk and the kernel log.", NULL, is_above, .part = ALERT_JOURNAL_FAILED},
    {"ClaimdJournalFull", CRITICAL, 1, "The journal is full",
     "Free disk space, raise journal_max_bytes, or work off messages.", NULL, is_above,
     .part = ALERT_JOURNAL_FULL},
    {"ClaimdJournalRoomSmall", WARNING, 15, "The journal has little space left",
     "Free disk space or raise journal_max_bytes. The live data must fit once more.",
     "bytes", journal_space_small, .part = ALERT_JOURNAL_LEFT},
    {"ClaimdJournalSlowSyncs", WARNING, 10, "The journal's disk is slow",
     "Look for other writers or a failing disk.", "seconds", syncs_slow, .minutes = 5,
     .limit = 0.25},
    {"ClaimdJournalSlowReads", WARNING, 10, "Requests wait long for body files",
     "Look for other readers or a failing disk, or raise backlog_memory.", "seconds",
     reads_slow, .minutes = 5, .limit = 1},
    {"ClaimdRedisSlotsWithoutOwner", CRITICAL, 1, "Slots of Redis have no owner",
     "Restore a node. redis-cli --cluster check lists the slots.", "slots", is_above,
     .part = ALERT_SLOTS_WITHOUT_OWNER},
    {"ClaimdRedisUnconfirmed", CRITICAL, 5, "Redis replicas do not confirm changes",
     "Restore the replica, or add another one.", "changes", grew, .minutes = 5,
     .part = ALERT_UNCONFIRMED},
    {"ClaimdRedisMapOld", WARNING, 5, "claimd cannot read the slot map of Redis",
     "Check the network and the rights of the Redis user.", "seconds", map_old,
     .part = ALERT_MAP_AGE, .limit = 120},
    {"ClaimdRedisConfirmationsSlow", WARNING, 10, "Redis replicas confirm slowly",
     "Check the disk and the network of the replicas.", "seconds", confirmations_slow,
     .minutes = 5, .limit = 0.5},
    {"ClaimdRedisDeadLettersLate", WARNING, 5, "Dead letters do not arrive",
     "Restore the node of the dead-letter queue.", "seconds", is_above,
     .part = ALERT_OUTBOX_AGE, .limit = 60},
    {"ClaimdDecryptionFailures", CRITICAL, 0, "claimd cannot decrypt bodies",
     "The log names the key that encryption_keys lacks.", "failures", grew, .minutes = 15,
     .part = ALERT_DECRYPTION_FAILURES},
    {"ClaimdReloadFailed", WARNING, 0, "A reload failed",
     "The log names file and line. The old settings stay in force.", NULL, is_zero,
     .part = ALERT_RELOAD_OK},
    {"ClaimdLogLinesDropped", WARNING, 0, "claimd drops log lines",
     "Sample the access log, or fix the reader of the log.", "lines", grew, .minutes = 15,
     .part = ALERT_LOG_LINES_DROPPED},
    {"ClaimdExpiryLag", WARNING, 5, "claimd expires messages and claims late",
     "The processor is overloaded. Add cores.", "seconds", is_above,
     .part = ALERT_EXPIRY_LAG, .limit = 30},
};

const size_t alert_rule_count = COUNT_OF(alert_rules);
