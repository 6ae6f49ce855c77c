/*
 * client: one kept-alive HTTP connection, blocking, for recorders: nothing between the
 * request and the clock but a write and a read.
 *
 * One that outlives the server notes that its connection broke, and connects anew before
 * the next exchange, for as long as it takes the server to come back.
 */
#ifndef TESTS_LINEAR_CLIENT_H
#define TESTS_LINEAR_CLIENT_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLIENT_TEXT_MAX = 1 << 20 }; /* /metrics has lines for each queue */

struct client {
    const char *host, *port; /* borrowed */
    int fd;                  /* -1: it broke */
    bool outlives;           /* set it behind client_open() */
    /* The next exchange waits here, called but not sent; NULL: no. */
    pthread_barrier_t *gate;
    const char *prefer;         /* sent with the next exchange; NULL: not */
    const char *key;            /* Idempotency-Key, likewise */
    const char *unique;         /* Claimd-Unique, likewise */
    char text[CLIENT_TEXT_MAX]; /* the last response, then its NUL */
};

struct linear_response {
    /* 0: the connection broke before all of it came, or it was 503 when the server, or
     * what it keeps all in, is killed now and then: it may have happened. */
    int code;
    int64_t call_ns, response_ns; /* before the first byte went, after the last came */
    json_t *document;             /* owned; NULL: no body */
    char location[256];           /* empty: none */
    bool existing;                /* Claimd-Unique says so */
};

/* Connects; ends the program if it cannot, as all of these do when the server fails. */
void client_open(struct client *c, const char *host, const char *port);
void client_close(struct client *c);

/* One exchange. body NULL: none. Release the response's document with json_decref(). */
void client_fetch(struct client *c, const char *method, const char *target,
                  const char *body, struct linear_response *out);

#endif
