/*
 * api: a request in, a response out; no sockets and no threads of its own.
 *
 * api_handle() routes a request, checks it in the order of docs/api.md 3.1, calls the
 * store and writes the response. It works the same for the HTTP front end, the tests, the
 * simulation and the fuzzer. It divides long work into slices, between which the caller
 * can serve other requests (docs/adr/0005-slices.md). If a request has to wait,
 * api_handle() returns API_WAIT (docs/adr/0006-waiting.md).
 *
 *   Cost     O(1) allocations outside of the request's arena; documents are written
 *            straight into the response's body
 *   Memory   temporary memory comes from the request's arena
 *   Threads  any number of requests at once on one `struct api`, which never changes
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
#include "claimd/store/sampler.h"
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

/* The headers that the API reads, the most frequent first; X(name, text). */
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
    X(URL_EXPIRES, "URL-Expires") /* these three belong to URL-Signature */              \
    X(URL_METHODS, "URL-Methods")                                                        \
    X(URL_PATHS, "URL-Paths")                                                            \
    X(PREFER, "Prefer")                                                                  \
    X(IDEMPOTENCY_KEY, "Idempotency-Key")                                                \
    X(WORKER, "Claimd-Worker")                                                           \
    X(UNIQUE, "Claimd-Unique")                                                           \
    X(ORIGIN, "Origin")                                                                  \
    X(FETCH_SITE, "Sec-Fetch-Site") /* set by browsers: how the page is related */       \
    X(UI, "Claimd-UI")              /* of each action of the page for operators */       \
    X(REQUEST_ID, "X-Request-ID")   /* the front end logs this one and the next */       \
    X(TRACEPARENT, "traceparent")                                                        \
    X(FORWARDED_FOR,                                                                     \
      "X-Forwarded-For") /* a proxy sets these three; the front end logs it */           \
    X(FORWARDED_PREFIX, "X-Forwarded-Prefix")                                            \
    X(FORWARDED_PROTO, "X-Forwarded-Proto")                                              \
    X(FAULT, "Claimd-Fault") /* with the test API */

enum api_header {
#define API_HEADER_ENUM(name, text) API_HEADER_##name,
    API_HEADER_LIST(API_HEADER_ENUM)
#undef API_HEADER_ENUM
        API_HEADER_COUNT
};

/* Longest name kept between slices. */
#define PROGRESS_NAME_MAX 64

/* The fault that a test injects into a request (docs/api.md 23.7). */
struct injected_fault {
    bool found; /* `fault` is known */
    bool moved; /* FAULT_CLOCK: the clock has reached until_ms */
    struct fault fault;
    int64_t until_ms; /* FAULT_CLOCK: the target of the clock; 0: it has not moved yet */
};

/* The part of a request in the making of a snapshot (snapshot.h). */
struct snapshot_part {
    struct snapshot_table *table; /* NULL: the request neither builds nor waits */
    uint64_t seen;                /* snapshots that the table had when it began */
    bool builds;                  /* it is the builder of the table */
    struct store_listener *listener;
    struct list link; /* among those that wait */
};

/* The progress of a request in slices; private to the API. */
struct progress {
    bool begun;
    bool admitted;                /* counted for its project */
    uint64_t resume[2];           /* of struct store_batch */
    char name[PROGRESS_NAME_MAX]; /* of the last queue */
    size_t name_len;
    void *kept; /* state that a slice leaves to the next one, in the arena; NULL: none */
    struct running_key *key; /* owned; NULL: no Idempotency-Key */
    struct snapshot_part snapshot;
    struct injected_fault injected; /* with the test API */
};

/* Whether a long-polling request continues to wait. */
enum waiting_end {
    WAITING_ON,       /* the request still waits */
    WAITING_OVER,     /* this is its last call */
    WAITING_ABANDONED /* its last call, and it must not claim: the client has hung up */
};

/*
 * A front end that can suspend requests gives this structure to a request that may have
 * to wait for a message (docs/api.md 11). Zero before the first call, except `listener`.
 */
struct waiting {
    enum waiting_end end;
    /* When it is notified, call again; of STORE_GONE: with WAITING_OVER. */
    struct store_listener listener;
    int64_t wait_ms; /* with API_WAIT: time limit, from the first call */
    /* Private to the API: */
    struct store_waiter single, *waiters; /* one for each queue */
    size_t waiter_count;
    struct api_tenant *tenant;
    bool streams; /* the response is a stream, which counts for its project */
    struct testapi_waiter *testapi_waiter; /* owned; NULL: no test API, or no wait */
    struct history *watched; /* notifies the listener of entries; NULL: it does not */
};

