/*
 * context: one request on its way through the API: what handlers are given.
 *
 * dispatch.c fills it in the order of the checks (docs/api.md 3.1); a handler finds everything
 * that concerns every request checked, writes its answer to `res`, and returns a status.
 * Texts made on the way come from the request's arena.
 */
#ifndef API_CONTEXT_H
#define API_CONTEXT_H

#include "api/route.h"
#include "api/versions/version.h"
#include "api/wire/query.h"
#include "claimd/api/api.h"
#include "claimd/json/reason.h"

struct context {
    const struct api_steps *steps;
    const struct api_limits *limits;
    struct store *store;
    struct mem *mem;
    const struct auth *auth;  /* NULL: there is no identity stub */
    struct access *access;    /* NULL: headers are believed */
    struct signer *signer;    /* NULL: there are no pre-signed URLs */
    struct seal *seal;        /* NULL: nothing can be encrypted */
    const struct clock *real; /* with access, signer or the test API */
    const struct api_condition *condition;
    const struct metrics *metrics; /* NULL: there are none */
    struct testapi *testapi;       /* NULL: no tests are run against it */
    struct store_actor actor;      /* with the test API: who asks */
    struct quotas *quotas;
    bool wait_refused; /* too many of its project wait: see wait_result() */
    const struct version *version;
    const struct resource *resource;
    const struct route *route; /* with its action; NULL: the resource lacks the method */
    const struct request *req;
    struct progress *progress;  /* of req */
    struct access_proof *proof; /* of req */
    struct store_op op;         /* for all that the store is asked */
    bool waits;                 /* it may wait for a message */
    struct response *res;
    struct bytes path;          /* of the request, without a slash that means nothing */
    struct bytes base;          /* what hrefs begin with: "/v2", or "/v1/project" */
    struct bytes path_project;  /* project named by the path; absent: none */
    bool is_signed;             /* a signature lets the request in */
    struct bytes token_project; /* the one of the caller's token; absent: none */
    enum status access_status;  /* what the caller may, to be told in its turn */
    struct reason access_why;
    struct store_queue queue; /* project, and name if the path names one */
    struct bytes id;          /* of the message or claim the path names */
    struct query query;
    uint64_t client;     /* the Client-ID's value; 0 where none was sent */
    struct bytes detail; /* why the request was refused, for people; may be absent */
    struct reason why;   /* the same from a decoder; empty: none */
    bool bare_errors;    /* errors have no document */
    bool uncounted;      /* the refusal is none of a quota, whatever its status */
};

/* The time that no test moves: of tokens, and of what a project may ask in a second. */
int64_t context_real_ms(const struct context *ctx);

/* ------------------------------------------------------------------ refusing */

