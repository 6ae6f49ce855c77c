#include "redis/cluster.h"
#include "claimd/base/sometimes.h"

#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"
#include "claimd/base/plural.h"
#include "claimd/redis/redis.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    REDIRECTIONS = 8,   /* of one request, before it backs off */
    PAUSE_LEAST_MS = 5, /* first pause before a retry, then doubled each time */
    PAUSE_MOST_MS = 200,
    MAP_RESPONSE_MS = 500 /* time limit for the response to CLUSTER SLOTS */
};

static const int64_t MS_NS = 1000000;

const struct bucket_bounds redis_times = {14,
                                          {50, 100, 200, 500, 1000, 2000, 5000, 10000,
                                           20000, 50000, 100000, 500000, 1000000,
                                           5000000}};

/* ------------------------------------------------------------------ map */

void
map_init(struct map *m)
{
    *m = (struct map){.count = 0};
    lock_init(&m->lock);
    memset(m->slots, 0xff, sizeof(m->slots));
}

void
map_fini(struct map *m)
{
    lock_fini(&m->lock);
}

static void
clear_nodes(struct map *m)
{
    lock_assert_held(&m->lock);
    m->count = 0;
    atomic_fetch_add(&m->generation, 1);
    memset(m->slots, 0xff, sizeof(m->slots));
}

static uint16_t
find_or_add_node(struct map *m, const struct link_address *address)
{
    lock_assert_held(&m->lock);
    for (size_t i = 0; i < m->count; i++)
        if (link_address_equal(&m->nodes[i], address))
            return (uint16_t)i;
    if (m->count == MAP_NODES)
        clear_nodes(m);
    m->nodes[m->count] = *address;
    return (uint16_t)m->count++;
}

uint16_t
map_enter_node(struct map *m, const struct link_address *address)
{
    uint16_t node;

    lock_acquire(&m->lock);
    node = find_or_add_node(m, address);
    lock_release(&m->lock);
    return node;
}

struct link_address
map_address(struct map *m, uint16_t node)
{
    struct link_address address;

    lock_acquire(&m->lock);
    ENSURE(node < MAP_NODES);
    address = m->nodes[node];
    lock_release(&m->lock);
    return address;
}

uint16_t
map_find(struct map *m, uint16_t slot)
{
    uint16_t node;

    ENSURE(slot < SLOT_COUNT);
    lock_acquire(&m->lock);
    node = m->slots[slot];
    lock_release(&m->lock);
    return node;
}

uint16_t
map_next_owner(struct map *m, uint16_t *at)
{
    uint16_t node = MAP_NOWHERE;

    lock_acquire(&m->lock);
    while (*at < SLOT_COUNT && (node == MAP_NOWHERE || m->slots[*at] == node))
        node = m->slots[(*at)++];
    lock_release(&m->lock);
    return node;
}

struct map_coverage
map_coverage(struct map *m)
{
    struct map_coverage c = {.replicas_least = SIZE_MAX};
    bool seen[MAP_NODES] = {false};

    lock_acquire(&m->lock);
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        const uint16_t node = m->slots[i];

        if (node == MAP_NOWHERE) {
            c.slots_without_node++;
            continue;
        }
        c.primaries += !seen[node];
        seen[node] = true;
        if (m->replicas[i] < c.replicas_least)
            c.replicas_least = m->replicas[i];
    }
    lock_release(&m->lock);
    return c;
}

void
map_move(struct map *m, uint16_t slot, const struct link_address *to)
{
    lock_acquire(&m->lock);
    m->slots[slot] = find_or_add_node(m, to);
    lock_release(&m->lock);
}

void
map_set_single(struct map *m, const struct link_address *node)
{
    uint16_t index;

    lock_acquire(&m->lock);
    index = find_or_add_node(m, node);
    for (size_t i = 0; i < SLOT_COUNT; i++)
        m->slots[i] = index;
    atomic_store(&m->single, true);
    lock_release(&m->lock);
}

