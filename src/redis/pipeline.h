/*
 * pipeline: the connection to a node, and the requests that go over it together: what is asked while
 * one pipeline is under way waits, and goes with the next one, all with one WAIT behind them (group
 * commit).
 *
 * Where replicas confirm, a pipeline costs the node, them and their files a turn each, so the next one
 * waits for as many as were there last time: those that were answered just now are likely to ask again.
 * But no longer than half of what that took, nor than 2 ms; who comes later than that goes at once.
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
    PIPELINE_RIDES = 64,       /* at most */
    PIPELINE_BYTES = 256 << 10 /* likewise, but for the last of them */
};

/* What has become of a request. */
enum ride_end {
    RIDE_ANSWERED, /* there is an answer, of whatever kind */
    RIDE_LOST,     /* it may have arrived */
    RIDE_UNLINKED, /* not sent: there is no connection */
    RIDE_HUNG,     /* not sent: those before it were not answered in time */
    RIDE_NO_MEMORY /* not sent */
};

/* A request on its way. */
struct ride {
    struct bytes function;
    const struct command *words; /* behind it */
    unsigned replicas;           /* that are to confirm it; 0: none */
    bool asking;                 /* ASKING in front: the node does not own the slot yet */
    enum ride_end end;           /* out, with what follows: */
    redisReply *answer;          /* owned by who asked */
    bool whole;          /* no answer of its pipeline is missing; or `why` says more */
    long long confirmed; /* by so many replicas; -1: that is not known */
    int64_t answered_ns, confirmed_ns; /* clock_stopwatch_ns() */
    struct reason why;
    struct list link; /* private, as what follows */
    uint64_t number;  /* the last argument; the response begins with it */
    uint16_t node;
    unsigned era;
    struct fiber *fiber; /* that waits for it; NULL: `done` is posted */
    sem_t done;
};

static inline struct ride *
ride_of(struct list *link)
{
    return container_of(link, struct ride, link);
}

struct pipeline {
    struct link link;
    struct list waiting; /* for the next one */
    size_t count;        /* of those that wait */
    struct list riders;  /* under way; none: nothing is */
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
    return !list_empty(&p->riders);
}

/* Something has gone over the link. */
void pipeline_note_progress(struct pipeline *p);

/* One that waits from now on. */
void pipeline_add(struct pipeline *p, struct ride *ride);

/* When the next one is to begin, if nothing is under way and somebody waits. */
int64_t pipeline_due_ns(const struct pipeline *p);

/* Begins the next one, of so many rides at most, which is to be pushed then. ST_NO_MEMORY: nothing of
 * it must be sent. */
enum status pipeline_begin(struct pipeline *p, size_t most, int64_t confirm_ms);

/* What reading has led to. */
enum pipeline_news { PIPELINE_GOES_ON, PIPELINE_ARRIVED, PIPELINE_FAILED };

/* Reads what has come, a good piece at most. ARRIVED: all answers are there, and in the rides. */
enum pipeline_news pipeline_read(struct pipeline *p);

/* There will be no more answers: says so in the rides. */
void pipeline_break_off(struct pipeline *p, const struct reason *why);

/* It is over: moves the rides to the end of a list. */
void pipeline_end(struct pipeline *p, struct list *ended);

/* Nor do those get through that wait. */
void pipeline_turn_away(struct pipeline *p, enum ride_end how, const struct reason *why,
                        struct list *ended);

#endif