/* Explains a refusal and returns st, so that `return context_refuse(...)` does both. */
enum status context_refuse(struct context *ctx, enum status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ST_NOT_FOUND: there is no such queue, or topic. */
enum status context_refuse_queue(struct context *ctx);

/* ST_TOO_LARGE if the body has more than `max` bytes, as the option says. */
enum status context_body_within(struct context *ctx, int64_t max, const char *option);

/* The same for a body of max_queue_metadata bytes at most, as nearly all are. */
enum status context_read_body(struct context *ctx);

/* caller_queue_name(), with the refusal explained. */
enum status context_check_name(struct context *ctx, struct bytes name);

/* ------------------------------------------------------------------ checks: check.c, in the order of docs/api.md 3.1 */

/*
 * Refuses a request whose Host is none of ours, where the front end asks for that, before anything
 * else is known of it. `allowed` is the list of the option allowed_hosts, or absent.
 */
enum status check_host(struct context *ctx, struct bytes allowed);

/*
 * Checks headers and names of a request whose resource is known, and fills in project and
 * client. There may be no route, where the resource lacks the method: that is found out
 * later.
 */
enum status check_request(struct context *ctx);

/* ------------------------------------------------------------------ parameters */

/* query_limit(), query_bool() and query_list(), with the refusal explained; the option is
 * the one that sets `max`. */
enum status context_read_limit(struct context *ctx, const char *name, int64_t max,
                               const char *option, size_t *out);
enum status context_read_bool(struct context *ctx, const char *name, bool *out);
enum status context_read_list(struct context *ctx, const char *name, int64_t max,
                              const char *option, struct bytes **items, size_t *count);

/* ------------------------------------------------------------------ answering */

/*
 * Adds a header; the value is borrowed, lives as long as the arena, and is no longer than
 * RESPONSE_VALUE_MAX.
 */
void response_add_header(struct context *ctx, const char *name, const char *value);

/* The same with a copy of the value, which need not end with a NUL. ST_NO_MEMORY. */
enum status
response_copy_header(struct context *ctx, const char *name, struct bytes value);

/* What the request is about: "queue" or "topic". */
const char *context_noun(const struct context *ctx);

/* base + "/queues/" or "/topics/" + name + tail + id (may be absent), from the arena; NULL without
 * memory. */
char *context_path(const struct context *ctx, const char *tail, struct bytes id);

/* Adds Location with this path. ST_NO_MEMORY. */
enum status response_add_location(struct context *ctx, const char *tail, struct bytes id);

/* An answer without a body; ST_OK. */
enum status response_empty(struct context *ctx, int code);

/* An answer with the JSON that stands in res->body by now; ST_OK. */
enum status response_json(struct context *ctx, int code);

/* How the messages of the request's queue are shown, outside of claims. ST_NO_MEMORY. */
enum status context_message_form(const struct context *ctx, struct message_form *out);

/* ------------------------------------------------------------------ waiting */

/*
 * Requests that wait for a message (docs/api.md 11):
 *
 *     wait_begin()              may it wait, and for how long?
 *     ctx->op.waiter = wait_waiter(ctx, i), then ask the store for the i-th queue
 *     nothing was taken: return wait_result(ctx, ...), which is ST_OK if it does not wait
 *     wait_done()               something was: it is in no other line any more
 */

/*
 * Reads Prefer, for a request that takes messages of so many queues. If it may wait, the
 * answer says so. ST_NO_MEMORY.
 */
enum status wait_begin(struct context *ctx, size_t queues);

/* Its place in the line of the i-th queue; NULL if it does not wait. */
struct store_waiter *wait_waiter(const struct context *ctx, size_t i);

/* The client has hung up: nothing must be taken. */
bool wait_abandoned(const struct context *ctx);

/*
 * Nothing was taken: ST_WAIT, or ST_OK if the answer is the one without waiting. stands:
 * the store has it in the line of each queue (op.waits); if not, one was deleted.
 * ST_PROJECT_WAITERS: too many of its project wait already.
 */
enum status wait_result(const struct context *ctx, bool stands);

/* It waits no more, in any line. */
void wait_done(struct store *store, struct mem *mem, struct waiting *waiting);

/*
 * How many seconds the client prefers to wait, from the header Prefer (RFC 7240): 0 if it says
 * nothing about that, or something that is not a whole number. Of several `wait` the first counts, whatever it
 * says; more than any int64_t is INT64_MAX. header: absent: not sent.
 */
int64_t prefer_wait(struct bytes header);

/* ------------------------------------------------------------------ problem documents */

/*
 * The only place where a status becomes an HTTP code and an error document.
 */

/* Room in a response's body that problem_write() needs to succeed without memory. */
#define PROBLEM_SPACE 256

/*
 * Makes res the answer for a status other than ST_OK, whatever stood in it before but its
 * Allow header. The detail explains this very case; absent: the text of the status. Never
 * fails: when memory is out, what is written is a prepared 503 that fits PROBLEM_SPACE.
 */
void problem_write(struct response *res, enum status st, struct bytes detail);

/* The same without a document, for resources whose errors have none (API v1, HEAD). */
void problem_write_bare(struct response *res, enum status st);

/* Changes a header of a refusal, if it has it: Retry-After, or WWW-Authenticate of a 401. */
void problem_set_header(struct response *res, const char *name, const char *value);

/* {"title": ..., "description": ...}; an absent description is left out. */
void problem_document(struct buf *out, struct bytes title, struct bytes description);

/* ------------------------------------------------------------------ steps */

/*
 * What the test API may wrap of a request's way (docs/api.md 23). An api has the plain steps
 * (dispatch.c). With the test API it has those of testapi/decorator.c instead, which do what they
 * add and call the plain ones.
 */
struct api_steps {
    /* All of api_handle() for a context that was filled in. */
    enum api_next (*handle)(const struct api *api, struct request *req,
                            struct context *ctx);
    /* Runs the handler of a request that has passed all checks. */
    enum status (*run)(struct context *ctx);
    /* The listener that the store is given for a request that waits; NULL without memory. */
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

/* A version that is switched on. */
struct served {
    const struct version *version;
    struct resources resources; /* owned */
};

struct api {
    const struct api_steps *steps;
    struct api_config config;           /* with a condition */
    struct quotas *quotas;              /* owned */
    struct served served[VERSIONS_MAX]; /* newest first */
    size_t count;
    struct served root; /* "/" */
};

/* The response is complete but for what depends on the store's log: is it to be held? */
enum api_next response_complete(struct context *ctx);

#endif
