/*
 * work_claim: a claim with its jobs, from the response of claimd. A job is one message
 * and one attempt at it:
 *
 *                 +-- exit, response --> ENDED --> FINISHING --> DONE
 *     RUNNING ----|                        ^           |
 *                 |                        +-----------+ no response: retry until
 *                 |                                                      the lease ends
 *                 +-- lease lost --> DONE
 *
 * A claim is freed when all its jobs are DONE.
 */
#ifndef CLIENT_WORK_CLAIM_H
#define CLIENT_WORK_CLAIM_H

#include "client/work_lease.h"
#include "client/work_outcome.h"
#include "client/work_process.h"
#include "client/work_transfer.h"

enum work_job_state { JOB_RUNNING, JOB_ENDED, JOB_FINISHING, JOB_DONE };

struct work_job {
    struct work_claim *claim;
    enum work_job_state state;
    bool uncertain; /* a finish request for it had no response, and may have been done */
    struct bytes id, body, details; /* borrowed from the document of the claim */
    int64_t attempt;                /* delivery count */
    int64_t timeout_ms;             /* time of SIGTERM by --timeout; INT64_MAX: none */
    enum attempt_stop stop;
    struct work_process process;
    struct work_transfer service; /* with --http, instead of the process */
    struct work_slot *slot;       /* with --keep, likewise: has the job while it RUNS */
    bool sent;                    /* its line is on the way to the kept command */
    uint64_t line_at;             /* sent: place of the line in all that was written */
    struct job_outcome outcome;   /* from ENDED on */
};

struct work_claim {
    struct work_claim *next; /* list of the runner */
    struct buf document;     /* response to the claim; owned */
    char path[192];          /* "/v2/queues/QUEUE/claims/ID", without a prefix */
    struct bytes queue, id;  /* parts of the path */
    char number[24];         /* fencing token */
    struct work_lease lease;
    struct work_transfer renewal, finish;
    int64_t finish_ms;  /* not before */
    int64_t pause_ms;   /* between retries of finish */
    size_t count, open; /* jobs; those that are not DONE */
    struct work_job jobs[];
};

/*
 * Makes a claim of the response with status 201, which may have up to `limit` messages,
 * and takes the memory of its body. Its jobs are RUNNING, but not started. NULL if the
 * response is not that of a claim or there is no memory; *why says which.
 */
struct work_claim *work_claim_read(struct mem *mem, struct work_transfer *response,
                                   size_t limit, int64_t lease_ms, const char **why);

/* Frees a claim. Its transfers must be reset. */
void work_claim_free(struct mem *mem, struct work_claim *c);

/* Writes the metadata of a job as JSON. deadline_s: Unix time of --timeout, 0 without. */
void job_metadata_write(struct buf *out, const struct work_job *j, int64_t deadline_s);

/*
 * Writes the line of a job for a kept command, with its line feed. deadline_s: as above.
 */
void job_line_write(struct buf *out, const struct work_job *j, int64_t deadline_s);

/*
 * Makes the environment that all commands share: that of this process, without its
 * CLAIMD_ variables of a job and those of a supervisor. Owned. NULL without memory.
 */
char **work_environment(struct mem *mem);

/* Writes the variables of a job, each with a NUL at its end. */
void job_variables_write(struct buf *out, const struct work_job *j, int64_t deadline_s);

/*
 * Returns the input of the command: the body, and with `raw` the text of a body that is a
 * JSON string. `space` has the text then.
 */
struct bytes job_input(const struct work_job *j, bool raw, struct buf *space);

#endif
