/*
 * work_health: what the runner learns of the service of --http, from its jobs and from requests for its health.
 */
#ifndef CLIENT_WORK_HEALTH_H
#define CLIENT_WORK_HEALTH_H

#include "client/work_runner.h"

/* Does what is due. Returns the time of the next call. */
int64_t health_tick(struct runner *r);

/* The request for the health has ended. */
void read_health_response(struct runner *r);

/* Learns from a job that has ended, before its transfer is reset. */
void health_learn(struct runner *r, const struct work_job *j);

#endif
