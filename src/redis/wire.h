/*
 * wire: the thread that sends requests to the nodes of a cluster and receives their
 * responses.
 *
 *     struct wire_request request = {.function = ..., .words = ...};
 *     wire_run(&c->wire, node, generation, &request);
 *     if (request.outcome == REQUEST_RESPONDED)
 *         ... request.response ...
 *
 * Each node has one connection and one pipeline under way. The more requests there are,
 * the less each request costs the nodes. If a request is alone, the wire sends it at
 * once.
 *
 * The thread does not open connections. If a node has none, the caller gets
 * REQUEST_UNLINKED, opens a connection, gives it to the wire and runs the request again.
 *
 *   Order     the wire sends the requests for a node in the order in which they came
 *   Threads   any
 *   Blocking  wire_run(), until response_ms after the last piece of a response: a fiber
 *             parks, a thread sleeps
 *   Memory    200 bytes for each of MAP_NODES; the buffers of hiredis for each
 *             connection; responses. While callers hold WIRE_RESPONSE_BYTES of responses,
 *             a pipeline has one request
 *   Cost      of a pipeline: two or three system calls of the thread, and waking the
 *             callers
 */
#ifndef REDIS_WIRE_H
#define REDIS_WIRE_H

#include "claimd/base/fiber.h"
#include "claimd/base/lock.h"
#include "claimd/ds/list.h"
#include "redis/link.h"

#include <pthread.h>
#include <semaphore.h>

/* ---------------------------------------------------------------------- pipeline */

/*
 * The connection to a node, and the requests that are sent together. While one pipeline
 * is under way, new requests wait. The next pipeline carries all of them, with one WAIT
 * at its end (group commit).
 *
 * If replicas confirm changes, each pipeline costs a round trip to them and a sync of
 * their files. Therefore the next pipeline waits until it has as many requests as the
 * last one, because the same callers are likely to send requests again. It waits at most
 * half of the time that the last pipeline took, and at most 2 ms.
 *
 * Each request ends with a number, and its response begins with this number
 * (make_callback() in scripts/lib/queue.lua). If the numbers differ, or bytes are left
 * after the last response, the pipeline fails and the wire closes its link. So no request
 * ever gets the response of another request.
 *
 *   Threads   one: that of the wire
 *   Blocking  never
 *
 *     pipeline_add() --> waiting --pipeline_begin()--> sent --pipeline_read()--> COMPLETE
 *                           |                           |                            |
 *                           |                           | pipeline_abort()           |
 *                           v                           v                            v
 *                    pipeline_reject_waiting()          +-----> pipeline_end() <-----+
 */
enum {
    PIPELINE_REQUESTS = 64,    /* maximum number of requests of a pipeline */
    PIPELINE_BYTES = 256 << 10 /* maximum size of the requests before the last one */
};

enum request_outcome {
    REQUEST_RESPONDED, /* there is a response, perhaps an error */
    REQUEST_LOST,      /* Redis may have executed the request */
    REQUEST_UNLINKED,  /* not sent: there is no connection */
    REQUEST_HUNG,     /* not sent: the node did not respond to earlier requests in time */
    REQUEST_NO_MEMORY /* not sent */
};

/* One call of a function. */
struct wire_request {
    struct bytes function;
    const struct command_words *words; /* after the function */
    unsigned replicas;                 /* number that must confirm the request; 0: none */
    bool asking; /* send ASKING first: the node does not own the slot yet */
    /* Results: */
    enum request_outcome outcome;
    redisReply *response; /* owned by the caller */
    int64_t due_ms; /* behind the response (mark_due() of lib/queue.lua); 0: nothing */
    bool whole;     /* all responses of the pipeline arrived; else `why` has a reason */
    long long confirmed; /* number of replicas that confirmed; -1: unknown */
    int64_t responded_ns, confirmed_ns; /* clock_stopwatch_ns() */
    struct reason why;
    /* Private: */
    struct list link;
    uint64_t number; /* last argument of the request, first word of the response */
    uint16_t node;
    unsigned generation;
    struct fiber *fiber; /* parked caller; NULL: `done` is posted */
    sem_t done;
};

static inline struct wire_request *
request_of(struct list *link)
{
    return container_of(link, struct wire_request, link);
}

struct pipeline {
    struct link link;
    struct list waiting; /* requests of the next pipeline */
    size_t count;        /* of waiting requests */
    struct list sent;    /* requests under way */
    /* First of `sent` without a response; &sent: only WAIT lacks one. */
    struct list *next;
    uint64_t number;       /* number of the latest request */
    unsigned replicas;     /* argument of WAIT; 0: the pipeline has no WAIT */
    bool asking_confirmed; /* the response to ASKING has arrived */
    int64_t begun_ns;
    int64_t progress_ns; /* the last write or read */
    /* Number of requests that the next pipeline waits for, until due_ns. */
    size_t expected;
    int64_t due_ns;
};

