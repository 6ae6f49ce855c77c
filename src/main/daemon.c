#include "claimd/base/invariant.h"
#include "claimd/base/log.h"
#include "claimd/base/mem.h"
#include "claimd/redis/redis.h"
#include "main/daemon_private.h"
#include "main/option.h"
#include "main/text_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LOG_END_MS: maximum time to write the remaining log lines at the end. */
enum { WORKERS_MOST = 16, LOG_END_MS = 1000 };

static size_t
count_workers(int64_t wanted)
{
    long cores = wanted > 0 ? wanted : sysconf(_SC_NPROCESSORS_ONLN);

    if (wanted <= 0 && cores > WORKERS_MOST)
        cores = WORKERS_MOST;
    return cores < 1 ? 1 : (size_t)cores;
}

/* Starts the log thread. Then no other thread waits for the reader of the log. */
static enum status
open_log(struct daemon *d, struct config_errors *errors)
{
    struct stat error;
    char stream[64] = "";
    enum status st;

    /* Lines for journald have priorities: sd-daemon(3), and JOURNAL_STREAM in
     * systemd.exec(5). */
    if (d->config.journal_stream != NULL && fstat(STDERR_FILENO, &error) == 0)
        (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)error.st_dev,
                       (uintmax_t)error.st_ino);
    d->log = (struct log){.fd = STDERR_FILENO,
                          .level = (enum log_level)d->config.log_level,
                          .format = (enum log_format)d->config.log_format,
                          .priorities = stream[0] != '\0' &&
                                        strcmp(stream, d->config.journal_stream) == 0,
                          .clock = d->clock};
    st = log_writer_start(&d->log);
    if (st == ST_UNAVAILABLE)
        config_error(errors, "cannot start a thread for the log");
    return st;
}

struct engine_limits
daemon_stored_limits(const struct config *config)
{
    return (struct engine_limits){.queues = (uint64_t)config->project_limits.queues,
                                  .messages = (uint64_t)config->project_limits.messages,
                                  .bytes = (uint64_t)config->project_limits.bytes};
}

/* arg: a struct seal. */
static enum status
seal_body(void *arg, const struct store_queue *queue, struct bytes body, char *to)
{
    const struct seal_scope scope = {queue->project, (uint32_t)queue->kind};

    return seal_close(arg, &scope, body, to);
}

/* Bytes in use from which on messages leave memory. */
static uint64_t
backlog_memory(const struct daemon *d)
{
    const int64_t bytes = d->config.backlog_memory;

    if (!d->store_setup.unloads)
        return UINT64_MAX;
    return bytes == OPTION_WORD ? mem_budget(d->mem) / 4 : (uint64_t)bytes;
}

static enum status
open_engine(struct daemon *d, struct config_errors *errors)
{
    const struct config *config = &d->config;
    const struct engine_config engine = {
        .mem = d->mem,
        .shards = (size_t)config->shards,
        .now_ms = clock_now_ms(d->store_setup.now),
        .message_ttl_s = config->limits.default_message_ttl,
        .message_delay_s = config->limits.default_message_delay,
        .claim_ttl_s = config->limits.default_claim_ttl,
        .claim_grace_s = config->limits.default_claim_grace,
        .max_message_ttl_s = config->limits.max_message_ttl,
        .dead_letter_ttl_s = config_dead_letter_ttl(config),
        .key_window_ms = config->limits.idempotency_window * 1000,
        .keys = (uint64_t)config->idempotency_keys,
        .round_up_ms = d->testapi == NULL && !clock_stands(d->store_setup.now),
        .shown_queues = (size_t)config->metrics_queues,
        .project_limits = daemon_stored_limits(config),
        .feed_bytes = (uint64_t)config->subscription_backlog,
        .require_confirmation = config->require_confirmation,
        .log = d->testapi == NULL
                   ? store_setup_log(&d->store_setup)
                   : testapi_log(d->testapi, store_setup_log(&d->store_setup)),
        .runs = store_setup_runs(&d->store_setup),
        .backlog_memory = backlog_memory(d),
        .sealer = &d->sealer,
    };
    enum status st;

    st = engine_open(&engine, &d->store);
    if (st == ST_OK)
        st = store_setup_recover(&d->store_setup, config, d->store, errors);
    if (st == ST_OK && d->testapi != NULL) /* the recovery has set store_log.largest */
        (void)testapi_log(d->testapi, store_setup_log(&d->store_setup));
    return st;
}

