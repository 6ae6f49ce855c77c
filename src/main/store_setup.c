#include "main/store_setup.h"

#include "claimd/base/log.h"
#include "claimd/engine/engine.h"
#include "claimd/redis/redis.h"
#include "main/option.h"
#include "main/text_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * LOG_END_MS: maximum time to write the last log line after the journal has failed.
 * RECORD_FACTOR: maximum size of a record, relative to its post. CLOCK_SET_MS: distance
 * from which on the log names the two clocks.
 */
enum { LOG_END_MS = 1000, RECORD_FACTOR = 2, CLOCK_SET_MS = 1000 };

/* Time that the supervisor gives the start between two reports of progress: 2 minutes. */
#define MORE_TIME "EXTEND_TIMEOUT_USEC=120000000"

/*
 * Ends the process after the journal has failed. No later change can become durable, and
 * no client got a response to one. Memory and disk differ, so a new start must replay the
 * disk.
 */
static void
exit_on_journal_failure(void *arg, const char *text, int error)
{
    struct store_setup *s = arg;
    char number[32];

    log_event(s->log, LOG_ERROR, "giving_up", LOG_S("error", text));
    (void)snprintf(number, sizeof(number), "ERRNO=%d", error);
    (void)supervisor_notify(s->supervisor, number, "%s", text);
    (void)log_writer_end(s->log, LOG_END_MS);
    _exit(EXIT_JOURNAL_FAILED);
}

static void
report_progress(void *arg, const struct journal_progress *p)
{
    const struct store_setup *s = arg;

    log_event(s->log, LOG_INFO, "replaying", LOG_I("segments", p->segments),
              LOG_I("of_segments", p->of_segments), LOG_I("records", p->records),
              LOG_I("messages", p->messages), LOG_I("bytes", p->bytes),
              LOG_I("of_bytes", p->of_bytes), LOG_I("left_ms", p->left_ms));
    (void)supervisor_notify(
        s->supervisor, MORE_TIME,
        "replaying the journal: segment %" PRIu64 " of %" PRIu64 ", %" PRIu64
        " messages, %" PRIu64 " %% read, about %" PRId64 " s left",
        p->segments + 1, p->of_segments, p->messages, p->bytes / (p->of_bytes / 100 + 1),
        (p->left_ms + 999) / 1000);
}

/*
 * Reads the id of this boot of the machine. A unit that hides it in /proc
 * (ProcSubset=pid) passes it in CLAIMD_BOOT_ID. False: it is unknown. Source: random(4).
 */
static bool
read_boot_id(const char *given, uint8_t out[JOURNAL_BOOT_ID_BYTES])
{
    char text[2 * JOURNAL_BOOT_ID_BYTES + 5] = "";
    int digits = 0;
    FILE *f;

    if (given == NULL) {
        f = fopen("/proc/sys/kernel/random/boot_id", "re");
        if (f == NULL)
            return false;
        given = fgets(text, sizeof(text), f) == NULL ? "" : text;
        (void)fclose(f);
    }
    memset(out, 0, JOURNAL_BOOT_ID_BYTES);
    for (; *given != '\0' && digits < 2 * JOURNAL_BOOT_ID_BYTES; given++) {
        const int digit = hex_value(*given);

        if (digit < 0 && *given != '-')
            return false;
        if (digit >= 0) {
            out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | digit);
            digits++;
        }
    }
    return digits == 2 * JOURNAL_BOOT_ID_BYTES;
}

static enum status
open_journal(struct store_setup *s, const struct config *config,
             struct config_errors *errors)
{
    const struct api_limits *limits = &config->limits;
    const size_t post = RECORD_FACTOR * (size_t)limits->max_messages_post_size;
    const size_t page = STORE_LOG_EACH * (size_t)limits->max_messages_per_page;
    const size_t claim = STORE_LOG_EACH * (size_t)limits->max_messages_per_claim_or_pop;
    const size_t most = page < claim ? claim : page;
    const struct journal_config journal = {
        .disk = s->disk,
        .log = s->log,
        /* For the times of frames. */
        .clock = s->now,
        .continued = s->now == &s->clock ? &s->clock : s->test_clock,
        .boot_id = read_boot_id(config->boot_id, s->boot_id) ? s->boot_id : NULL,
        .test_api = s->test_clock != NULL,
        .max_bytes = (uint64_t)config->journal_max_bytes,
        /* About the size of the largest change that the limits allow. */
        .change_bytes = post > most ? post : most,
        .progress = report_progress,
        .progress_arg = s,
        .stopwatch = &s->clock,
        .failed = exit_on_journal_failure,
        .failed_arg = s};
    char error[JOURNAL_ERROR_CAP];
    enum status st = journal_open(&journal, &s->journal, error);

