/*
 * store: opens and closes the store on Redis, and checks the Redis that it uses.
 *
 * The preflight checks whether this Redis, or this cluster, could lose confirmed data. It
 * runs when the store is opened, because data would be at risk afterwards
 * (docs/scale-out.md, "Checks at the start"). It knows two kinds of defects, and gives
 * advice for each:
 *
 *     fault  claimd cannot work with this Redis, or Redis evicts keys (check_info()).
 *            It always refuses the start
 *     risk   a failure of a node could lose data (report_risk()). It refuses the start,
 *            too, unless the URL has `unsafe`, or there is one Redis without a cluster,
 *            which survives little anyway. Then claimd only logs a warning
 */
#include "claimd/base/invariant.h"
#include "claimd/base/plural.h"
#include "redis/claim_ends.h"
#include "redis/delivery_ops.h"
#include "redis/waiting.h"

#include <stdio.h>

enum { CONNECT_MS = 1000, REFRESH_MS = 50 };

/* ---------------------------------------------------------------------- preflight */

enum { VERSION_LEAST = 7 };

static const int64_t MAP_AGE_NS = 1000000000; /* a ping refreshes an older map */

struct preflight {
    struct redis_store *store;
    struct cluster_client *client;
    struct link_address node; /* the node under check */
    bool lenient;             /* risks are only warnings */
    struct reason *why;
};

/* NULL is fine. */
static void
response_free(const struct preflight *p, redisReply *response)
{
    if (response != NULL)
        p->store->library.free_reply(response);
}

/* Sends a command to the node. Blanks separate its words. As cluster_command(). */
static enum status
node_command(const struct preflight *p, const char *command, redisReply **out,
             struct reason *why)
{
    struct bytes rest = bytes_str(command), words[3];
    size_t count = 0;

    while (bytes_present(rest)) {
        ENSURE(count < sizeof(words) / sizeof(words[0]));
        words[count++] = bytes_cut(&rest, ' ');
    }
    *out = NULL;
    return cluster_command(p->client, map_enter_node(&p->store->cluster.map, &p->node),
                           words, count, out, why);
}

static enum status
node_ping(const struct preflight *p, struct reason *why)
{
    redisReply *pong;
    enum status st = node_command(p, "PING", &pong, why);

    response_free(p, pong);
    return st;
}

/* The node could lose data. Warns and returns ST_OK if the operator accepts risks. */
static enum status
report_risk(const struct preflight *p, const char *what, const char *advice)
{
    const struct redis_config *config = &p->store->config;
    char text[REASON_CAP + LINK_NAME_CAP], name[LINK_NAME_CAP];

    link_name(&p->node, name);
    (void)snprintf(text, sizeof(text), "%s: %s. %s", name, what, advice);
    if (!p->lenient)
        return reason_give(p->why, ST_UNAVAILABLE,
                           "%s. To start anyway, add unsafe=1 to the URL", text);
    if (config->warn != NULL)
        config->warn(config->warn_arg, text);
    return ST_OK;
}

/* ---------------------------------------------------------------------- one node */

/* The text after "NAME:" in the response to INFO; or absent. */
static struct bytes
info_field(const redisReply *info, const char *name)
{
    const size_t len = strlen(name);
    struct bytes rest = bytes_of(info->str, (size_t)info->len);

    while (bytes_present(rest)) {
        struct bytes line = bytes_trim(bytes_cut(&rest, '\n'));

        if (line.len > len && memcmp(line.data, name, len) == 0 && line.data[len] == ':')
            return bytes_of(line.data + len + 1, line.len - len - 1);
    }
    return BYTES_NONE;
}

static int64_t
info_number(const redisReply *info, const char *name)
{
    struct bytes text = info_field(info, name);
    int64_t number = 0;

    if (bytes_present(text))
        (void)bytes_to_i64(bytes_cut(&text, '.'), &number);
    return number;
}

/* Adds the name and version of the node to those that the log shows. Valkey gives the
 * version of the Redis that it is compatible with as redis_version. */