/* Reads [first, last, [host, port, ...] of the primary, replica ...]. False: it has
 * another form. */
static bool
read_slot_range(const redisReply *range, const struct link_address *source,
                int64_t *first, int64_t *last, struct link_address *primary)
{
    const redisReply *from = reply_word(range, 0), *to = reply_word(range, 1);
    const redisReply *port = reply_word(reply_word(range, 2), 1);

    if (port == NULL || from->type != REDIS_REPLY_INTEGER ||
        to->type != REDIS_REPLY_INTEGER || port->type != REDIS_REPLY_INTEGER ||
        from->integer < 0 || to->integer >= SLOT_COUNT || from->integer > to->integer)
        return false;
    *first = from->integer;
    *last = to->integer;
    return link_address_make(reply_text(reply_word(reply_word(range, 2), 0)),
                             port->integer, source, primary);
}

enum status
map_read(struct map *m, const redisReply *slots, const struct link_address *source)
{
    struct link_address primary;
    int64_t first, last;
    bool good = slots->type == REDIS_REPLY_ARRAY && slots->elements > 0;

    for (size_t i = 0; good && i < slots->elements; i++)
        good = read_slot_range(slots->element[i], source, &first, &last, &primary);
    if (!good)
        return ST_UNAVAILABLE;
    lock_acquire(&m->lock);
    if (m->count > MAP_NODES / 2) /* now, since it could become full below */
        clear_nodes(m);
    memset(m->slots, 0xff, sizeof(m->slots));
    for (size_t i = 0; i < slots->elements; i++) {
        const redisReply *range = slots->element[i];
        uint16_t node;

        ENSURE(read_slot_range(range, source, &first, &last, &primary));
        node = find_or_add_node(m, &primary);
        for (int64_t slot = first; slot <= last; slot++) {
            m->slots[slot] = node;
            m->replicas[slot] = (uint16_t)(range->elements - 3);
        }
    }
    atomic_store(&m->single, false);
    lock_release(&m->lock);
    return ST_OK;
}

bool
map_read_address(const char *text, const struct link_address *source,
                 struct link_address *out)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long port;

    if (colon == NULL)
        return false;
    port = strtol(colon + 1, &end, 10);
    return end != colon + 1 && *end == '\0' &&
           link_address_make(bytes_of(text, (size_t)(colon - text)), port, source, out);
}

/* ------------------------------------------------------------------ clients */

struct cluster_client *
cluster_client_take(struct cluster *c)
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
cluster_client_return(struct cluster_client *client)
{
    struct cluster *c = client->cluster;

    lock_acquire(&c->lock);
    list_add_before(c->idle.next, &client->link);
    lock_release(&c->lock);
}

static void
close_links(struct cluster_client *client)
{
    for (size_t i = 0; i < MAP_NODES; i++)
        link_close(&client->links[i]);
}

/* Returns the link to a node, and opens it if necessary. NULL: it cannot be opened, with
 * a reason. */
static struct link *
link_to(struct cluster_client *client, uint16_t node, struct reason *why)
{
    struct cluster *c = client->cluster;
    struct link *l = &client->links[node];
    struct link_address address;

    ENSURE(node < MAP_NODES);
    if (client->generation != map_generation(&c->map)) {
        close_links(client);
        client->generation = map_generation(&c->map);
    }
    if (link_is_open(l) && link_is_reusable(l))
        return l;
    link_close(l);
    address = map_address(&c->map, node);
    if (link_open(l, &c->config.link, &address, why) != ST_OK)
        return NULL;
    atomic_fetch_add(&c->metrics.connections, 1);
    return l;
}

/* ---------------------------------------------------------------- refreshing the map */

