/*
 * work_claim: a claim with its jobs, from the response of claimd.
 */
#ifndef CLIENT_WORK_CLAIM_H
#define CLIENT_WORK_CLAIM_H

#include "client/work_runner.h"

/*
 * Makes a claim of the response with status 201, which may have up to `limit` messages, and takes the memory of its
 * body. Its jobs are RUNNING, but not started. NULL if the response is not that of a claim or there is no memory;
 * *why says which.
 */
struct work_claim *work_claim_read(struct mem *mem, struct transfer *response,
                                   size_t limit, int64_t lease_ms, const char **why);

/* Frees a claim. Its transfers must be reset. */
void work_claim_free(struct mem *mem, struct work_claim *c);

/* Writes the metadata of a job as JSON. deadline_s: Unix time of --timeout, 0 without. */
void job_metadata_write(struct buf *out, const struct work_job *j, int64_t deadline_s);

/*
 * Makes the environment of a job: that of this process, without its CLAIMD_ variables of a job and those of a
 * supervisor, and with those of the job. Owned, one block. NULL without memory.
 */
char **job_environment(struct mem *mem, const struct work_job *j, int64_t deadline_s);

/*
 * Returns the input of the command: the body, and with `raw` the text of a body that is a JSON string. `space` has
 * the text then.
 */
struct bytes job_input(const struct work_job *j, bool raw, struct buf *space);

#endif
