/*
 * cluster: asking the right node of a Redis Cluster, and getting an answer that lasts.
 *
 * A request is one script about keys of one slot. It is sent to the slot's primary, together with
 * what others ask there at that time (wire.h), and with WAIT, if it changes something: then its answer
 * is given when so many replicas have confirmed it.
 * Redirections (MOVED, ASK) are followed; nodes that cannot answer now (TRYAGAIN, CLUSTERDOWN,
 * LOADING, a primary that has failed) are asked again until the patience is over. A node that has not
 * answered at all is left alone for a moment: whoever needs it is told so at once, and does not keep a
 * thread from those who need others.
 *
 *   Outcome   ST_OK: done and confirmed. ST_UNCONFIRMED: perhaps done; there may be an answer.
 *             ST_UNAVAILABLE: not done. ST_OVER_BUDGET: Redis has no memory for it; not done
 *   Threads   a cluster any; a client one at a time
 *   Blocking  asking, for patience_ms + 2 answer_ms at most: in a fiber it parks, and what needs a
 *             thread (opening a connection, pauses) is done by one of the executor's
 */
#ifndef REDIS_CLUSTER_H
#define REDIS_CLUSTER_H

#include "claimd/base/counter.h"
#include "redis/script.h"
#include "redis/wire.h"

enum { CLUSTER_SEEDS = 16 };

struct cluster_config {
    struct mem *mem; /* borrowed */
    struct link_config link;
    struct bytes library; /* of functions; a node that does not have it gets it */
    struct link_address seeds[CLUSTER_SEEDS];
    size_t seed_count;
    unsigned replicas;     /* that confirm each change; 0: none do */
    int64_t confirm_ms;    /* until they must have */
    int64_t patience_ms;   /* for nodes that cannot answer now */
    unsigned patient_most; /* who may have that at a time: the others are told at once */
    int64_t refresh_ms;    /* the map is not asked for more often */
    void (*warn)(void *arg, const char *text); /* as wire.h has it */
    void *warn_arg;
};

/* What has been done so far. */
struct cluster_figures {
    _Atomic uint64_t requests, redirections, retries, refreshes, unconfirmed, connections;
    struct buckets answers; /* (redis_times) us from the request to the script's answer */
    struct buckets
        confirmations; /* and from there until enough replicas have confirmed it */
};

struct cluster {
    struct cluster_config config;
    struct map map;
    struct cluster_figures figures;
    struct lock lock;             /* of what follows, and of the times in the figures */
    struct list idle;             /* clients that nobody uses */
    _Atomic int64_t refreshed_ns; /* the map was asked for; clock_stopwatch_ns() */
    _Atomic int64_t known_ns;     /* and answered */
    _Atomic unsigned patient;     /* who waits for a node to become able */
    struct wire wire;
};

/* One thread's connections for what is no request, opened as they are needed. */
struct cluster_client {
    struct list link;
    struct cluster *cluster;
    unsigned era;
    struct link links[MAP_NODES];
};

/* What is asked for. */
struct cluster_request {
    uint16_t slot;
    struct bytes function;       /* of the library (script.h) */
    const struct command *words; /* behind them: number of keys, keys, arguments */
    bool changes;                /* it is to be confirmed */
    bool repeatable;             /* it may be sent again though it may have been done */
    redisReply *answer;          /* out, owned: cluster_request_end() */
};

/*
 * Finds out where the slots are. ST_UNAVAILABLE with a reason: nobody answers, or a name or password
 * is wrong.
 */
enum status
cluster_open(struct cluster *c, const struct cluster_config *config, struct reason *why);
void cluster_close(struct cluster *c);

/* A client for some requests, which comes back. NULL: no memory. */
struct cluster_client *cluster_take(struct cluster *c);
void cluster_give(struct cluster_client *client);

/* Asks. The reason says more about what is not ST_OK. */
enum status
cluster_ask(struct cluster *c, struct cluster_request *request, struct reason *why);
void cluster_request_end(struct cluster *c, struct cluster_request *request);

/* Says something to a node that has nothing to do with keys. As link_say(). */
enum status cluster_say_to(struct cluster_client *client, const struct link_address *node,
                           const struct bytes *words, size_t count, redisReply **out,
                           struct reason *why);

/* Gives a node the library; fine if it has it. As cluster_say_to(). */
enum status cluster_load(struct cluster_client *client, const struct link_address *node,
                         struct reason *why);

/* Asks anybody where the slots are, if that was not done a moment ago. */
enum status cluster_refresh(struct cluster_client *client, struct reason *why);

#endif
