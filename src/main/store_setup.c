#include "main/store_setup.h"

#include "claimd/base/log.h"
#include "claimd/engine/engine.h"
#include "claimd/redis/redis.h"
#include "main/process_metrics.h"
#include "main/text_file.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ journal */

/* How long the last line of a process whose journal failed has to be written. */
enum { LAST_WORDS_MS = 1000 };

/* A record may be longer than the post that it is of. */
enum { RECORD_FACTOR = 2 };

/*
 * A start that is under way has so much more time with the supervisor; between two
 * frames, or when all has been read and what fell due happens, it is silent for a while.
 */
#define MORE_TIME "EXTEND_TIMEOUT_USEC=120000000"

/*
 * Nothing can become durable any more, and no client was told that it did. What is in memory is
 * not what is on the disk: the only way on is to begin again from there.
 */
static void
give_up(void *arg, const char *text, int error)
{
    struct durability *d = arg;
    char number[32];

    log_event(d->log, LOG_ERROR, "giving_up", LOG_S("error", text));
    (void)snprintf(number, sizeof(number), "ERRNO=%d", error);
    (void)supervisor_tell(d->supervisor, number, "%s", text); /* or the status tells */
    (void)log_writer_end(d->log,
                         LAST_WORDS_MS); /* it waits for no other thread that logs */
    _exit(EXIT_JOURNAL_FAILED);
}

static void
tell_progress(void *arg, const struct journal_progress *p)
{
    const struct durability *d = arg;

    log_event(d->log, LOG_INFO, "replaying", LOG_I("segments", p->segments),
              LOG_I("of_segments", p->of_segments), LOG_I("records", p->records),
              LOG_I("messages", p->messages), LOG_I("bytes", p->bytes),
              LOG_I("of_bytes", p->of_bytes), LOG_I("left_ms", p->left_ms));
    (void)supervisor_tell(d->supervisor, MORE_TIME,
                          "replaying the journal: segment %" PRIu64 " of %" PRIu64
                          ", %" PRIu64 " messages, %" PRIu64 " %% read, about %" PRId64
                          " s left",
                          p->segments + 1, p->of_segments, p->messages,
                          p->bytes / (p->of_bytes / 100 + 1), (p->left_ms + 999) / 1000);
}

/* Of what the limits allow, at least roughly, the change that takes most in the log. */
static size_t
largest_change(const struct api_limits *limits)
{
    size_t post = RECORD_FACTOR * (size_t)limits->max_messages_post_size;
    size_t page = STORE_LOG_EACH * (size_t)limits->max_messages_per_page;
    size_t claim = STORE_LOG_EACH * (size_t)limits->max_messages_per_claim_or_pop;

    if (page < claim)
        page = claim;
    return post > page ? post : page;
}

static enum status
open_journal(struct durability *d, const struct config *config,
             struct config_errors *errors)
{
    const struct journal_config journal = {
        .disk = d->disk,
        .log = d->log,
        /* What it stamps its frames with. */
        .clock = d->steered != NULL || clock_stands(d->now) ? d->now : &d->clock,
        .test_api = d->steered != NULL,
        .max_bytes = (uint64_t)config->journal_max_bytes,
        .change_bytes = largest_change(&config->limits),
        .progress = tell_progress,
        .progress_arg = d,
        .stopwatch = &d->clock,
        .failed = give_up,
        .failed_arg = d};
    char error[JOURNAL_ERROR_CAP];
    enum status st = journal_open(&journal, &d->journal, error);

    if (st != ST_OK)
        config_error(errors, "journal %s: %s", config->journal, error);
    return st;
}

enum status
durability_open(struct durability *d, const struct config *config, struct log *log,
                const struct supervisor *supervisor, const struct clock *clock,
                struct clock *steered, struct config_errors *errors)
{
    char text[ERRNO_TEXT_CAP];
    int error;

    *d = (struct durability){.log = log,
                             .supervisor = supervisor,
                             .steered = steered,
                             .now = steered != NULL ? steered : clock};
    clock_init_system(&d->clock);
    if (strcmp(config->journal, "none") == 0)
        return ST_OK;
    error = disk_open(config->journal, true, &d->disk);
    if (error != 0) {
        d->disk = NULL;
        config_error(errors, "journal %s cannot be opened: %s%s", config->journal,
                     errno_text(error, DISK_ADVICE, text),
                     error == ENOENT ? ". Create the directory that it is in" : "");
        return ST_IO;
    }
    return open_journal(d, config, errors);
}

struct store_log *
durability_log(const struct durability *d)
{
    return d->journal == NULL ? NULL : journal_log(d->journal);
}

static void
tell_recovery(const struct durability *d, const struct journal_recovery *r,
              struct store *store, int64_t wall_ms)
{
    struct store_visit visit = {.now_ms = r->now_ms};
    struct store_totals totals = {0};