/* Counts a connection for its project. Zero at first. See api_connection_closed(). */
struct api_connection {
    struct api_tenant *tenant; /* private to the API; NULL: not counted */
};

/* The kind of the listener that a request came through. */
enum api_listener {
    API_LISTENER_MAIN,
    API_LISTENER_METRICS /* only health and metrics, without a token */
};

struct request {
    enum method method;
    enum api_listener listener;
    bool tls;        /* it came over TLS, so links to this server have https */
    bool check_host; /* refuse a Host that a page of another site may have sent */
    /* A trusted proxy sent it, so links follow its X-Forwarded headers. */
    bool from_proxy;
    struct bytes address; /* of the client, without a port; absent: not known */
    struct bytes path;    /* as sent, still percent-encoded, without the query */
    struct bytes query; /* as sent, without the question mark; absent if there is none */
    struct bytes headers[API_HEADER_COUNT]; /* absent: not sent; twice: joined by "," */
    struct bytes body;                      /* whole, as sent; absent or empty: none */
    const struct certificate *certificate;  /* of the client, verified; NULL: none */
    bool body_too_large; /* the body was longer than api_body_limit(), and is not here */
    int64_t now_ms;
    struct arena *arena;       /* borrowed for the call, for all temporary memory */
    struct progress progress;  /* zero before the first call */
    struct waiting *waiting;   /* borrowed; NULL: it must not wait */
    struct access_proof proof; /* zero before the first call */
    struct api_connection *connection; /* borrowed; NULL: it does not count */
};

/* The method of this name (case matters). METHOD_OTHER for an unknown name. */
enum method api_method(struct bytes name);

/* The name of a method. "other" for METHOD_OTHER. */
const char *api_method_name(enum method method);

/* ------------------------------------------------------------------ response */

#define RESPONSE_HEADERS_MAX 9

/*
 * Bounds of a response's headers, so that a front end can reserve space for them before a
 * request has any effect. No value is longer than RESPONSE_VALUE_MAX. All headers
 * together take at most RESPONSE_HEAD_MAX bytes on the wire: each takes its name, its
 * value, and 4 bytes for the colon, the space and the end of the line.
 *
 * A response has at most one long header, of these:
 *
 *     Location of a post             as many ids as fit, else none
 *     Content-Location               left out if it does not fit
 *     X-Subject-Token                954 bytes for the longest user and project
 *     Location of a confirmation     891 bytes for 256 percent-encoded characters of a
 *                                    project
 *
 * All other headers, and all names, fit into the 128 bytes. Warnings take what is left,
 * and Location of a post leaves space for them.
 */
#define RESPONSE_VALUE_MAX 1024
#define RESPONSE_HEAD_MAX  (RESPONSE_VALUE_MAX + 128)

struct response_header {
    const char *name;  /* a literal */
    const char *value; /* borrowed from the request's arena, or a literal */
};

/* The queue and the claim of a request, as far as known. Texts of the arena, or
 * absent. */
struct response_subject {
    struct bytes project, queue, claim;
};

struct response {
    int code;                                             /* HTTP status */
    struct response_header headers[RESPONSE_HEADERS_MAX]; /* Content-Type among them */
    size_t header_count;
    struct buf body;    /* owned by the caller; api_handle() sets the content */
    const char *route;  /* its pattern, a literal, for metrics; NULL: none */
    enum status status; /* the outcome, for log and metrics */
    struct response_subject about; /* for the log */
    struct bytes caller;           /* for the log: its name; absent: not known */
    /* The body is the first event of a stream. Call again for the next one. */
    bool stream;
    bool audited; /* an operator acts on the page: the log must have a line of it */
    uint64_t lsn; /* of the changes that the response shows; 0: none */
    struct store_queue claim_queue; /* of claim_id; from the arena */
    /* A new claim, to release if the response is lost; absent: none. */
    struct bytes claim_id;
    bool claim_stays; /* do not release it: the client repeats the request to get it */
    /* For the front end: LATENCY, SLOW, HALF, CUT_BEFORE, CUT_AFTER. */
    struct fault fault;
};

/* Bytes of the headers on the wire: at most RESPONSE_HEAD_MAX. */
size_t response_head_size(const struct response *res);

/* ------------------------------------------------------------------ the api */

/* The condition of a server, which its operator changes. Any thread reads and writes. */
struct api_condition {
    _Atomic bool draining; /* it stops: load balancers must not send requests */
    _Atomic bool closed;   /* maintenance: it refuses posts and does all else */
};

/* Limits of each project; 0: unlimited. The store enforces the first three. */
struct api_project_limits {
    int64_t queues, messages, bytes;
    int64_t requests_per_second, connections, waiters;
};

