/*
 * steps: the steps of a request that the test API wraps (docs/api.md 23).
 *
 * An api has the plain steps of dispatch.c. With the test API it has those of
 * testapi/decorator.c, which call the plain ones.
 *
 *   Threads  any, once the API is open
 */
#ifndef API_STEPS_H
#define API_STEPS_H

#include "claimd/api/api.h"

struct context;

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

#endif