/* The clock of the store's times without the moves of tests. NULL: Redis uses the wall
 * clock. */
static const struct clock *
time_base(const struct daemon *d)
{
    if (d->store_setup.redis != NULL)
        return NULL;
    return d->testapi != NULL ? d->clock : d->store_setup.now;
}

/* Appends the body of a message of this queue, decrypted if it is sealed. */
static enum status
open_body(void *seal, const struct store_queue *queue, struct bytes body, struct buf *out)
{
    const struct seal_scope scope = {queue->project, (uint32_t)queue->kind};
    size_t len = seal_open_len(body);
    enum status st;

    if (!store_is_sealed(body)) {
        buf_bytes(out, body);
        return out->failed ? ST_NO_MEMORY : ST_OK;
    }
    if (!buf_reserve(out, len))
        return ST_NO_MEMORY;
    st = seal_open(seal, &scope, body, out->data + out->len);
    if (st == ST_OK)
        out->len += len;
    return st;
}

static enum status
watch_project(void *scheduler, struct bytes project)
{
    return scheduler_watch(scheduler, project);
}

static enum status
reload_schedules(void *scheduler)
{
    return scheduler_reload(scheduler);
}

/* The directory of tzdata. */
static const char *
zone_directory(void)
{
    const char *named = getenv("TZDIR");

    return named != NULL && named[0] == '/' ? named : "/usr/share/zoneinfo";
}

static enum status
open_scheduler(struct daemon *d)
{
    struct scheduler_config config = {.mem = d->mem,
                                      .store = d->store,
                                      .clock = d->store_setup.now,
                                      .real = d->clock,
                                      .time_base = time_base(d),
                                      .log = &d->log,
                                      .testapi = d->testapi,
                                      .sealer = &d->sealer,
                                      .open_body = open_body,
                                      .open_ctx = d->resources.seal,
                                      .closed = &d->condition.closed};
    enum status st = zones_open(d->mem, zone_directory(), &d->zones);

    config.zones = d->zones;
    if (st == ST_OK)
        st = scheduler_open(&config, &d->scheduler);
    d->watch = (struct api_scheduler){watch_project, reload_schedules, d->scheduler};
    return st;
}

static enum status
open_api(struct daemon *d)
{
    const struct api_config api = {.limits = d->config.limits,
                                   .store = d->store,
                                   .mem = d->mem,
                                   .auth = d->resources.auth,
                                   .access = d->resources.access,
                                   .signer = d->resources.signer,
                                   .seal = d->resources.seal,
                                   .real = d->clock,
                                   .time_base = time_base(d),
                                   .condition = &d->condition,
                                   .metrics = &d->metrics,
                                   .testapi = d->testapi,
                                   .sampler = d->sampler,
                                   .zones = d->zones,
                                   .scheduler = &d->watch,
                                   .project_limits = d->config.project_limits,
                                   .allowed_hosts =
                                       config_has(d->config.allowed_hosts)
                                           ? bytes_str(d->config.allowed_hosts)
                                           : BYTES_NONE};

    return api_new(&api, &d->api);
}

/* Replaces the contents of the store by the file of the option seed. */
static enum status
load_seed(struct daemon *d, struct config_errors *errors)
{
    const struct text_file file = option_file(&d->config, "seed");
    struct bytes text;
    struct reason why;
    enum status st;

    st = text_file_read(&file, d->mem, &text, errors);
    if (st != ST_OK || file.path == NULL)
        return st;
    st = api_seed(d->api, text, clock_now_ms(d->store_setup.now), &why);
    mem_free(d->mem, (void *)text.data);
    if (st != ST_OK)
        config_error(errors, "seed %s: %s", d->config.seed, why.text);
    return st == ST_BAD_BODY ? ST_BAD_VALUE : st;
}

/* The text, or NULL if it is this word. */
static const char *
null_if(const char *text, const char *word)
{
    return strcmp(text, word) == 0 ? NULL : text;
}