/* Functions of the scheduler (claimd/scheduler/scheduler.h). */
struct api_scheduler {
    enum status (*watch)(void *arg, struct bytes project);
    enum status (*reload)(void *arg); /* any schedules may have changed */
    void *arg;
};

struct api_config {
    struct api_limits limits;
    struct store *store; /* borrowed for the api's life, as all pointers here */
    struct mem *mem;
    const struct auth *auth;  /* NULL: there is no identity stub */
    struct access *access;    /* NULL: each caller may do all */
    struct signer *signer;    /* NULL: there are no pre-signed URLs */
    struct seal *seal;        /* NULL: nothing can be encrypted */
    const struct clock *real; /* with access, signer or the test API */
    /* Clock of the times in the store, which responses show as times of the wall clock;
     * NULL: the times in the store are those. */
    const struct clock *time_base;
    const struct api_condition *condition; /* NULL: neither draining nor closed */
    const struct metrics *metrics;         /* NULL: there are none */
    struct testapi *testapi;               /* NULL: there is no test API */
    struct sampler *sampler;               /* NULL: there is no history of queues */
    struct zones *zones;                   /* time zones of schedules */
    const struct api_scheduler *scheduler; /* NULL: schedules are kept, and never run */
    struct api_project_limits project_limits;
    struct bytes allowed_hosts; /* for host_is_allowed(); absent: none */
};

struct api; /* opaque */

/* Makes an api, owned. ST_NO_MEMORY. */
enum status api_new(const struct api_config *config, struct api **out);

/* NULL is fine. */
void api_free(struct api *api);

/* Sets the limits of each project. Any thread. */
void api_limit(struct api *api, const struct api_project_limits *limits);

/* A connection has ended, and does not count for its project any more. */
void api_connection_closed(const struct api *api, struct api_connection *connection);

/* Evaluates the rules of alerts. Call it once a minute, from one thread at a time. The
 * api has a sampler and metrics, to which nothing is added any more. */
void api_look(const struct api *api, int64_t now_ms);

enum api_next {
    API_SEND, /* the response is complete */
    API_HOLD, /* the response is complete, but must not be sent before res->lsn is durable
                  (store_log_durability()). If it is lost, close the connection */
    API_AGAIN, /* a slice is done: serve other requests, then call again */
    API_LOAD,  /* messages are read from the disk: call again when store_log_loaded() has
                  grown */
    API_WAIT /* there is no message: call again when req->waiting's listener is notified,
              * or after wait_ms with WAITING_OVER */
};

/*
 * True if api_handle() may wait for a store on Redis or for Keystone. Then it must run in
 * a fiber. /livez never waits.
 */
bool api_may_block(const struct api *api, const struct request *req);

/*
 * Handles a request, or a slice of it. Call it again with the same request and response,
 * until it returns API_SEND or API_HOLD. The response is always complete then: without
 * memory it is a prepared 503. `res->body` must be initialised. Between calls only now_ms
 * and waiting->end may change. API_WAIT comes only with WAITING_ON. If api_may_block(),
 * it parks the running fiber.
 */
enum api_next
api_handle(const struct api *api, struct request *req, struct response *res);

/*
 * Ends the waiting of a request, if it waits, and drops its proof and its
 * Idempotency-Key. Its listener is not notified any more. Call it at the end of every
 * request.
 */
void api_stop_waiting(const struct api *api, struct request *req);

/* True if a request of this kind may wait. Then the front end gives it a struct
 * waiting. */
bool api_may_wait(const struct api *api, const struct request *req);

/* The project of lines that are loaded at the start and name none. */
#define API_SEED_PROJECT "claimd"

/* Maximum size of a state in bytes. */
enum { API_SEED_MOST = 64 << 20 };

/*
 * Replaces all data of the projects that are in the lines of a state (docs/api.md 23.4),
 * before the first request. ST_BAD_BODY, ST_BAD_VALUE, and the store's, with a reason.
 */
enum status
api_seed(const struct api *api, struct bytes lines, int64_t now_ms, struct reason *why);

/* The longest body of a request with this path. A front end need not keep more. */
size_t api_body_limit(const struct api *api, struct bytes path);

/* ------------------------------------------------------------------ hosts */

/*
 * A site can let its own name resolve to 127.0.0.1 (DNS rebinding). A browser then
 * believes that claimd is that site, and sends the site's name in Host. A program of this
 * machine sends an IP address or localhost.
 *
 * True for a Host header with an IP address, with localhost, or with a name of the list,
 * each with or without a port. True without a Host, because browsers always send one.
 */
bool host_is_allowed(struct bytes host, struct bytes list);

/* True for one name or more, separated by commas, without ports. Blanks are ignored. */
bool host_list_is_valid(struct bytes list);

#endif