    (void)store_totals(store, &visit, &totals); /* all that expired is gone by now */
    log_event(d->log, LOG_INFO, "recovered", LOG_I("segments", r->segments),
              LOG_I("records", r->records), LOG_I("bytes", r->bytes),
              LOG_I("queues", totals.queues), LOG_I("messages", totals.messages));
    if (r->torn)
        log_event(d->log, LOG_WARN, "journal_torn", LOG_I("bytes", r->torn_bytes));
    if (r->now_ms > wall_ms)
        log_event(d->log, LOG_WARN, "clock_behind_journal",
                  LOG_I("behind_ms", r->now_ms - wall_ms));
}

/*
 * The store's time continues from where the journal was, if that is later: it was journal_ms at
 * `stopwatch_ns`, and not a fraction of a millisecond more, so no deadline comes earlier. (A
 * clock that stands is moved by hand.)
 */
static void
set_clock(struct durability *d, int64_t journal_ms, int64_t wall_ms, int64_t stopwatch_ns)
{
    if (journal_ms <= wall_ms)
        return;
    if (d->steered != NULL) {
        clock_advance(d->steered, journal_ms - wall_ms);
    } else if (!clock_stands(d->now)) {
        clock_init_since(&d->clock, journal_ms, stopwatch_ns);
        d->now = &d->clock;
    }
}

enum status
durability_recover(struct durability *d, const struct config *config, struct store *store,
                   struct config_errors *errors)
{
    const int64_t wall_ms = clock_now_ms(d->now), stopwatch_ns = clock_stopwatch_ns();
    struct journal_recovery recovery = {
        .now_ms = wall_ms, .accept_clock = config->accept_clock || d->steered != NULL};
    char error[JOURNAL_ERROR_CAP];
    enum status st;

    if (d->journal == NULL)
        return ST_OK;
    (void)supervisor_tell(d->supervisor, MORE_TIME, "replaying the journal");
    st = journal_recover(d->journal, store, &recovery, error);
    if (st != ST_OK) {
        config_error(errors, "journal %s: %s", config->journal, error);
        return st == ST_BAD_VALUE ? ST_CONFLICT : st;
    }
    tell_recovery(d, &recovery, store, wall_ms);
    set_clock(d, recovery.now_ms, wall_ms, stopwatch_ns);
    st = journal_start(d->journal);
    if (st != ST_OK)
        config_error(errors, "cannot start a thread for the journal");
    return st;
}

void
durability_age(struct durability *d)
{
    if (d->journal != NULL)
        journal_age(d->journal, clock_now_ms(d->now));
}

static void
write_journal(struct metrics_source *source, struct exposition *x)
{
    static const struct family syncs = {"claimd_journal_sync_seconds", FAMILY_HISTOGRAM,
                                        "seconds",
                                        "Duration of the disk syncs, in seconds."};
    struct durability *d = container_of(source, struct durability, source);
    struct journal_figures f;

    journal_figures(d->journal, &f);
    metric_write(x, FAMILY_GAUGE, "claimd_journal_segments", NULL,
                 "Number of segments of the journal.", f.segments, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_journal_bytes", "bytes",
                 "Size of the segments of the journal, in bytes.", f.bytes, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_journal_left_bytes", "bytes",
                 "Space that the journal can still use, in bytes. The disk or "
                 "journal_max_bytes limits it.",
                 f.left, 0);
    metric_write(
        x, FAMILY_GAUGE, "claimd_journal_full", NULL,
        "1 while claimd refuses posts because the journal has no space, otherwise 0.",
        f.short_of_room, 0);
    metric_write(
        x, FAMILY_GAUGE, "claimd_journal_failed", NULL,
        "1 after the disk failed and nothing becomes durable any more, otherwise 0.",
        f.lost, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_journal_commits", NULL,
                 "Number of commits. Each commit syncs the disk once.", f.commits, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_journal_records", NULL,
                 "Number of records written or waiting to be written.", f.records, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_journal_undurable_records", NULL,
                 "Number of records that are not durable yet. Their responses wait for "
                 "the commit.",
                 f.position > f.durable ? f.position - f.durable : 0, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_journal_sweeps", NULL,
                 "Number of completed checkpoints.", f.checkpoints, 0);
    exposition_family(x, &syncs);
    exposition_buckets(x, NULL, 0, &f.syncs, &journal_sync_bounds, 6);
}

void
durability_measure(struct durability *d, struct metrics *metrics)
{
    if (d->journal == NULL)
        return;
    d->source.write = write_journal;
    metrics_add(metrics, &d->source);
}

void
durability_close(struct durability *d)
{
    journal_close(d->journal);
    disk_shut(d->disk);
    d->journal = NULL;
    d->disk = NULL;
}

/* ------------------------------------------------------------------ Redis */

bool
store_is_redis(const struct config *config)
{
    return strcmp(config->store, "memory") != 0;
}

static void
log_warning(void *arg, const char *text)
{
    const struct store_setup *b = arg;

    log_event(b->log, LOG_WARN, "store", LOG_S("warning", text));
}