static enum status
open_notify(struct daemon *d)
{
    const struct config *config = &d->config;
    struct notify_config notify = {
        .mem = d->mem,
        .store = d->store,
        .store_log = store_setup_log(&d->store_setup),
        .clock = d->store_setup.now,
        .real = d->clock,
        .time_base = time_base(d),
        .log = &d->log,
        .signer = d->resources.signer,
        .webhooks = d->resources.webhooks,
        .open_body = open_body,
        .open_ctx = d->resources.seal,
        .mail = {.url = null_if(config->smtp_server, "none"),
                 .user = null_if(config->smtp_user, "none"),
                 .password = d->resources.smtp_password,
                 .from = config->smtp_from,
                 .confirmation_url = null_if(config->external_confirmation_url, "none")},
        .workers = (size_t)config->max_notifier_workers,
        .timeout_ms = config->notify_timeout_ms,
        .connect_ms = config->notify_timeout_ms / 2,
        .ca = null_if(config->notify_ca, "system"),
        .agent = "claimd/" CLAIMD_VERSION,
        .public_url = null_if(config->public_url, "none"),
        .subscription_ttl_s = config->limits.default_subscription_ttl,
    };
    struct reason why;
    enum status st = guard_read(bytes_str(config->notify_allow), &notify.guard, &why);

    ENSURE(st == ST_OK); /* config_check() has read it before */
    return notify_open(&notify, &d->notify);
}

uint64_t
daemon_logged_requests(const struct config *config)
{
    return config->access_log ? (uint64_t)config->access_log_sample : 0;
}

static enum status
open_server(struct daemon *d, struct config_errors *errors)
{
    const struct config *config = &d->config;
    const struct server_config server = {
        .api = d->api,
        .store = d->store,
        .store_log = store_setup_log(&d->store_setup),
        .unloads = d->store_setup.unloads,
        .mem = d->mem,
        .clock = d->store_setup.now,
        .log = &d->log,
        .listen = &d->resources.listen,
        .proxies = &d->resources.proxies,
        .socket_mode = (unsigned)config->socket_mode,
        .socket_group = d->resources.socket_group,
        .tls = d->resources.tls,
        .open_to_all = config->auth == AUTH_BY_NONE,
        .workers = count_workers(config->workers),
        .max_connections = (size_t)config->max_connections,
        .max_header_bytes = (size_t)config->max_header_size,
        .max_headers = (size_t)config->max_headers,
        .max_waiters = (size_t)config->max_waiters,
        .executor = d->store_setup.executor,
        .idle_seconds = config->idle_seconds,
        .request_seconds = config->request_seconds,
        .access_log_one_in = daemon_logged_requests(config),
    };
    struct reason why;
    enum status st = server_open(&server, &d->server, &why);

    if (st != ST_OK)
        config_error(errors, "%s", why.text);
    return st;
}

static void
print_without_effect(void *ctx, const char *option, const char *where, const char *why)
{
    (void)fprintf(ctx, "claimd: warning: %s (%s) has no effect: %s\n", option, where,
                  why);
}

enum status
daemon_check(const struct config *config, struct config_errors *errors)
{
    struct mem *mem = mem_new(0);
    struct resources resources;
    enum status st;

    if (mem == NULL)
        return ST_NO_MEMORY;
    st = resources_open(&resources, config, mem, NULL, errors);
    config_check_files(config, &resources.listen, mem, errors);
    if (errors->count == 0 && errors->to != NULL)
        config_check_effect(config, &resources.listen, print_without_effect, errors->to);
    resources_close(&resources);
    mem_destroy(mem);
    return st;
}

/* Writes nothing without keys, unless a key was missing. */
static void
write_seal_metrics(struct metrics_source *source, struct exposition *x)
{
    static const struct family failures = {
        "claimd_decryption_failures", FAMILY_COUNTER, NULL,
        "Number of failed body decryptions, by reason."};
    const struct label no_key = {"reason", BYTES_LIT("no_key")},
                       damaged = {"reason", BYTES_LIT("damaged")};
    struct seal_metrics f;

    seal_measure(container_of(source, struct daemon, seal_metrics)->resources.seal, &f);
    if (f.keys == 0 && f.no_key + f.damaged == 0)
        return;
    metric_write(x, FAMILY_GAUGE, "claimd_encryption_keys", NULL,
                 "Number of encryption keys loaded.", f.keys, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_bodies_encrypted", NULL,
                 "Number of bodies encrypted.", f.sealed, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_bodies_decrypted", NULL,
                 "Number of body decryptions. Each decryption of the same body counts.",
                 f.opened, 0);
    exposition_family(x, &failures);
    exposition_sample(x, &no_key, 1, f.no_key);
    exposition_sample(x, &damaged, 1, f.damaged);
}

