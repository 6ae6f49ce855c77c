/*
 * pipeline: the connection to a node, and the requests that go over it together. While one pipeline is under
 * way, new requests wait and go with the next one, all with one WAIT behind them (group commit).
 *
 * If replicas confirm, each pipeline costs the node, its replicas and their files a turn. So the next one waits
 * for as many requests as the last one had, because their callers are likely to ask again. The batching delay is
 * at most half of the time that the last one took, and at most 2 ms. Then it goes at once.
 *
 * Each request ends with a number, and each response begins with it (served() in
 * scripts/lib/queue.lua). If a response has another number, or bytes are left behind the last one, the
 * pipeline fails and its link is closed: no request ever gets the response of another.
 *
 *   Threads   one at a time: the wire's (wire.h)
 *   Blocking  never
 */
#ifndef REDIS_PIPELINE_H
#define REDIS_PIPELINE_H

#include "claimd/base/fiber.h"
#include "claimd/ds/list.h"
#include "redis/link.h"

#include <semaphore.h>

enum {
    PIPELINE_REQUESTS = 64,    /* at most */
    PIPELINE_BYTES = 256 << 10 /* likewise, but for the last of them */
};

enum request_end {
    REQUEST_ANSWERED, /* there is a response of any kind */
    REQUEST_LOST,     /* it may have arrived */
    REQUEST_UNLINKED, /* not sent: there is no connection */
    REQUEST_HUNG,     /* not sent: those before it were not answered in time */
    REQUEST_NO_MEMORY /* not sent */
};

/* A request on its way. */
struct request {
    struct bytes function;
    const struct command *words; /* behind it */
    unsigned replicas;           /* that are to confirm it; 0: none */
    bool asking;                 /* ASKING in front: the node does not own the slot yet */
    enum request_end end;        /* out, with what follows: */
    redisReply *answer;          /* owned by the caller */
    bool whole;          /* no answer of its pipeline is missing; or `why` says more */
    long long confirmed; /* by so many replicas; -1: that is not known */
    int64_t answered_ns, confirmed_ns; /* clock_stopwatch_ns() */
    struct reason why;
    struct list link; /* private, as what follows */
    uint64_t number;  /* the last argument; the response begins with it */
    uint16_t node;
    unsigned generation;
    struct fiber *fiber; /* that waits for it; NULL: `done` is posted */
    sem_t done;
};

static inline struct request *
request_of(struct list *link)
{
    return container_of(link, struct request, link);
}

struct pipeline {
    struct link link;
    struct list waiting; /* for the next one */
    size_t count;        /* of waiting requests */
    struct list sent;    /* under way; none: nothing is */
    struct list
        *at; /* the first of them without an answer; the head: WAIT's is missing */
    uint64_t number;   /* of the request that was added last */
    unsigned replicas; /* that WAIT was asked for; 0: it was not */
    bool asked;        /* the answer to ASKING is there */
    int64_t begun_ns;
    int64_t heard_ns; /* it was sent something, or has answered */
    size_t expected;  /* to come along with the next one, until then: */
    int64_t due_ns;
};

void pipeline_init(struct pipeline *p);

static inline bool
pipeline_is_under_way(const struct pipeline *p)
{
    return !list_empty(&p->sent);
}

/* Adds one for the next pipeline. */
void pipeline_add(struct pipeline *p, struct request *request);

/* When the next one is to begin, if none is under way and requests wait. */
int64_t pipeline_due_ns(const struct pipeline *p);

/* Begins the next one, of so many requests at most, which is to be pushed then. ST_NO_MEMORY: nothing of
 * it must be sent. */
enum status pipeline_begin(struct pipeline *p, size_t most, int64_t confirm_ms);

enum pipeline_news { PIPELINE_GOES_ON, PIPELINE_ARRIVED, PIPELINE_FAILED };

/* Reads the bytes that have come, up to a limit. ARRIVED: all responses are there, in the requests. */
enum pipeline_news pipeline_read(struct pipeline *p);

/* No more responses will come: sets the ends of the requests. */
void pipeline_break_off(struct pipeline *p, const struct reason *why);

/* It is over: moves the requests to the end of a list. */
void pipeline_end(struct pipeline *p, struct list *ended);

/* Ends the requests that wait. */
void pipeline_turn_away(struct pipeline *p, enum request_end how,
                        const struct reason *why, struct list *ended);

#endif
