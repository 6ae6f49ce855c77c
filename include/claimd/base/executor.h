/*
 * executor: a bounded pool of threads for work that may block.
 *
 * Event loops must not wait for a disk or a network. They submit such work as a job,
 * which notifies them when it is done. Threads and queued jobs are limited. If the queue
 * is full, a job is refused at once, so that the overload shows at its source.
 *
 *   Ownership  a job is embedded in its subject, and belongs to the executor from
 *              executor_submit() to the end of its run()
 *   Memory     that of the threads; none per job
 *   Threads    submit: any; the executor's threads call run()
 */
#ifndef CLAIMD_BASE_EXECUTOR_H
#define CLAIMD_BASE_EXECUTOR_H

#include "claimd/base/mem.h"
#include "claimd/base/status.h"

#include <stddef.h>

struct executor; /* opaque */

struct executor_job {
    /* Does the work, and notifies the submitter. The job may be gone afterwards. */
    void (*run)(struct executor_job *job);
    struct executor_job *next; /* private */
};

struct executor_config {
    struct mem *mem; /* borrowed for the executor's life */
    size_t threads;  /* at least 1 */
    size_t line;     /* jobs that may wait, and priority jobs that may */
};

/* Starts the threads. ST_NO_MEMORY, ST_UNAVAILABLE. */
enum status executor_open(const struct executor_config *config, struct executor **out);

/* Submits a job. ST_UNAVAILABLE: the queue is full; the executor does not have the
 * job. */
enum status executor_submit(struct executor *e, struct executor_job *job);

/* The same for a priority job, which runs before the other jobs. Priority jobs have a
 * queue of their own, so that other jobs cannot keep them out. */
enum status executor_submit_first(struct executor *e, struct executor_job *job);

/* Runs the queued jobs, and ends the threads. NULL has no effect. */
void executor_close(struct executor *e);

#endif
