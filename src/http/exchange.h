/*
 * exchange: everything one request needs, from its target to its sent response.
 *
 * A worker takes an exchange from its pool when a request's target is known, and returns it when
 * libmicrohttpd has sent the response or failed to. So an idle connection has none. The response's
 * body stays in `response.body` until then: libmicrohttpd sends it from there, without a copy.
 *
 *     HEAD --> BODY, DISCARD --> respond.h --> RESPONDED
 *                                 |  ^            ^
 *                                 v  |            |
 *      TURN, WAITING, REMOTE, IDENTITY, COMMIT, DELAYED ----> READY
 *
 *   Memory   a pool keeps up to EXCHANGE_SPARE unused exchanges, each with at most
 *            EXCHANGE_KEEP bytes for a body and as much for a response
 *   Threads  none: pool and exchanges belong to one worker
 */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include "claimd/api/api.h"
#include "claimd/base/fiber.h"
#include "claimd/ds/wheel.h"
#include "http/conn.h"

/*
 * A request id is unique over threads and restarts:
 *
 *     3f2a9c1e-03-000000002a
 *     |        |  counter of this source
 *     |        source: the worker, or the accepting thread
 *     random tag of this run of the server
 */
#define REQUEST_ID_CAP 23

struct request_ids {
    char prefix[12]; /* tag and source, hyphens included */
    uint64_t last;
};

/* tag: at least 8 characters, of which the first 8 are used. */
void request_ids_init(struct request_ids *ids, const char *tag, unsigned source);

/* Writes the next id and a NUL. Threads: none, each source has its own. */
void request_ids_next(struct request_ids *ids, char out[REQUEST_ID_CAP]);

enum { EXCHANGE_SPARE = 64, EXCHANGE_KEEP = 16384, EXCHANGE_METHOD_CAP = 16 };

enum exchange_state {
    EXCHANGE_HEAD,     /* the headers are not known yet */
    EXCHANGE_BODY,     /* collecting */
    EXCHANGE_DISCARD,  /* too large, or no memory: reading on without keeping */
    EXCHANGE_TURN,     /* waits for its next slice, or for a free fiber */
    EXCHANGE_WAITING,  /* for a message, until its waiter is woken or its time is over */
    EXCHANGE_REMOTE,   /* its fiber is parked, and waits for the store */
    EXCHANGE_IDENTITY, /* likewise for Keystone */
    EXCHANGE_COMMIT,   /* the response exists, but its change is not durable yet */
    EXCHANGE_DELAYED,  /* the response exists, and a test wants it late */
    EXCHANGE_READY,    /* the response exists and has to be queued */
    EXCHANGE_RESPONDED,
    EXCHANGE_STATES
};

/* Of a response in pieces (fault rules): the next one is due, was sent, or has to wait. */
enum piece { PIECE_DUE, PIECE_SENT, PIECE_WAITS };

/* The space that a request takes of its connection's memory besides the bytes of its head. */
struct head_use {
    size_t head;    /* bytes of the head */
    size_t records; /* headers and cookies */
    size_t cookies; /* bytes of the header that libmicrohttpd takes the cookies from */
};

/* Of an exchange: what its head says about the rest. */
struct head {
    uint64_t content_length; /* 0 without the header */
    struct head_use use;
    const char *end; /* in the connection's memory; the body is read from here on */
    bool chunked;
    bool expects_continue; /* the client waits for 100 before it sends the body */
};

struct exchange {
    struct exchange *next; /* in the pool */
    struct conn *conn;     /* borrowed while in use */
    enum exchange_state state;
    struct head head;
    struct arena arena;
    struct request request;
    struct response response;
    struct waiting waiting;  /* lent to the request */
    struct deadline due;     /* WAITING, DELAYED, PIECE_WAITS: in the worker's wheel */
    int64_t until_ms;        /* when its waiting is over; 0: never has waited */
    unsigned events;         /* came while a fiber had it */
    struct list commit;      /* COMMIT: among the worker's, by LSN */
    struct fiber *fiber;     /* REMOTE, IDENTITY: it has the exchange */
    enum api_next next_step; /* what the API returned in the fiber */
    struct buf body;         /* of the request */
    uint64_t received;       /* bytes of body seen, kept or not */
    uint64_t sent_before;    /* TCP: bytes given to the kernel before it was suspended */
    struct bytes raw_target; /* in libmicrohttpd's memory, until it decodes */
    struct bytes client_id, traceparent; /* for the log, of the arena; or absent */
    char method[EXCHANGE_METHOD_CAP];    /* for the log; may be cut */
    char id[REQUEST_ID_CAP];
    int64_t started_ns; /* of clock_stopwatch_ns(): when it could be read */
    int code;           /* of the response; 0: none was given here */
    enum piece piece;   /* RESPONDED */
    size_t sent;        /* bytes of the response's body */
    bool no_memory;     /* respond with 503 */
    bool closing;       /* the response is the connection's last */
    bool counted;       /* among the long-polling requests, which have a limit */
};

struct exchange_pool {
    struct mem *mem; /* borrowed */
    struct exchange *spare;
    size_t spare_count;
};

void exchange_pool_init(struct exchange_pool *pool, struct mem *mem);
void exchange_pool_fini(struct exchange_pool *pool);

/*
 * Takes an exchange and begins it with a target, which is copied: libmicrohttpd changes it
 * in place. The scheme and authority of an absolute target are left out. NULL without memory.
 */
struct exchange *
exchange_begin(struct exchange_pool *pool, struct conn *conn, const char *target);

/* Notes the request's method, for the API and, perhaps cut, for the log. */
void exchange_set_method(struct exchange *ex, struct bytes name);

/* Returns it to the pool. */
void exchange_end(struct exchange_pool *pool, struct exchange *ex);

/*
 * Keeps a piece of body, up to `limit` bytes in all; beyond that, without memory, or when a
 * large body does not fit into the budget, forgets what was kept and remembers why.
 */
void
exchange_append_body(struct exchange *ex, const char *data, size_t len, size_t limit);

/* The body is known to be longer than allowed. */
void exchange_refuse_body(struct exchange *ex);

#endif