/* The test API has moved the clock of the store. */
static void
notify_clock_moved(void *ctx)
{
    struct daemon *d = ctx;

    store_setup_clock_moved(&d->store_setup);
    server_wake(d->server);
}

static void
look_for_alerts(void *arg, int64_t now_ms)
{
    const struct daemon *d = arg;

    api_look(d->api, now_ms);
}

static enum status
open_parts(struct daemon *d, struct config_errors *errors)
{
    const struct config *config = &d->config;
    struct sampler_config sampler;
    enum status st = resources_open(&d->resources, config, d->mem, &d->log, errors);

    if (st == ST_OK)
        st = open_log(d, errors);
    if (st == ST_OK && config->ci)
        st = testapi_new(d->mem, &d->testapi);
    if (st == ST_OK)
        st = store_setup_open(&d->store_setup, config, &d->log, &d->supervisor, d->clock,
                              d->testapi == NULL ? NULL : testapi_clock(d->testapi),
                              errors);
    if (st == ST_OK)
        d->sealer = (struct store_sealer){SEAL_OVERHEAD, d->resources.seal, seal_body};
    if (st == ST_OK && store_is_redis(config))
        st = store_setup_connect(&d->store_setup, config, d->mem, &d->sealer, &d->store,
                                 errors);
    else if (st == ST_OK)
        st = open_engine(d, errors);
    sampler = (struct sampler_config){.mem = d->mem,
                                      .store = d->store,
                                      .clock = d->store_setup.now,
                                      .log = &d->log,
                                      .queues = (size_t)config->metrics_queues};
    if (st == ST_OK)
        st = sampler_open(&sampler, &d->sampler);
    if (st == ST_OK)
        st = open_scheduler(d);
    if (st == ST_OK)
        st = open_api(d);
    if (st == ST_OK)
        st = load_seed(d, errors);
    if (st == ST_OK)
        st = open_notify(d);
    if (st == ST_OK)
        st = open_server(d, errors);
    if (st == ST_OK)
        st = sampler_start(d->sampler);
    if (st != ST_OK)
        return st;
    d->metrics.shown_queues = (size_t)config->metrics_queues;
    server_measure(d->server, &d->metrics);
    store_setup_add_metrics(&d->store_setup, &d->metrics);
    notify_measure(d->notify, &d->metrics);
    scheduler_measure(d->scheduler, &d->metrics);
    metrics_add(&d->metrics, &d->process.source);
    d->seal_metrics.write = write_seal_metrics;
    metrics_add(&d->metrics, &d->seal_metrics);
    sampler_each_minute(d->sampler, look_for_alerts, d);
    if (d->testapi != NULL)
        testapi_attach(d->testapi, d->store, d->sampler, notify_clock_moved, d);
    return scheduler_start(d->scheduler);
}

/* Logs each listener with its kind: http, tls, metrics or unix. */
static void
log_listeners(struct daemon *d)
{
    for (size_t i = 0; i < server_listener_count(d->server); i++) {
        const enum listen_kind kind = server_listen_kind(d->server, i);
        const char *address = server_address(d->server, i),
                   *name = listen_kind_name(kind);

        if (kind == LISTEN_API)
            name = strncmp(address, "unix", 4) == 0 ? "unix" : "http";
        if (d->config.ci && kind != LISTEN_METRICS)
            log_event(&d->log, LOG_INFO, "listening", LOG_S("address", address),
                      LOG_S("kind", name), LOG_S("test_api", "yes"));
        else
            log_event(&d->log, LOG_INFO, "listening", LOG_S("address", address),
                      LOG_S("kind", name));
    }
}

static void
log_without_effect(void *ctx, const char *option, const char *where, const char *why)
{
    const struct daemon *d = ctx;

    log_event(&d->log, LOG_WARN, "option_without_effect", LOG_S("option", option),
              LOG_S("set_by", where), LOG_S("reason", why));
}

/* Logs the life of a message that is posted without a TTL, in the largest unit that has
 * no remainder. */
