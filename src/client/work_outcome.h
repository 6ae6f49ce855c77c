/*
 * work_outcome: what becomes of a message after an attempt at its job, from how the
 * attempt ended. Pure functions.
 */
#ifndef CLIENT_WORK_OUTCOME_H
#define CLIENT_WORK_OUTCOME_H

#include "client/work_transfer.h"

/* Limit of a reason in the API, in bytes. */
enum { REASON_MOST = 1024 };

/*
 * Exit status of a command for a message that no attempt can process (EX_DATAERR of
 * sysexits.h).
 */
enum { EXIT_BAD_MESSAGE = 65 };

/* The statuses of a service that is not available. */
enum { HTTP_TOO_MANY = 429, HTTP_UNAVAILABLE = 503 };

enum outcome_kind {
    OUTCOME_DELETE,
    OUTCOME_RETRY, /* release with delay and reason: a failure. Only this one counts */
    OUTCOME_DEAD_LETTER, /* with reason */
    OUTCOME_RELEASE,     /* the attempt was broken off, and says nothing about the job */
    OUTCOME_AWAY,  /* release with delay and reason: the service is not available, or no
                     process of a kept command has responded yet */
    OUTCOME_BROKEN /* release with reason: the command or the URL is broken */
};

/*
 * Longest description of the end of an attempt, with a URL of SERVICE_NAME_MOST in it, in
 * bytes.
 */
enum { WHAT_MOST = 319 };

struct job_outcome {
    enum outcome_kind kind;
    bool doubt;      /* RETRY: the service may be away, although the attempt counts */
    bool unsent;     /* AWAY: the service never got the request */
    int64_t delay_s; /* RETRY, AWAY */
    char what[WHAT_MOST + 1];     /* not DELETE: the end of the attempt in a few words */
    char reason[REASON_MOST + 1]; /* "": none. UTF-8, NUL-terminated */
};

/* Back-off of failed jobs: min(base * 2^attempt, most) seconds. */
struct work_backoff {
    int64_t base_s, most_s;
};

enum { BACKOFF_MOST_S = 43200 };

/*
 * Reads "BASE,MOST" or "BASE", in seconds from 0 to BACKOFF_MOST_S. Without MOST it is
 * the larger one of BASE and 900. False: the text is something else.
 */
bool backoff_parse(struct work_backoff *b, const char *text);

/*
 * Pause before the next attempt in seconds, after the attempt with this number (from 1
 * on). A part of up to a half is random, so that jobs that failed together do not return
 * together.
 */
int64_t backoff_s(const struct work_backoff *b, int64_t attempt, uint32_t random);

/*
 * Writes a reason: a few words (NULL: none), a colon, and the text without spaces around
 * it. If it does not fit, the beginning of the text is cut. Control characters, apart
 * from line feeds and tabs, and bytes that are not UTF-8 become question marks.
 */
void reason_write(char reason[REASON_MOST + 1], const char *words, struct bytes text);

/* The way a command ended, besides its status. */
enum attempt_stop {
    STOP_NONE,
    STOP_TIMEOUT, /* ended by --timeout */
    STOP_RUNNER,  /* ended because the runner ends */
    STOP_LOST     /* ended because the lease was lost: no outcome */
};

struct job_attempt {
    int64_t number; /* delivery count of the message */
    uint32_t random;
    enum attempt_stop stop;
    int64_t timeout_s;
    const struct work_backoff *backoff;
    const char *service; /* as url_describe() writes its URL; "": a command */
    bool service_worked; /* an earlier request, or message of a kept command, had a
                            response */
};

/*
 * The outcome of a command that has ended with this status of waitpid(2). tail: the end
 * of its standard error.
 */
void outcome_of_command(struct job_outcome *o, const struct job_attempt *a, int status,
                        struct bytes tail);

/*
 * The outcome of a message that a kept command (--keep) had without a response when its
 * process ended. fault: why the runner ended the process, "" if it ended by itself. text:
 * the end of its standard error, or more about the fault.
 */
void outcome_of_kept(struct job_outcome *o, const struct job_attempt *a, int status,
                     const char *fault, struct bytes text);

/*
 * Writes how a process ended, from its status: "exit status 1". Returns the exit status,
 * -1 after a signal.
 */
int status_describe(char what[WHAT_MOST + 1], int status);

/* The outcome of a request to a service that has ended, or that the runner has ended. */
void outcome_of_request(struct job_outcome *o, const struct job_attempt *a,
                        const struct work_transfer *t);

#endif
