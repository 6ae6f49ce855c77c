/*
 * fault: answers that go wrong because a test wants them to (docs/api.md 23.7).
 *
 * The API says which (response.fault); which are held back says answer.h. Of one that comes in
 * part or in pieces libmicrohttpd asks for the body bit by bit; between two pieces its
 * connection is held, so that it costs nothing.
 *
 *   Threads  all in the worker
 */
#ifndef HTTP_FAULT_H
#define HTTP_FAULT_H

#include "http/worker.h"

/* Most have none: this is all that they cost. */
static inline bool
fault_befalls(const struct exchange *ex)
{
    return ex->response.fault.kind != FAULT_NONE;
}

/*
 * Is there to be no answer at all? Of an answer without a body there is no half: it is cut off,
 * too.
 */
bool fault_cuts(const struct exchange *ex);

/* Does it come in part or in pieces? Then with fault_body(). */
bool fault_divides(const struct exchange *ex);

/* A response with the exchange's body, which it borrows; NULL without memory. */
struct MHD_Response *fault_body(struct exchange *ex);

/* Has the exchange's connection rest for so long: it is in parked.delayed, with a deadline. */
void fault_rest(struct worker *w, struct exchange *ex, int64_t ms);

/* The rest between two pieces is over. */
void fault_resume(struct worker *w, struct exchange *ex);

#endif
