/*
 * preflight: checks whether this Redis, or this cluster, would lose confirmed data. It runs when the store is
 * opened, since later is too late (docs/scale-out.md, "Checks at the start"). claimd refuses an unfit Redis with advice. With `unsafe` in the URL, or with one
 * Redis without a cluster, which survives little anyway, claimd only logs a warning.
 */
#include "redis/call.h"

#include <stdio.h>
#include <stdlib.h>

enum { VERSION_LEAST = 7 };

static const int64_t FRESH_NS = 1000000000; /* a map is believed so long */

struct examination {
    struct redis_store *store;
    struct cluster_client *client;
    struct link_address node; /* that is looked at */
    bool lenient;
    struct reason *why;
};

/* Frees a response; NULL is fine. */
static void
answer_free(const struct examination *e, redisReply *answer)
{
    if (answer != NULL)
        e->store->library.free_reply(answer);
}

/* Asks the node with a command, whose words have blanks between them. As cluster_say(). */
static enum status
ask(const struct examination *e, const char *command, redisReply **out,
    struct reason *why)
{
    struct bytes rest = bytes_str(command), words[3];
    size_t count = 0;

    while (bytes_present(rest))
        words[count++] = bytes_cut(&rest, ' ');
    *out = NULL;
    return cluster_say(e->client, map_node(&e->store->cluster.map, &e->node), words,
                       count, out, why);
}

static enum status
ping(const struct examination *e, struct reason *why)
{
    redisReply *pong;
    enum status st = ask(e, "PING", &pong, why);

    answer_free(e, pong);
    return st;
}

/* The node would lose data. ST_OK: the operator accepts that. */
static enum status
object(const struct examination *e, const char *what, const char *advice)
{
    const struct redis_config *config = &e->store->config;
    char text[REASON_CAP + LINK_NAME_CAP], name[LINK_NAME_CAP];

    link_name(&e->node, name);
    (void)snprintf(text, sizeof(text), "%s: %s. %s", name, what, advice);
    if (!e->lenient)
        return reason_give(e->why, ST_UNAVAILABLE,
                           "%s. To start anyway, add unsafe=1 to the URL", text);
    if (config->warn != NULL)
        config->warn(config->warn_arg, text);
    return ST_OK;
}

/* ---------------------------------------------------------------------- one node */

/* The text behind "NAME:" in the response to INFO; absent: there is none. */
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

static enum status
check_info(const struct examination *e, const redisReply *info)
{
    const struct url *url = &e->store->url;

    if (info_number(info, "redis_version") < VERSION_LEAST)
        return reason_give(e->why, ST_UNAVAILABLE,
                           "%s:%u runs a Redis older than 7.0. claimd needs 7.0 or later",
                           e->node.host, e->node.port);
    if (e->store->cluster.map.single &&
        bytes_equal_str(info_field(info, "role"), "slave"))
        return reason_give(e->why, ST_UNAVAILABLE,
                           "%s:%u is a replica. Name its primary in the URL",
                           e->node.host, e->node.port);
    if (e->store->cluster.map.single &&
        info_number(info, "connected_slaves") < url->replicas)
        return reason_give(
            e->why, ST_UNAVAILABLE,
            "%s:%u has fewer replicas than the URL says, so Redis would confirm no "
            "change. Add replicas, or lower replicas in the URL",
            e->node.host, e->node.port);
    if (info_number(info, "maxmemory") != 0 &&
        !bytes_equal_str(info_field(info, "maxmemory_policy"), "noeviction"))
        return reason_give(e->why, ST_UNAVAILABLE,
                           "%s:%u evicts keys when its memory is full, which would lose "
                           "messages. Set maxmemory-policy noeviction there",
                           e->node.host, e->node.port);
    return ST_OK;
}

/* The value of one parameter, as CONFIG GET returns it; absent: the user may not read it. *answer is to be
 * freed. */
static struct bytes
ask_parameter(const struct examination *e, const char *command, redisReply **answer)
{
    struct reason unused;

    (void)ask(e, command, answer, &unused);
    return reply_text(reply_word(*answer, 1));
}

static enum status
check_sync(const struct examination *e)
{
    redisReply *answer;
    struct bytes value = ask_parameter(e, "CONFIG GET appendfsync", &answer);
    enum status st = ST_OK;

    if (!bytes_present(value))
        st = object(
            e, "CONFIG GET does not return appendfsync, so claimd cannot check it",
            "Make sure that appendfsync is always, or add restarts=held to the URL");
    else if (!bytes_equal_str(value, "always"))
        st = object(e,
                    "appendfsync is not always. After a power loss, the node and its "
                    "replicas may lose confirmed changes",
                    "Set appendfsync always, or delay restarts until a replica has taken "
                    "over and add restarts=held to the URL");
    answer_free(e, answer);
    return st;
}

