/*
 * work_runner: what the parts of `claimd work` share: the options, the claims and their jobs.
 *
 * A job is one message and one attempt at it:
 *
 *                 +-- exit, response --> ENDED --> FINISHING --> DONE
 *     RUNNING ----|                        ^           |
 *                 |                        +-----------+ no response: retry until the lease ends
 *                 +-- lease lost --> DONE
 *
 * A claim is freed when all its jobs are DONE.
 */
#ifndef CLIENT_WORK_RUNNER_H
#define CLIENT_WORK_RUNNER_H

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
    int64_t kill_ms;                /* time of SIGKILL; INT64_MAX: none */
    enum attempt_stop stop;
    struct work_process process;
    struct transfer service; /* with --http, instead of the process */
    struct outcome outcome;  /* from ENDED on */
};

struct work_claim {
    struct work_claim *next; /* list of the runner */
    struct buf document;     /* response to the claim; owned */
    char path[192];          /* "/v2/queues/QUEUE/claims/ID" */
    struct bytes queue, id;  /* parts of the path */
    char number[24];         /* fencing token */
    struct work_lease lease;
    struct transfer renewal, finish;
    int64_t finish_ms;  /* not before */
    int64_t pause_ms;   /* between retries of finish */
    size_t count, open; /* jobs; those that are not DONE */
    struct work_job jobs[];
};

#endif