    if (st != ST_OK)
        config_error(errors, "journal %s: %s", config->journal, error);
    /* The test API records each expiry with its message, so all stay in memory then. */
    s->unloads = s->test_clock == NULL && config->backlog_memory != 0 &&
                 (config->backlog_memory != OPTION_WORD || config->max_memory != 0);
    return st;
}

enum status
store_setup_open(struct store_setup *s, const struct config *config, struct log *log,
                 const struct supervisor *supervisor, const struct clock *clock,
                 struct clock *test_clock, struct config_errors *errors)
{
    char text[ERRNO_TEXT_CAP];
    int error;

    *s = (struct store_setup){.log = log,
                              .supervisor = supervisor,
                              .test_clock = test_clock,
                              .now = test_clock != NULL ? test_clock : clock};
    clock_init_system(&s->clock);
    if (!config_has(config->journal))
        return ST_OK;
    if (test_clock == NULL && !clock_stands(clock))
        s->now = &s->clock; /* a test moves a clock that stands */
    error = disk_open(config->journal, true, &s->disk);
    if (error != 0) {
        s->disk = NULL;
        config_error(errors, "journal %s cannot be opened: %s%s", config->journal,
                     disk_error_text(error, text),
                     error == ENOENT ? ". Create the directory that it is in" : "");
        return ST_IO;
    }
    return open_journal(s, config, errors);
}

struct store_log *
store_setup_log(const struct store_setup *s)
{
    return s->journal == NULL ? NULL : journal_log(s->journal);
}

struct store_runs *
store_setup_runs(const struct store_setup *s)
{
    return s->journal == NULL ? NULL : journal_runs(s->journal);
}

static void
log_recovery(const struct store_setup *s, struct store *store,
             const struct journal_recovery *recovery, int64_t wall_ms)
{
    const int64_t ahead_ms = wall_ms - recovery->now_ms;
    struct store_metrics metrics = {.queues = 0};
    struct store_op op = {.now_ms = recovery->now_ms};

    (void)store_metrics(store, &op, &metrics); /* cannot fail in memory */
    log_event(
        s->log, LOG_INFO, "recovered", LOG_I("segments", recovery->segments),
        LOG_I("records", recovery->records), LOG_I("bytes", recovery->bytes),
        LOG_I("queues", metrics.queues),
        LOG_I("messages", metrics.all.ready + metrics.all.claimed + metrics.all.delayed),
        LOG_I("expired", metrics.counts[STORE_COUNT_EXPIRED]),
        LOG_I("down_ms",
              recovery->last_ms == 0 ? 0 : recovery->now_ms - recovery->last_ms));
    if (recovery->torn)
        log_event(s->log, LOG_WARN, "journal_torn", LOG_I("bytes", recovery->torn_bytes));
    if (recovery->last_ms != 0 && llabs(ahead_ms) >= CLOCK_SET_MS)
        log_event(s->log, LOG_WARN, "clock_was_set", LOG_I("ahead_ms", ahead_ms));
}

enum status
store_setup_recover(struct store_setup *s, const struct config *config,
                    struct store *store, struct config_errors *errors)
{
    struct journal_recovery recovery = {.accept_clock =
                                            config->accept_clock || s->test_clock != NULL,
                                        .down_given = config->journal_downtime >= 0,
                                        .down_ms = config->journal_downtime * 1000};
    char error[JOURNAL_ERROR_CAP];
    int64_t wall_ms;
    enum status st;

    if (s->journal == NULL)
        return ST_OK;
    (void)supervisor_notify(s->supervisor, MORE_TIME, "replaying the journal");
    recovery.stopwatch_ns = clock_stopwatch_ns();
    recovery.now_ms = wall_ms = clock_now_ms(s->now);
    st = journal_recover(s->journal, store, &recovery, error);
    if (st != ST_OK) {
        config_error(errors, "journal %s: %s", config->journal, error);
        return st == ST_BAD_VALUE ? ST_CONFLICT : st;
    }
    log_recovery(s, store, &recovery, wall_ms);
    st = journal_start(s->journal);
    if (st != ST_OK)
        config_error(errors, "cannot start a thread for the journal");
    return st;
}

void
store_setup_clock_moved(struct store_setup *s)
{
    if (s->journal != NULL)
        journal_age(s->journal, clock_now_ms(s->now));
}

static void
write_body_metrics(const struct journal_metrics *f, struct exposition *x)
{
    static const struct family loads = {
        "claimd_journal_load_seconds", FAMILY_HISTOGRAM, "seconds",
        "Time from the request of messages in a body file until they are in memory, in "
        "seconds."};

    metric_write(x, FAMILY_GAUGE, "claimd_journal_body_files", NULL,
                 "Number of body files.", f->body_files, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_journal_body_bytes", "bytes",
                 "Size of the body files, in bytes.", f->body_bytes, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_journal_runs_loaded", NULL,
                 "Number of reads from body files. Each reads at most 64 messages.",
                 f->loads, 0);
    exposition_family(x, &loads);
    exposition_buckets(x, NULL, 0, &f->loads_us, &disk_bounds_us, 6);
}

