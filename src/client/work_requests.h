/*
 * work_requests: starts the requests of `claimd work`. Each returns false without memory; then nothing was sent.
 */
#ifndef CLIENT_WORK_REQUESTS_H
#define CLIENT_WORK_REQUESTS_H

#include "client/work_claim.h"
#include "client/work_options.h"

struct client;

/* Claims up to `limit` messages. wait: with long polling. */
bool request_claim(struct work_transfers *all, struct work_transfer *t,
                   const struct client *server, const struct work_options *o,
                   size_t limit, bool wait);

bool request_renewal(struct work_transfers *all, struct work_claim *c,
                     const struct client *server);

/* Sends the outcomes of all ended jobs of the claim (work_finish.h). */
bool request_finish(struct work_transfers *all, struct work_claim *c,
                    const struct client *server);

/* Sends the body of a job to the service. */
bool request_service(struct work_transfers *all, struct work_job *j,
                     const struct work_options *o);

/* Asks the service for its health. */
bool request_health(struct work_transfers *all, struct work_transfer *t,
                    const struct work_options *o);

#endif
