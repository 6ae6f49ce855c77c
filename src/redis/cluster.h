/*
 * cluster: runs a request on the right node of a Redis Cluster, and has replicas confirm
 * changes.
 *
 * A request is one script whose keys are in one slot. The wire sends it to the primary of
 * the slot (wire.h). A change ends when the configured number of replicas has confirmed
 * it (WAIT).
 *
 * claimd follows redirections (MOVED, ASK). It retries while a node is temporarily unable
 * (TRYAGAIN, CLUSTERDOWN, LOADING, a failed primary), until patience_ms. After a timeout
 * of a node, requests for it fail at once for a second, so that they do not use up the
 * threads.
 *
 *   Outcome   ST_OK: executed, and confirmed if it is a change. ST_UNCONFIRMED: perhaps
 *             executed; there may be a response. ST_UNAVAILABLE: not executed.
 *             ST_OVER_BUDGET: not executed, Redis has no memory
 *   Threads   of a cluster: any. Of a client: one at a time
 *   Blocking  cluster_run(), at most patience_ms + 2 response_ms. In a fiber it parks,
 *             and a thread of the pool does what blocks (opening a connection, backing
 *             off)
 */
#ifndef REDIS_CLUSTER_H
#define REDIS_CLUSTER_H

#include "claimd/base/counter.h"
#include "redis/wire.h"

/* ---------------------------------------------------------------------- map */

/*
 * The node of each slot, as far as claimd knows.
 *
 * A node is known by its index, which is valid within one generation. If the map is full,
 * it forgets all nodes and a new generation begins.
 *
 *   Threads  any
 *   Memory   64 KB, and 264 bytes for each of MAP_NODES
 */
enum { MAP_NOWHERE = 0xffff };

struct map {
    struct lock lock;
    struct link_address nodes[MAP_NODES];
    size_t count;
    uint16_t slots[SLOT_COUNT];    /* index of the primary; MAP_NOWHERE: unknown */
    uint16_t replicas[SLOT_COUNT]; /* number of replicas of the primary */
    _Atomic unsigned generation;
    _Atomic bool single; /* one Redis without cluster mode, which has all slots */
};

void map_init(struct map *m);
void map_fini(struct map *m);

/* The index of a node. Adds the node if it is new. */
uint16_t map_enter_node(struct map *m, const struct link_address *address);

struct link_address map_address(struct map *m, uint16_t node);

static inline unsigned
map_generation(const struct map *m)
{
    return atomic_load(&m->generation);
}

/* The primary of a slot, or MAP_NOWHERE. */
uint16_t map_find(struct map *m, uint16_t slot);

/*
 * Walks the nodes that have slots: returns the owner of the next range, from slot *at on
 * (0 at first), and moves *at past the range. MAP_NOWHERE: there are no more. A node with
 * several ranges comes several times. O(slots).
 */
uint16_t map_next_owner(struct map *m, uint16_t *at);

/* The slot is at this node now. */
void map_move(struct map *m, uint16_t slot, const struct link_address *to);

/* This node is a single Redis, which has all slots. */
void map_set_single(struct map *m, const struct link_address *node);

/*
 * Reads the response to CLUSTER SLOTS from the node at `source`, whose host stands for an
 * empty one. ST_UNAVAILABLE: the response has another form. The map is unchanged then.
 */
enum status
map_read(struct map *m, const redisReply *slots, const struct link_address *source);

/* How well the slots are covered. O(slots). */
struct map_coverage {
    size_t primaries;          /* nodes that have slots */
    size_t replicas_least;     /* of the primaries; SIZE_MAX: there is no primary */
    size_t slots_without_node; /* number of slots */
};

struct map_coverage map_coverage(struct map *m);

/* Reads "host:port" of MOVED and ASK. An empty host is that of `source`. */
bool map_read_address(const char *text, const struct link_address *source,
                      struct link_address *out);

/* ---------------------------------------------------------------------- cluster */

struct cluster_metrics {
    _Atomic uint64_t requests, redirections, retries, refreshes, unconfirmed, connections;
    struct buckets responses;     /* us from request to response (redis_times) */
    struct buckets confirmations; /* us from there to the confirmation */
};

struct cluster {
    struct cluster_config config;
    struct map map;
    struct cluster_metrics metrics;
    struct lock lock;             /* guards `idle`, and the times in the metrics */
    struct list idle;             /* clients that no caller has */
    _Atomic int64_t refreshed_ns; /* claimd requested the map; clock_stopwatch_ns() */
    _Atomic int64_t known_ns;     /* a node returned the map */
    _Atomic unsigned backing_off; /* number of requests */
    struct wire wire;
};

/* Blocking connections of one thread, for commands. cluster_command() opens them when
 * they are needed. */
struct cluster_client {
    struct list link;
    struct cluster *cluster;
    unsigned generation;
    struct link links[MAP_NODES];
};

struct cluster_request {
    uint16_t slot;
    struct bytes function; /* of the library (script.h) */
    /* After the function: number of keys, keys, arguments. */
    const struct command_words *words;
    bool changes;         /* replicas must confirm it */
    bool repeatable;      /* claimd may send it again if it was perhaps executed */
    redisReply *response; /* out, owned: cluster_request_end() */
    int64_t due_ms; /* out: when to look at the queue (claim_ends.h); 0: no change */
};

/* Learns where the slots are. ST_UNAVAILABLE with a reason: no node responds, or the user
 * or the password is wrong. */
enum status
cluster_open(struct cluster *c, const struct cluster_config *config, struct reason *why);
void cluster_close(struct cluster *c);

/* Takes an idle client or makes one, and returns it. NULL: no memory. */
struct cluster_client *cluster_client_take(struct cluster *c);
void cluster_client_return(struct cluster_client *client);

/* Runs a request. The reason explains a status other than ST_OK. */
enum status
cluster_run(struct cluster *c, struct cluster_request *request, struct reason *why);
void cluster_request_end(struct cluster *c, struct cluster_request *request);

/* Sends a command without keys to a node (its index in the map). As link_command(). */
enum status
cluster_command(struct cluster_client *client, uint16_t node, const struct bytes *words,
                size_t count, redisReply **out, struct reason *why);

/* Loads the library of functions into a node, unless the node has it. As
 * cluster_command(). */
enum status
cluster_load_library(struct cluster_client *client, uint16_t node, struct reason *why);

/* Requests the map from a node, unless that happened within the last refresh_ms. */
enum status cluster_refresh(struct cluster_client *client, struct reason *why);

#endif
