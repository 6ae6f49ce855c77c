/*
 * api_call: requests to the API without sockets, as one line each.
 *
 * A caller is one client with its usual headers; it keeps the last response until the
 * next call:
 *
 *     api_caller_init(&c, api, mem, now_ms);
 *     ck_assert_int_eq(api_call(&c, "PUT", "/v2/queues/q", NULL), 201);
 *     ck_assert_str_eq(api_response_header(&c, "Location"), "/v2/queues/q");
 *     api_caller_fini(&c);
 */
#ifndef TESTS_SUPPORT_API_CALL_H
#define TESTS_SUPPORT_API_CALL_H

#include "claimd/api/api.h"
#include "claimd/journal/journal.h"

#define API_CALL_CLIENT  "3381af92-2b9e-11e3-b191-71861300734c"
#define API_CALL_PROJECT "480924"

struct api_caller {
    const struct api *api;                 /* borrowed */
    int64_t now_ms;                        /* of the next call; move it as you like */
    const struct clock *clock;             /* shows the time instead; NULL: none */
    const char *headers[API_HEADER_COUNT]; /* sent with each call; NULL: not sent */
    bool body_too_large;                   /* pretend that the body was not kept */
    struct api_connection *connection;     /* through which it comes, or NULL */
    enum api_listener listener;            /* of the connection */
    bool from_proxy;                       /* likewise */
    const struct certificate *certificate; /* shown with each call; NULL: none */
    const char *address;                   /* of the client; NULL: not known */
    struct arena arena;                    /* the last call's, until the next */
    struct journal *loads; /* reads messages from the disk; NULL: none need it */
    struct response res;   /* the last response */
    unsigned slices;       /* in which it was made */
};

/* A client with Accept, Client-ID and X-Project-ID as above. */
void api_caller_init(struct api_caller *c, const struct api *api, struct mem *mem,
                     int64_t now_ms);
void api_caller_fini(struct api_caller *c);

/*
 * Does one request and returns the HTTP code. The target is path and query as on the
 * wire; body NULL: none.
 */
int
api_call(struct api_caller *c, const char *method, const char *target, const char *body);

/* The same with any bytes. */
int api_call_bytes(struct api_caller *c, enum method method, struct bytes target,
                   struct bytes body);

/* A header of the last response, NULL if it has none of this name. */
const char *api_response_header(const struct api_caller *c, const char *name);

/* The last response's body, with a NUL behind it; borrowed until the next call. */
const char *api_body(struct api_caller *c);

#endif
