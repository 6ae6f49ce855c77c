/*
 * work_attempt: the attempt at a job, from the start of its command or request to its outcome.
 */
#ifndef CLIENT_WORK_ATTEMPT_H
#define CLIENT_WORK_ATTEMPT_H

#include "client/work_runner.h"

/* Starts a job, or ends it at once if that is impossible. */
void job_start(struct runner *r, struct work_job *j);

/*
 * Starts the end of a running job: SIGTERM now, SIGKILL at kill_ms at the latest. A request to a service ends at once,
 * and the job is not running any more.
 */
void
job_stop(struct runner *r, struct work_job *j, enum attempt_stop why, int64_t kill_ms);

/* Does what is due for a running job. *next_ms becomes the time of the next call, if that is earlier. */
void job_tick(struct runner *r, struct work_job *j, int64_t *next_ms);

/* The request to the service has ended. */
void service_ended(struct runner *r, struct work_job *j);

#endif