static void
note_server(const struct preflight *p, const redisReply *info)
{
    const struct bytes valkey = info_field(info, "valkey_version");
    const struct bytes version =
        bytes_present(valkey) ? valkey : info_field(info, "redis_version");
    char *servers = p->store->servers, name[32];
    const size_t len = strlen(servers);

    (void)snprintf(name, sizeof(name), "%s %.*s",
                   bytes_present(valkey) ? "Valkey" : "Redis", (int)version.len,
                   version.data);
    if (strstr(servers, name) == NULL)
        (void)snprintf(servers + len, sizeof(p->store->servers) - len, "%s%s",
                       len == 0 ? "" : ", ", name);
}

static enum status
check_info(const struct preflight *p, const redisReply *info)
{
    const struct url *url = &p->store->url;

    if (info_number(info, "redis_version") < VERSION_LEAST)
        return reason_give(p->why, ST_UNAVAILABLE,
                           "%s:%u runs a Redis older than 7.0. claimd needs 7.0 or later",
                           p->node.host, p->node.port);
    if (p->store->cluster.map.single &&
        bytes_equal_str(info_field(info, "role"), "slave"))
        return reason_give(p->why, ST_UNAVAILABLE,
                           "%s:%u is a replica. Name its primary in the URL",
                           p->node.host, p->node.port);
    if (p->store->cluster.map.single &&
        info_number(info, "connected_slaves") < url->replicas)
        return reason_give(
            p->why, ST_UNAVAILABLE,
            "%s:%u has fewer replicas than the URL says, so Redis would confirm no "
            "change. Add replicas, or lower replicas in the URL",
            p->node.host, p->node.port);
    if (info_number(info, "maxmemory") != 0 &&
        !bytes_equal_str(info_field(info, "maxmemory_policy"), "noeviction"))
        return reason_give(p->why, ST_UNAVAILABLE,
                           "%s:%u evicts keys when its memory is full, which would lose "
                           "messages. Set maxmemory-policy noeviction there",
                           p->node.host, p->node.port);
    return ST_OK;
}

/* The value of a parameter, by CONFIG GET; absent: the user may not read it. The caller
 * frees *response. */
static struct bytes
ask_parameter(const struct preflight *p, const char *command, redisReply **response)
{
    struct reason unused;

    (void)node_command(p, command, response, &unused);
    return reply_text(reply_word(*response, 1));
}

static enum status
check_sync(const struct preflight *p)
{
    redisReply *response;
    struct bytes value = ask_parameter(p, "CONFIG GET appendfsync", &response);
    enum status st = ST_OK;

    if (!bytes_present(value))
        st = report_risk(
            p, "CONFIG GET does not return appendfsync, so claimd cannot check it",
            "Make sure that appendfsync is always, or add restarts=held to the URL");
    else if (!bytes_equal_str(value, "always"))
        st = report_risk(
            p,
            "appendfsync is not always. After a power loss, the node and its "
            "replicas may lose confirmed changes",
            "Set appendfsync always, or delay restarts until a replica has taken "
            "over and add restarts=held to the URL");
    response_free(p, response);
    return st;
}

static enum status
check_validity_factor(const struct preflight *p)
{
    redisReply *response;
    struct bytes value =
        ask_parameter(p, "CONFIG GET cluster-replica-validity-factor", &response);
    enum status st = ST_OK;

    if (bytes_present(value) && bytes_equal_str(value, "0"))
        st = report_risk(p,
                         "cluster-replica-validity-factor is 0, so a replica that was "
                         "disconnected for long could take over",
                         "Set it to 1 or more");
    response_free(p, response);
    return st;
}

static enum status
check_node(const struct preflight *p)
{
    redisReply *info;
    enum status st = node_command(p, "INFO", &info, p->why);

    if (st == ST_OK && info->type != REDIS_REPLY_STRING)
        st = reason_give(p->why, ST_UNAVAILABLE,
                         "%s:%u returned an unexpected response to INFO", p->node.host,
                         p->node.port);
    if (st == ST_OK)
        st = check_info(p, info);
    if (st == ST_OK)
        note_server(p, info);
    if (st == ST_OK && info_number(info, "aof_enabled") == 0)
        st = report_risk(p, "Redis has no append-only file, so a restart loses all data",
                         "Set appendonly yes and appendfsync always");
    else if (st == ST_OK && !p->store->url.restarts_held)
        st = check_sync(p);
    if (st == ST_OK && !p->store->cluster.map.single)
        st = check_validity_factor(p);
    response_free(p, info);
    return st;
}

