/*
 * ear: hears of queues that another process has changed, for those who wait for them here.
 *
 * Each queue has a channel, in the slot of its keys (sharded pub/sub of Redis 7); scripts publish there
 * when messages become free while somebody listens, and when the queue goes (lib/queue.lua). The ear
 * has a connection to each node that has a channel which is wanted, subscribes there, and does so again
 * when the connection breaks or the slot moves. What is said meanwhile is missed: whoever waits looks now
 * and then by itself (waiting.h).
 *
 *   Memory   a channel each, as long as somebody wants it, and half a minute
 *   Threads  one: the keeper
 *   Blocking opening a connection; never reading
 */
#ifndef REDIS_EAR_H
#define REDIS_EAR_H

#include "claimd/base/hash.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/list.h"
#include "claimd/store/types.h"
#include "redis/cluster.h"

#include <poll.h>

enum { EAR_NODES = 256 };

/* A connection that only listens. */
struct ear_node {
    struct link link;
    int64_t heard_ms; /* the last time; then it is asked whether it is there */
    bool asked;
    int64_t failed_ms; /* when it could not be reached */
};

struct ear {
    struct cluster *cluster; /* borrowed */
    struct hash_key key;
    struct hashmap channels;
    struct list silent; /* of these: not subscribed (any more) */
    struct list spoken; /* the others, the one that was wanted longest ago first */
    unsigned era;       /* of the map's places */
    int64_t tried_ms;   /* when it was last tried to subscribe what is silent */
    struct ear_node nodes[EAR_NODES]; /* by their place in the map */
    /* Somebody has said something there: `gone`, that the queue was deleted. */
    void (*heard)(void *arg, const struct store_queue *where, bool gone);
    void *arg;
};

void ear_init(struct ear *e, struct cluster *cluster, const struct hash_key *key);
void ear_fini(struct ear *e);

/* Somebody waits for this queue. ST_NO_MEMORY. */
enum status ear_want(struct ear *e, const struct store_queue *where, int64_t now_ms);

/* Subscribes what is to be, and lets go of what is not wanted; when to do so again. */
int64_t ear_tend(struct ear *e, int64_t now_ms);

/* What is to be polled; `nodes` says which is which. Returns how many. */
size_t ear_poll(const struct ear *e, struct pollfd *out, uint16_t *nodes, size_t most);

/* Something can be read there. */
void ear_read(struct ear *e, uint16_t node, int64_t now_ms);

#endif