static enum status
fetch_map(struct cluster_client *client, uint16_t node, struct reason *why)
{
    static const struct bytes words[] = {BYTES_LIT("CLUSTER"), BYTES_LIT("SLOTS")};
    struct cluster *c = client->cluster;
    struct link *l = link_to(client, node, why);
    const struct link_address source = map_address(&c->map, node);
    redisReply *response;
    enum status st;

    if (l == NULL)
        return ST_UNAVAILABLE;
    link_set_timeout(l, MAP_RESPONSE_MS);
    st = link_command(l, words, 2, &response, why);
    link_set_timeout(l, c->config.link.response_ms);
    if (st == ST_OK) {
        st = map_read(&c->map, response, &source);
        if (st == ST_OK)
            atomic_store(&c->known_ns, clock_stopwatch_ns());
        else
            (void)reason_give(why, st,
                              "%s:%u returned no valid map of the slots of its cluster",
                              source.host, source.port);
        link_free_response(l, response);
    } else if (strstr(why->text, "cluster support disabled") != NULL) {
        map_set_single(&c->map, &source);
        atomic_store(&c->known_ns, clock_stopwatch_ns());
        st = ST_OK;
    } else {
        char name[LINK_NAME_CAP];
        const struct reason what = *why;

        link_name(&source, name);
        st = reason_give(why, st, "%s: %.100s", name, what.text);
        link_close(l);
    }
    return st;
}

/* Tries the nodes in the map, then those in the URL. */
enum status
cluster_refresh(struct cluster_client *client, struct reason *why)
{
    struct cluster *c = client->cluster;
    const int64_t now_ns = clock_stopwatch_ns();
    enum status st = ST_UNAVAILABLE;
    size_t count;

    if (now_ns - atomic_load(&c->refreshed_ns) < c->config.refresh_ms * MS_NS)
        return ST_OK;
    atomic_store(&c->refreshed_ns, now_ns);
    atomic_fetch_add(&c->metrics.refreshes, 1);
    lock_acquire(&c->map.lock);
    count = c->map.count;
    lock_release(&c->map.lock);
    for (int hung = 0; hung < 2; hung++) /* hung nodes come last */
        for (size_t i = 0; st != ST_OK && i < count; i++)
            if (wire_is_hung(&c->wire, (uint16_t)i) == (hung == 1))
                st = fetch_map(client, (uint16_t)i, why);
    for (size_t i = 0; st != ST_OK && i < c->config.seed_count; i++)
        st = fetch_map(client, map_enter_node(&c->map, &c->config.seeds[i]), why);
    return st;
}

enum status
cluster_command(struct cluster_client *client, uint16_t node, const struct bytes *words,
                size_t count, redisReply **out, struct reason *why)
{
    struct link *l = node == MAP_NOWHERE ? NULL : link_to(client, node, why);
    enum status st = l == NULL ? ST_UNAVAILABLE : link_command(l, words, count, out, why);

    if (st == ST_OK)
        wire_note_response(&client->cluster->wire, node);
    if (l != NULL && st != ST_OK && l->context->err != 0)
        link_close(l);
    return st;
}

enum status
cluster_load_library(struct cluster_client *client, uint16_t node, struct reason *why)
{
    const struct bytes words[3] = {BYTES_LIT("FUNCTION"), BYTES_LIT("LOAD"),
                                   client->cluster->config.library};
    redisReply *response = NULL;
    const enum status st = cluster_command(client, node, words, 3, &response, why);

    link_free_response(&client->links[node], response);
    return st != ST_OK && strstr(why->text, "already exists") != NULL ? ST_OK : st;
}

/* ------------------------------------------------------------------ attempts */

enum attempt_outcome {
    ATTEMPT_DONE,
    ATTEMPT_FAILED,   /* attempt.status says why */
    ATTEMPT_REPEAT,   /* at once */
    ATTEMPT_BACK_OFF, /* pause, then repeat */
    ATTEMPT_LOST      /* Redis may have executed the script */
};

/* A request of a caller, with its current attempt. */
struct attempt {
    struct wire_request request;
    struct cluster *cluster;
    struct cluster_request *script;
    uint16_t node;
    unsigned generation;           /* of the index of the node */
    struct link_address elsewhere; /* the target of ASK */
    bool asking;                   /* use `elsewhere`, which does not own the slot yet */
    int64_t since_ns;
    enum status status; /* ATTEMPT_DONE, ATTEMPT_FAILED */
    struct reason *why;
    int64_t pause_ms; /* length of the next pause */
};

