/*
 * api: a request in, a response out; no sockets and no threads of its own.
 *
 * api_handle() routes a request, checks it in the order of docs/api.md 3.1,
 * calls the store and shapes the answer. It works the same for the HTTP front end, the
 * tests, the simulation and the fuzzer. What takes long it does in slices, between which
 * others may have their turn (docs/adr/0005-slices.md), and what has to wait for something
 * says so (docs/adr/0006-waiting.md).
 *
 *   Threads  any number of requests at once on one `struct api`; it never changes
 */
#ifndef CLAIMD_API_API_H
#define CLAIMD_API_API_H

#include "claimd/api/limits.h"
#include "claimd/auth/access.h"
#include "claimd/auth/auth.h"
#include "claimd/auth/signer.h"
#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/base/clock.h"
#include "claimd/base/status.h"
#include "claimd/json/reason.h"
#include "claimd/metrics/exposition.h"
#include "claimd/seal/seal.h"
#include "claimd/store/store.h"
#include "claimd/testapi/testapi.h"

#include <stdatomic.h>

/* ------------------------------------------------------------------ request */

enum method {
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_PATCH,
    METHOD_DELETE,
    METHOD_OPTIONS,
    METHOD_OTHER,
    METHOD_COUNT
};

/* The headers that mean something to the API, the most frequent first; X(name, text). */
#define API_HEADER_LIST(X)                                                               \
    X(HOST, "Host")                                                                      \
    X(CLIENT_ID, "Client-ID")                                                            \
    X(PROJECT_ID, "X-Project-ID")                                                        \
    X(CONTENT_TYPE, "Content-Type")                                                      \
    X(ACCEPT, "Accept")                                                                  \
    X(AUTH_TOKEN, "X-Auth-Token")                                                        \
    X(AUTHORIZATION, "Authorization")                                                    \
    X(SUBJECT_TOKEN, "X-Subject-Token")                                                  \
    X(URL_SIGNATURE, "URL-Signature")                                                    \
    X(URL_EXPIRES, "URL-Expires") /* these three mean something only beside it */        \
    X(URL_METHODS, "URL-Methods")                                                        \
    X(URL_PATHS, "URL-Paths")                                                            \
    X(PREFER, "Prefer")                                                                  \
    X(ORIGIN, "Origin")                                                                  \
    X(REQUEST_ID, "X-Request-ID") /* of others; the front end's, as is the next */       \
    X(TRACEPARENT, "traceparent")                                                        \
    X(FAULT, "Claimd-Fault") /* with the test API */

enum api_header {
#define API_HEADER_ENUM(name, text) API_HEADER_##name,
    API_HEADER_LIST(API_HEADER_ENUM)
#undef API_HEADER_ENUM
        API_HEADER_COUNT
};

/* Longest name kept between slices. */
#define PROGRESS_NAME_MAX 64

/* The fault that tests inject into a request (docs/api.md 23.7). */
struct injected_fault {
    bool found; /* it is known */
    bool moved; /* FAULT_CLOCK: the clock is there */
    struct fault fault;
    int64_t until_ms; /* FAULT_CLOCK: where the clock is to be; 0: it was not moved yet */
};

/* How far a request has come that is answered in slices; the API's own. */
struct progress {
    bool begun;
    bool admitted;                /* it has been counted for its project */
    uint64_t resume[2];           /* of struct store_batch */
    char name[PROGRESS_NAME_MAX]; /* of the queue looked at last */
    size_t name_len;
    struct injected_fault injected; /* with the test API */
};

/* Does a request that waits for a message go on with that? */
enum waiting_end {
    WAITING_ON,
    WAITING_OVER,     /* no: it is asked for the last time */
    WAITING_ABANDONED /* nor must it take anything: its client has hung up */
};

/*
 * What a front end that can park requests lends to one that may have to wait for a message
 * (docs/api.md 11). Zero but for `listener` before the first call.
 */
struct waiting {
    enum waiting_end end;
    /* Told when the API is to be asked again, or the last time: STORE_GONE is WAITING_OVER. */
    struct store_listener listener;
    int64_t wait_ms; /* with API_WAIT: how long at most, from the first time */
    struct store_waiter one, *places; /* the rest is the API's */
    struct api_tenant *tenant;
    size_t place_count;
    struct testapi_waiter
        *testapi_waiter;     /* owned; NULL: no test API, or it does not wait */
    struct history *watched; /* the listener hears of its entries; NULL: it does not */
};

