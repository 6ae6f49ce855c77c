/*
 * context: an API, with the versions that it serves (claimd/api/api.h opens and frees
 * it), and a request on its way through it, the argument of handlers.
 *
 * dispatch.c fills it in, in the order of the checks (docs/api.md 3.1). A handler finds
 * all checks made that every request needs, writes its response to `res`, and returns a
 * status.
 *
 *   Memory   texts come from the request's arena
 *   Threads  an api does not change while it serves. A context belongs to one call of
 *            api_handle()
 */
#ifndef API_CONTEXT_H
#define API_CONTEXT_H

#include "api/route.h"
#include "api/version.h"
#include "api/wire/query.h"
#include "api/wire/warning.h"
#include "claimd/api/api.h"
#include "claimd/json/reason.h"
#include "claimd/json/scan.h"

/* A version that is enabled. */
struct served {
    const struct version *version;
    struct route_resources resources; /* owned */
};

struct alerts;

struct api {
    const struct api_steps *steps;
    struct api_config config;           /* `condition` is not NULL */
    struct quotas *quotas;              /* owned */
    struct running_keys *keys;          /* owned */
    struct snapshots *snapshots;        /* owned */
    struct alerts *alerts;              /* owned; NULL: there is no history of queues */
    struct served served[VERSIONS_MAX]; /* newest first */
    size_t count;
    struct served root; /* "/" */
};

struct context {
    const struct api *api;
    const struct api_config *config; /* of the api, as the next two */
    const struct api_limits *limits;
    struct store *store;
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
    /* That a proxy has cut off the path, so that links need it; may be empty. */
    struct bytes prefix;
    /* The beginning of hrefs: prefix + "/v2", or prefix + "/v1/project". */
    struct bytes base;
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

/* ST_NOT_FOUND: the request's queue or topic has no such `item` ("claim") with the
 * request's id. */
enum status context_refuse_id(struct context *ctx, const char *item, bool may_expire);

/* ST_TOO_LARGE if the body is longer than `max` bytes, the value of the option. */
enum status context_body_within(struct context *ctx, int64_t max, const char *option);

/* The same for max_queue_metadata, the limit of nearly all bodies. */
enum status context_read_body(struct context *ctx);

/* Reads the members of the body, which must be an object. ST_BAD_BODY, explained. */
enum status
context_read_object(struct context *ctx, const char *const *names, size_t count,
                    struct json_scan_value *values, struct json_names *seen);

/* The same for a body that may have no other members. */
enum status context_read_members(struct context *ctx, const char *const *names,
                                 size_t count, struct json_scan_value *values);

/* Reads a member that is true or false, or left out. ST_BAD_BODY, explained. */
enum status context_read_flag(struct context *ctx, const struct json_scan_value *value,
                              const char *name, bool *out);

/* caller_queue_name(), with an explanation. */
enum status context_check_name(struct context *ctx, struct bytes name);

/* Warns of a member of the body that has no effect. `known`: those that have one. */
void context_warn_member(struct context *ctx, struct bytes name, const char *const *known,
                         size_t count);

/* ------------------------------------------------------------------ parameters */

/* query_limit(), query_bool() and query_list(), with an explanation. `option` sets `max`;
 * NULL: none. */
enum status context_read_limit(struct context *ctx, const char *name, int64_t max,
                               const char *option, size_t *out);
enum status context_read_bool(struct context *ctx, const char *name, bool *out);

/* Reads the parameters of a listing, without its filters. */
enum status context_read_listing(struct context *ctx, const struct listing *listing);
enum status context_read_list(struct context *ctx, const char *name, int64_t max,
                              const char *option, struct bytes **items, size_t *count);

/* ------------------------------------------------------------------ links */

/* "queue" or "topic". */
const char *context_noun(const struct context *ctx);

/* Makes links begin with the prefix, `base`, and a project unless it is empty.
 * ST_NO_MEMORY. */
enum status
context_set_base(struct context *ctx, struct bytes base, struct bytes project);

/* base + "/queues/" or "/topics/" + name + tail + id, which may be absent. NULL without
 * memory. */
char *context_path(const struct context *ctx, const char *tail, struct bytes id);

/* The form of messages of the request's queue, outside of claims. ST_NO_MEMORY. */
enum status context_message_form(const struct context *ctx, struct message_form *out);

#endif