/* Blocking work of an attempt, with the connections of a client. It runs on the thread
 * pool. */
typedef enum attempt_outcome offload_fn(struct attempt *a, struct cluster_client *client);

struct offload {
    struct attempt *attempt;
    offload_fn *work;
    enum attempt_outcome outcome;
};

static void
run_offload(void *arg)
{
    struct offload *o = arg;
    struct cluster_client *client = cluster_client_take(o->attempt->cluster);

    o->outcome = ATTEMPT_FAILED;
    o->attempt->status = ST_NO_MEMORY;
    if (client == NULL)
        return;
    o->outcome = o->work(o->attempt, client);
    cluster_client_return(client);
}

static enum attempt_outcome
offload(struct attempt *a, offload_fn *work)
{
    struct offload o = {.attempt = a, .work = work};

    if (fiber_offload(run_offload, &o))
        return o.outcome;
    a->status = reason_give(a->why, ST_UNAVAILABLE,
                            "claimd has no free thread to wait for Redis");
    return ATTEMPT_FAILED;
}

/* ------------------------------------------------------------------ responses */

static bool
has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Reads "MOVED 3999 127.0.0.1:6381", or likewise ASK. */
static bool
read_redirection(const char *text, const struct link_address *source, uint16_t *slot,
                 struct link_address *to)
{
    unsigned number;
    int at = 0;

    if (sscanf(text, "%*s %u %n", &number, &at) != 1 || at == 0 || number >= SLOT_COUNT)
        return false;
    *slot = (uint16_t)number;
    return map_read_address(text + at, source, to);
}

static enum attempt_outcome
classify_error(struct attempt *a, const char *error)
{
    static const char *const temporary[] = {"TRYAGAIN",   "CLUSTERDOWN", "LOADING",
                                            "MASTERDOWN", "READONLY",    "BUSY",
                                            "NOREPLICAS", "UNBLOCKED"};

    for (size_t i = 0; i < sizeof(temporary) / sizeof(temporary[0]); i++)
        if (has_prefix(error, temporary[i]))
            return ATTEMPT_BACK_OFF;
    a->status = has_prefix(error, "OOM") ? ST_OVER_BUDGET : ST_UNAVAILABLE;
    return ATTEMPT_FAILED;
}

/* An offload_fn. */
static enum attempt_outcome
load_library(struct attempt *a, struct cluster_client *client)
{
    if (cluster_load_library(client, a->node, a->why) == ST_OK)
        return ATTEMPT_REPEAT;
    return link_is_open(&client->links[a->node]) ? classify_error(a, a->why->text)
                                                 : ATTEMPT_BACK_OFF;
}

static enum attempt_outcome
handle_error(struct attempt *a, const char *error)
{
    struct cluster *c = a->cluster;
    const bool moved = has_prefix(error, "MOVED ");
    const struct link_address source = map_address(&c->map, a->node);
    struct link_address to;
    uint16_t slot;

    (void)reason_give(a->why, ST_UNAVAILABLE, "%s", error);
    if (has_prefix(error, "ERR Function not found")) {
        SOMETIMES(REDIS_NO_LIBRARY);
        return offload(a, load_library);
    }
    if (!(moved || has_prefix(error, "ASK ")) ||
        !read_redirection(error, &source, &slot, &to))
        return classify_error(a, error);
    atomic_fetch_add(&c->metrics.redirections, 1);
    SOMETIMES_IF(moved, REDIS_MOVED);
    SOMETIMES_IF(!moved, REDIS_ASK);
    if (moved) {
        map_move(&c->map, slot, &to);
    } else {
        a->elsewhere = to;
        a->asking = true;
    }
    return ATTEMPT_REPEAT;
}

