/*
 * hosts: decides which hosts may have a transfer now, so that slow hosts do not delay
 * others.
 *
 *     all        at most `workers` transfers at a time
 *     a host     at most half of them
 *     slow hosts (the last transfer timed out, or took long) together at most half of all
 *     unproven   slow hosts and new ones together at most three quarters. The rest is
 *                always left for hosts that respond
 *
 * A delivery without capacity waits in the queue of its host, with at most
 * HOST_QUEUE_MOST a host and QUEUED_MOST in all. Beyond that, the notifier returns it to
 * the store, for as long as the host is likely to need for those before it. So the memory
 * here does not depend on the number of due deliveries.
 *
 *     host:   idle --hosts_find()--> in use (queued or running)
 *             in use --host_release(), host_end()--> idle --> removed
 *
 *   Cost     O(1); hosts_dequeue() O(hosts with a queue, at most QUEUED_MOST)
 *   Memory   a host in use, and HOSTS_REMEMBERED idle hosts, the latest ones
 *   Threads  one
 */
#ifndef NOTIFY_HOSTS_H
#define NOTIFY_HOSTS_H

#include "claimd/base/counter.h"
#include "claimd/base/hash.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/list.h"

enum { HOST_QUEUE_MOST = 8, QUEUED_MOST = 256, HOSTS_REMEMBERED = 4096 };

struct host {
    struct hashnode node; /* of hosts.map */
    struct list link;     /* of hosts.queued, of hosts.idle, or of none */
    struct list queue;    /* deliveries that wait for capacity; their links */
    size_t waiting, running;
    size_t backed_off; /* deliveries that the store has again, and that come back */
    enum pace { HOST_NEW, HOST_QUICK, HOST_SLOW, PACES } pace;
    int64_t typical_ms; /* duration of a transfer, a moving average */
    char origin[];
};

struct hosts {
    struct mem *mem;
    struct hash_key key;
    struct hashmap map;
    struct list queued; /* hosts with a queue, in turns */
    struct list idle;   /* hosts without deliveries, longest idle first */
    size_t idle_count;
    size_t workers, waiting, running;
    size_t by_pace[PACES]; /* running transfers of hosts with this pace */
    int64_t slow_ms;       /* duration from which on a transfer is slow */
    struct counter slow;   /* number of slow hosts */
};

void hosts_init(struct hosts *h, struct mem *mem, struct hash_key key, size_t workers,
                int64_t slow_ms);

/* No host may be in use. */
void hosts_fini(struct hosts *h);

/* Finds or adds the host of this origin. The caller must use or release it at once. NULL:
 * no memory. */
struct host *hosts_find(struct hosts *h, const char *origin);

/* True if the host may have one more transfer now, and no delivery waits for it. */
bool host_has_capacity(const struct hosts *h, const struct host *host);

/* A transfer begins, and ends. responded: false if it timed out. */
void host_begin(struct hosts *h, struct host *host);
void host_end(struct hosts *h, struct host *host, int64_t duration_ms, bool responded);

/* Adds a delivery to the queue of its host. False: the queue is full, and *wait_ms is the
 * time until the next try. */
bool
host_enqueue(struct hosts *h, struct host *host, struct list *link, int64_t *wait_ms);

/* Removes the next delivery whose *host has capacity (drain: any delivery) from its
 * queue. NULL: there is none. */
struct list *hosts_dequeue(struct hosts *h, bool drain, struct host **host);

/* The caller does not use the host that it found. */
void host_release(struct hosts *h, struct host *host);

#endif
