/*
 * cluster: asking the right node of a Redis Cluster, and getting an answer that lasts.
 *
 * A request is one script about keys of one slot. It goes to the slot's primary, together with other requests
 * for that node (wire.h), and with WAIT, if it changes something: then it ends when so many replicas have
 * confirmed it.
 * Redirections (MOVED, ASK) are followed; nodes that cannot answer now (TRYAGAIN, CLUSTERDOWN,
 * LOADING, a primary that has failed) are asked again until the patience is over. A node that has not
 * responded at all is left alone for a moment: requests for it fail at once, and do not keep a thread from
 * requests for other nodes.
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
#include "redis/wire.h"

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
    struct lock lock;             /* of `idle`, and of the times in the figures */
    struct list idle;             /* clients without a user */
    _Atomic int64_t refreshed_ns; /* the map was asked for; clock_stopwatch_ns() */
    _Atomic int64_t known_ns;     /* and answered */
    _Atomic unsigned patient;     /* requests that wait for a node to become able */
    struct wire wire;
};

/* One thread's connections for all but requests, opened when it needs them. */
struct cluster_client {
    struct list link;
    struct cluster *cluster;
    unsigned generation;
    struct link links[MAP_NODES];
};

struct cluster_request {
    uint16_t slot;
    struct bytes function;       /* of the library (script.h) */
    const struct command *words; /* behind them: number of keys, keys, arguments */
    bool changes;                /* it is to be confirmed */
    bool repeatable;             /* it may be sent again though it may have been done */
    redisReply *answer;          /* out, owned: cluster_request_end() */
};

/*
 * Finds out where the slots are. ST_UNAVAILABLE with a reason: no node responds, or a name or password
 * is wrong.
 */
enum status
cluster_open(struct cluster *c, const struct cluster_config *config, struct reason *why);
void cluster_close(struct cluster *c);

/* A client for some requests, which comes back. NULL: no memory. */
struct cluster_client *cluster_take(struct cluster *c);
void cluster_give(struct cluster_client *client);

/* Runs a request. The reason says more about a status other than ST_OK. */
enum status
cluster_ask(struct cluster *c, struct cluster_request *request, struct reason *why);
void cluster_request_end(struct cluster *c, struct cluster_request *request);

/* Sends a node (its place in the map) a command without keys. As link_say(). */
enum status
cluster_say(struct cluster_client *client, uint16_t node, const struct bytes *words,
            size_t count, redisReply **out, struct reason *why);

/* Gives a node the library; fine if it has it, perhaps from another process. As cluster_say(). */
enum status
cluster_load(struct cluster_client *client, uint16_t node, struct reason *why);

/* Asks a node where the slots are, unless that was done a moment ago. */
enum status cluster_refresh(struct cluster_client *client, struct reason *why);

#endif
