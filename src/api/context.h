/*
 * context: a request on its way through the API, the argument of handlers.
 *
 * dispatch.c fills it in, in the order of the checks (docs/api.md 3.1). A handler finds all checks
 * made that every request needs, writes its response to `res`, and returns a status.
 *
 *   Memory   texts come from the request's arena
 *   Threads  a context belongs to one call of api_handle()
 */
#ifndef API_CONTEXT_H
#define API_CONTEXT_H

#include "api/route.h"
#include "api/version.h"
#include "api/wire/query.h"
#include "api/wire/warning.h"
#include "claimd/api/api.h"
#include "claimd/json/reason.h"

struct context {
    const struct api_steps *steps;
    const struct api_limits *limits;
    struct store *store;
    struct mem *mem;
    const struct auth *auth; /* this and the next eight as in struct api_config */
    struct access *access;
    struct signer *signer;
    struct seal *seal;
    const struct clock *real, *time_base; /* as in struct api_config */
    const struct api_condition *condition;
    const struct metrics *metrics;
    struct testapi *testapi;
    struct sampler *sampler;
    struct quotas *quotas;
    struct running_keys *keys;
    struct snapshots *snapshots;
    struct store_actor actor; /* with the test API: for the history */
    const struct version *version;
    const struct resource *resource;
    const struct route *route; /* NULL: the resource lacks the method */
    const struct request *req;
    struct progress *progress;  /* of req */
    struct access_proof *proof; /* of req */
    struct store_op op;         /* for all calls of the store */
    bool waits;                 /* it may wait for a message */
    bool wait_refused;          /* it must not: project_max_waiters. See wait_result() */
    struct response *res;
    struct bytes path; /* of the request, after path_drop_slash() */
    struct bytes
        prefix; /* that a proxy has cut off the path, so that links need it; may be empty */
    struct bytes
        base; /* the beginning of hrefs: prefix + "/v2", or prefix + "/v1/project" */
    struct bytes path_project;  /* the project in the path; absent: none */
    bool is_signed;             /* a signature admits the request */
    struct bytes token_project; /* the project of the caller's token; absent: none */
    enum status access_status;  /* refuses the request in check_project() */
    struct reason *access_why;  /* of access_status */
    struct bytes caller;        /* its name; absent: not known */
    struct store_queue queue;   /* the project, and the name if the path has one */
    struct bytes id;            /* of the message, claim or subscription in the path */
    struct query query;
    uint64_t client;     /* the number of the Client-ID; 0: none was sent */
    struct bytes detail; /* the text of a refusal; may be absent */
    struct reason *why;  /* the same from a decoder; empty: none */
    struct warnings warnings;
    bool bare_errors; /* errors have no document */
    bool uncounted;   /* the refusal does not count as one of a quota */
};

/* The time that no test moves, for tokens and for requests per second. */
int64_t context_real_ms(const struct context *ctx);

/* The time of the wall clock: for tokens, and for dates that others read. */
int64_t context_wall_ms(const struct context *ctx);

/* Converts a time of ctx->op.now_ms or of the sampler to the wall clock. */
int64_t context_shown_ms(const struct context *ctx, int64_t ms);

/* ------------------------------------------------------------------ refusing */

