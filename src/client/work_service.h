/*
 * work_service: whether the service of `claimd work --http` takes jobs, as the runner
 * sees it. A state machine with a given clock, without requests of its own.
 *
 *           a failed job, with --health
 *     UP ---------------------------------> CHECK    asks for the health before it claims
 *     ^ <---------------------------------- |
 *     |             health is good          | health is bad
 *     |                                     v
 *     | ----- service_failed() -----------> AWAY     claims nothing. Ends after a pause
 *     |                                     |  ^     that doubles, and with --health
 *     |                                     v  |     after a good response
 *     +------ response to the job --------- TRIAL    claims one job. If it takes longer
 *                                                    than TRIAL_MS, that is good enough
 *
 *   Times    milliseconds of a clock that also runs while the system is suspended
 *   Threads  one
 */
#ifndef CLIENT_WORK_SERVICE_H
#define CLIENT_WORK_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum service_state { SERVICE_UP, SERVICE_CHECK, SERVICE_AWAY, SERVICE_TRIAL };

struct work_service {
    enum service_state state;
    bool has_health;  /* --health */
    bool worked;      /* it has responded before */
    int64_t away_ms;  /* AWAY, TRIAL: since then; -1: it is not away */
    int64_t next_ms;  /* AWAY, TRIAL: the end of it. TRIAL: INT64_MAX: no job yet */
    int64_t trial_ms; /* TRIAL: since then */
    int64_t pause_ms; /* the last pause; 0: none since it has responded to a job */
};

/* Begins with UP, or with CHECK if there is --health. */
void service_init(struct work_service *s, bool has_health);

/*
 * Does what is due. *next_ms becomes the time of the next call, if that is earlier. True:
 * ask for the health, unless a request for it is under way.
 */
bool service_step(struct work_service *s, int64_t now_ms, int64_t *next_ms);

/* Number of jobs that may be claimed. */
size_t service_limit(const struct work_service *s);

/* True if a job that is claimed may be sent. */
bool service_takes_jobs(const struct work_service *s);

/* A job was sent. */
void service_job_sent(struct work_service *s, int64_t now_ms);

/* A good response to the request for the health. Call service_failed() for any other. */
void service_healthy(struct work_service *s, int64_t now_ms);

/*
 * A response to a job that was sent at sent_ms. It says that the service works, also if
 * the job has failed.
 */
void service_responded(struct work_service *s, int64_t sent_ms);

/* The job has failed, so the health decides whether to claim the next one. */
void service_doubted(struct work_service *s);

/* The service does not take jobs, for retry_after_ms at least. random: any number. */
void service_failed(struct work_service *s, int64_t now_ms, int64_t retry_after_ms,
                    uint32_t random);

#endif
