#include "redis/cluster.h"

#include "claimd/base/clock.h"
#include "claimd/redis/redis.h"

#include <poll.h>
#include <stdio.h>

enum {
    REDIRECTIONS = 8,   /* of one request, before it counts as not answered now */
    PAUSE_LEAST_MS = 5, /* before a node is asked again, twice as long each time */
    PAUSE_MOST_MS = 200,
    MAP_ANSWER_MS = 500 /* nodes have so long to say where the slots are */
};

static const int64_t MS_NS = 1000000;

const struct bucket_bounds redis_times = {14,
                                          {50, 100, 200, 500, 1000, 2000, 5000, 10000,
                                           20000, 50000, 100000, 500000, 1000000,
                                           5000000}};

/* ------------------------------------------------------------------ clients */

struct cluster_client *
cluster_take(struct cluster *c)
{
    struct cluster_client *client = NULL;

    lock_acquire(&c->lock);
    if (!list_empty(&c->idle))
        client = container_of(list_pop(&c->idle), struct cluster_client, link);
    lock_release(&c->lock);
    if (client == NULL)
        client = mem_calloc(c->config.mem, 1, sizeof(*client));
    if (client != NULL)
        client->cluster = c;
    return client;
}

void
cluster_give(struct cluster_client *client)
{
    struct cluster *c = client->cluster;

    lock_acquire(&c->lock);
    list_add_before(c->idle.next, &client->link);
    lock_release(&c->lock);
}

static void
hang_up(struct cluster_client *client)
{
    for (size_t i = 0; i < MAP_NODES; i++)
        link_close(&client->links[i]);
}

/* The link to a node, opened if need be; NULL: it cannot be, with a reason. */
static struct link *
link_to(struct cluster_client *client, uint16_t node, struct reason *why)
{
    struct cluster *c = client->cluster;
    struct link *l = &client->links[node];
    struct link_address address;

    if (client->generation != map_generation(&c->map)) {
        hang_up(client);
        client->generation = map_generation(&c->map);
    }
    if (link_is_open(l) && link_is_fresh(l))
        return l;
    link_close(l);
    address = map_address(&c->map, node);
    if (link_open(l, &c->config.link, &address, why) != ST_OK)
        return NULL;
    atomic_fetch_add(&c->figures.connections, 1);
    return l;
}

/* ------------------------------------------------------------------ the map */

static enum status
ask_for_map(struct cluster_client *client, uint16_t node, struct reason *why)
{
    static const struct bytes words[] = {BYTES_LIT("CLUSTER"), BYTES_LIT("SLOTS")};
    struct cluster *c = client->cluster;
    struct link *l = link_to(client, node, why);
    const struct link_address asked = map_address(&c->map, node);
    redisReply *answer;
    enum status st;

    if (l == NULL)
        return ST_UNAVAILABLE;
    link_limit(l, MAP_ANSWER_MS);
    st = link_say(l, words, 2, &answer, why);
    link_limit(l, c->config.link.answer_ms);
    if (st == ST_OK) {
        st = map_read(&c->map, answer, &asked);
        if (st == ST_OK)
            atomic_store(&c->known_ns, clock_stopwatch_ns());
        else
            (void)reason_give(why, st,
                              "%s:%u returned no valid map of the slots of its cluster",
                              asked.host, asked.port);
        link_free(l, answer);
    } else if (strstr(why->text, "cluster support disabled") != NULL) {
        map_be_single(&c->map, &asked);
        atomic_store(&c->known_ns, clock_stopwatch_ns());
        st = ST_OK;
    } else {
        char name[LINK_NAME_CAP];
        const struct reason what = *why;

        link_name(&asked, name);
        st = reason_give(why, st, "%s: %.100s", name, what.text);
        link_close(l);
    }
    return st;
}