/* ---------------------------------------------------------------------- shards */

/* The value of a name in a list of names and values; NULL: there is none. */
static const redisReply *
value_of(const redisReply *list, const char *word)
{
    if (list->type != REDIS_REPLY_ARRAY)
        return NULL;
    for (size_t i = 0; i + 1 < list->elements; i += 2)
        if (list->element[i]->type == REDIS_REPLY_STRING &&
            strcmp(list->element[i]->str, word) == 0)
            return list->element[i + 1];
    return NULL;
}

/* Reads the address of a node. An empty host is that of the node under check. False:
 * there is no address. */
static bool
read_node(const struct preflight *p, const redisReply *node, struct link_address *out)
{
    const redisReply *port = value_of(node, "port");

    return port != NULL && port->type == REDIS_REPLY_INTEGER &&
           link_address_make(reply_text(value_of(node, "endpoint")), port->integer,
                             &p->node, out);
}

/* Checks the replicas that respond, because they can become primaries. */
static enum status
check_replicas(const struct preflight *p, const redisReply *nodes)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < nodes->elements; i++) {
        const redisReply *node = nodes->element[i];
        struct preflight other = *p;
        struct reason unused;

        if (bytes_equal_str(reply_text(value_of(node, "role")), "replica") &&
            !bytes_equal_str(reply_text(value_of(node, "health")), "fail") &&
            read_node(p, node, &other.node) && node_ping(&other, &unused) == ST_OK)
            st = check_node(&other);
    }
    return st;
}

static enum status
check_shard(const struct preflight *p, const redisReply *shard)
{
    const redisReply *slots = value_of(shard, "slots"), *nodes = value_of(shard, "nodes");
    const size_t wanted = p->store->cluster.config.replicas;
    char what[128];
    size_t count = 0; /* of replicas, also failed ones */

    if (slots == NULL || nodes == NULL || slots->type != REDIS_REPLY_ARRAY ||
        nodes->type != REDIS_REPLY_ARRAY)
        return reason_give(p->why, ST_UNAVAILABLE,
                           "%s:%u returned an unexpected response to CLUSTER SHARDS",
                           p->node.host, p->node.port);
    if (slots->elements == 0)
        return ST_OK;
    for (size_t i = 0; i < nodes->elements; i++)
        count +=
            bytes_equal_str(reply_text(value_of(nodes->element[i], "role")), "replica");
    if (count == wanted)
        return check_replicas(p, nodes);
    (void)snprintf(what, sizeof(what),
                   "the cluster has a primary with %zu replica%s, but the URL says %zu",
                   count, plural_s(count), wanted);
    return report_risk(
        p, what,
        count < wanted
            ? "Redis would confirm no change there. Add a replica"
            : "A replica that did not confirm a change could take over. Give all "
              "primaries the same number of replicas, and set replicas in the URL to it");
}

static enum status
check_shards(struct preflight *p)
{
    redisReply *shards;
    enum status st = node_command(p, "CLUSTER SHARDS", &shards, p->why);

    for (size_t i = 0; st == ST_OK && i < shards->elements; i++)
        st = check_shard(p, shards->element[i]);
    response_free(p, shards);
    if (st == ST_OK && p->store->cluster.config.replicas == 0)
        st = report_risk(
            p, "the cluster is without replicas. If a node fails, its data is lost",
            "Add replicas, and set replicas in the URL");
    return st;
}

/* ---------------------------------------------------------------------- all nodes */

/* Runs a check on each node that has slots. */
static enum status
check_primaries(struct preflight *p, enum status (*check)(const struct preflight *p))
{
    struct map *map = &p->store->cluster.map;
    enum status st = ST_OK;
    uint16_t node;

    for (uint16_t at = 0;
         st == ST_OK && (node = map_next_owner(map, &at)) != MAP_NOWHERE;) {
        p->node = map_address(map, node);
        st = check(p);
    }
    return st;
}

/* Loads the library of functions into the node now, before its first request. */
static enum status
check_library(const struct preflight *p)
{
    struct reason what;
    enum status st;

    reason_init(&what);
    st = cluster_load_library(p->client, map_enter_node(&p->store->cluster.map, &p->node),
                              &what);
    if (st == ST_OK)
        return ST_OK;
    return reason_give(p->why, st, "%s:%u refused the functions of claimd: %.200s",
                       p->node.host, p->node.port, what.text);
}

