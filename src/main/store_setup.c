#include "main/store_setup.h"

#include "claimd/redis/redis.h"
#include "main/process_metrics.h"
#include "main/text_file.h"

#include <string.h>

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
