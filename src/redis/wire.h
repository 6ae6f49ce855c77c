/*
 * wire: the thread that sends requests to the nodes and receives their responses.
 *
 *     struct request request = {.function = ..., .words = ...};
 *     wire_ask(&c->wire, node, generation, &request);
 *     if (request.end == REQUEST_ANSWERED)
 *         ... request.answer ...
 *
 * A node has one connection, with one pipeline under way (pipeline.h). The more there is to do, the less each
 * request costs the nodes. A lone request goes at once.
 *
 * The thread does not open connections. If a node has none, the caller gets REQUEST_UNLINKED, opens one, hands
 * it over, and asks again.
 *
 *   Order     requests for a node go in the order in which they came
 *   Threads   any
 *   Blocking  wire_ask(), answer_ms at most behind the last piece of a response: a fiber parks, a thread
 *             sleeps
 *   Memory    200 bytes a node that there may be; what hiredis keeps for each connection, and responses.
 *             While there are WIRE_HELD bytes of responses, a pipeline takes one request
 *   Cost      a pipeline: two or three system calls of the thread, and waking the callers
 */
#ifndef REDIS_WIRE_H
#define REDIS_WIRE_H

#include "redis/map.h"
#include "redis/pipeline.h"

#include <pthread.h>

enum { WIRE_HELD = 64 << 20 };

/* How to use a cluster (cluster.h), which the wire belongs to. */
struct cluster_config {
    struct mem *mem; /* borrowed */
    struct link_config link;
    struct bytes library; /* of functions; a node that does not have it gets it */
    struct link_address seeds[URL_HOSTS];
    size_t seed_count;
    unsigned replicas;     /* that confirm each change; 0: none do */
    int64_t confirm_ms;    /* until they must have */
    int64_t patience_ms;   /* for nodes that cannot answer now */
    unsigned patient_most; /* requests that may wait so at a time: others fail at once */
    int64_t refresh_ms;    /* the map is not asked for more often */
    void (*warn)(void *arg,
                 const char *text); /* of a node that breaks the protocol; or NULL */
    void *warn_arg;
};

struct wire_node; /* private */

struct wire {
    const struct cluster_config *config; /* borrowed */
    struct lock lock;                    /* of the next two */
    struct list asked, links;            /* for the thread */
    _Atomic bool resting;                /* it has to be woken */
    int event_fd, epoll_fd;
    pthread_t thread;
    bool started;
    _Atomic bool closing;
    _Atomic uint64_t pipelines;         /* that have come back */
    _Atomic size_t held;                /* bytes of responses that callers still hold */
    _Atomic int64_t hung_ns[MAP_NODES]; /* a node has not answered then; 0: it has */
    _Atomic bool linked[MAP_NODES];     /* there is a connection to it */
    unsigned generation;                /* from here on only for the thread */
    struct wire_node *nodes;
    struct list ready, under_way; /* nodes: to be looked at; oldest progress first */
};

/* Starts the thread. ST_NO_MEMORY, ST_UNAVAILABLE. */
enum status wire_open(struct wire *w, const struct cluster_config *config);

/* No request is under way. Fine if it is not open. */
void wire_close(struct wire *w);

/* Asks a node (its place in the map of that generation), and waits. */
void
wire_ask(struct wire *w, uint16_t node, unsigned generation, struct request *request);

/* Frees the answer of a request; NULL is fine. */
void wire_give_back(struct wire *w, redisReply *answer);

/* Hands over a connection to a node: it is the wire's. One too many is closed. ST_NO_MEMORY: it is
 * closed. */
enum status wire_link(struct wire *w, uint16_t node, unsigned generation, struct link *l);

/* Has a node not answered a moment ago? Then it is left alone. */
bool wire_is_hung(const struct wire *w, uint16_t node);

/* Notes that it has responded elsewhere, or has not. */
void wire_heard(struct wire *w, uint16_t node);
void wire_missed(struct wire *w, uint16_t node);

#endif