/* Checks that the user may run scripts on the keys of claimd. */
static enum status
check_rights(struct redis_store *s, struct reason *why)
{
    static const struct store_queue none = {.project = BYTES_LIT(""),
                                            .name = BYTES_LIT("")};
    const struct store_op op = {.now_ms = 0};
    struct call c = call_begin(s, &op, &none);
    enum status st;

    st = call_run(&c, SCRIPT_queue_get, CALL_READ);
    if (st == ST_OK || st == ST_NOT_FOUND)
        st = ST_OK;
    else
        st = reason_give(why, st, "Redis refused to run a script of claimd: %.200s",
                         c.why.text);
    call_end(&c);
    return st;
}

/* Runs all checks of the preflight. ST_UNAVAILABLE with a reason; ST_NO_MEMORY. */
static enum status
preflight_check(struct redis_store *s, struct reason *why)
{
    struct preflight p = {.store = s,
                          .client = cluster_client_take(&s->cluster),
                          .lenient = s->url.unsafe || s->cluster.map.single,
                          .why = why};
    enum status st;

    if (p.client == NULL)
        return ST_NO_MEMORY;
    st = check_primaries(&p, check_node);
    if (st == ST_OK && !s->cluster.map.single)
        st = check_shards(&p);
    if (st == ST_OK && s->cluster.map.single && s->url.replicas <= 0)
        st = report_risk(
            &p, "a single Redis without replicas. If its machine fails, all data is lost",
            "Use a cluster for production");
    if (st == ST_OK)
        st = check_primaries(&p, check_library);
    cluster_client_return(p.client);
    return st == ST_OK ? check_rights(s, why) : st;
}

/* Checks that the node responds, is still a primary, and that its cluster is up. */
static enum status
check_health(const struct preflight *p)
{
    const bool single = p->store->cluster.map.single;
    enum status st = single ? node_ping(p, p->why) : ST_OK;
    redisReply *info = NULL;

    if (st == ST_OK)
        st = node_command(p, single ? "INFO replication" : "CLUSTER INFO", &info, p->why);
    if (st == ST_OK && info->type == REDIS_REPLY_STRING) {
        if (single && bytes_equal_str(info_field(info, "role"), "slave"))
            st = reason_give(p->why, ST_UNAVAILABLE, "%s:%u has become a replica",
                             p->node.host, p->node.port);
        if (!single && !bytes_equal_str(info_field(info, "cluster_state"), "ok"))
            st = reason_give(p->why, ST_UNAVAILABLE,
                             "%s:%u reports that the cluster is down", p->node.host,
                             p->node.port);
    }
    response_free(p, info);
    return st;
}

/* Checks that each primary responds and that the cluster is up. As preflight_check(). */
static enum status
preflight_ping(struct redis_store *s, struct reason *why)
{
    struct preflight p = {
        .store = s, .client = cluster_client_take(&s->cluster), .why = why};
    struct map_coverage coverage;
    struct reason unused;
    enum status st;

    if (p.client == NULL)
        return ST_NO_MEMORY;
    if (clock_stopwatch_ns() - atomic_load(&s->cluster.known_ns) > MAP_AGE_NS)
        (void)cluster_refresh(p.client, &unused);
    st = check_primaries(&p, check_health);
    coverage = map_coverage(&s->cluster.map);
    if (st == ST_OK && coverage.slots_without_node > 0)
        st = reason_give(why, ST_UNAVAILABLE, "%zu slot%s %s no node",
                         coverage.slots_without_node,
                         plural_s(coverage.slots_without_node),
                         coverage.slots_without_node == 1 ? "has" : "have");
    if (st != ST_OK) /* there may have been a failover */
        (void)cluster_refresh(p.client, &unused);
    cluster_client_return(p.client);
    return st;
}

/* ---------------------------------------------------------------------- operations */

struct ping_job {
    struct redis_store *store;
    enum status status;
};

static void
run_ping(void *arg)
{
    struct ping_job *p = arg;
    struct reason why;

    p->status = preflight_ping(p->store, &why);
}

enum status
redis_ping(struct store *store, struct store_op *op)
{
    struct ping_job p = {redis_of(store), ST_UNAVAILABLE};

    (void)op;
    (void)fiber_offload(run_ping, &p);
    return p.status;
}