/* Asks first the nodes in the map, then those in the URL. */
enum status
cluster_refresh(struct cluster_client *client, struct reason *why)
{
    struct cluster *c = client->cluster;
    const int64_t now_ns = clock_stopwatch_ns();
    enum status st = ST_UNAVAILABLE;
    size_t known;

    if (now_ns - atomic_load(&c->refreshed_ns) < c->config.refresh_ms * MS_NS)
        return ST_OK;
    atomic_store(&c->refreshed_ns, now_ns);
    atomic_fetch_add(&c->figures.refreshes, 1);
    lock_acquire(&c->map.lock);
    known = c->map.count;
    lock_release(&c->map.lock);
    for (int hung = 0; hung < 2; hung++) /* hung nodes come last */
        for (size_t i = 0; st != ST_OK && i < known; i++)
            if (wire_is_hung(&c->wire, (uint16_t)i) == (hung == 1))
                st = ask_for_map(client, (uint16_t)i, why);
    for (size_t i = 0; st != ST_OK && i < c->config.seed_count; i++)
        st = ask_for_map(client, map_node(&c->map, &c->config.seeds[i]), why);
    return st;
}

enum status
cluster_say(struct cluster_client *client, uint16_t node, const struct bytes *words,
            size_t count, redisReply **out, struct reason *why)
{
    struct link *l = node == MAP_NOWHERE ? NULL : link_to(client, node, why);
    enum status st = l == NULL ? ST_UNAVAILABLE : link_say(l, words, count, out, why);

    if (st == ST_OK)
        wire_heard(&client->cluster->wire, node);
    if (l != NULL && st != ST_OK && l->context->err != 0)
        link_close(l);
    return st;
}

enum status
cluster_load(struct cluster_client *client, uint16_t node, struct reason *why)
{
    const struct bytes words[3] = {BYTES_LIT("FUNCTION"), BYTES_LIT("LOAD"),
                                   client->cluster->config.library};
    redisReply *answer = NULL;
    const enum status st = cluster_say(client, node, words, 3, &answer, why);

    link_free(&client->links[node], answer);
    return st != ST_OK && strstr(why->text, "already exists") != NULL ? ST_OK : st;
}

enum outcome {
    DONE,
    OVER,  /* it has a status of its own */
    MOVED, /* ask again, now */
    LATER, /* ask again when some time has passed */
    LOST   /* it may have been done */
};

struct attempt {
    struct request request;
    struct cluster *cluster;
    struct cluster_request *script;
    uint16_t node;
    unsigned generation;           /* in which the node has that place */
    struct link_address elsewhere; /* ASK */
    bool asking;                   /* at `elsewhere`, which does not own the slot yet */
    int64_t since_ns;
    enum status status; /* OVER, DONE */
    struct reason *why;
    int64_t pause_ms; /* the next one */
};

/* Work of an attempt with the connections of a client, on the thread pool, where it may block. */
typedef enum outcome detour_fn(struct attempt *a, struct cluster_client *client);

struct detour {
    struct attempt *attempt;
    detour_fn *what;
    enum outcome outcome;
};

static void
make_detour(void *arg)
{
    struct detour *d = arg;
    struct cluster_client *client = cluster_take(d->attempt->cluster);

    d->outcome = OVER;
    d->attempt->status = ST_NO_MEMORY;
    if (client == NULL)
        return;
    d->outcome = d->what(d->attempt, client);
    cluster_give(client);
}

static enum outcome
detour(struct attempt *a, detour_fn *what)
{
    struct detour d = {.attempt = a, .what = what};

    if (fiber_detour(make_detour, &d))
        return d.outcome;
    a->status = reason_give(a->why, ST_UNAVAILABLE,
                            "claimd has no free thread to wait for Redis");
    return OVER;
}

/* ------------------------------------------------------------------ responses */

static bool
begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "MOVED 3999 127.0.0.1:6381" */
static bool
read_redirection(const char *text, const struct link_address *asked, uint16_t *slot,
                 struct link_address *to)
{
    unsigned number;
    int at = 0;

    if (sscanf(text, "%*s %u %n", &number, &at) != 1 || at == 0 || number >= SLOT_COUNT)
        return false;
    *slot = (uint16_t)number;
    return map_read_address(text + at, asked, to);
}

static enum outcome
read_refusal(struct attempt *a, const char *error)
{
    static const char *const passing[] = {"TRYAGAIN",   "CLUSTERDOWN", "LOADING",
                                          "MASTERDOWN", "READONLY",    "BUSY",
                                          "NOREPLICAS", "UNBLOCKED"};

    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (begins(error, passing[i]))
            return LATER;
    a->status = begins(error, "OOM") ? ST_OVER_BUDGET : ST_UNAVAILABLE;
    return OVER;
}

