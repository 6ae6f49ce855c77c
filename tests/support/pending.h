/*
 * pending: a request to the API that may have to wait, with the test in the place of the
 * front end.
 */
#ifndef TESTS_SUPPORT_PENDING_H
#define TESTS_SUPPORT_PENDING_H

#include "support/api_fixture.h"

/* A request with memory of its own. Borrows the fixture. */
struct pending {
    struct api_fixture *f;
    struct request req;
    struct response res;
    struct waiting waiting;
    struct arena arena;
    int ready, gone; /* how often it was notified */
    char target[4096];
};

/* prefer: the header Prefer. NULL: the request has none, and does not wait. */
void pending_prepare(struct pending *a, struct api_fixture *f, const char *method,
                     const char *target, const char *prefer);

/* Passes the request to the API once. */
enum api_next pending_fetch(struct pending *a);

/* Ends it, and audits the store. */
void pending_end(struct pending *a);

/* A header of its response, NULL if there is none of this name. */
const char *pending_header(const struct pending *a, const char *name);

/* Prepares a request that waits after the first call of the API. */
void pending_begin(struct pending *a, struct api_fixture *f, const char *method,
                   const char *target, const char *prefer);

/* Calls the API again. The request must get a response with this code. */
void pending_finish(struct pending *a, int code);

#endif