/* What a connection has of its project's share; zero at first. See api_connection_closed(). */
struct api_seat {
    struct api_tenant *tenant; /* the API's */
};

/* Where a request has come in. */
enum api_listener {
    API_LISTENER_MAIN,
    API_LISTENER_METRICS /* nothing but health and metrics, and these without a token */
};

struct request {
    enum method method;
    enum api_listener listener;
    bool tls;           /* it came over TLS: what it is told of this server is, too */
    bool check_host;    /* refuse a Host that a page of another site may have sent */
    struct bytes path;  /* as sent, still percent-encoded, without the query */
    struct bytes query; /* as sent, without the question mark; absent if there is none */
    struct bytes headers[API_HEADER_COUNT]; /* absent: not sent; twice: joined by "," */
    struct bytes body;                      /* whole, as sent; absent or empty: none */
    const struct certificate *certificate;  /* of the client, verified; NULL: none */
    bool body_too_large; /* the body was longer than api_body_limit(); not kept */
    int64_t now_ms;
    struct arena *arena; /* borrowed for the call; everything temporary comes from it */
    struct progress progress;  /* zero before the first call */
    struct waiting *waiting;   /* lent; NULL: it may not wait */
    struct access_proof proof; /* zero before the first call */
    struct api_seat *seat; /* of the connection, lent; NULL: connections do not count */
};

/* The method of this name (case matters), METHOD_OTHER for an unknown one. */
enum method api_method(struct bytes name);

/* The other way; "other" for METHOD_OTHER. */
const char *api_method_name(enum method method);

/* ------------------------------------------------------------------ response */

#define RESPONSE_HEADERS_MAX 6

/*
 * Bounds of an answer's headers, so that a front end can make room for them before a
 * request is executed: whatever was asked, no value is longer than RESPONSE_VALUE_MAX, and
 * all headers together take at most RESPONSE_HEAD_MAX bytes on the wire (of each the name,
 * the value, and 4 for the colon, the space and the end of the line).
 *
 * An answer has at most one long header: Location or Content-Location, which repeat a path,
 * or X-Subject-Token. The longest are a post's Location (as many ids as fit, else none), a
 * Content-Location (left out if it does not fit), a token for the longest user and project
 * (954), and the path of a subscription's confirmation whose project stands in it with 256
 * characters that have to be percent-encoded (891). What else an answer has, and all names, fit the 128.
 */
#define RESPONSE_VALUE_MAX 1024
#define RESPONSE_HEAD_MAX  (RESPONSE_VALUE_MAX + 128)

struct response_header {
    const char *name;  /* a literal */
    const char *value; /* borrowed from the request's arena, or a literal */
};

/* What a request was about, as far as it was found out; texts of the arena, or absent. */
struct response_subject {
    struct bytes project, queue, claim;
};

struct response {
    int code;                                             /* HTTP status */
    struct response_header headers[RESPONSE_HEADERS_MAX]; /* Content-Type among them */
    size_t header_count;
    struct buf body;               /* owned by the caller; content set by api_handle */
    const char *route;             /* its pattern, a literal, for metrics; NULL: none */
    enum status status;            /* the outcome, for log and metrics */
    struct response_subject about; /* for the log */
    uint64_t lsn; /* in the store's log, of what the answer tells; 0: of none */
    struct store_queue claim_queue; /* with claim_id: whose it is; of the arena */
    struct bytes
        claim_id; /* that was made, to be released if it is not sent; absent: none */
    /* The front end's to bring about: LATENCY, SLOW, HALF, or CUT_BEFORE or CUT_AFTER, which
     * are the same to it. */
    struct fault fault;
};

/* What the headers take on the wire: at most RESPONSE_HEAD_MAX. */
size_t response_head_size(const struct response *res);

/* ------------------------------------------------------------------ the api */

/* What a server is about, as whoever operates it has it. Any thread writes, any reads. */
struct api_condition {
    _Atomic bool draining; /* it ends: send it nothing more */
    _Atomic bool closed;   /* for posts: maintenance. What is there can be worked off */
};

