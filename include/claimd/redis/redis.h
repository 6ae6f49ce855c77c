/*
 * redis: a store on Redis Cluster, or on one Redis (docs/adr/0015-redis.md).
 *
 * The cluster has all state, so any number of processes may use it. Operations wait for
 * the network (store.blocks) and for the confirmations of replicas.
 *
 *   Errors    as in store/store.h. Operations that change something also return
 *             ST_UNCONFIRMED: the change may have happened
 *   Threads   any
 *   Memory    responses, and the connections to the primaries
 */
#ifndef CLAIMD_REDIS_REDIS_H
#define CLAIMD_REDIS_REDIS_H

#include "claimd/base/counter.h"
#include "claimd/base/mem.h"
#include "claimd/json/reason.h"
#include "claimd/store/sealer.h"
#include "claimd/store/store.h"

struct redis_config {
    struct mem *mem; /* borrowed for the life of the store */
    const char *url; /* redis://[user:password@]host:port[,...][?replicas=1...] */
    /* As in engine_config: */
    int64_t message_ttl_s, message_delay_s, max_message_ttl_s;
    int64_t claim_ttl_s, claim_grace_s;
    int64_t dead_letter_ttl_s;
    int64_t key_window_ms;
    const struct store_sealer *sealer;
    uint64_t feed_bytes;
    bool require_confirmation;
    size_t shown_queues;
    /* Of this store: */
    size_t threads;       /* of the pool; 0: one */
    const char *password; /* replaces that of the URL; or NULL */
    bool test_clock;      /* the time is that of the operations, not that of Redis */
    /* Gets a sentence about each setting that may lose data, and at most once a second
     * about a request that Redis could not run; or NULL. */
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
};

/* Requests to Redis, and the state of the cluster. Times in buckets are in us. */
struct redis_metrics {
    uint64_t requests, pipelines, redirections, retries, refreshes, unconfirmed,
        connections;
    struct buckets responses, confirmations;
    uint64_t primaries, replicas_least, slots_without_owner;
    int64_t map_age_ms;
    int64_t outbox_age_ms; /* oldest dead letter in transfer, of shown queues */
};
extern const struct bucket_bounds redis_times;

void redis_measure(struct store *s, struct redis_metrics *out);

/* The names and versions of the servers when the store was opened: "Redis 7.0.15, Valkey
 * 9.1.2". */
const char *redis_servers(struct store *s);

/* Checks a URL for redis_open(). ST_BAD_VALUE with a reason. */
enum status redis_check_url(const char *url, struct reason *why);

/*
 * Connects, and checks that this Redis keeps confirmed data. ST_NO_MEMORY;
 * ST_UNAVAILABLE with a reason. The store is owned: store_close().
 */
enum status
redis_open(const struct redis_config *config, struct store **out, struct reason *why);

#endif