static void
log_message_ttl(struct daemon *d)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
    const int64_t ttl_s = d->config.limits.default_message_ttl;
    const struct option *option = option_find(bytes_str("default_message_ttl"));
    char text[64];
    size_t i = 0;

    while (ttl_s % units[i].seconds != 0)
        i++;
    (void)snprintf(text, sizeof(text), "messages without a ttl live %" PRId64 " %s%s",
                   ttl_s / units[i].seconds, units[i].name,
                   ttl_s == units[i].seconds ? "" : "s");
    log_event(&d->log, LOG_INFO, "message_ttl", LOG_I("seconds", ttl_s),
              LOG_S("meaning", text), LOG_S("option", option->name),
              LOG_S("from", config_where(&d->config, option).text));
}

static void
log_started(struct daemon *d)
{
    const struct config *config = &d->config;
    struct bytes words = bytes_str(AUTH_WORDS), auth = BYTES_NONE;

    log_event(&d->log, LOG_INFO, "started", LOG_S("version", CLAIMD_VERSION),
              LOG_I("workers", count_workers(config->workers)),
              LOG_I("max_memory", mem_budget(d->mem)));
    if (!server_library_is_known())
        log_event(&d->log, LOG_WARN, "unknown_library",
                  LOG_S("libmicrohttpd", server_library_version()),
                  LOG_S("warning", "claimd was tested with 0.9.75 and 1.0. Run its tests "
                                   "with this version before you use it"));
    log_listeners(d);
    if (d->store_setup.redis != NULL)
        log_event(&d->log, LOG_INFO, "store", LOG_S("kind", "redis"),
                  LOG_S("server", redis_servers(d->store_setup.redis)));
    else
        log_event(&d->log, LOG_INFO, "store", LOG_S("kind", "memory"));
    if (config_has(config->journal))
        log_event(&d->log, LOG_INFO, "journal", LOG_S("directory", config->journal));
    else if (!store_is_redis(config)) /* no warning in tests */
        log_event(&d->log, config->ci ? LOG_INFO : LOG_WARN, "no_journal",
                  LOG_S("warning", "a restart loses all messages. To keep them, set the "
                                   "option journal to a directory"));
    log_message_ttl(d);
    for (int i = 0; i <= config->auth; i++)
        auth = bytes_cut(&words, '|');
    log_event(&d->log, LOG_INFO, "auth", LOG_B("kind", auth));
    config_check_effect(config, &d->resources.listen, log_without_effect, d);
    resources_log(&d->resources, &d->log, clock_wall_ms(d->clock));
    /* With ci, the addresses are local ones (listen_policy.c). */
    if (config->identity_stub)
        log_event(&d->log, config->ci ? LOG_INFO : LOG_WARN, "identity_stub",
                  LOG_S("warning", "for development only. It protects nothing"));
    if (config->ci)
        log_event(&d->log, config->ci_anywhere ? LOG_WARN : LOG_INFO, "ci",
                  LOG_S("warning", "for tests only. Every client that reaches an address "
                                   "can move the clock and delete everything"));
}

enum status
daemon_open(const struct config *config, const struct clock *clock, struct daemon **out,
            struct config_errors *errors)
{
    struct daemon *d = calloc(1, sizeof(*d));
    size_t before = errors->count;
    enum status st = ST_NO_MEMORY;

    if (d == NULL)
        goto fail;
    d->clock = clock;
    d->config = *config;
    supervisor_init(&d->supervisor, config->notify_socket);
    d->drain_ms = config->drain_seconds * 1000;
    d->ready_fd = (int)config->ready_fd;
    d->mem = mem_new(config->max_memory == OPTION_WORD ? (size_t)(memory_limit("") / 2)
                                                       : (size_t)config->max_memory);
    process_metrics_init(&d->process, d->mem, &d->log, clock);
    if (d->mem == NULL)
        goto fail;
    st = open_parts(d, errors);
    if (st != ST_OK)
        goto fail;
    log_started(d);
    if (!watchdog_init(&d->watchdog, config->watchdog_usec, config->watchdog_pid,
                       getpid()))
        log_event(&d->log, LOG_WARN, "watchdog_not_understood",
                  LOG_S("usec", config->watchdog_usec));
    *out = d;
    return ST_OK;

fail:
    if (errors->count == before)
        config_error(errors, "cannot start: %s", status_text(st));
    if (d != NULL)
        (void)supervisor_notify(&d->supervisor, NULL, "%s", errors->last);
    daemon_close(d);
    return st;
}

