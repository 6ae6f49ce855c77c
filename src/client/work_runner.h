/*
 * work_runner: the options and the state of `claimd work`, which its parts share, its
 * modes, and the state of the server.
 *
 *     RUN ----SIGUSR1----> QUIET     claims no more
 *      |                     |
 *      +---------+-----------+-- SIGTERM, a broken command, a server that is away for too
 *      |         |               long
 *      |       STOP    claims no more; jobs may run for grace_s, then it ends and
 *      |         |     releases them
 *      |         |
 *      |         +-- SIGTERM
 *      |         |
 *      |       HURRY   ends and releases all jobs now
 *      |
 *    DRAIN   claims no more, because it has all jobs that it wants; ends with the last
 *
 *   Times    milliseconds of now_ms()
 *   Threads  one
 */
#ifndef CLIENT_WORK_RUNNER_H
#define CLIENT_WORK_RUNNER_H

#include "claimd/base/entropy.h"
#include "claimd/base/supervisor.h"
#include "client/client.h"
#include "client/work_claim.h"
#include "client/work_service.h"
#include "client/work_slot.h"
#include "client/work_url.h"

enum {
    WORK_QUEUES_MOST = 32,
    WORK_PARALLEL_MOST = 500,
    WORK_LEASE_LEAST_S = 3,
    WORK_LEASE_MOST_S = 43200
};

struct work_options {
    const char *const *queues;
    size_t queue_count;
    char *const *command; /* its words, then NULL; NULL: `service` is set */
    const char *service;  /* URL; NULL: `command` is set */
    const char *health;   /* URL; NULL: without --health */
    int64_t parallel, lease_s, wait_s, grace_s;
    int64_t timeout_s, give_up_s, max_jobs; /* 0: no limit */
    struct work_backoff backoff;
    int64_t batch; /* --keep: most messages that a process has. 0: without --keep */
    bool raw, exit_when_empty;
};

/* Runs the event loop until the end. Returns the exit status. */
int work_run(const struct work_options *o, const struct client *server);

/*
 * Milliseconds from SIGTERM to SIGKILL of a job when the runner stops, and then for the
 * last requests.
 */
enum { STOP_KILL_MS = 2000, LAST_MS = 3000 };

enum mode { MODE_RUN, MODE_QUIET, MODE_DRAIN, MODE_STOP, MODE_HURRY };

struct runner {
    const struct work_options *o;
    const struct client *server;
    struct mem *mem;
    struct entropy entropy;
    struct supervisor supervisor;
    struct work_guards guards; /* of the commands. Zero with --http */
    struct work_slot *slots;   /* with --keep: `parallel`; owned */
    int deaths;         /* --keep: processes in a row that ended without a response */
    char **environment; /* of the commands, without the variables of a job; owned */
    CURLM *multi;       /* has all transfers under way, and their connections */
    struct work_transfer poll;   /* the request that claims */
    size_t limit;                /* of that request */
    struct work_service service; /* of --http. `worked` also of a kept command */
    struct work_transfer health; /* the request for its health */
    char service_name[SERVICE_NAME_MOST + 1], health_name[SERVICE_NAME_MOST + 1];
    struct work_claim *claims;
    size_t running;  /* jobs */
    int64_t started; /* jobs, over all */
    enum mode mode;
    int status;          /* exit status */
    int64_t now_ms;      /* of this round */
    int64_t stopped_ms;  /* STOP: since then */
    int64_t stop_ms;     /* STOP: running jobs are ended */
    int64_t end_ms;      /* STOP, HURRY: the loop ends in any case */
    int64_t poll_end_ms; /* of a long poll that was told to end; INT64_MAX: was not */
    int64_t claim_ms;    /* no claim before */
    int64_t pause_ms;    /* the last pause before a claim; 0: none */
    bool empty; /* --exit-when-empty: nothing was ready, and no job has ended since */
    bool ready_since;    /* a job has ended since the last claim was sent */
    bool claims_paused;  /* the last response said so */
    bool unconfirmed;    /* the server did not confirm results that the run needs */
    int64_t away_ms;     /* the server does not work since then; -1: it works */
    sigset_t before;     /* signal mask of the commands */
    int signals;         /* signalfd */
    unsigned slot_fds;   /* descriptors of slots in the last poll */
    bool stderr_blocked; /* a write to standard error would block */
};

/* Writes a line to standard error, unless that would block. */
void __attribute__((format(printf, 1, 2))) work_log(const char *format, ...);

/* Writes a line about an attempt at a job. */
void log_job(const struct work_job *j, const char *text);

uint32_t random_u32(struct runner *r);

/* A job has ended, so its message or one behind it may be ready. */
static inline void
more_may_be_ready(struct runner *r)
{
    r->empty = false;
    r->ready_since = true;
}

/* ------------------------------------------------------------------ modes */

