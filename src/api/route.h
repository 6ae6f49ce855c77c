/*
 * route: from a path and a method to a handler.
 *
 * A version of the API is a table of rows (pattern, method, handler). api_new() builds
 * resources from the rows: one for each pattern, with its segments, its rows by method,
 * and its Allow header.
 *
 * If a parameter changes the action of a request, the request has a row whose pattern
 * names the parameter:
 *
 *     ROUTE("/v2/queues/{queue}/messages", DELETE, ..., MESSAGES_DELETE_ALL, ...),
 *     ROUTE("/v2/queues/{queue}/messages?pop", DELETE, ..., MESSAGES_POP, ...),
 *
 * Requests with `pop` use the second row, and others the first one.
 *
 * path_split() cuts a path at its slashes before it decodes the segments. So "%2F" never
 * makes another segment, and no resource has a segment with a slash.
 *
 *   Cost     finding a resource: a few comparisons of lengths and words; no allocation
 *            unless a segment is percent-encoded
 *   Threads  any: nothing changes after resources_build()
 */
#ifndef API_ROUTE_H
#define API_ROUTE_H

#include "claimd/api/api.h"
#include "claimd/auth/policy.h"

struct context;
struct query;

/*
 * Handles a request and writes its response. A status other than ST_OK becomes a problem
 * document. After ST_AGAIN and ST_WAIT it is called again, and finds its progress in
 * ctx->progress.
 */
typedef enum status handler_fn(struct context *ctx);

enum route_flag {
    ROUTE_CLIENT = 1,       /* needs a Client-ID, also in a version that does not */
    ROUTE_ADMIN = 2,        /* exists only with admin_mode */
    ROUTE_LOCATED = 4,      /* responses have Content-Location: path and query */
    ROUTE_LOCATED_PATH = 8, /* the same without the query */
    ROUTE_OPEN = 16,        /* needs no token */
    ROUTE_GUARDED = 32,     /* about all projects: needs a token for all of them */
    ROUTE_OWN_FORM = 64,    /* not JSON: the handler checks Accept */
    ROUTE_ANY_PROJECT =
        256, /* without a project it is about all of them, and needs a token for all
                                with the action state:dump */
    ROUTE_LIVE =
        512, /* a view: the response may be a stream of events (docs/api.md 26.6) */
    ROUTE_METRICS = 128, /* also on API_LISTENER_METRICS, where it needs no token */
    ROUTE_HTML = 1024,   /* browsers get a page: request_asks_for_page() */
    ROUTE_HTML_ONLY =
        2048, /* exists only for them. Neither Allow nor the OpenAPI document has it */
};

struct route {
    const char *pattern; /* "/v2/queues/{queue}/claims/{id}"; braces match any segment */
    enum method method;
    handler_fn *handle;
    enum action action;    /* for the policy */
    unsigned flags;        /* of enum route_flag */
    const char *operation; /* operationId in openapi/openapi.json */
};

/* The action of routes that need no permission. */
#define ACTION_OPEN ACTION_COUNT

/* A row without the prefixes of its method and its action. */
#define ROUTE(pattern, method, handle, action, flags, operation)                         \
    {                                                                                    \
        pattern, METHOD_##method, handle, ACTION_##action, flags, operation              \
    }

/* Ends a table of rows. */
#define ROUTE_END                                                                        \
    {                                                                                    \
        NULL, METHOD_OTHER, NULL, ACTION_OPEN, 0, NULL                                   \
    }

/* Version, project, "queues", queue, "subscriptions", id, "confirm", and the end behind a
 * slash. */
#define PATH_DEPTH_MAX 8

/* A path in pieces: "/v2/queues/" has three, the last one empty. */
struct path {
    struct bytes raw[PATH_DEPTH_MAX];      /* as sent */
    struct bytes segments[PATH_DEPTH_MAX]; /* percent-decoded */
    size_t depth;
};

struct resource {
    const char *pattern;
    size_t depth;
    struct bytes words[PATH_DEPTH_MAX]; /* absent: matches any segment */
    const struct route *routes[METHOD_COUNT];
    const struct route *variants[METHOD_COUNT]; /* with a parameter in the pattern */
    char allow[48];                             /* "GET, HEAD": for OPTIONS */
    char allow_all[56];                         /* "GET, HEAD, OPTIONS": for 405 */
};

struct route_resources {
    struct resource *all; /* owned */
    size_t count;
};

/*
 * Builds the resources of a table. The rows of a path are side by side, and a row without
 * a parameter comes first. ST_NO_MEMORY.
 */
enum status
resources_build(struct mem *mem, const struct route *rows, struct route_resources *out);
void resources_free(struct mem *mem, struct route_resources *resources);

/* ST_NO_PATH: no resource can have such a path. ST_NO_MEMORY. */
enum status path_split(struct arena *arena, struct bytes text, struct path *out);

/* The resource of this path. NULL if there is none. */
const struct resource *
resource_find(const struct route_resources *resources, const struct path *path);

/*
 * The row for a request of this method with these parameters. NULL if the resource lacks
 * the method.
 */
const struct route *
resource_route(const struct resource *r, enum method method, const struct query *query);

/*
 * Cuts the project out of /{version}/{project}/queues/... (or topics). False if the path
 * has none. "queues" and "topics" right behind the version are never a project.
 */
bool path_cut_project(struct path *path, struct bytes *raw, struct bytes *project);

/*
 * Drops a slash at the end of a path, and returns true if there was one. It stays behind
 * a version, which has its home document there, and behind "queues" and "topics", where
 * an empty name begins.
 */
bool path_drop_slash(struct path *path);

#endif
