/*
 * plan: what the drivers of one phase share and do not change, what a connection remembers between
 * requests, and which request it sends next.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "bench/stats.h"
#include "claimd/base/bytes.h"

#include <time.h>

/* ------------------------------------------------------------------ time */

/*
 * Nanoseconds for measuring. A load generator needs finer time than base/clock
 * gives, and none of what it measures may depend on the wall clock.
 */
#define STOPWATCH_SECOND INT64_C(1000000000)

static inline int64_t
stopwatch_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * STOPWATCH_SECOND + ts.tv_nsec;
}

/*
 * When each request of an open loop is meant to start.
 *
 * The requests of a run are numbered 0, 1, 2 ... and are due at equal distances; request
 * n belongs to connection n mod connections. A connection that is late sends at once, and
 * its latency counts from the due time: a server that stalls is charged for every request
 * that should have been sent meanwhile (no coordinated omission).
 */
struct pace {
    double rate;          /* requests a second over all connections; 0: closed loop */
    int64_t start_ns;     /* when request 0 is due */
    unsigned connections; /* over all threads, > 0 */
};

/* When the round-th request of a connection is due; needs rate > 0. */
static inline int64_t
pace_due(const struct pace *p, unsigned connection, uint64_t round)
{
    double number = (double)round * p->connections + connection;

    return p->start_ns + (int64_t)(number * (double)STOPWATCH_SECOND / p->rate);
}

/* How many requests are due before end_ns; needs rate > 0. */
static inline int64_t
pace_count(const struct pace *p, int64_t end_ns)
{
    struct pace one = {.rate = p->rate, .start_ns = p->start_ns, .connections = 1};
    double about = (double)(end_ns - p->start_ns) * p->rate / (double)STOPWATCH_SECOND;
    uint64_t count = about < 1 ? 0 : (uint64_t)about - 1;

    /* The product is rounded: the due times themselves decide. */
    while (pace_due(&one, 0, count) < end_ns)
        count++;
    return (int64_t)count;
}

/* ------------------------------------------------------------------ plan */

#define BATCH_MAX   100U /* messages a request: Rackspace's largest claim */
#define BODY_NUMBER 16U  /* hexadecimal digits that make every body different */

/* X(name, text, help) */
#define SCENARIO_LIST(X)                                                                 \
    X(POST, "post", "post messages")                                                     \
    X(RELEASE, "release", "claim and release, on a backlog")                             \
    X(CYCLE, "cycle", "post, claim, delete")                                             \
    X(LIST, "list", "list messages, on a backlog")                                       \
    X(MIXED, "mixed", "posts, claims, deletes, releases and listings at random")         \
    X(DELIVERY, "delivery",                                                              \
      "producers post at --rate, workers claim, wait and delete. Measures from due to "  \
      "claimed")                                                                         \
    X(PREPARE, NULL, "phase: create the queues again")                                   \
    X(FILL, NULL, "phase: post the backlog")                                             \
    X(HOLD, NULL, "phase: claim messages and keep them")

enum scenario {
#define SCENARIO_ENUM(name, text, help) SCENARIO_##name,
    SCENARIO_LIST(SCENARIO_ENUM)
#undef SCENARIO_ENUM
        SCENARIO_COUNT
};

/* How a scenario deletes what it has claimed. */
enum delete_mode { DELETE_ONE_BY_ONE, DELETE_IN_BULK };

struct protocol;
struct endpoint;

struct plan {
    const struct protocol *protocol; /* borrowed for the phase, as all pointers here */
    const struct endpoint *endpoint;
    enum scenario scenario;
    enum delete_mode deleting;
    bool spin;            /* poll for answers instead of sleeping */
    unsigned connections; /* over all threads */
    unsigned threads;
    unsigned queues;
    unsigned batch;         /* messages a request, <= BATCH_MAX */
    const char *queue_base; /* queues are BASE-0, BASE-1 ... */
    struct bytes body_head; /* a body is head, BODY_NUMBER digits, tail */
    struct bytes body_tail;
    struct bytes http_tail; /* " HTTP/1.1" and the headers every request has */
    int64_t message_ttl;    /* seconds */
    int64_t claim_ttl;
    int64_t claim_grace;
    int64_t wait; /* claims ask the server to wait so many seconds; 0: they do not */
    unsigned producers; /* DELIVERY: the first so many connections post ... */
    int64_t poll_ns;    /* ... the others pause so long behind an empty claim */

