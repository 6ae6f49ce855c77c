/*
 * route: which handler a path and a method lead to (dispatch.c).
 *
 * A version of the API is a table of rows (pattern, method, handler). From it api_new()
 * builds the resources once: one for each pattern, split into segments, with its handlers
 * by method and the text of its Allow header.
 *
 * What a parameter makes another action has a row of its own, whose pattern names it:
 *
 *     ROUTE("/v2/queues/{queue}/messages", DELETE, ..., MESSAGES_DELETE_ALL, ...),
 *     ROUTE("/v2/queues/{queue}/messages?pop", DELETE, ..., MESSAGES_POP, ...),
 *
 * Requests with `pop` take the second row, and the first one all others.
 *
 * A path is split at its slashes before the segments are percent-decoded, so "%2F" never
 * makes a segment more (and no resource has a segment with a slash in it).
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
 * Answers one request; what it returns becomes a problem document unless it is ST_OK, or
 * ST_AGAIN: then it is called again, and finds what it has left in ctx->progress.
 */
typedef enum status handler_fn(struct context *ctx);

enum route_flag {
    ROUTE_CLIENT = 1,  /* needs a Client-ID where the version does not always need one */
    ROUTE_ADMIN = 2,   /* there only with admin_mode */
    ROUTE_OPEN = 16,   /* needs no token */
    ROUTE_LOCATED = 4, /* answers carry Content-Location: path and query of the request */
    ROUTE_LOCATED_PATH = 8, /* the same without the query */
    ROUTE_GUARDED = 32,     /* about all projects: needs a token for all of them */
    ROUTE_OWN_FORM = 64,    /* not JSON: what is accepted is for the handler to see */
    ROUTE_METRICS = 128, /* also behind the door for metrics, where it needs no token */
};

struct route {
    const char *pattern; /* "/v2/queues/{queue}/claims/{id}"; braces take one segment, a
                            name behind a question mark must be among the parameters */
    enum method method;
    handler_fn *handle;
    enum action action;    /* what is allowed or forbidden to a caller */
    unsigned flags;        /* of enum route_flag */
    const char *operation; /* its operationId in openapi/openapi.json */
};

/* The action of what anybody may do. */
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

/* Version, project, "queues", queue, "subscriptions", id, "confirm", and nothing behind a last
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
    struct bytes words[PATH_DEPTH_MAX]; /* absent: takes any segment */
    const struct route *routes[METHOD_COUNT];
    const struct route *variants[METHOD_COUNT]; /* that need a parameter; one a method */
    char allow[48];                             /* "GET, HEAD": what OPTIONS answers */
    char allow_all[56]; /* "GET, HEAD, OPTIONS": what a 405 tells */
};

struct resources {
    struct resource *all; /* owned by whoever built them, of the account's memory */
    size_t count;
};

/*
 * Builds the resources of a table of rows in which those of one path follow another, those
 * that need a parameter behind one that needs none.
 */
enum status
resources_build(struct mem *mem, const struct route *rows, struct resources *out);
void resources_free(struct mem *mem, struct resources *resources);

/* ST_NO_PATH: no resource can have such a path. ST_NO_MEMORY. */
enum status path_split(struct arena *arena, struct bytes text, struct path *out);

/* The resource of this path, NULL if there is none. */
const struct resource *
resource_find(const struct resources *resources, const struct path *path);

/*
 * The row for a request of this method with these parameters, NULL if the resource lacks
 * the method. Its action is what a caller has to be allowed.
 */
const struct route *
resource_route(const struct resource *r, enum method method, const struct query *query);

/*
 * Takes the project out of /{version}/{project}/queues/... (or topics) and returns its place: 1 if
 * there was one, else 0. Neither word right behind the version is ever a project.
 */
bool path_cut_project(struct path *path, struct bytes *raw, struct bytes *project);

/*
 * Drops one slash behind a whole path, which means the same with and without; true if
 * there was one. It does mean something behind a version, whose home document stands
 * there, and behind "queues" and "topics", where it begins an empty name.
 */
bool path_drop_slash(struct path *path);

#endif
