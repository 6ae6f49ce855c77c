/*
 * exchange: everything one request needs, from its target to its sent response.
 *
 * A worker takes an exchange from its pool when the target of a request is known, and
 * returns it after libmicrohttpd has sent the response or failed. So an idle connection
 * has none. Until then libmicrohttpd sends the body of the response from `response.body`,
 * without a copy.
 *
 *     HEAD --> BODY, DISCARD --> respond.h --> RESPONDED
 *                                 |  ^            ^
 *                                 v  |            |
 *      TURN, WAITING, REMOTE, IDENTITY, COMMIT, DELAYED ----> READY
 *
 * Between two events of a stream, an exchange goes from RESPONDED to STREAM, then back
 * through READY.
 *
 *   Memory   a pool keeps up to EXCHANGE_SPARE unused exchanges, each with at most
 *            EXCHANGE_KEEP bytes for a body and as much for a response
 *   Threads  a pool and its exchanges belong to one worker
 */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include "claimd/api/api.h"
#include "claimd/base/fiber.h"
#include "claimd/ds/wheel.h"
#include "http/conn.h"

/*
 * A request id is unique over threads and restarts, and has the form of OpenStack's:
 *
 *     req-3f2a9c1e-0003-4c6e-8f70-00000000002a
 *         |        |    |         counter of this source
 *         |        |    random tag, continued
 *         |        source: the worker, or the accepting thread
 *         random tag of this run of the server, a UUID
 */
#define REQUEST_ID_CAP 41

struct request_ids {
    char prefix[28]; /* tag and source, hyphens included */
    uint64_t last;
};

/* tag: the text of a UUID. */
void request_ids_init(struct request_ids *ids, const char *tag, unsigned source);

/* Writes the next id and a NUL. Each source has its own struct: no locks. */
void request_ids_next(struct request_ids *ids, char out[REQUEST_ID_CAP]);

enum { EXCHANGE_SPARE = 64, EXCHANGE_KEEP = 16384, EXCHANGE_METHOD_CAP = 16 };

enum exchange_state {
    EXCHANGE_HEAD,     /* the headers are not known yet */
    EXCHANGE_BODY,     /* the body is being collected */
    EXCHANGE_DISCARD,  /* the body is read and discarded: it is too large, or no memory */
    EXCHANGE_TURN,     /* waits for its next slice, or for a free fiber */
    EXCHANGE_WAITING,  /* long polling, until its waiter is woken or its deadline */
    EXCHANGE_REMOTE,   /* its parked fiber waits for the store */
    EXCHANGE_IDENTITY, /* its parked fiber waits for Keystone */
    EXCHANGE_COMMIT,   /* the response exists, but its change is not durable yet */
    EXCHANGE_DELAYED,  /* the response exists, and an injected fault delays it */
    EXCHANGE_STREAM, /* a part of a stream was sent, and the next event is not due yet */
    EXCHANGE_READY,  /* the response exists and has to be queued */
    EXCHANGE_RESPONDED,
    EXCHANGE_STATES
};

/* The next piece of a response in pieces (an injected fault). */
enum piece { PIECE_DUE, PIECE_SENT, PIECE_WAITS };

/* The memory of a connection that the head of a request takes. */
struct head_use {
    size_t head;    /* bytes of the head */
    size_t records; /* headers and cookies */
    size_t cookies; /* bytes of the header that libmicrohttpd reads cookies from */
};

/* The facts about a body in the head of its request. */
struct head {
    uint64_t content_length; /* 0 without the header */
    struct head_use use;
    /* Of the head, in the connection's memory; a body is read behind it. */
    const char *end;
    bool chunked;
    bool expects_continue; /* the client waits for 100 before it sends the body */
};

/* The progress of a stream of events. */
struct stream {
    uint64_t begin;         /* bytes of the stream before the present event */
    struct arena_mark mark; /* before the first call of the API */
    int64_t sent_ms;        /* when libmicrohttpd had taken the last event */
    bool last;              /* the present event ends the stream */
    bool over;              /* the stream ends without a further event */
};

struct exchange {
    struct exchange *next; /* in the pool */
    struct conn *conn;     /* borrowed while in use */
    enum exchange_state state;
    struct head head;
    struct arena arena;
    struct request request;
    struct response response;
    struct waiting waiting;  /* borrowed by the request */
    struct deadline due;     /* WAITING, DELAYED, PIECE_WAITS: in the worker's wheel */
    int64_t until_ms;        /* deadline of its long polling; 0: it has never waited */
    int64_t load_began_ns;   /* of a wait for the disk; 0: none */
    unsigned events;         /* event bits that came while a fiber had the exchange */
    struct list commit;      /* COMMIT: in the worker's list, by LSN */
    struct fiber *fiber;     /* REMOTE, IDENTITY: the fiber has the exchange */
    enum api_next next_step; /* the result of the API in the fiber */
    struct buf body;         /* of the request */
    uint64_t received;       /* bytes of body, kept or discarded */
    /* TCP: socket_sent_bytes() when the exchange was suspended. */
    uint64_t sent_before;
    struct bytes raw_target; /* in libmicrohttpd's memory, until it decodes the target */
    struct bytes client_id, traceparent; /* for the log; from the arena, or absent */
    struct bytes forwarded;              /* X-Forwarded-For of a proxy; likewise */
    char method[EXCHANGE_METHOD_CAP];    /* for the log; may be cut */
    char id[REQUEST_ID_CAP];
    int64_t started_ns; /* clock_stopwatch_ns() of the round in which the target came */
    int code;           /* of the response; 0: claimd has made none */
    enum piece piece;   /* RESPONDED */
    struct stream stream;
    size_t sent;    /* bytes of the response's body */
    bool no_memory; /* respond with 503 */
    bool closing;   /* the connection ends with the response */
    bool counted;   /* in worker_shared.waiters */
};

struct exchange_pool {
    struct mem *mem; /* borrowed */
    struct exchange *spare;
    size_t spare_count;
};

void exchange_pool_init(struct exchange_pool *pool, struct mem *mem);
void exchange_pool_fini(struct exchange_pool *pool);

/*
 * Begins an exchange with a copy of the target, because libmicrohttpd changes the target
 * in place. The copy lacks the scheme and authority of an absolute target. NULL without
 * memory.
 */
struct exchange *
exchange_begin(struct exchange_pool *pool, struct conn *conn, const char *target);

/* Sets the request's method, for the API and, perhaps cut, for the log. */
void exchange_set_method(struct exchange *ex, struct bytes name);

/* Returns an exchange to the pool. */
void exchange_end(struct exchange_pool *pool, struct exchange *ex);

/*
 * Appends a piece of body, up to `limit` bytes in all. Beyond the limit, without memory,
 * or if a large body does not fit into the budget, the exchange discards its body and
 * sets body_too_large or no_memory.
 */
void
exchange_append_body(struct exchange *ex, const char *data, size_t len, size_t limit);

/* Discards the body and sets body_too_large. */
void exchange_refuse_body(struct exchange *ex);

#endif