/* In a thread that may block. */
static enum outcome
give_library(struct attempt *a, struct cluster_client *client)
{
    if (cluster_load(client, a->node, a->why) == ST_OK)
        return MOVED;
    return link_is_open(&client->links[a->node]) ? read_refusal(a, a->why->text) : LATER;
}

static enum outcome
read_error(struct attempt *a, const char *error)
{
    struct cluster *c = a->cluster;
    const struct link_address asked = map_address(&c->map, a->node);
    struct link_address to;
    uint16_t slot;

    (void)reason_give(a->why, ST_UNAVAILABLE, "%s", error);
    if (begins(error, "ERR Function not found"))
        return detour(a, give_library);
    if (begins(error, "MOVED ") && read_redirection(error, &asked, &slot, &to)) {
        atomic_fetch_add(&c->figures.redirections, 1);
        map_move(&c->map, slot, &to);
        return MOVED;
    }
    if (begins(error, "ASK ") && read_redirection(error, &asked, &slot, &to)) {
        atomic_fetch_add(&c->figures.redirections, 1);
        a->elsewhere = to;
        a->asking = true;
        return MOVED;
    }
    return read_refusal(a, error);
}

/* It was done; is that confirmed? */
static enum outcome
confirm(struct attempt *a)
{
    struct cluster *c = a->cluster;
    const struct request *request = &a->request;

    a->status = ST_OK;
    if (request->confirmed >= (long long)request->replicas || request->replicas == 0)
        return DONE;
    atomic_fetch_add(&c->figures.unconfirmed, 1);
    if (request->whole)
        (void)reason_give(
            a->why, ST_UNAVAILABLE, "%lld of %u replicas confirmed the change",
            request->confirmed < 0 ? 0 : request->confirmed, request->replicas);
    a->status = ST_UNCONFIRMED;
    return OVER;
}

static enum outcome
read_answer(struct attempt *a)
{
    const struct request *request = &a->request;
    redisReply *answer = request->answer;
    struct cluster *c = a->cluster;
    enum outcome outcome;

    lock_acquire(&c->lock);
    buckets_add(&c->figures.answers, &redis_times,
                (uint64_t)(request->answered_ns - a->since_ns) / 1000);
    if (request->replicas > 0)
        buckets_add(&c->figures.confirmations, &redis_times,
                    (uint64_t)(request->confirmed_ns - request->answered_ns) / 1000);
    lock_release(&c->lock);
    if (answer->type != REDIS_REPLY_ERROR) {
        a->script->answer = answer;
        return confirm(a);
    }
    a->asking = false;
    outcome = read_error(a, answer->str);
    wire_give_back(&c->wire, answer);
    return outcome;
}

/* It is not asked. */
static enum outcome
leave_alone(struct attempt *a)
{
    const struct link_address asked = map_address(&a->cluster->map, a->node);

    a->status = reason_give(a->why, ST_UNAVAILABLE, "%s:%u does not respond", asked.host,
                            asked.port);
    return OVER;
}

/* In a thread that may block: opens the connection that the wire lacks. */
static enum outcome
give_link(struct attempt *a, struct cluster_client *client)
{
    struct cluster *c = client->cluster;
    const struct link_address address = map_address(&c->map, a->node);
    const int64_t since_ns = clock_stopwatch_ns();
    struct link l;

    if (a->generation != map_generation(&c->map) || atomic_load(&c->wire.linked[a->node]))
        return MOVED; /* it has another place, or another thread has opened one */
    if (wire_is_hung(&c->wire, a->node))
        return leave_alone(a);
    if (link_open(&l, &c->config.link, &address, a->why) != ST_OK) {
        if (clock_stopwatch_ns() - since_ns >= c->config.link.connect_ms * MS_NS)
            wire_missed(&c->wire, a->node); /* others need not wait as long */
        return LATER;
    }
    atomic_fetch_add(&c->figures.connections, 1);
    if (wire_link(&c->wire, a->node, a->generation, &l) == ST_OK)
        return MOVED;
    a->status = ST_NO_MEMORY;
    return OVER;
}

