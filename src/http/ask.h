/*
 * ask: calls the API for an exchange, at once or in a fiber of the worker's.
 *
 *   Threads  the worker's
 */
#ifndef HTTP_ASK_H
#define HTTP_ASK_H

#include "http/worker.h"

void ask_init(struct worker *w);
void ask_fini(struct worker *w);

/* Asks at once: the store does not wait for anything, or the calling thread may. */
enum api_next ask_here(const struct worker_shared *shared, struct exchange *ex);

enum asking {
    ASK_BACK, /* ex->next_step is what the API said */
    ASK_AWAY, /* it has not said anything yet: a fiber has the exchange until mail DONE */
    ASK_STUCK /* no fiber is free; the API was not called */
};

/* Calls the API in a fiber, which parks where the store has to wait. */
enum asking ask_in_fiber(struct worker *w, struct exchange *ex);

/* There was mail: ASK_BACK, or ASK_AWAY again. */
enum asking ask_go_on(struct worker *w, struct exchange *ex);

#endif