static void
write_journal_metrics(struct metrics_source *source, struct exposition *x)
{
    static const struct family syncs = {"claimd_journal_sync_seconds", FAMILY_HISTOGRAM,
                                        "seconds",
                                        "Duration of the disk syncs, in seconds."};
    struct store_setup *s = container_of(source, struct store_setup, source);
    struct journal_metrics f;

    journal_metrics(s->journal, &f);
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
        f.short_of_space, 0);
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
                 f.lsn > f.durable ? f.lsn - f.durable : 0, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_journal_sweeps", NULL,
                 "Number of completed checkpoints.", f.checkpoints, 0);
    metric_write(x, FAMILY_GAUGE, "claimd_journal_last_checkpoint_timestamp_seconds",
                 "seconds",
                 "Time of the last completed checkpoint, in seconds since 1970. "
                 "0 before the first one after the start.",
                 (uint64_t)f.checkpoint_ms, 3);
    exposition_family(x, &syncs);
    exposition_buckets(x, NULL, 0, &f.syncs, &disk_bounds_us, 6);
    if (s->unloads)
        write_body_metrics(&f, x);
}

void
store_setup_close(struct store_setup *s)
{
    journal_close(s->journal);
    disk_shut(s->disk);
    s->journal = NULL;
    s->disk = NULL;
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
    const struct store_setup *s = arg;

    log_event(s->log, LOG_WARN, "store", LOG_S("warning", text));
}

static enum status
open_redis(struct store_setup *s, const struct config *config, struct mem *mem,
           const struct store_sealer *sealer, struct store **out,
           struct config_errors *errors)
{
    const struct redis_config redis = {
        .mem = mem,
        .url = config->store,
        .password = s->password,
        .message_ttl_s = config->limits.default_message_ttl,
        .message_delay_s = config->limits.default_message_delay,
        .claim_ttl_s = config->limits.default_claim_ttl,
        .claim_grace_s = config->limits.default_claim_grace,
        .max_message_ttl_s = config->limits.max_message_ttl,
        .dead_letter_ttl_s = config_dead_letter_ttl(config),
        .key_window_ms = config->limits.idempotency_window * 1000,
        .feed_bytes = (uint64_t)config->subscription_backlog,
        .require_confirmation = config->require_confirmation,
        .shown_queues = (size_t)config->metrics_queues,
        .threads = (size_t)config->store_threads,
        .sealer = sealer,
        .test_clock = clock_stands(s->now),
        .warn = log_warning,
        .warn_arg = s,
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
store_setup_connect(struct store_setup *s, const struct config *config, struct mem *mem,
                    const struct store_sealer *sealer, struct store **out,
                    struct config_errors *errors)
{
    const struct executor_config executor = {.mem = mem,
                                             .threads = (size_t)config->store_threads,
                                             .line = (size_t)config->max_connections};
    const struct text_file password = option_file(config, "store_password_file");
    enum status st = text_file_word(&password, mem, &s->password, errors);

    if (st == ST_OK)
        st = open_redis(s, config, mem, sealer, out, errors);
    if (st != ST_OK)
        return st;
    s->redis = *out;
    st = executor_open(&executor, &s->executor);
    if (st == ST_UNAVAILABLE)
        config_error(errors, "cannot start the threads for the store");
    return st;
}

static void
write_redis_metrics(struct metrics_source *source, struct exposition *x)
{
    static const struct family responses = {
        "claimd_redis_answer_seconds", FAMILY_HISTOGRAM, "seconds",
        "Time from a request to the response of its script, in seconds."};
    static const struct family confirmations = {
        "claimd_redis_confirmation_seconds", FAMILY_HISTOGRAM, "seconds",
        "Time from the response of a script to the confirmation by the replicas, in "
        "seconds."};
    struct store_setup *s = container_of(source, struct store_setup, source);
    struct redis_metrics f;

    redis_measure(s->redis, &f);
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
        "Age of the oldest transfer to another queue among the shown queues, in seconds.",
        (uint64_t)f.outbox_age_ms, 3);
    exposition_family(x, &responses);
    exposition_buckets(x, NULL, 0, &f.responses, &redis_times, 6);
    exposition_family(x, &confirmations);
    exposition_buckets(x, NULL, 0, &f.confirmations, &redis_times, 6);
}

void
store_setup_add_metrics(struct store_setup *s, struct metrics *metrics)
{
    if (s->journal == NULL && s->redis == NULL)
        return;
    s->source.write = s->journal != NULL ? write_journal_metrics : write_redis_metrics;
    metrics_add(metrics, &s->source);
}

void
store_setup_disconnect(struct store_setup *s, struct mem *mem)
{
    executor_close(s->executor);
    text_file_drop_word(mem, s->password);
    s->executor = NULL;
    s->password = NULL;
}