    /* When set, lifetimes (FILL) or claims (HOLD) end within a second after expire_ns. */
    int64_t expire_ns;

    struct pace pace;
    int64_t from_ns;       /* requests that start in [from_ns, to_ns) are recorded */
    int64_t to_ns;         /* none starts later, except to finish what was begun */
    int64_t give_up_ns;    /* whatever is still missing then is cut off */
    int64_t storm_from_ns; /* requests that start in this window are counted apart */
    int64_t storm_to_ns;

    /* PREPARE, FILL, HOLD: how much is left to do; DELIVERY: messages still to arrive. */
    _Atomic int64_t *quota;
};

static inline size_t
plan_body_len(const struct plan *p)
{
    return p->body_head.len + BODY_NUMBER + p->body_tail.len;
}

/* ------------------------------------------------------------------ actor */

/* An id as the server wrote it. */
struct token {
    uint8_t len; /* 0: none */
    char text[63];
};

/* What one connection remembers between requests. */
struct actor {
    uint64_t random; /* state of a small generator, never 0 */
    uint64_t serial; /* of the next body; its high bits are the connection's number */
    unsigned queue;
    bool posted;   /* CYCLE: the claim comes next */
    bool created;  /* PREPARE: the queue was dropped, its creation comes next */
    bool dry;      /* HOLD: nothing left to claim */
    bool worker;   /* DELIVERY: claims and deletes; the others post */
    unsigned held; /* messages in hand are ids[next .. held) */
    unsigned next;
    struct token claim;
    struct token ids[BATCH_MAX];
    int64_t due_ns; /* DELIVERY: when the present post was due; its bodies say so */
    unsigned arrived;
    int64_t arrived_due_ns[BATCH_MAX]; /* DELIVERY: what the bodies in hand say */
};

/* Keeps text as a token; false if it is too long. */
static inline bool
token_set(struct token *t, const char *text, size_t len)
{
    if (len == 0 || len > sizeof t->text)
        return false;
    memcpy(t->text, text, len);
    t->len = (uint8_t)len;
    return true;
}

static inline struct bytes
token_view(const struct token *t)
{
    return bytes_of(t->text, t->len);
}

static inline void
actor_drop_held(struct actor *a)
{
    a->held = 0;
    a->next = 0;
}

/* xorshift64 (Marsaglia 2003): good enough to pick scenarios. */
static inline uint64_t
actor_random(struct actor *a)
{
    a->random ^= a->random << 13;
    a->random ^= a->random >> 7;
    a->random ^= a->random << 17;
    return a->random;
}

/* ------------------------------------------------------------------ scenario */

struct step {
    enum op op;
    unsigned count; /* messages to post, to claim, to delete or to list */
    int64_t ttl;    /* POST: of the messages; CLAIM: of the claim; seconds */
};

extern const struct scenario_text {
    const char *name, *help; /* name NULL: a phase, not for the command line */
} scenarios[SCENARIO_COUNT];

/* The scenario with this name on the command line; SCENARIO_COUNT if there is none. */
enum scenario scenario_find(const char *name);

/*
 * True when the actor holds nothing and stands between two rounds: the place to stop, so
 * that a run leaves nothing claimed behind.
 */
bool scenario_at_start(const struct plan *plan, const struct actor *a);

/*
 * Chooses the next step, which starts (or was due, in an open loop) at start_ns; false
 * when the phase's quota is used up.
 */
bool scenario_next(const struct plan *plan, struct actor *a, int64_t start_ns,
                   struct step *out);

/*
 * How long a connection pauses behind a step that has moved so many messages and took so
 * long, ns: DELIVERY, poll_ns behind an empty claim. One that took as long as the pause is
 * one that the server has waited with. A pause is up to a quarter shorter or longer:
 * workers that happened to poll at the same moment would do so for ever.
 */
int64_t scenario_pause(const struct plan *plan, struct actor *a, const struct step *step,
                       unsigned messages, int64_t took_ns);

/* The operation whose messages are the scenario's throughput. */
enum op scenario_counted(const struct plan *plan);

#endif
