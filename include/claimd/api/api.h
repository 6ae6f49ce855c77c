/*
 * api: a request in, a response out; no sockets and no threads of its own.
 *
 * api_handle() routes a request, checks it in the order of the contract (API.md 2.2),
 * calls the store and shapes the answer. It works the same for the HTTP front end, the
 * tests, the simulation and the fuzzer. What takes long it does in slices, between which
 * others may have their turn (docs/adr/0005-slices.md).
 *
 *   Threads  any number of requests at once on one `struct api`; it never changes
 */
#ifndef CLAIMD_API_API_H
#define CLAIMD_API_API_H

#include "claimd/api/limits.h"
#include "claimd/auth/auth.h"
#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/base/status.h"
#include "claimd/store/store.h"

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

/* The headers that mean something to the API; X(name, text). */
#define API_HEADER_LIST(X)                                                               \
    X(ACCEPT, "Accept")                                                                  \
    X(CONTENT_TYPE, "Content-Type")                                                      \
    X(CLIENT_ID, "Client-ID")                                                            \
    X(PROJECT_ID, "X-Project-ID")                                                        \
    X(AUTH_TOKEN, "X-Auth-Token")                                                        \
    X(SUBJECT_TOKEN, "X-Subject-Token")                                                  \
    X(URL_SIGNATURE, "URL-Signature")                                                    \
    X(HOST, "Host")

enum api_header {
#define API_HEADER_ENUM(name, text) API_HEADER_##name,
    API_HEADER_LIST(API_HEADER_ENUM)
#undef API_HEADER_ENUM
        API_HEADER_COUNT
};

/* Longest name kept between slices. */
#define PROGRESS_NAME_MAX 64

/* How far a request has come that is answered in slices; the API's own. */
struct progress {
    bool begun;
    uint64_t resume[2];           /* of struct store_batch */
    char name[PROGRESS_NAME_MAX]; /* of the queue looked at last */
    size_t name_len;
};

struct request {
    enum method method;
    struct bytes path;  /* as sent, still percent-encoded, without the query */
    struct bytes query; /* as sent, without the question mark; absent if there is none */
    struct bytes
        headers[API_HEADER_COUNT]; /* absent: not sent; sent twice: joined by "," */
    struct bytes body;             /* whole, as sent; absent or empty: none */
    bool body_too_large; /* the body was longer than api_body_limit(); not kept */
    int64_t now_ms;
    struct arena *arena; /* borrowed for the call; everything temporary comes from it */
    struct progress progress; /* zero before the first call */
};

/* The method of this name (case matters), METHOD_OTHER for an unknown one. */
enum method api_method(struct bytes name);

/* ------------------------------------------------------------------ response */

#define RESPONSE_HEADERS_MAX 6

struct response_header {
    const char *name; /* a literal */
    struct bytes
        value; /* borrowed from the request's arena, or a literal; NUL-terminated */
};

struct response {
    int code;                                             /* HTTP status */
    struct response_header headers[RESPONSE_HEADERS_MAX]; /* Content-Type among them */
    size_t header_count;
    struct buf body;    /* owned by the caller; content set by api_handle */
    const char *route;  /* pattern of the route taken, for log and metrics; a literal */
    enum status status; /* the outcome, for log and metrics */
};

/* ------------------------------------------------------------------ the api */

struct api_config {
    struct api_limits limits;
    struct store *store;     /* borrowed for the api's life */
    struct mem *mem;         /* borrowed likewise */
    const struct auth *auth; /* borrowed likewise; NULL: nobody is asked for a token */
};

struct api; /* opaque */

/* Makes an api, owned. ST_NO_MEMORY. */
enum status api_new(const struct api_config *config, struct api **out);
void api_free(struct api *api);

enum api_next {
    API_SEND, /* the response is complete */
    API_AGAIN /* a slice is done: give others their turn, then call again with the same */
};

/*
 * Answers one request, or does a slice of the work. The response that comes in the end is
 * always complete; when even that needs more memory than there is, it is a prepared 503.
 * `res->body` must be initialised. Between calls only now_ms may change.
 */
enum api_next
api_handle(const struct api *api, struct request *req, struct response *res);

/* The longest body any request may have; a front end need not keep more than that. */
size_t api_body_limit(const struct api *api);

#endif
