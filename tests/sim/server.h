/*
 * server: the real API over the real engine, at a time of the simulation's choosing.
 */
#ifndef TESTS_SIM_SERVER_H
#define TESTS_SIM_SERVER_H

#include "sim/answer.h"
#include "sim/profile.h"
#include "support/api_call.h"

struct server {
    struct mem *mem;
    struct store *store;
    struct api *api;
    struct api_caller caller;
    struct api_caller peeper; /* for server_has(): leaves the last answer alone */
    int64_t now_ms;
    struct mem *own; /* of the simulation: for what is said to the server */
    struct buf target, body;
    const char *method; /* of the last request */
};

/* What goes wrong with a request. */
struct trouble {
    uint64_t starve; /* this allocation fails (1: the first); 0: none does */
    bool tight;      /* the memory budget is used up */
};

/* Begins 2026-01-31T12:00:00.123Z: not at a whole second, on purpose. */
#define SERVER_START_MS INT64_C(1769860800123)

void server_open(struct server *s, const struct profile *p);

/* Closes it; false if it has not given back all its memory. */
bool server_close(struct server *s);

/*
 * Does one request. False if the answer is not the document it has to be; *starved tells
 * whether the allocation that was to fail was reached.
 */
bool server_do(struct server *s, const struct operation *op, struct trouble trouble,
               struct answer *answer, bool *starved);

/* True if the message can be read at this place. The last answer stays as it is. */
bool server_has(struct server *s, int place, struct store_id id);

/* Housekeeping until nothing is left to do now; returns when there will be again. */
int64_t server_housekeep(struct server *s);

#endif