void pipeline_init(struct pipeline *p);

static inline bool
pipeline_is_under_way(const struct pipeline *p)
{
    return !list_empty(&p->sent);
}

/* Adds a request to the next pipeline. */
void pipeline_add(struct pipeline *p, struct wire_request *request);

/* Returns the time at which the next pipeline is due. Requests must wait, and no pipeline
 * may be under way. */
int64_t pipeline_due_ns(const struct pipeline *p);

/* Begins the next pipeline, with at most `most` requests. The caller writes it with
 * link_write(). ST_NO_MEMORY: the caller must not write. */
enum status pipeline_begin(struct pipeline *p, size_t most, int64_t confirm_ms);

enum pipeline_state { PIPELINE_INCOMPLETE, PIPELINE_COMPLETE, PIPELINE_FAILED };

/* Reads what has arrived, up to a limit. COMPLETE: all requests have their responses. */
enum pipeline_state pipeline_read(struct pipeline *p);

/* Sets the outcomes of the sent requests. The caller closes the link afterwards, so no
 * more responses arrive. */
void pipeline_abort(struct pipeline *p, const struct reason *why);

/* Moves the sent requests to the end of a list. */
void pipeline_end(struct pipeline *p, struct list *ended);

/* Ends the waiting requests with this outcome. */
void pipeline_reject_waiting(struct pipeline *p, enum request_outcome outcome,
                             const struct reason *why, struct list *ended);

/* ---------------------------------------------------------------------- wire */

enum { MAP_NODES = 1024, WIRE_RESPONSE_BYTES = 64 << 20 };

/* The configuration of a cluster (cluster.h) and its wire. */
struct cluster_config {
    struct mem *mem; /* borrowed */
    struct link_config link;
    /* Function library; the cluster loads it into each node that lacks it. */
    struct bytes library;
    struct link_address seeds[URL_HOSTS];
    size_t seed_count;
    unsigned replicas;   /* number that must confirm each change; 0: none */
    int64_t confirm_ms;  /* time limit for the confirmation */
    int64_t patience_ms; /* time limit for retries while a node is temporarily unable */
    /* Requests that back off at a time. Beyond it, requests fail at once. */
    unsigned patient_most;
    int64_t refresh_ms; /* least time between two refreshes of the map */
    void (*warn)(void *arg,
                 const char *text); /* about violations of the protocol; or NULL */
    void *warn_arg;
};

struct wire_node; /* private */

struct wire {
    const struct cluster_config *config; /* borrowed */
    struct lock lock;                    /* guards `requests` and `links` */
    struct list requests, links;         /* not yet taken over by the thread */
    _Atomic bool sleeping;               /* the thread must be woken */
    int event_fd, epoll_fd;
    pthread_t thread;
    bool started;
    _Atomic bool closing;
    _Atomic uint64_t pipelines;         /* number of pipelines that have ended */
    _Atomic size_t response_bytes;      /* size of the responses that callers hold */
    _Atomic int64_t hung_ns[MAP_NODES]; /* last timeout; 0: none since a response */
    _Atomic bool linked[MAP_NODES];     /* there is a connection */
    /* Only the thread uses the members below. */
    unsigned generation;
    struct wire_node *nodes;
    struct list ready;     /* nodes with waiting requests and no pipeline under way */
    struct list under_way; /* nodes with a pipeline under way, oldest progress first */
};

/* Starts the thread. ST_NO_MEMORY, ST_UNAVAILABLE. */
enum status wire_open(struct wire *w, const struct cluster_config *config);

/* Ends the thread. No request may be under way. Call it also if wire_open() has
 * failed. */
void wire_close(struct wire *w);

/* Runs a request on a node (its index in the map of that generation), and waits for the
 * outcome. */
void wire_run(struct wire *w, uint16_t node, unsigned generation,
              struct wire_request *request);

/* Frees the response of a request. NULL is fine. */
void wire_free_response(struct wire *w, redisReply *response);

/* Gives the wire a connection to a node. If the node has a connection already, or there
 * is no memory (ST_NO_MEMORY), the wire closes the link. */
enum status
wire_offer_link(struct wire *w, uint16_t node, unsigned generation, struct link *l);

/* True if the node has not responded within the last second. The wire sends no request to
 * such a node. */
bool wire_is_hung(const struct wire *w, uint16_t node);

/* Note a response of the node, or a timeout, on another connection. */
void wire_note_response(struct wire *w, uint16_t node);
void wire_note_timeout(struct wire *w, uint16_t node);

#endif
