/*
 * ask: the API is asked for the answer to an exchange: at once, in a fiber of the worker's, or by a
 * thread of the executor.
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
    ASK_AWAY, /* it has not said anything yet; there will be mail (MAIL_DONE) */
    ASK_STUCK /* there is too much to do; it was not asked */
};

/* Asks where the store may be waited for. */
enum asking ask_away(struct worker *w, struct exchange *ex);

/* The same in a thread, whose turn comes after that of others. False: there is too much to do. */
bool ask_in_thread(struct worker *w, struct exchange *ex);

/* There was mail; ASK_BACK, or ASK_AWAY again. */
enum asking ask_go_on(struct worker *w, struct exchange *ex);

#endif