static enum status
check_validity(const struct examination *e)
{
    redisReply *answer;
    struct bytes value =
        ask_parameter(e, "CONFIG GET cluster-replica-validity-factor", &answer);
    enum status st = ST_OK;

    if (bytes_present(value) && bytes_equal_str(value, "0"))
        st = object(e,
                    "cluster-replica-validity-factor is 0, so a replica that was "
                    "disconnected for long could take over",
                    "Set it to 1 or more");
    answer_free(e, answer);
    return st;
}

static enum status
check_node(const struct examination *e)
{
    redisReply *info;
    enum status st = ask(e, "INFO", &info, e->why);

    if (st == ST_OK && info->type != REDIS_REPLY_STRING)
        st = reason_give(e->why, ST_UNAVAILABLE,
                         "%s:%u returned an unexpected response to INFO", e->node.host,
                         e->node.port);
    if (st == ST_OK)
        st = check_info(e, info);
    if (st == ST_OK && info_number(info, "aof_enabled") == 0)
        st = object(e, "Redis has no append-only file, so a restart loses all data",
                    "Set appendonly yes and appendfsync always");
    else if (st == ST_OK && !e->store->url.restarts_held)
        st = check_sync(e);
    if (st == ST_OK && !e->store->cluster.map.single)
        st = check_validity(e);
    answer_free(e, info);
    return st;
}

/* ---------------------------------------------------------------------- shards */

/* The value behind a word in a list of words and values; NULL: none. */
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

/* Where a node is; one without a host is where we asked. False: it does not say. */
static bool
read_node(const struct examination *e, const redisReply *node, struct link_address *out)
{
    const redisReply *port = value_of(node, "port");

    return port != NULL && port->type == REDIS_REPLY_INTEGER &&
           link_address_make(reply_text(value_of(node, "endpoint")), port->integer,
                             &e->node, out);
}

/* Replicas become primaries, so the same holds for them. Those that do not respond are not checked. */
static enum status
check_replicas(const struct examination *e, const redisReply *nodes)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < nodes->elements; i++) {
        const redisReply *node = nodes->element[i];
        struct examination other = *e;
        struct reason unused;

        if (bytes_equal_str(reply_text(value_of(node, "role")), "replica") &&
            !bytes_equal_str(reply_text(value_of(node, "health")), "fail") &&
            read_node(e, node, &other.node) && ping(&other, &unused) == ST_OK)
            st = check_node(&other);
    }
    return st;
}

static enum status
check_shard(const struct examination *e, const redisReply *shard)
{
    const redisReply *slots = value_of(shard, "slots"), *nodes = value_of(shard, "nodes");
    const size_t wanted = e->store->cluster.config.replicas;
    char what[128];
    size_t count = 0; /* of replicas, whether they are there or not */

    if (slots == NULL || nodes == NULL || slots->type != REDIS_REPLY_ARRAY ||
        nodes->type != REDIS_REPLY_ARRAY)
        return reason_give(e->why, ST_UNAVAILABLE,
                           "%s:%u returned an unexpected response to CLUSTER SHARDS",
                           e->node.host, e->node.port);
    if (slots->elements == 0)
        return ST_OK;
    for (size_t i = 0; i < nodes->elements; i++)
        count +=
            bytes_equal_str(reply_text(value_of(nodes->element[i], "role")), "replica");
    if (count == wanted)
        return check_replicas(e, nodes);
    (void)snprintf(what, sizeof(what),
                   "the cluster has a primary with %zu replicas, but the URL says %zu",
                   count, wanted);
    return object(
        e, what,
        count < wanted
            ? "Redis would confirm no change there. Add a replica"
            : "A replica that did not confirm a change could take over. Give all "
              "primaries the same number of replicas, and set replicas in the URL to it");
}

static enum status
check_shards(struct examination *e)
{
    redisReply *shards;
    enum status st = ask(e, "CLUSTER SHARDS", &shards, e->why);

    for (size_t i = 0; st == ST_OK && i < shards->elements; i++)
        st = check_shard(e, shards->element[i]);
    answer_free(e, shards);
    if (st == ST_OK && e->store->cluster.config.replicas == 0)
        st = object(e,
                    "the cluster is without replicas. If a node fails, its data is lost",
                    "Add replicas, and set replicas in the URL");
    return st;
}

