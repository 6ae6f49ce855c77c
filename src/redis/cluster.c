#include "redis/cluster.h"

#include "claimd/base/clock.h"
#include "claimd/redis/redis.h"

#include <poll.h>
#include <stdio.h>

enum {
    REDIRECTIONS = 8,   /* of one request, before it counts as not answered now */
    PAUSE_LEAST_MS = 5, /* before a node is asked again, twice as long each time */
    PAUSE_MOST_MS = 200,
    LEFT_ALONE_MS = 1000, /* who has not answered */
    MAP_ANSWER_MS = 500   /* nodes have so long to say where the slots are */
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

/* ------------------------------------------------------------------ connections */

/* The link to a node, opened if need be; NULL: it cannot be, with a reason. */
static struct link *
link_to(struct cluster_client *client, uint16_t node, struct reason *why)
{
    struct cluster *c = client->cluster;
    struct link *l = &client->links[node];
    struct link_address address;

    if (client->era != map_era(&c->map)) {
        hang_up(client);
        client->era = map_era(&c->map);
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

/* Has it not answered a moment ago? */
static bool
is_hung(const struct cluster *c, uint16_t node)
{
    const int64_t hung_ns = atomic_load(&c->hung_ns[node]);

    return hung_ns != 0 && clock_stopwatch_ns() - hung_ns < LEFT_ALONE_MS * MS_NS;
}

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
        if (st != ST_OK)
            (void)reason_give(why, st, "%s:%u does not know the slots of its cluster",
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

/* First those that we know, then those that we were told of. */
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
    for (int hung = 0; hung < 2; hung++) /* those who have not answered come last */
        for (size_t i = 0; st != ST_OK && i < known; i++)
            if (is_hung(c, (uint16_t)i) == (hung == 1))
                st = ask_for_map(client, (uint16_t)i, why);
    for (size_t i = 0; st != ST_OK && i < c->config.seed_count; i++)
        st = ask_for_map(client, map_node(&c->map, &c->config.seeds[i]), why);
    return st;
}

static enum status
say_at(struct cluster_client *client, uint16_t node, const struct bytes *words,
       size_t count, redisReply **out, struct reason *why)
{
    struct link *l = node == MAP_NOWHERE ? NULL : link_to(client, node, why);
    enum status st = l == NULL ? ST_UNAVAILABLE : link_say(l, words, count, out, why);

    if (st == ST_OK)
        atomic_store(&client->cluster->hung_ns[node], 0);
    if (l != NULL && st != ST_OK && l->context->err != 0)
        link_close(l);
    return st;
}

/* Gives a node the library. Somebody else may have done so meanwhile. */
static enum status
load_at(struct cluster_client *client, uint16_t node, struct reason *why)
{
    const struct bytes words[3] = {BYTES_LIT("FUNCTION"), BYTES_LIT("LOAD"),
                                   client->cluster->config.library};
    redisReply *answer = NULL;
    const enum status st = say_at(client, node, words, 3, &answer, why);

    if (answer != NULL)
        client->cluster->config.link.library->free_reply(answer);
    return st != ST_OK && strstr(why->text, "already exists") != NULL ? ST_OK : st;
}

/* ------------------------------------------------------------------ one attempt */

/* What has become of it. */
enum outcome {
    ANSWERED, /* there is an answer, of whatever kind */
    DONE,
    OVER,  /* it has a status of its own */
    MOVED, /* ask again, now */
    LATER, /* ask again when some time has passed */
    LOST   /* it may have been done */
};

struct attempt {
    struct rider rider;
    struct cluster_client *client;
    struct cluster_request *request;
    struct link_address elsewhere; /* ASK */
    bool asking;                   /* at `elsewhere`, which does not own the slot yet */
    int64_t since_ns;
    enum outcome outcome; /* and what belongs to it: */
    enum status status;
    redisReply *answer;  /* owned */
    bool whole;          /* no answer of its convoy is missing */
    long long confirmed; /* by so many replicas; -1: that is not known */
    int64_t answered_ns, confirmed_ns;
    struct reason *why;
};

static struct attempt *
attempt_of(struct list *link)
{
    return container_of(container_of(link, struct rider, link), struct attempt, rider);
}

#define EACH(a, riders)                                                                  \
    for (struct list *link_ = (riders)->next;                                            \
         link_ != (riders) && ((a) = attempt_of(link_)) != NULL; link_ = link_->next)

/* The same becomes of all of them. */
static void
end_all(struct list *riders, enum outcome outcome, enum status status,
        const struct reason *why)
{
    struct attempt *a;

    EACH (a, riders) {
        a->outcome = outcome;
        a->status = status;
        *a->why = *why;
    }
}

static enum status
send_wait(const struct cluster_config *config, struct link *l)
{
    char replicas[DECIMAL_CAP], limit[DECIMAL_CAP];
    const struct bytes words[3] = {
        BYTES_LIT("WAIT"),
        {replicas, decimal_write(replicas, config->replicas)},
        {limit, decimal_write(limit, (uint64_t)config->confirm_ms)}};

    return link_add(l, words, 3, NULL);
}

static enum status
send_one(const struct attempt *a, struct link *l)
{
    static const struct bytes asking[] = {BYTES_LIT("ASKING")};
    const struct bytes words[2] = {BYTES_LIT("FCALL"), a->request->function};
    enum status st = a->asking ? link_add(l, asking, 1, NULL) : ST_OK;

    return st == ST_OK ? link_add(l, words, 2, a->request->words) : st;
}

/* *waits: something is to be confirmed. */
static enum status
send_all(const struct cluster_config *config, struct list *riders, struct link *l,
         bool *waits)
{
    enum status st = ST_OK;
    struct attempt *a;

    *waits = false;
    EACH (a, riders) {
        if (st == ST_OK)
            st = send_one(a, l);
        *waits = *waits || (a->request->changes && config->replicas > 0);
    }
    return st == ST_OK && *waits ? send_wait(config, l) : st;
}

/* False: its answer is missing. */
static bool
receive_one(struct attempt *a, struct link *l, struct reason *why)
{
    redisReply *other = a->asking ? link_answer(l, why) : NULL;

    if (a->asking && other == NULL)
        return false;
    link_free(l, other);
    a->answer = link_answer(l, why);
    a->answered_ns = clock_stopwatch_ns();
    return a->answer != NULL;
}

/* The answers to all that was sent; false: there is one missing. */
static bool
receive_all(struct list *riders, struct link *l, bool waits)
{
    long long confirmed = -1;
    struct attempt *a;
    struct reason why;
    bool whole = true;
    int64_t now_ns;

    reason_init(&why);
    EACH (a, riders)
        whole = whole && receive_one(a, l, &why);
    if (whole && waits) {
        redisReply *other = link_answer(l, &why);

        whole = other != NULL;
        if (whole && other->type == REDIS_REPLY_INTEGER)
            confirmed = other->integer;
        link_free(l, other);
    }
    now_ns = clock_stopwatch_ns();
    EACH (a, riders) {
        a->outcome = a->answer != NULL ? ANSWERED : LOST;
        a->whole = whole;
        a->confirmed = confirmed;
        a->confirmed_ns = now_ns;
        if (!whole)
            *a->why = why;
    }
    return whole;
}

/* Asks a node for all of them. */
static void
travel(struct cluster_client *client, uint16_t node, struct list *riders)
{
    struct cluster *c = client->cluster;
    struct reason why;
    struct link *l;
    bool waits;

    reason_init(&why);
    l = link_to(client, node, &why);
    if (l == NULL) {
        end_all(riders, LATER, ST_UNAVAILABLE, &why);
    } else if (is_hung(c, node)) {
        const struct link_address asked = map_address(&c->map, node);

        (void)reason_give(&why, ST_UNAVAILABLE, "%s:%u does not answer", asked.host,
                          asked.port);
        end_all(riders, OVER, ST_UNAVAILABLE, &why);
    } else if (send_all(&c->config, riders, l, &waits) != ST_OK) {
        link_close(l);
        end_all(riders, OVER, ST_NO_MEMORY, &why);
    } else {
        const bool whole = receive_all(riders, l, waits);

        atomic_fetch_add(&c->figures.pipelines, 1);
        atomic_store(&c->hung_ns[node], l->timed_out ? clock_stopwatch_ns() : 0);
        if (!whole)
            link_close(l);
    }
}

/* ------------------------------------------------------------------ what was answered */

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

/* Not now, but perhaps soon. */
static bool
is_passing(const char *error)
{
    static const char *const passing[] = {"TRYAGAIN",   "CLUSTERDOWN", "LOADING",
                                          "MASTERDOWN", "READONLY",    "BUSY",
                                          "NOREPLICAS", "UNBLOCKED"};

    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (begins(error, passing[i]))
            return true;
    return false;
}

static enum outcome
read_refusal(struct attempt *a, const char *error)
{
    if (is_passing(error))
        return LATER;
    a->status = begins(error, "OOM") ? ST_OVER_BUDGET : ST_UNAVAILABLE;
    return OVER;
}

static enum outcome
give_library(struct attempt *a, uint16_t node)
{
    if (load_at(a->client, node, a->why) == ST_OK)
        return MOVED;
    return link_is_open(&a->client->links[node]) ? read_refusal(a, a->why->text) : LATER;
}

static enum outcome
read_error(struct attempt *a, const char *error, uint16_t node)
{
    struct cluster *c = a->client->cluster;
    const struct link_address asked = map_address(&c->map, node);
    struct link_address to;
    uint16_t slot;

    (void)reason_give(a->why, ST_UNAVAILABLE, "%s", error);
    if (begins(error, "ERR Function not found"))
        return give_library(a, node);
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

static void
note_times(struct cluster *c, const struct attempt *a)
{
    lock_acquire(&c->lock);
    buckets_add(&c->figures.answers, &redis_times,
                (uint64_t)(a->answered_ns - a->since_ns) / 1000);
    if (a->request->changes && c->config.replicas > 0)
        buckets_add(&c->figures.confirmations, &redis_times,
                    (uint64_t)(a->confirmed_ns - a->answered_ns) / 1000);
    lock_release(&c->lock);
}

/* It was done; is that confirmed? */
static enum outcome
confirm(struct attempt *a)
{
    struct cluster *c = a->client->cluster;
    const unsigned wanted = a->request->changes ? c->config.replicas : 0;

    a->status = ST_OK;
    if (wanted == 0 || a->confirmed >= (long long)wanted)
        return DONE;
    atomic_fetch_add(&c->figures.unconfirmed, 1);
    if (a->whole)
        (void)reason_give(a->why, ST_UNAVAILABLE, "%lld of %u replicas have confirmed it",
                          a->confirmed < 0 ? 0 : a->confirmed, wanted);
    a->status = ST_UNCONFIRMED;
    return OVER;
}

static enum outcome
read_answer(struct attempt *a, uint16_t node)
{
    redisReply *answer = a->answer;
    enum outcome outcome;

    note_times(a->client->cluster, a);
    a->answer = NULL;
    if (answer->type != REDIS_REPLY_ERROR) {
        a->request->answer = answer;
        return confirm(a);
    }
    a->asking = false;
    outcome = read_error(a, answer->str, node);
    a->client->cluster->config.link.library->free_reply(answer);
    return outcome;
}

static enum outcome
try_at(struct attempt *a, uint16_t node)
{
    struct cluster *c = a->client->cluster;
    struct convoy *convoy = &c->convoys[node];
    struct list riders;

    a->since_ns = clock_stopwatch_ns();
    a->rider.bytes = a->request->words->words.len;
    if (a->asking) { /* that is said of one request only */
        list_init(&riders);
        list_add_before(&riders, &a->rider.link);
        travel(a->client, node, &riders);
    } else if (convoy_join(convoy, &a->rider, c->config.replicas > 0, &riders)) {
        travel(a->client, node, &riders);
        convoy_arrive(convoy, &a->rider, &riders);
    }
    return a->outcome == ANSWERED ? read_answer(a, node) : a->outcome;
}

static enum outcome
attempt(struct attempt *a)
{
    struct map *map = &a->client->cluster->map;
    uint16_t node =
        a->asking ? map_node(map, &a->elsewhere) : map_find(map, a->request->slot);

    if (node == MAP_NOWHERE) {
        (void)reason_give(a->why, ST_UNAVAILABLE, "nobody has slot %u", a->request->slot);
        return LATER;
    }
    return try_at(a, node);
}

/* ------------------------------------------------------------------ asking */

/* Until somebody may have become able to answer. False: too many wait for that. */
static bool
pause_for(struct cluster *c, int64_t *ms)
{
    const bool may = atomic_fetch_add(&c->patient, 1) < c->config.patient_most;

    if (may)
        (void)poll(NULL, 0, (int)*ms);
    atomic_fetch_sub(&c->patient, 1);
    *ms = *ms * 2 > PAUSE_MOST_MS ? PAUSE_MOST_MS : *ms * 2;
    return may;
}

enum status
cluster_ask(struct cluster_client *client, struct cluster_request *request,
            struct reason *why)
{
    struct cluster *c = client->cluster;
    const int64_t until_ns = clock_stopwatch_ns() + c->config.patience_ms * MS_NS;
    struct attempt a = {.client = client, .request = request, .why = why};
    int64_t pause_ms = PAUSE_LEAST_MS;
    struct reason unused;

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
            (void)cluster_refresh(client, &unused); /* perhaps another has taken over */
            return ST_UNCONFIRMED;
        }
        if (clock_stopwatch_ns() >= until_ns || !pause_for(c, &pause_ms)) {
            (void)cluster_refresh(client, &unused);
            return ST_UNAVAILABLE;
        }
        moved = 0;
        atomic_fetch_add(&c->figures.retries, 1);
        (void)cluster_refresh(client, &unused);
    }
}

void
cluster_request_end(struct cluster *c, struct cluster_request *request)
{
    if (request->answer != NULL)
        c->config.link.library->free_reply(request->answer);
    request->answer = NULL;
}

enum status
cluster_say_to(struct cluster_client *client, const struct link_address *node,
               const struct bytes *words, size_t count, redisReply **out,
               struct reason *why)
{
    return say_at(client, map_node(&client->cluster->map, node), words, count, out, why);
}

enum status
cluster_load(struct cluster_client *client, const struct link_address *node,
             struct reason *why)
{
    return load_at(client, map_node(&client->cluster->map, node), why);
}

/* ------------------------------------------------------------------ life */

enum status
cluster_open(struct cluster *c, const struct cluster_config *config, struct reason *why)
{
    struct cluster_client *client;
    enum status st;

    *c = (struct cluster){.config = *config};
    atomic_store(&c->refreshed_ns, INT64_MIN / 2);
    lock_init(&c->lock);
    list_init(&c->idle);
    map_init(&c->map);
    for (size_t i = 0; i < MAP_NODES; i++)
        convoy_init(&c->convoys[i]);
    client = cluster_take(c);
    if (client == NULL) {
        cluster_close(c);
        return ST_NO_MEMORY;
    }
    st = cluster_refresh(client, why);
    cluster_give(client);
    if (st != ST_OK)
        cluster_close(c);
    return st;
}

void
cluster_close(struct cluster *c)
{
    while (!list_empty(&c->idle)) {
        struct cluster_client *client =
            container_of(list_pop(&c->idle), struct cluster_client, link);

        hang_up(client);
        mem_free(c->config.mem, client);
    }
    for (size_t i = 0; i < MAP_NODES; i++)
        convoy_fini(&c->convoys[i]);
    map_fini(&c->map);
    lock_fini(&c->lock);
}
