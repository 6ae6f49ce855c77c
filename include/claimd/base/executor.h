/*
 * executor: a bounded pool of threads for work that may block.
 *
 * Event loops must not wait for a disk or a network: they hand such work over, and are
 * told when it is done. No more threads than asked for, no more jobs in line than asked
 * for; one too many is refused at once, so that the load is seen where it comes in.
 *
 *   Ownership  a job is embedded in what it is about, and belongs to the executor from
 *              executor_submit() to the end of its run()
 *   Memory     that of the threads; nothing a job
 *   Threads    submit from any; run() is called in one of the executor's own
 */
#ifndef CLAIMD_BASE_EXECUTOR_H
#define CLAIMD_BASE_EXECUTOR_H

#include "claimd/base/mem.h"
#include "claimd/base/status.h"

#include <stddef.h>

struct executor; /* opaque */

struct executor_job {
    /* Does the work, and tells whoever waits for it. The job may be gone afterwards. */
    void (*run)(struct executor_job *job);
    struct executor_job *next; /* private */
};

struct executor_config {
    struct mem *mem; /* borrowed for the executor's life */
    size_t threads;  /* at least 1 */
    size_t line;     /* jobs that may wait for a thread, and as many that go first */
};

/* Starts the threads. ST_NO_MEMORY, ST_UNAVAILABLE. */
enum status executor_open(const struct executor_config *config, struct executor **out);

/* Takes the job. ST_UNAVAILABLE: too many are waiting; it was not taken. */
enum status executor_submit(struct executor *e, struct executor_job *job);

/*
 * The same for one that goes before all that were submitted by the other call. They have a line
 * of their own, as long as the other one, so that no number of others keeps them out.
 */
enum status executor_submit_first(struct executor *e, struct executor_job *job);

/* Does what it has taken, and ends the threads. NULL is fine. */
void executor_close(struct executor *e);

#endif
