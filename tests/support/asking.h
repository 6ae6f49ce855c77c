/*
 * asking: a request to the API that may have to wait, with the test in the place of the
 * front end.
 */
#ifndef TESTS_SUPPORT_ASKING_H
#define TESTS_SUPPORT_ASKING_H

#include "support/api_fixture.h"

/* A request with memory of its own; who comes after it has its fixture. */
struct asking {
    struct api_fixture *f;
    struct request req;
    struct response res;
    struct waiting waiting;
    struct arena arena;
    int ready, gone; /* how often it was notified */
    char target[4096];
};

/* prefer: NULL: it does not say that it waits. */
void asking_prepare(struct asking *a, struct api_fixture *f, const char *method,
                    const char *target, const char *prefer);

/* Asks the API, once. */
enum api_next asking_ask(struct asking *a);

/* Ends it, and audits the store. */
void asking_forget(struct asking *a);

/* A header of its response, NULL if there is none of this name. */
const char *asking_header(const struct asking *a, const char *name);

/* Asked once, it waits. */
void asking_begin(struct asking *a, struct api_fixture *f, const char *method,
                  const char *target, const char *prefer);

/* Asked again, it has its response. */
void asking_finish(struct asking *a, int code);

#endif