/* The scheme of a listener in a URL, such as "http://". */
static const char *
daemon_scheme(const struct daemon *d, size_t index)
{
    return listen_scheme(server_listen_kind(d->server, index),
                         server_address(d->server, index));
}

bool
daemon_notify_state(const struct daemon *d, const char *assignments)
{
    char places[LISTEN_MAX * CONFIG_TEXT_CAP];
    size_t len = 0;

    if (atomic_load(&d->condition.closed))
        return supervisor_notify(&d->supervisor, assignments,
                                 "maintenance: posts are refused");
    for (size_t i = 0; i < server_listener_count(d->server); i++)
        len += (size_t)snprintf(places + len, sizeof(places) - len, "%s%s%s",
                                i == 0 ? "" : ", ", daemon_scheme(d, i),
                                server_address(d->server, i));
    return supervisor_notify(&d->supervisor, assignments, "listening on %s", places);
}

void
daemon_announce(const struct daemon *d)
{
    char lines[LISTEN_MAX * CONFIG_TEXT_CAP];
    size_t len = 0;

    if (!daemon_notify_state(d, "READY=1"))
        log_event(&d->log, LOG_WARN, "notify_failed", LOG_S("message", "READY=1"));
    for (size_t i = 0; i < server_listener_count(d->server); i++)
        len += (size_t)snprintf(lines + len, sizeof(lines) - len,
                                "claimd listening on %s%s\n", daemon_scheme(d, i),
                                server_address(d->server, i));
    /* If standard output is closed, claimd serves all the same. */
    (void)fputs(lines, stdout);
    (void)fflush(stdout);
    if (d->ready_fd < 0)
        return;
    if (write(d->ready_fd, lines, strlen(lines)) < 0)
        log_event(&d->log, LOG_WARN, "ready_fd_failed", LOG_I("fd", d->ready_fd));
    if (d->ready_fd > STDERR_FILENO)
        (void)close(d->ready_fd);
}

size_t
daemon_serve(struct daemon *d)
{
    struct store_totals totals;
    enum status st;
    int64_t drain_ms;
    size_t cut;

    server_run(d->server);
    atomic_store(&d->condition.draining, true);
    drain_ms = atomic_load(&d->drain_ms);
    (void)supervisor_notify(&d->supervisor, "STOPPING=1",
                            "draining, for %" PRId64 " s at most", drain_ms / 1000);
    log_event(&d->log, LOG_INFO, "draining", LOG_I("at_most_ms", drain_ms));
    cut = server_drain(d->server, drain_ms);
    if (store_setup_log(&d->store_setup) == NULL && d->testapi == NULL &&
        d->store_setup.redis == NULL) {
        /* The messages in memory end with the process. */
        do
            st = store_totals(d->store, STORE_AT(clock_now_ms(d->store_setup.now)),
                              &totals);
        while (st == ST_AGAIN); /* slices of expiry */
        if (st == ST_OK && totals.messages > 0)
            log_event(&d->log, d->config.ci ? LOG_INFO : LOG_WARN, "messages_lost",
                      LOG_I("messages", totals.messages),
                      LOG_I("claimed", totals.claimed), LOG_I("queues", totals.queues));
    }
    log_event(&d->log, cut == 0 ? LOG_INFO : LOG_WARN, "stopped",
              LOG_I("requests_cut_off", cut));
    return cut;
}

void
daemon_stop(struct daemon *d)
{
    server_stop(d->server);
}

void
daemon_clock_moved(struct daemon *d)
{
    int64_t next_ms;

    do
        store_housekeep(d->store, clock_now_ms(d->store_setup.now), &next_ms);
    while (next_ms <= clock_now_ms(d->store_setup.now));
    server_wake(d->server);
}

void
daemon_close(struct daemon *d)
{
    if (d == NULL)
        return;
    sampler_close(d->sampler);
    /* Its threads use the server. No request is left. */
    store_setup_disconnect(&d->store_setup, d->mem);
    server_close(d->server);
    api_free(d->api);
    scheduler_close(d->scheduler);
    notify_close(d->notify);
    resources_close(&d->resources);
    store_setup_close(&d->store_setup);
    store_close(d->store);
    server_free(d->server);
    testapi_free(d->testapi);
    zones_close(d->zones);
    mem_destroy(d->mem);
    (void)log_writer_end(&d->log, LOG_END_MS);
    free(d);
}
