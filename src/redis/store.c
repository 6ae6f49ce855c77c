/* Opening and closing the store on Redis. */
#include "redis/call.h"
#include "redis/subscription_ops.h"
#include "redis/waiting.h"

enum { CONNECT_MS = 1000, REFRESH_MS = 50 };

struct ping {
    struct redis_store *store;
    enum status status;
};

static void
check_nodes(void *arg)
{
    struct ping *p = arg;
    struct reason why;

    p->status = preflight_ping(p->store, &why);
}

enum status
redis_ping(struct store *store, struct store_op *op)
{
    struct ping p = {redis_of(store), ST_UNAVAILABLE};

    (void)op;
    (void)fiber_detour(check_nodes, &p);
    return p.status;
}

/* Only wait queues need it, if no maintenance thread does. */
void
redis_housekeep(struct store *store, int64_t now_ms, int64_t *next_ms)
{
    struct redis_store *s = redis_of(store);

    *next_ms = s->maintenance == NULL ? waiting_housekeep(s, now_ms) : INT64_MAX;
}

int64_t
redis_next_ms(struct store *store)
{
    struct redis_store *s = redis_of(store);

    return s->maintenance == NULL ? waiting_next_ms(s) : INT64_MAX;
}

void
redis_measure(struct store *store, struct redis_figures *out)
{
    struct redis_store *s = redis_of(store);
    struct cluster *c = &s->cluster;
    struct cluster_figures *f = &c->figures;
    size_t replicas, without_owner;

    *out = (struct redis_figures){
        .requests = atomic_load(&f->requests),
        .pipelines = atomic_load(&c->wire.pipelines),
        .redirections = atomic_load(&f->redirections),
        .retries = atomic_load(&f->retries),
        .refreshes = atomic_load(&f->refreshes),
        .unconfirmed = atomic_load(&f->unconfirmed),
        .connections = atomic_load(&f->connections),
        .map_age_ms = (clock_stopwatch_ns() - atomic_load(&c->known_ns)) / 1000000};
    buckets_merge(&out->answers, &f->answers);
    buckets_merge(&out->confirmations, &f->confirmations);
    map_worst(&c->map, &replicas, &without_owner);
    out->replicas_least = replicas == SIZE_MAX ? 0 : replicas;
    out->slots_without_owner = without_owner;
    out->primaries = map_primaries(&c->map);
    out->outbox_age_ms = stats_scan_outbox_ms(s);
}

static void
close_parts(struct redis_store *s)
{
    waiting_close(s);
    deliveries_close(s);
    stats_scan_close(s);
    lock_fini(&s->lock);
    mem_free(s->config.mem, s);
}

void
redis_close(struct store *store)
{
    struct redis_store *s = redis_of(store);

    maintenance_end(s->maintenance);
    cluster_close(&s->cluster);
    close_parts(s);
}

static const struct store_state_vtable redis_state_ops = {
    .read = redis_read, .records_release = redis_records_release, .apply = redis_apply};

#define OPERATION(name) .name = redis_##name,

static const struct store_vtable ops = {STORE_OPERATIONS(OPERATION)};

static enum status
connect(struct redis_store *s, struct reason *why)
{
    const struct url *url = &s->url;
    struct cluster_config config = {
        .mem = s->config.mem,
        .link = {.library = &s->library,
                 .user = url->user,
                 .password =
                     s->config.password != NULL ? s->config.password : url->password,
                 .connect_ms = CONNECT_MS,
                 .answer_ms = url->confirm_ms + url->patience_ms + CONNECT_MS},
        .library = script_library(),
        .seed_count = url->host_count,
        .confirm_ms = url->confirm_ms,
        .patience_ms = url->patience_ms,
        .patient_most = s->config.threads < 4 ? 1 : (unsigned)s->config.threads / 4,
        .refresh_ms = REFRESH_MS,
        .warn = redis_warn,
        .warn_arg = s};
    enum status st;

    memcpy(config.seeds, url->hosts, sizeof(config.seeds));
    st = cluster_open(&s->cluster, &config, why);
    if (st != ST_OK)
        return st;
    s->cluster.config.replicas = url->replicas >= 0      ? (unsigned)url->replicas
                                 : s->cluster.map.single ? 0
                                                         : 1;
    st = preflight_check(s, why);
    if (st != ST_OK)
        cluster_close(&s->cluster);
    return st;
}

enum status
redis_check_url(const char *text, struct reason *why)
{
    struct url url;

    return url_read(text, &url, why);
}

enum status
redis_open(const struct redis_config *config, struct store **out, struct reason *why)
{
    struct redis_store *s = mem_calloc(config->mem, 1, sizeof(*s));
    enum status st;

    if (s == NULL)
        return ST_NO_MEMORY;
    s->store = (struct store){.vtable = &ops, .state = &redis_state_ops, .blocks = true};
    s->config = *config;
    lock_init(&s->lock);
    entropy_init_system(&s->entropy);
    st = waiting_open(s);
    if (st == ST_OK)
        st = deliveries_open(s);
    if (st == ST_OK)
        st = stats_scan_open(s);
    if (st == ST_OK)
        st = entropy_reserve(&s->entropy, sizeof(s->hash_key));
    if (st == ST_OK)
        entropy_take(&s->entropy, &s->hash_key, sizeof(s->hash_key));
    if (st == ST_OK)
        st = url_read(config->url, &s->url, why);
    if (st == ST_OK)
        st = hiredis_library_load(&s->library, why);
    if (st == ST_OK)
        st = connect(s, why);
    if (st == ST_OK && !config->test_clock) {
        st = maintenance_start(s);
        if (st != ST_OK)
            cluster_close(&s->cluster);
    }
    if (st != ST_OK) {
        close_parts(s);
        return st;
    }
    *out = &s->store;
    return ST_OK;
}