static enum outcome
attempt(struct attempt *a)
{
    struct cluster *c = a->cluster;

    a->generation = map_generation(&c->map);
    a->node =
        a->asking ? map_node(&c->map, &a->elsewhere) : map_find(&c->map, a->script->slot);
    if (a->node == MAP_NOWHERE) {
        (void)reason_give(a->why, ST_UNAVAILABLE, "slot %u has no node", a->script->slot);
        return LATER;
    }
    if (wire_is_hung(&c->wire, a->node))
        return leave_alone(a);
    a->since_ns = clock_stopwatch_ns();
    a->request =
        (struct request){.function = a->script->function,
                         .words = a->script->words,
                         .asking = a->asking,
                         .replicas = a->script->changes ? c->config.replicas : 0};
    wire_ask(&c->wire, a->node, a->generation, &a->request);
    if (!a->request.whole)
        *a->why = a->request.why;
    switch (a->request.end) {
    case REQUEST_ANSWERED:
        return read_answer(a);
    case REQUEST_LOST:
        return LOST;
    case REQUEST_UNLINKED:
        return detour(a, give_link);
    case REQUEST_HUNG:
        return leave_alone(a);
    case REQUEST_NO_MEMORY:
        break;
    }
    a->status = ST_NO_MEMORY;
    return OVER;
}

/* ------------------------------------------------------------------ asking */

/* Another node may have taken over. */
static enum outcome
look_around(struct attempt *a, struct cluster_client *client)
{
    struct reason unused;

    (void)a;
    (void)cluster_refresh(client, &unused);
    return OVER;
}

/* Backs off before the next attempt, unless patient_most requests already do. */
static enum outcome
pause_for(struct attempt *a, struct cluster_client *client)
{
    struct cluster *c = client->cluster;
    const bool may = atomic_fetch_add(&c->patient, 1) < c->config.patient_most;

    if (may)
        (void)poll(NULL, 0, (int)a->pause_ms);
    atomic_fetch_sub(&c->patient, 1);
    a->pause_ms = a->pause_ms * 2 > PAUSE_MOST_MS ? PAUSE_MOST_MS : a->pause_ms * 2;
    (void)look_around(a, client);
    if (!may)
        return OVER;
    atomic_fetch_add(&c->figures.retries, 1);
    return MOVED;
}

enum status
cluster_ask(struct cluster *c, struct cluster_request *request, struct reason *why)
{
    const int64_t until_ns = clock_stopwatch_ns() + c->config.patience_ms * MS_NS;
    struct attempt a = {
        .cluster = c, .script = request, .why = why, .pause_ms = PAUSE_LEAST_MS};

    request->answer = NULL;
    atomic_fetch_add(&c->figures.requests, 1);
    for (int moved = 0;;) {
        enum outcome outcome = attempt(&a);

        if (outcome == DONE || outcome == OVER)
            return a.status;
        if (outcome == MOVED && ++moved <= REDIRECTIONS)
            continue;
        if (outcome == LOST && !request->repeatable) {
            atomic_fetch_add(&c->figures.unconfirmed, 1);
            (void)detour(&a, look_around);
            return ST_UNCONFIRMED;
        }
        a.status = ST_UNAVAILABLE;
        if (clock_stopwatch_ns() >= until_ns) {
            (void)detour(&a, look_around);
            return ST_UNAVAILABLE;
        }
        if (detour(&a, pause_for) != MOVED)
            return ST_UNAVAILABLE;
        moved = 0;
    }
}

void
cluster_request_end(struct cluster *c, struct cluster_request *request)
{
    wire_give_back(&c->wire, request->answer);
    request->answer = NULL;
}

enum status
cluster_open(struct cluster *c, const struct cluster_config *config, struct reason *why)
{
    struct cluster_client *client = NULL;
    enum status st;

    *c = (struct cluster){.config = *config};
    atomic_store(&c->refreshed_ns, INT64_MIN / 2);
    lock_init(&c->lock);
    list_init(&c->idle);
    map_init(&c->map);
    st = wire_open(&c->wire, &c->config);
    if (st == ST_OK) {
        client = cluster_take(c);
        st = client == NULL ? ST_NO_MEMORY : cluster_refresh(client, why);
    }
    if (client != NULL)
        cluster_give(client);
    if (st != ST_OK)
        cluster_close(c);
    return st;
}

void
cluster_close(struct cluster *c)
{
    wire_close(&c->wire);
    while (!list_empty(&c->idle)) {
        struct cluster_client *client =
            container_of(list_pop(&c->idle), struct cluster_client, link);

        hang_up(client);
        mem_free(c->config.mem, client);
    }
    map_fini(&c->map);
    lock_fini(&c->lock);
}
