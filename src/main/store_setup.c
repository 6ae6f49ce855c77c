#include "main/store_setup.h"

#include "claimd/redis/redis.h"
#include "main/text_file.h"

#include <string.h>

bool
store_is_redis(const struct config *config)
{
    return strcmp(config->store, "memory") != 0;
}

static void
warn(void *arg, const char *text)
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
        .warn = warn,
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

static enum status
open_threads(struct store_setup *b, const struct config *config, struct mem *mem,
             struct config_errors *errors)
{
    const struct executor_config executor = {.mem = mem,
                                             .threads = (size_t)config->store_threads,
                                             .line = (size_t)config->max_connections};
    enum status st = executor_open(&executor, &b->executor);

    if (st == ST_UNAVAILABLE)
        config_error(errors, "cannot start the threads for the store");
    return st;
}

enum status
store_setup_open(struct store_setup *b, const struct config *config, struct mem *mem,
                 const struct store_sealer *sealer, const struct clock *clock,
                 const struct log *log, struct store **out, struct config_errors *errors)
{
    enum status st;

    *b = (struct store_setup){.log = log};
    st = password_read("store_password_file", config->store_password_file, mem,
                       &b->password, errors);
    if (st == ST_OK)
        st = open_store(b, config, mem, sealer, clock, out, errors);
    if (st != ST_OK)
        return st;
    b->store = *out;
    return open_threads(b, config, mem, errors);
}

static void
write_counts(const struct redis_figures *f, struct exposition *x)
{
    static const struct family requests = {"claimd_redis_requests", FAMILY_COUNTER, NULL,
                                           "Number of scripts that claimd ran on Redis."};
    static const struct family pipelines = {
        "claimd_redis_pipelines", FAMILY_COUNTER, NULL,
        "Number of pipelines sent. Concurrent requests share a pipeline."};
    static const struct family redirections = {"claimd_redis_redirections",
                                               FAMILY_COUNTER, NULL,
                                               "Number of requests redirected to another "
                                               "node because a slot moved or is moving."};
    static const struct family retries = {
        "claimd_redis_retries", FAMILY_COUNTER, NULL,
        "Number of requests retried because a node was unavailable."};
    static const struct family unconfirmed = {
        "claimd_redis_unconfirmed", FAMILY_COUNTER, NULL,
        "Number of changes without a response or without the confirmation of all "
        "replicas."};
    static const struct family connections = {"claimd_redis_connections_opened",
                                              FAMILY_COUNTER, NULL,
                                              "Number of connections opened to nodes."};
    static const struct family refreshes = {
        "claimd_redis_map_refreshes", FAMILY_COUNTER, NULL,
        "Number of requests for the slot map of the cluster."};

    exposition_single(x, &requests, f->requests);
    exposition_single(x, &pipelines, f->pipelines);
    exposition_single(x, &redirections, f->redirections);
    exposition_single(x, &retries, f->retries);
    exposition_single(x, &unconfirmed, f->unconfirmed);
    exposition_single(x, &connections, f->connections);
    exposition_single(x, &refreshes, f->refreshes);
}

static void
write_state(const struct redis_figures *f, struct exposition *x)
{
    static const struct family primaries = {"claimd_redis_primaries", FAMILY_GAUGE, NULL,
                                            "Number of nodes that own slots."};
    static const struct family replicas = {
        "claimd_redis_replicas_least", FAMILY_GAUGE, NULL,
        "Number of healthy replicas of the primary that has the fewest."};
    static const struct family nowhere = {
        "claimd_redis_slots_without_owner", FAMILY_GAUGE, NULL,
        "Number of slots without a node. Requests to their queues return 503."};
    static const struct family age = {"claimd_redis_map_age_seconds", FAMILY_GAUGE,
                                      "seconds", "Age of the slot map, in seconds."};
    static const struct family outbox = {
        "claimd_redis_outbox_age_seconds", FAMILY_GAUGE, "seconds",
        "Age of the oldest dead letter in transfer among the shown queues, in seconds."};

    exposition_single(x, &primaries, f->primaries);
    exposition_single(x, &replicas, f->replicas_least);
    exposition_single(x, &nowhere, f->slots_without_owner);
    exposition_family(x, &age);
    exposition_decimal(x, NULL, 0, (uint64_t)f->map_age_ms, 3);
    exposition_family(x, &outbox);
    exposition_decimal(x, NULL, 0, (uint64_t)f->outbox_age_ms, 3);
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
    write_counts(&f, x);
    write_state(&f, x);
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