/* Without a maintenance thread, the wait queues and the ends of claims need
 * housekeeping. */
void
redis_housekeep(struct store *store, int64_t now_ms, int64_t *next_ms)
{
    struct redis_store *s = redis_of(store);
    int64_t look_ms;

    *next_ms = INT64_MAX;
    if (s->maintenance != NULL)
        return;
    claim_ends_step(s, now_ms); /* claims that end may wake waiters */
    look_ms = claim_ends_next_ms(s);
    *next_ms = waiting_housekeep(s, now_ms);
    *next_ms = look_ms < *next_ms ? look_ms : *next_ms;
}

int64_t
redis_next_ms(struct store *store)
{
    struct redis_store *s = redis_of(store);

    const int64_t waiting_ms = waiting_next_ms(s), look_ms = claim_ends_next_ms(s);

    if (s->maintenance != NULL)
        return INT64_MAX;
    return waiting_ms < look_ms ? waiting_ms : look_ms;
}

const char *
redis_servers(struct store *store)
{
    return redis_of(store)->servers;
}

void
redis_measure(struct store *store, struct redis_metrics *out)
{
    struct redis_store *s = redis_of(store);
    struct cluster *c = &s->cluster;
    struct cluster_metrics *f = &c->metrics;
    const struct map_coverage coverage = map_coverage(&c->map);

    *out = (struct redis_metrics){
        .requests = atomic_load(&f->requests),
        .pipelines = atomic_load(&c->wire.pipelines),
        .redirections = atomic_load(&f->redirections),
        .retries = atomic_load(&f->retries),
        .refreshes = atomic_load(&f->refreshes),
        .unconfirmed = atomic_load(&f->unconfirmed),
        .connections = atomic_load(&f->connections),
        .primaries = coverage.primaries,
        .replicas_least = coverage.primaries == 0 ? 0 : coverage.replicas_least,
        .slots_without_owner = coverage.slots_without_node,
        .map_age_ms = (clock_stopwatch_ns() - atomic_load(&c->known_ns)) / 1000000,
        .outbox_age_ms = stats_scan_outbox_ms(s)};
    buckets_merge(&out->responses, &f->responses);
    buckets_merge(&out->confirmations, &f->confirmations);
}

static void
store_free(struct redis_store *s)
{
    waiting_close(s);
    deliveries_close(s);
    claim_ends_close(s);
    stats_scan_close(s);
    lock_fini(&s->lock);
    mem_free(s->config.mem, s);
}

void
redis_close(struct store *store)
{
    struct redis_store *s = redis_of(store);

    maintenance_end(s->maintenance);
    claim_ends_end(s);
    cluster_close(&s->cluster);
    store_free(s);
}

static const struct store_state_vtable redis_state_vtable = {
    .read = redis_read, .records_release = redis_records_release, .apply = redis_apply};

#define OPERATION(name) .name = redis_##name,

static const struct store_vtable redis_vtable = {STORE_OPERATIONS(OPERATION)};

static enum status
store_connect(struct redis_store *s, struct reason *why)
{
    const struct url *url = &s->url;
    struct cluster_config config = {
        .mem = s->config.mem,
        .link = {.library = &s->library,
                 .user = url->user,
                 .password =
                     s->config.password != NULL ? s->config.password : url->password,
                 .connect_ms = CONNECT_MS,
                 .response_ms = url->confirm_ms + url->patience_ms + CONNECT_MS},
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
    s->store = (struct store){
        .vtable = &redis_vtable, .state = &redis_state_vtable, .blocks = true};
    s->config = *config;
    lock_init(&s->lock);
    entropy_init_system(&s->entropy);
    st = waiting_open(s);
    if (st == ST_OK)
        st = deliveries_open(s);
    if (st == ST_OK)
        st = claim_ends_open(s);
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
        st = store_connect(s, why);
    if (st == ST_OK && !config->test_clock) {
        st = maintenance_start(s);
        if (st == ST_OK)
            st = claim_ends_start(s);
        if (st != ST_OK) {
            maintenance_end(s->maintenance);
            cluster_close(&s->cluster);
        }
    }
    if (st != ST_OK) {
        store_free(s);
        return st;
    }
    *out = &s->store;
    return ST_OK;
}
