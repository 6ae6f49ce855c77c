/*
 * injected_fault: what a fault rule of the test API does to a response that is made
 * (response.fault).
 *
 *     latency   fault_allows() delays the response
 *     slow      fault_read_piece() sends pieces, with a pause behind each
 *     half      fault_read_piece() ends the connection in the middle
 *     cut       fault_cuts(): the connection ends without a response
 *
 * A drain ends all delays.
 *
 *   Cost     a response without a fault: one comparison in each function
 *   Threads  the worker
 */
#ifndef HTTP_INJECTED_FAULT_H
#define HTTP_INJECTED_FAULT_H

#include "http/states.h"

enum {
    FAULT_PIECE = 16384
}; /* bytes of a piece at most, unless the fault asks for more */

/* True: the response may be sent now. False: after a delay, the exchange is in
 * DELAYED. */
bool fault_allows(struct worker *w, struct exchange *ex);

/* True if the response has a body that a fault divides. */
bool fault_divides(const struct exchange *ex);

/* True if a fault closes the connection instead of a response, or of the next event. */
bool fault_cuts(const struct exchange *ex);

/* The read() of struct mhd_pieces for a divided body. */
ssize_t fault_read_piece(struct exchange *ex, uint64_t at, char *out, size_t cap);

/* The pause between two pieces has ended. */
void fault_piece_due(struct worker *w, struct exchange *ex);

#endif
