/*
 * work_claiming: the claims of a runner: takes them, renews their leases, and finishes their jobs.
 */
#ifndef CLIENT_WORK_CLAIMING_H
#define CLIENT_WORK_CLAIMING_H

#include "client/work_runner.h"

/* Does what is due for all claims, and frees those that are over. Returns the time of the next call. */
int64_t claims_tick(struct runner *r);

/* Claims if there are free slots, and enters DRAIN if the runner has done all that it should. Returns the time of the
 * next call. */
int64_t claiming_tick(struct runner *r);

/* The responses to the requests. */
void read_claim_response(struct runner *r);
void read_renewal_response(struct runner *r, struct work_claim *c);
void read_finish_response(struct runner *r, struct work_claim *c);

/* Ends all jobs and frees all claims, after the loop. */
void claims_end(struct runner *r);

#endif
