/*
 * plan: the constant settings of a phase, which all drivers share; the state of a
 * connection between two requests (actor); and the choice of its next request (scenario).
 */
#ifndef LOAD_PLAN_H
#define LOAD_PLAN_H

#include "claimd/base/bytes.h"
#include "load/stats.h"

#include <time.h>

/* ------------------------------------------------------------------ time */

/* Monotonic time in nanoseconds: measurements must not depend on the wall clock. */
#define STOPWATCH_SECOND INT64_C(1000000000)

static inline int64_t
stopwatch_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * STOPWATCH_SECOND + ts.tv_nsec;
}

/*
 * Due times of the requests of an open loop.
 *
 * Requests are numbered 0, 1, 2 ... and are due at equal distances. Request n belongs to
 * connection n mod connections. A late connection sends at once, and its latency counts
 * from the due time. So a stall of the server counts for every request that was due
 * meanwhile (no coordinated omission).
 */
struct pace {
    double rate;          /* requests per second of all connections; 0: closed loop */
    int64_t start_ns;     /* due time of request 0 */
    unsigned connections; /* over all threads, > 0 */
};

/* Due time of the round-th request of a connection. Needs rate > 0. */
static inline int64_t
pace_due(const struct pace *p, unsigned connection, uint64_t round)
{
    double number = (double)round * p->connections + connection;

    return p->start_ns + (int64_t)(number * (double)STOPWATCH_SECOND / p->rate);
}

/* Number of requests that are due before end_ns. Needs rate > 0. */
static inline int64_t
pace_count(const struct pace *p, int64_t end_ns)
{
    struct pace one = {.rate = p->rate, .start_ns = p->start_ns, .connections = 1};
    double about = (double)(end_ns - p->start_ns) * p->rate / (double)STOPWATCH_SECOND;
    uint64_t count = about < 1 ? 0 : (uint64_t)about - 1;

    /* The product is rounded, so compare the due times themselves. */
    while (pace_due(&one, 0, count) < end_ns)
        count++;
    return (int64_t)count;
}

/* ------------------------------------------------------------------ plan */

#define BATCH_MAX   100U /* messages per request: the largest claim of Rackspace */
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
      "claimed")

enum scenario {
#define SCENARIO_ENUM(name, text, help) SCENARIO_##name,
    SCENARIO_LIST(SCENARIO_ENUM)
#undef SCENARIO_ENUM
        SCENARIO_PREPARE, /* phase: create the queues again */
    SCENARIO_FILL,        /* phase: post the backlog */
    SCENARIO_HOLD,        /* phase: claim messages and keep them */
    SCENARIO_COUNT
};

enum delete_mode { DELETE_ONE_BY_ONE, DELETE_IN_BULK };

struct protocol;
struct endpoint;

struct plan {
    const struct protocol *protocol; /* all pointers are borrowed for the phase */
    const struct endpoint *endpoint;
    enum scenario scenario;
    enum delete_mode deleting;
    bool spin;            /* poll for responses instead of sleeping */
    unsigned connections; /* of all threads */
    unsigned threads;
    unsigned queues;
    unsigned batch;         /* messages per request, at most BATCH_MAX */
    const char *queue_base; /* queues are BASE-0, BASE-1 ... */
    struct bytes body_head; /* a body consists of head, BODY_NUMBER digits and tail */
    struct bytes body_tail;
    struct bytes http_tail; /* " HTTP/1.1" and the headers of every request */
    int64_t message_ttl;    /* seconds */
    int64_t claim_ttl;
    int64_t claim_grace;
    int64_t wait;       /* long polling of claims, seconds; 0: none */
    unsigned producers; /* DELIVERY: the first connections post, the others are workers */
    int64_t poll_ns;    /* DELIVERY: pause of a worker after an empty claim */

    /* If not 0, messages (FILL) or claims (HOLD) expire in the second after expire_ns. */
    int64_t expire_ns;

    struct pace pace;
    int64_t from_ns;    /* requests that start in [from_ns, to_ns) are recorded */
    int64_t to_ns;      /* later requests only finish rounds that have begun */
    int64_t give_up_ns; /* the phase ends, even if responses are missing */
    int64_t storm_from_ns, storm_to_ns; /* requests that start in between count apart */

    /* PREPARE, FILL, HOLD: remaining queues or messages; DELIVERY: messages not yet
     * claimed. */
    _Atomic int64_t *quota;
};

static inline size_t
plan_body_len(const struct plan *p)
{
    return p->body_head.len + BODY_NUMBER + p->body_tail.len;
}

/* ------------------------------------------------------------------ actor */

/* A message or claim id, as the server wrote it. */
struct id {
    uint8_t len; /* 0: none */
    char text[63];
};

/* State of one connection between requests. */
struct actor {
    uint64_t random; /* state of the random generator, never 0 */
    /* Number of the next body; the high bits are the connection's number. */
    uint64_t serial;
    unsigned queue;
    bool posted;      /* CYCLE: the claim is next */
    bool dropped;     /* PREPARE: the queue was deleted, its creation is next */
    bool queue_empty; /* HOLD: nothing is left to claim */
    bool worker;      /* DELIVERY: claims and deletes; the others post */
    unsigned held;    /* claimed messages are ids[next .. held) */
    unsigned next;
    struct id claim;
    struct id ids[BATCH_MAX];
    /* DELIVERY: a body contains the due time of its post. */
    int64_t due_ns;   /* of the current post */
    unsigned arrived; /* messages of the last claim */
    int64_t arrived_due_ns[BATCH_MAX];
};

/* Copies an id. False if it is empty or too long. */
static inline bool
id_set(struct id *t, const char *text, size_t len)
{
    if (len == 0 || len > sizeof t->text)
        return false;
    memcpy(t->text, text, len);
    t->len = (uint8_t)len;
    return true;
}

static inline struct bytes
id_view(const struct id *t)
{
    return bytes_of(t->text, t->len);
}

static inline void
actor_drop_messages(struct actor *a)
{
    a->held = 0;
    a->next = 0;
}

/* xorshift64 (Marsaglia 2003). */
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
    unsigned count; /* messages to post, claim, delete or list */
    int64_t ttl;    /* of the messages (POST) or of the claim (CLAIM), seconds */
};

/* NULL: a phase, which the command line cannot name. */
extern const char *const scenario_names[SCENARIO_COUNT];

/* Finds a scenario by its name on the command line. SCENARIO_COUNT if there is none. */
enum scenario scenario_find(const char *name);

/* True if the actor is between two rounds and holds no messages. A run stops only
 * there. */
bool scenario_at_start(const struct plan *plan, const struct actor *a);

/*
 * Chooses the next step. start_ns is its start or, in an open loop, its due time. False
 * if the quota of the phase is used up.
 */
bool scenario_next(const struct plan *plan, struct actor *a, int64_t start_ns,
                   struct step *out);

/*
 * Pause of a connection after a step, ns: about poll_ns after an empty claim in DELIVERY,
 * otherwise 0. With long polling, there is no pause after a claim for which the server
 * waited at least poll_ns. A random quarter is added or subtracted, so that workers do
 * not poll in step.
 */
int64_t scenario_pause(const struct plan *plan, struct actor *a, const struct step *step,
                       unsigned messages, int64_t took_ns);

/* The operation whose messages count as the throughput of the scenario. */
enum op scenario_counted(const struct plan *plan);

#endif