static enum status
open_store(struct store_setup *b, const struct config *config, struct mem *mem,
           const struct store_sealer *sealer, const struct clock *clock,
           struct store **out, struct config_errors *errors)
{
    const struct redis_config redis = {
        .mem = mem,
        .url = config->store,
        .password = b->password,
        .message_ttl_s = config->limits.default_message_ttl,
        .message_delay_s = config->limits.default_message_delay,
        .max_message_ttl_s = config->limits.max_message_ttl,
        .dead_letter_ttl_s = config_dead_letter_ttl(config),
        .feed_bytes = (uint64_t)config->subscription_backlog,
        .require_confirmation = config->require_confirmation,
        .shown_queues = (size_t)config->metrics_queues,
        .threads = (size_t)config->store_threads,
        .sealer = sealer,
        .test_clock = clock_stands(clock),
        .warn = log_warning,
        .warn_arg = b,
    };
    struct reason why;
    enum status st;

    reason_init(&why);
    st = redis_open(&redis, out, &why);
    if (st == ST_UNAVAILABLE || st == ST_BAD_VALUE)
        config_error(errors, "store: %s", why.text);
    return st;
}

enum status
store_setup_open(struct store_setup *b, const struct config *config, struct mem *mem,
                 const struct store_sealer *sealer, const struct clock *clock,
                 const struct log *log, struct store **out, struct config_errors *errors)
{
    const struct executor_config executor = {.mem = mem,
                                             .threads = (size_t)config->store_threads,
                                             .line = (size_t)config->max_connections};
    enum status st;

    *b = (struct store_setup){.log = log};
    st = password_read("store_password_file", config->store_password_file, mem,
                       &b->password, errors);
    if (st == ST_OK)
        st = open_store(b, config, mem, sealer, clock, out, errors);
    if (st != ST_OK)
        return st;
    b->store = *out;
    st = executor_open(&executor, &b->executor);
    if (st == ST_UNAVAILABLE)
        config_error(errors, "cannot start the threads for the store");
    return st;
}

static void
write_redis(struct metrics_source *source, struct exposition *x)
{
    static const struct family answers = {
        "claimd_redis_answer_seconds", FAMILY_HISTOGRAM, "seconds",
        "Time from a request to the response of its script, in seconds."};
    static const struct family confirmations = {
        "claimd_redis_confirmation_seconds", FAMILY_HISTOGRAM, "seconds",
        "Time from the response of a script to the confirmation by the replicas, in "
        "seconds."};
    struct store_setup *b = container_of(source, struct store_setup, source);
    struct redis_figures f;

    redis_measure(b->store, &f);
    metric_write(x, FAMILY_COUNTER, "claimd_redis_requests", NULL,
                 "Number of scripts that claimd ran on Redis.", f.requests, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_redis_pipelines", NULL,
                 "Number of pipelines sent. Concurrent requests share a pipeline.",
                 f.pipelines, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_redis_redirections", NULL,
                 "Number of requests redirected to another node because a slot moved or "
                 "is moving.",
                 f.redirections, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_redis_retries", NULL,
                 "Number of requests retried because a node was unavailable.", f.retries,
                 0);
    metric_write(x, FAMILY_COUNTER, "claimd_redis_unconfirmed", NULL,
                 "Number of changes without a response or without the confirmation of "
                 "all replicas.",
                 f.unconfirmed, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_redis_connections_opened", NULL,
                 "Number of connections opened to nodes.", f.connections, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_redis_map_refreshes", NULL,
                 "Number of requests for the slot map of the cluster.", f.refreshes, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_redis_primaries", NULL,
                 "Number of nodes that own slots.", f.primaries, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_redis_replicas_least", NULL,
                 "Number of healthy replicas of the primary that has the fewest.",
                 f.replicas_least, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_redis_slots_without_owner", NULL,
                 "Number of slots without a node. Requests to their queues return 503.",
                 f.slots_without_owner, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_redis_map_age_seconds", "seconds",
                 "Age of the slot map, in seconds.", (uint64_t)f.map_age_ms, 3);
    metric_write(
        x, FAMILY_GAUGE, "claimd_redis_outbox_age_seconds", "seconds",
        "Age of the oldest dead letter in transfer among the shown queues, in seconds.",
        (uint64_t)f.outbox_age_ms, 3);
    exposition_family(x, &answers);
    exposition_buckets(x, NULL, 0, &f.answers, &redis_times, 6);
    exposition_family(x, &confirmations);
    exposition_buckets(x, NULL, 0, &f.confirmations, &redis_times, 6);
}

void
store_setup_measure(struct store_setup *b, struct metrics *metrics)
{
    if (b->store == NULL)
        return;
    b->source.write = write_redis;
    metrics_add(metrics, &b->source);
}

void
store_setup_close(struct store_setup *b, struct mem *mem)
{
    executor_close(b->executor);
    text_file_drop_word(mem, b->password);
    b->executor = NULL;
    b->password = NULL;
}