/* Explains a refusal and returns st. */
enum status context_refuse(struct context *ctx, enum status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ST_NOT_FOUND: the request's queue or topic does not exist. */
enum status context_refuse_queue(struct context *ctx);

/* ST_NOT_FOUND: the request's queue or topic has no such `item` ("claim") with the request's id. */
enum status context_refuse_id(struct context *ctx, const char *item, bool may_expire);

/* ST_TOO_LARGE if the body is longer than `max` bytes, the value of the option. */
enum status context_body_within(struct context *ctx, int64_t max, const char *option);

/* The same for max_queue_metadata, the limit of nearly all bodies. */
enum status context_read_body(struct context *ctx);

/* caller_queue_name(), with an explanation. */
enum status context_check_name(struct context *ctx, struct bytes name);

/* ------------------------------------------------------------------ check.c: docs/api.md 3.1 */

/*
 * Refuses a request with a foreign Host, if the front end asks for that check. `allowed` is the
 * list of the option allowed_hosts, or absent.
 */
enum status check_host(struct context *ctx, struct bytes allowed);

/*
 * Checks headers and names of a request whose resource is known, and fills in project and client.
 * The route may be NULL: that is checked later.
 */
enum status check_request(struct context *ctx);

/* Refuses a request whose caller may not do another action, too. ST_FORBIDDEN, explained. */
enum status check_action(struct context *ctx, enum action action);

/* Identifies the caller of an open route, and checks that it may do an action (ACTION_COUNT: none), for all
 * projects or for that of the request. Statuses of access_ask(). Without authentication: ST_OK, and an empty
 * caller. */
enum status check_caller(struct context *ctx, enum action action, bool everywhere,
                         struct access_caller *out);

/* Warns of a member of the body that has no effect. `known`: those that have one. */
void context_warn_member(struct context *ctx, struct bytes name, const char *const *known,
                         size_t count);

/* ------------------------------------------------------------------ parameters */

/* query_limit(), query_bool() and query_list(), with an explanation. `option` sets `max`; NULL: none. */
enum status context_read_limit(struct context *ctx, const char *name, int64_t max,
                               const char *option, size_t *out);
enum status context_read_bool(struct context *ctx, const char *name, bool *out);

/* Reads the parameters of a listing, without its filters. */
enum status context_read_listing(struct context *ctx, const struct listing *listing);
enum status context_read_list(struct context *ctx, const char *name, int64_t max,
                              const char *option, struct bytes **items, size_t *count);

/* ------------------------------------------------------------------ responding */

/* True if the client accepts a stream of events (docs/api.md 26.6). */
bool request_asks_for_stream(const struct request *req);

/* Adds a header. Borrows the value, which lives as long as the arena: RESPONSE_VALUE_MAX. */
void response_add_header(struct context *ctx, const char *name, const char *value);

/* The same with a copy of the value. ST_NO_MEMORY. */
enum status
response_copy_header(struct context *ctx, const char *name, struct bytes value);

/* "queue" or "topic". */
const char *context_noun(const struct context *ctx);

/* Makes links begin with the prefix, `base`, and a project unless it is empty. ST_NO_MEMORY. */
enum status
context_set_base(struct context *ctx, struct bytes base, struct bytes project);

/* base + "/queues/" or "/topics/" + name + tail + id, which may be absent. NULL without memory. */
char *context_path(const struct context *ctx, const char *tail, struct bytes id);

/* Adds Location with this path. ST_NO_MEMORY. */
enum status response_add_location(struct context *ctx, const char *tail, struct bytes id);

/* Complete the response: without a body, with the JSON or with this type in res->body. ST_OK. */
enum status response_empty(struct context *ctx, int code);
enum status response_json(struct context *ctx, int code);
enum status response_typed(struct context *ctx, int code, const char *type);

/* The form of messages of the request's queue, outside of claims. ST_NO_MEMORY. */
enum status context_message_form(const struct context *ctx, struct message_form *out);

/* ------------------------------------------------------------------ waiting */

/*
 * Long polling (docs/api.md 11):
 *
 *     wait_begin()                            may the request wait, and how long?
 *     ctx->op.waiter = wait_waiter(ctx, i)    for the store's operation on the i-th queue
 *     return wait_result(ctx, ...)            no messages: ST_WAIT, or ST_OK without waiting
 *     wait_done()                             at the end of the request
 */

/*
 * Reads Prefer, for a request to so many queues. If it may wait, the response gets
 * Preference-Applied. ST_NO_MEMORY.
 */
enum status wait_begin(struct context *ctx, size_t queues);

/* The waiter for the i-th queue. NULL if the request must not wait. */
struct store_waiter *wait_waiter(const struct context *ctx, size_t i);

/* True if the client has hung up: the request must not claim. */
bool wait_abandoned(const struct context *ctx);

/*
 * The result without a message: ST_WAIT; ST_OK if the request does not wait; ST_PROJECT_WAITERS if
 * it wants to but must not. queued: the waiters are in the wait queues of all queues (op.waits).
 */
enum status wait_result(const struct context *ctx, bool queued);

/* Removes the waiters from all wait queues. */
void wait_done(struct store *store, struct mem *mem, struct waiting *waiting);

/*
 * The seconds of `wait` in the header Prefer (RFC 7240). 0 if there is none, or if it is not a
 * whole number. The first `wait` counts. INT64_MAX if the number is larger. header: may be absent.
 */
int64_t prefer_wait(struct bytes header);

/* True if the header Prefer has the preference `details`. header: may be absent. */
bool prefer_details(struct bytes header);

/* ------------------------------------------------------------------ problem documents */

/* The only place where a status becomes an HTTP code and an error document. */

/* Space of a response's body in which problem_write() succeeds without memory. */
#define PROBLEM_SPACE 256

/*
 * Makes res the response for a status other than ST_OK. Of its headers it keeps only Allow, and
 * with 409 Location. detail: explains this case; absent: the text of the status. Without memory, it
 * writes a prepared 503 that fits PROBLEM_SPACE.
 */
void problem_write(struct response *res, enum status st, struct bytes detail);

/* The same without a document (API v1, HEAD). */
void problem_write_bare(struct response *res, enum status st);

/* Changes a header that a refusal has: Retry-After, or WWW-Authenticate of a 401. */
void problem_set_header(struct response *res, const char *name, const char *value);

/* {"title": ..., "description": ...}. An absent description is left out. */
void problem_document(struct buf *out, struct bytes title, struct bytes description);

/* ------------------------------------------------------------------ steps */

/*
 * The steps of a request that the test API wraps (docs/api.md 23). An api has the plain steps
 * (dispatch.c). With the test API it has those of testapi/decorator.c, which call the plain ones.
 */
struct api_steps {
    /* All of api_handle() for a context that was filled in. */
    enum api_next (*handle)(const struct api *api, struct request *req,
                            struct context *ctx);
    /* Runs the handler of a request that has passed all checks. */
    enum status (*run)(struct context *ctx);
    /* The listener for the waiters of a request. NULL without memory. */
    struct store_listener *(*listen)(struct context *ctx);
    /* The response shows these messages of the request's queue. */
    void (*shown)(struct context *ctx, const struct store_message *messages,
                  size_t count);
    /* See context_real_ms(). */
    int64_t (*real_ms)(const struct context *ctx);
    /* These three are the public functions of these names. */
    void (*stop_waiting)(const struct api *api, struct request *req);
    bool (*may_wait)(const struct api *api, const struct request *req);
    size_t (*body_limit)(const struct api *api, struct bytes path);
};

extern const struct api_steps steps_plain;   /* dispatch.c */
extern const struct api_steps steps_testapi; /* testapi/decorator.c */

/* ------------------------------------------------------------------ the api */

/* A version that is enabled. */
struct served {
    const struct version *version;
    struct route_resources resources; /* owned */
};

struct api {
    const struct api_steps *steps;
    struct api_config config;           /* `condition` is not NULL */
    struct quotas *quotas;              /* owned */
    struct running_keys *keys;          /* owned */
    struct snapshots *snapshots;        /* owned */
    struct served served[VERSIONS_MAX]; /* newest first */
    size_t count;
    struct served root; /* "/" */
};

/* Sets res->lsn of a complete response. API_HOLD if there is one, else API_SEND. */
enum api_next response_complete(struct context *ctx);

#endif