/* The script was executed. Fails with ST_UNCONFIRMED if too few replicas confirmed it. */
static enum attempt_outcome
check_confirmation(struct attempt *a)
{
    const struct wire_request *request = &a->request;

    a->status = ST_OK;
    if (request->confirmed >= (long long)request->replicas || request->replicas == 0)
        return ATTEMPT_DONE;
    atomic_fetch_add(&a->cluster->metrics.unconfirmed, 1);
    SOMETIMES_IF(!request->whole, REDIS_UNCONFIRMED);
    SOMETIMES_IF(request->whole, REDIS_TOO_FEW);
    if (request->whole)
        (void)reason_give(a->why, ST_UNAVAILABLE,
                          "%lld of %u replica%s confirmed the change",
                          request->confirmed < 0 ? 0 : request->confirmed,
                          request->replicas, plural_s(request->replicas));
    a->status = ST_UNCONFIRMED;
    return ATTEMPT_FAILED;
}

static enum attempt_outcome
handle_response(struct attempt *a)
{
    const struct wire_request *request = &a->request;
    redisReply *response = request->response;
    struct cluster *c = a->cluster;
    enum attempt_outcome outcome;

    ENSURE(response != NULL);
    lock_acquire(&c->lock);
    buckets_add(&c->metrics.responses, &redis_times,
                (uint64_t)(request->responded_ns - a->since_ns) / 1000);
    if (request->replicas > 0)
        buckets_add(&c->metrics.confirmations, &redis_times,
                    (uint64_t)(request->confirmed_ns - request->responded_ns) / 1000);
    lock_release(&c->lock);
    if (response->type != REDIS_REPLY_ERROR) {
        a->script->response = response;
        a->script->due_ms = request->due_ms;
        return check_confirmation(a);
    }
    a->asking = false;
    outcome = handle_error(a, response->str);
    wire_free_response(&c->wire, response);
    return outcome;
}

static enum attempt_outcome
fail_hung(struct attempt *a)
{
    const struct link_address address = map_address(&a->cluster->map, a->node);

    a->status = reason_give(a->why, ST_UNAVAILABLE, "%s:%u does not respond",
                            address.host, address.port);
    return ATTEMPT_FAILED;
}

/* An offload_fn. Opens the connection that the wire lacks. */
static enum attempt_outcome
open_wire_link(struct attempt *a, struct cluster_client *client)
{
    struct cluster *c = client->cluster;
    const struct link_address address = map_address(&c->map, a->node);
    const int64_t since_ns = clock_stopwatch_ns();
    struct link l;

    /* The node may have another index, or another thread may have opened a connection. */
    if (a->generation != map_generation(&c->map) || atomic_load(&c->wire.linked[a->node]))
        return ATTEMPT_REPEAT;
    if (wire_is_hung(&c->wire, a->node))
        return fail_hung(a);
    if (link_open(&l, &c->config.link, &address, a->why) != ST_OK) {
        if (clock_stopwatch_ns() - since_ns >= c->config.link.connect_ms * MS_NS)
            wire_note_timeout(&c->wire, a->node); /* other requests fail sooner */
        return ATTEMPT_BACK_OFF;
    }
    atomic_fetch_add(&c->metrics.connections, 1);
    if (wire_offer_link(&c->wire, a->node, a->generation, &l) == ST_OK)
        return ATTEMPT_REPEAT;
    a->status = ST_NO_MEMORY;
    return ATTEMPT_FAILED;
}

/* ------------------------------------------------------------------ running */