/* Notifies the supervisor of the mode. assignment: as for supervisor_notify(). */
void report_state(struct runner *r, const char *assignment);

/* Enters a later mode. No effect if the runner is in this one or in a later one. */
void mode_enter(struct runner *r, enum mode mode);

/* Enters STOP. `status` will be the exit status. */
void runner_stop(struct runner *r, int status);

/* Ends the request that claims, if there is one. */
void poll_end(struct runner *r);

/* ------------------------------------------------------------------ the server */

/* A response was understood, so the server is not away. */
void server_responded(struct runner *r);

/* The server is away, or does not work. Says so once. */
void server_failed(struct runner *r, const char *why);

/*
 * Looks at the status of a response. True: a retry may help, and server_failed() was
 * called. False: it is a response to the request. Then call server_responded() if it is
 * understood.
 */
bool needs_retry(struct runner *r, const struct work_transfer *t);

/*
 * The same for a request about a claim: a 404 that is not one of claimd says nothing of
 * the claim.
 */
bool claim_needs_retry(struct runner *r, const struct work_transfer *t);

/* The server refuses a request for good: stops the runner. */
void server_refused(struct runner *r, const struct work_transfer *t, const char *request);

/*
 * ------------------------------------------------------------------ requests
 * (work_requests.c)
 */

/* Start a request. False without memory; then nothing was sent. */

bool request_claim(struct runner *r); /* up to r->limit messages */
bool request_renewal(struct runner *r, struct work_claim *c);
bool request_finish(struct runner *r, struct work_claim *c); /* work_finish.h */
bool request_service(struct runner *r, struct work_job *j);  /* the body of a job */
bool request_health(struct runner *r);

/*
 * ------------------------------------------------------------------ claims
 * (work_claiming.c)
 */

/*
 * Does what is due for all claims, and frees those that are over. Returns the time of the
 * next call.
 */
int64_t claims_tick(struct runner *r);

/*
 * Claims if there are free slots, and enters DRAIN if the runner has done all that it
 * should. Returns the time of the next call.
 */
int64_t claiming_tick(struct runner *r);

/* The responses to the requests. */
void read_claim_response(struct runner *r);
void read_renewal_response(struct runner *r, struct work_claim *c);
void read_finish_response(struct runner *r, struct work_claim *c);

/* Ends all jobs and frees all claims, after the loop. */
void claims_end(struct runner *r);

/*
 * ------------------------------------------------------------------ jobs
 * (work_attempt.c)
 */

/* Starts a job, or ends it at once if that is impossible. */
void job_start(struct runner *r, struct work_job *j);

/*
 * Starts the end of a running job: SIGTERM now, SIGKILL at kill_ms at the latest. A
 * request to a service ends at once, and the job is not running any more.
 */
void
job_stop(struct runner *r, struct work_job *j, enum attempt_stop why, int64_t kill_ms);

/*
 * Does what is due for a running job. *next_ms becomes the time of the next call, if that
 * is earlier.
 */
void job_tick(struct runner *r, struct work_job *j, int64_t *next_ms);

/*
 * A running job has ended: its outcome is set, unless its lease is lost. It must have
 * left its slot.
 */
void job_ended(struct runner *r, struct work_job *j);

/* The properties of an attempt that decide its outcome. */
struct job_attempt attempt_of(struct runner *r, const struct work_job *j);

/* The request to the service has ended. */
void service_ended(struct runner *r, struct work_job *j);

/*
 * ------------------------------------------------------------------ kept commands
 * (work_keep.c). Without --keep they have no effect.
 */

/* Makes the slots. False without memory. */
bool slots_open(struct runner *r);

/* Ends all, after the loop. */
void slots_close(struct runner *r);

/* Does what is due for all slots. Returns the time of the next call. */
int64_t slots_tick(struct runner *r);

/* True if no process is left. */
bool slots_are_over(const struct runner *r);

/* Number of messages that the slots can take now. */
size_t slots_free(const struct runner *r);

/* Lists the files of all slots to poll, up to 3 of each, and returns their number. */
unsigned slots_poll(struct runner *r, struct curl_waitfd *fds);

/* Reads and writes what is ready. fds: as slots_poll() listed them, with events. */
void slots_read(struct runner *r, const struct curl_waitfd *fds);

/* Gives a job to a slot. */
void kept_start(struct runner *r, struct work_job *j);

/*
 * The runner ends a job, of which `stop` is set. If its line was sent, the process ends,
 * at kill_ms at the latest. Else the job ends now.
 */
void kept_stop(struct runner *r, struct work_job *j, int64_t kill_ms);

/*
 * ------------------------------------------------------------------ the service
 * (work_attempt.c)
 */

/* Does what is due. Returns the time of the next call. */
int64_t health_tick(struct runner *r);

/* The request for the health has ended. */
void read_health_response(struct runner *r);

#endif