/* ---------------------------------------------------------------------- all */

/* Checks each node that has slots. */
static enum status
check_all(struct examination *e, enum status (*check)(const struct examination *e))
{
    struct map *map = &e->store->cluster.map;
    enum status st = ST_OK;
    uint16_t node;

    for (uint16_t at = 0; st == ST_OK && (node = map_owner(map, &at)) != MAP_NOWHERE;) {
        e->node = map_address(map, node);
        st = check(e);
    }
    return st;
}

/* A primary gets the library of functions now, not at its first request. */
static enum status
check_library(const struct examination *e)
{
    struct reason what;
    enum status st;

    reason_init(&what);
    st = cluster_load(e->client, map_node(&e->store->cluster.map, &e->node), &what);
    if (st == ST_OK)
        return ST_OK;
    return reason_give(e->why, st, "%s:%u refused the functions of claimd: %.200s",
                       e->node.host, e->node.port, what.text);
}

/* May we run scripts about our keys? */
static enum status
check_rights(struct redis_store *s, struct reason *why)
{
    static const struct store_queue none = {.project = BYTES_LIT(""),
                                            .name = BYTES_LIT("")};
    const struct store_op op = {.now_ms = 0};
    struct call c = call_begin(s, &op, &none);
    enum status st;

    st = call_run(&c, SCRIPT_queue_get, CALL_LOOKS);
    if (st == ST_OK || st == ST_NOT_FOUND)
        st = ST_OK;
    else
        st = reason_give(why, st, "Redis refused to run a script of claimd: %.200s",
                         c.why.text);
    call_end(&c);
    return st;
}

enum status
preflight_check(struct redis_store *s, struct reason *why)
{
    struct examination e = {.store = s,
                            .client = cluster_take(&s->cluster),
                            .lenient = s->url.unsafe || s->cluster.map.single,
                            .why = why};
    enum status st;

    if (e.client == NULL)
        return ST_NO_MEMORY;
    st = check_all(&e, check_node);
    if (st == ST_OK && !s->cluster.map.single)
        st = check_shards(&e);
    if (st == ST_OK && s->cluster.map.single && s->url.replicas <= 0)
        st = object(
            &e, "a single Redis without replicas. If its machine fails, all data is lost",
            "Use a cluster for production");
    if (st == ST_OK)
        st = check_all(&e, check_library);
    cluster_give(e.client);
    return st == ST_OK ? check_rights(s, why) : st;
}

/* Does it respond, is it still a primary, and is its cluster well? */
static enum status
check_health(const struct examination *e)
{
    const bool single = e->store->cluster.map.single;
    enum status st = single ? ping(e, e->why) : ST_OK;
    redisReply *info = NULL;

    if (st == ST_OK)
        st = ask(e, single ? "INFO replication" : "CLUSTER INFO", &info, e->why);
    if (st == ST_OK && info->type == REDIS_REPLY_STRING) {
        if (single && bytes_equal_str(info_field(info, "role"), "slave"))
            st = reason_give(e->why, ST_UNAVAILABLE, "%s:%u has become a replica",
                             e->node.host, e->node.port);
        if (!single && !bytes_equal_str(info_field(info, "cluster_state"), "ok"))
            st = reason_give(e->why, ST_UNAVAILABLE,
                             "%s:%u reports that the cluster is down", e->node.host,
                             e->node.port);
    }
    answer_free(e, info);
    return st;
}

enum status
preflight_ping(struct redis_store *s, struct reason *why)
{
    struct examination e = {.store = s, .client = cluster_take(&s->cluster), .why = why};
    size_t replicas, without_owner;
    struct reason unused;
    enum status st;

    if (e.client == NULL)
        return ST_NO_MEMORY;
    if (clock_stopwatch_ns() - atomic_load(&s->cluster.known_ns) > FRESH_NS)
        (void)cluster_refresh(e.client, &unused);
    st = check_all(&e, check_health);
    map_worst(&s->cluster.map, &replicas, &without_owner);
    if (st == ST_OK && without_owner > 0)
        st = reason_give(why, ST_UNAVAILABLE, "%zu slots have no node", without_owner);
    if (st != ST_OK) /* perhaps there was a failover */
        (void)cluster_refresh(e.client, &unused);
    cluster_give(e.client);
    return st;
}