/* What each project may have; 0: any number. The first three are the store's to keep. */
struct api_project_limits {
    int64_t queues, messages, bytes;
    int64_t requests_per_second, connections, waiters;
};

struct api_config {
    struct api_limits limits;
    struct store *store;      /* borrowed for the api's life */
    struct mem *mem;          /* borrowed likewise */
    const struct auth *auth;  /* borrowed likewise; NULL: there is no identity stub */
    struct access *access;    /* borrowed likewise; NULL: headers are believed */
    struct signer *signer;    /* borrowed likewise; NULL: there are no pre-signed URLs */
    struct seal *seal;        /* borrowed likewise; NULL: nothing can be encrypted */
    const struct clock *real; /* borrowed likewise, with access, signer or the test API */
    const struct api_condition *condition; /* borrowed likewise; NULL: always good */
    const struct metrics *metrics;         /* borrowed likewise; NULL: there are none */
    struct testapi *testapi; /* borrowed likewise; NULL: no tests are run against it */
    struct api_project_limits project_limits;
    struct bytes allowed_hosts; /* borrowed likewise: host_is_allowed(); absent: none */
};

struct api; /* opaque */

/* Makes an api, owned. ST_NO_MEMORY. */
enum status api_new(const struct api_config *config, struct api **out);
void api_free(struct api *api);

/* From now on each project may have so much. Any thread. */
void api_limit(struct api *api, const struct api_project_limits *limits);

/* A connection has ended: what it had is its project's again. */
void api_connection_closed(const struct api *api, struct api_seat *seat);

enum api_next {
    API_SEND, /* the response is complete */
    API_HOLD, /* it is, but must not go out before res->lsn is durable (store_durability();
                  if that is lost, nobody may hear of it: close the connection) */
    API_AGAIN, /* a slice is done: give others their turn, then call again with the same */
    API_WAIT   /* there is nothing to take: call again with the same when req->waiting's
                  listener is told, or its time is over (WAITING_OVER) */
};

/*
 * May api_handle() wait for a store on Redis or for Keystone? Then it must run in a fiber. A
 * request that asks whether the process lives never waits.
 */
bool api_may_block(const struct api *api, const struct request *req);

/*
 * Answers one request, or does a slice of the work. The response that comes in the end is
 * always complete; when even that needs more memory than there is, it is a prepared 503.
 * `res->body` must be initialised. Between calls only now_ms and waiting->end may change.
 * API_WAIT comes only with WAITING_ON. Parks the fiber that runs if api_may_block().
 */
enum api_next
api_handle(const struct api *api, struct request *req, struct response *res);

/*
 * Ends the request's waiting, if it waits; its listener is told no more. Forgets who it was
 * from. To be called when a request comes to its end, whatever became of it.
 */
void api_stop_waiting(const struct api *api, struct request *req);

/* May a request of this kind wait for something? Then it is given struct waiting. */
bool api_may_wait(const struct api *api, const struct request *req);

/* The project of lines that are loaded at the start and name none. */
#define API_SEED_PROJECT "claimd"

/* Maximum size of a state in bytes. */
enum { API_SEED_MOST = 64 << 20 };

/*
 * Puts the lines of a state (docs/api.md 23.4) in the place of all that their projects have,
 * before any request is served. ST_BAD_BODY, ST_BAD_VALUE, and the store's, with a reason.
 */
enum status
api_seed(const struct api *api, struct bytes lines, int64_t now_ms, struct reason *why);

/* The longest body that a request with this path may have; a front end need not keep more. */
size_t api_body_limit(const struct api *api, struct bytes path);

/* ------------------------------------------------------------------ hosts */

/*
 * A page of any site can have its own name lead to 127.0.0.1 (DNS rebinding). Its browser then takes
 * claimd for that site, and sends the site's name in Host. A program of this machine sends an IP
 * address or localhost.
 *
 * True for a Host header with an IP address, with localhost, or with a name of the list, each
 * with or without a port. An absent or empty header is allowed, too: browsers always send one.
 */
bool host_is_allowed(struct bytes host, struct bytes list);

/* True for a list of one name or more, joined by commas, without ports. Blanks do not matter. */
bool host_list_is_valid(struct bytes list);

#endif