static enum attempt_outcome
run_attempt(struct attempt *a)
{
    struct cluster *c = a->cluster;

    a->generation = map_generation(&c->map);
    a->node = a->asking ? map_enter_node(&c->map, &a->elsewhere)
                        : map_find(&c->map, a->script->slot);
    if (a->node == MAP_NOWHERE) {
        (void)reason_give(a->why, ST_UNAVAILABLE, "slot %u has no node", a->script->slot);
        return ATTEMPT_BACK_OFF;
    }
    if (wire_is_hung(&c->wire, a->node))
        return fail_hung(a);
    a->since_ns = clock_stopwatch_ns();
    a->request =
        (struct wire_request){.function = a->script->function,
                              .words = a->script->words,
                              .asking = a->asking,
                              .replicas = a->script->changes ? c->config.replicas : 0};
    wire_run(&c->wire, a->node, a->generation, &a->request);
    if (!a->request.whole)
        *a->why = a->request.why;
    switch (a->request.outcome) {
    case REQUEST_RESPONDED:
        return handle_response(a);
    case REQUEST_LOST:
        return ATTEMPT_LOST;
    case REQUEST_UNLINKED:
        return offload(a, open_wire_link);
    case REQUEST_HUNG:
        return fail_hung(a);
    case REQUEST_NO_MEMORY:
        break;
    }
    a->status = ST_NO_MEMORY;
    return ATTEMPT_FAILED;
}

/* An offload_fn, for requests that have failed: another node may have become the
 * primary. */
static enum attempt_outcome
refresh_map(struct attempt *a, struct cluster_client *client)
{
    struct reason unused;

    (void)a;
    (void)cluster_refresh(client, &unused);
    return ATTEMPT_FAILED;
}

/* An offload_fn. Backs off before the next attempt, unless patient_most requests already
 * do. */
static enum attempt_outcome
back_off(struct attempt *a, struct cluster_client *client)
{
    struct cluster *c = client->cluster;
    const bool may = atomic_fetch_add(&c->backing_off, 1) < c->config.patient_most;

    if (may)
        (void)poll(NULL, 0, (int)a->pause_ms);
    atomic_fetch_sub(&c->backing_off, 1);
    a->pause_ms = a->pause_ms * 2 > PAUSE_MOST_MS ? PAUSE_MOST_MS : a->pause_ms * 2;
    (void)refresh_map(a, client);
    if (!may)
        return ATTEMPT_FAILED;
    atomic_fetch_add(&c->metrics.retries, 1);
    return ATTEMPT_REPEAT;
}

enum status
cluster_run(struct cluster *c, struct cluster_request *request, struct reason *why)
{
    const int64_t until_ns = clock_stopwatch_ns() + c->config.patience_ms * MS_NS;
    struct attempt a = {
        .cluster = c, .script = request, .why = why, .pause_ms = PAUSE_LEAST_MS};

    ENSURE(request->slot < SLOT_COUNT);
    request->response = NULL;
    request->due_ms = 0;
    atomic_fetch_add(&c->metrics.requests, 1);
    for (int repeats = 0;;) {
        enum attempt_outcome outcome = run_attempt(&a);

        if (outcome == ATTEMPT_DONE || outcome == ATTEMPT_FAILED)
            return a.status;
        if (outcome == ATTEMPT_REPEAT && ++repeats <= REDIRECTIONS)
            continue;
        if (outcome == ATTEMPT_LOST && !request->repeatable) {
            SOMETIMES(REDIS_LOST_UNSURE);
            atomic_fetch_add(&c->metrics.unconfirmed, 1);
            (void)offload(&a, refresh_map);
            return ST_UNCONFIRMED;
        }
        a.status = ST_UNAVAILABLE;
        if (clock_stopwatch_ns() >= until_ns) {
            (void)offload(&a, refresh_map);
            return ST_UNAVAILABLE;
        }
        if (offload(&a, back_off) != ATTEMPT_REPEAT)
            return ST_UNAVAILABLE;
        repeats = 0;
    }
}

void
cluster_request_end(struct cluster *c, struct cluster_request *request)
{
    wire_free_response(&c->wire, request->response);
    request->response = NULL;
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
        client = cluster_client_take(c);
        st = client == NULL ? ST_NO_MEMORY : cluster_refresh(client, why);
    }
    if (client != NULL)
        cluster_client_return(client);
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

        close_links(client);
        mem_free(c->config.mem, client);
    }
    map_fini(&c->map);
    lock_fini(&c->lock);
}
