/*
 * wire: the thread over whose connections requests go to the nodes.
 *
 *     struct ride ride = {.function = ..., .words = ...};
 *     wire_ask(&c->wire, node, era, &ride);
 *     if (ride.end == RIDE_ANSWERED)
 *         ... ride.answer ...
 *
 * A node has one connection, and one pipeline under way there (pipeline.h): the more there is to do,
 * the less each request costs the nodes; one that is alone goes at once.
 *
 * The thread never waits for anything but news: it does not open connections. Who asks a node that
 * has none is told so (RIDE_UNLINKED), opens one, hands it over, and asks again.
 *
 *   Order     requests for a node go in the order in which they came
 *   Threads   any
 *   Blocking  wire_ask(), answer_ms at most behind the last piece of an answer: a fiber parks, others
 *             sleep
 *   Memory    200 bytes a node that there may be; what hiredis keeps for each connection. Answers are
 *             hiredis' too: while there are WIRE_HELD bytes of them a pipeline takes one request
 *   Cost      a pipeline: two or three system calls of the thread, and waking those who asked
 */
#ifndef REDIS_WIRE_H
#define REDIS_WIRE_H

#include "redis/map.h"
#include "redis/pipeline.h"

#include <pthread.h>

enum { WIRE_HELD = 64 << 20 };

struct wire_config {
    struct mem *mem; /* borrowed */
    struct hiredis_library *library;
    int64_t confirm_ms; /* until replicas must have confirmed what is asked */
    int64_t answer_ms;  /* between two pieces of answers */
    void (*warn)(void *arg,
                 const char *text); /* of a node that breaks the protocol; or NULL */
    void *warn_arg;
};

struct wire_node; /* private */

struct wire {
    struct wire_config config;
    struct lock lock;         /* of the next two */
    struct list asked, links; /* since the thread has looked */
    _Atomic bool resting;     /* it has to be woken */
    int event_fd, epoll_fd;
    pthread_t thread;
    bool started;
    _Atomic bool closing;
    _Atomic uint64_t pipelines; /* that have come back */
    _Atomic size_t held;        /* bytes of answers that nobody has given back yet */
    _Atomic int64_t hung_ns[MAP_NODES]; /* a node has not answered then; 0: it has */
    _Atomic bool linked[MAP_NODES];     /* there is a connection to it */
    unsigned era;                       /* the thread's, as what follows */
    struct wire_node *nodes;
    struct list ready, under_way; /* nodes: to be looked at; oldest progress first */
};

/* Starts the thread. ST_NO_MEMORY, ST_UNAVAILABLE. */
enum status wire_open(struct wire *w, const struct wire_config *config);

/* Nobody asks any more. Fine if it is not open. */
void wire_close(struct wire *w);

/* Asks a node (its place in the map of that era), and waits. */
void wire_ask(struct wire *w, uint16_t node, unsigned era, struct ride *ride);

/* Frees the answer of a ride; NULL is fine. */
void wire_give_back(struct wire *w, redisReply *answer);

/* Hands over a connection to a node: it is the wire's. One too many is closed. ST_NO_MEMORY: it is
 * closed. */
enum status wire_link(struct wire *w, uint16_t node, unsigned era, struct link *l);

/* Is there one, as far as is known? */
bool wire_is_linked(const struct wire *w, uint16_t node);

/* Has a node not answered a moment ago? Then it is left alone. */
bool wire_is_hung(const struct wire *w, uint16_t node);

/* It has answered somebody else, or has not. */
void wire_heard(struct wire *w, uint16_t node);
void wire_missed(struct wire *w, uint16_t node);

#endif
