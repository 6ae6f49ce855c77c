/*
 * redis: a store on Redis Cluster, or on one Redis (docs/adr/0015-redis.md).
 *
 * Any number of processes may use the same cluster, which has all state. Operations wait for the network
 * (store.blocks), and for the confirmations of replicas.
 *
 *   Statuses  besides those of the seam, from operations that change something: ST_UNCONFIRMED: it may
 *             have been done
 *   Memory    responses, and a connection to each primary
 */
#ifndef CLAIMD_REDIS_REDIS_H
#define CLAIMD_REDIS_REDIS_H

#include "claimd/base/counter.h"
#include "claimd/base/mem.h"
#include "claimd/json/reason.h"
#include "claimd/store/sealer.h"
#include "claimd/store/store.h"

struct redis_config {
    struct mem *mem; /* borrowed for the store's life */
    const char
        *url; /* redis://[user:password@]host:port[,host:port...][?replicas=1...] */
    int64_t message_ttl_s, message_delay_s, max_message_ttl_s; /* as in engine_config */
    int64_t dead_letter_ttl_s;                                 /* likewise */
    const struct store_sealer *sealer;                         /* likewise */
    uint64_t feed_bytes;                                       /* likewise */
    bool require_confirmation;                                 /* likewise */
    size_t shown_queues;                                       /* likewise */
    size_t threads;       /* that ask it at a time; 0: one */
    const char *password; /* instead of that in the URL; NULL: that one */
    bool test_clock;      /* the time of operations is the store's, not that of Redis */
    /* Gets a sentence about a setting that may lose data and, from time to time, about why Redis could not run
     * a request; NULL: none. */
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
};

/* Its requests to Redis, and the state of Redis; the times are in us. */
struct redis_figures {
    uint64_t requests, pipelines, redirections, retries, refreshes, unconfirmed,
        connections;
    struct buckets answers, confirmations;
    uint64_t primaries, replicas_least, slots_without_owner;
    int64_t map_age_ms;
    int64_t
        outbox_age_ms; /* of dead letters on their way, in the queues that are shown */
};
extern const struct bucket_bounds redis_times;

void redis_measure(struct store *s, struct redis_figures *out);

/* Is this a URL that redis_open() would take? ST_BAD_VALUE with a reason. */
enum status redis_check_url(const char *url, struct reason *why);

/*
 * Connects, and checks that this Redis keeps confirmed data. ST_NO_MEMORY;
 * ST_UNAVAILABLE with a reason. The store is owned: store_close().
 */
enum status
redis_open(const struct redis_config *config, struct store **out, struct reason *why);

#endif
