/*
 * work_finish: the requests that tell claimd the outcomes of jobs. One request carries
 * all jobs of a claim that have ended since the last one.
 */
#ifndef CLIENT_WORK_FINISH_H
#define CLIENT_WORK_FINISH_H

#include "client/work_claim.h"

/*
 * True if a request is due: there are ended jobs, none is under way, and a pause is over.
 * *next_ms becomes the end of the pause, if that is earlier.
 */
bool finish_is_due(const struct work_claim *c, int64_t now_ms, int64_t *next_ms);

/*
 * A job has ended. If others of its claim still run, the request waits for some
 * milliseconds, so that it carries more of them. A kept command responds for many
 * messages in that time.
 */
void finish_gather(struct work_claim *c, int64_t now_ms);

/* Writes the request for all ended jobs, which become FINISHING. */
void finish_write(struct work_claim *c, struct buf *out);

/* The response of claimd about a job. */
enum finish_result {
    FINISH_DELETED,
    FINISH_RELEASED,
    FINISH_DEAD_LETTERED,
    FINISH_DONE,     /* one of these, by an earlier request that had no response */
    FINISH_NOT_HELD, /* nothing: the claim did not hold the message any more */
    FINISH_UNKNOWN   /* nothing is known: the lease has ended without a response */
};

/* Called for each job that becomes DONE. */
typedef void finish_fn(void *ctx, struct work_job *job, enum finish_result result);

/*
 * Reads a response with status 200. False: it is not understood. Then call
 * finish_retry(). If a job may have been finished by an earlier request, and the lease
 * has not ended, "not_held" becomes FINISH_DONE.
 */
bool finish_read(struct work_claim *c, struct bytes document, int64_t now_ms,
                 finish_fn *done, void *ctx);

/*
 * The claim is over: does what finish_read() does for "not_held", for all jobs of the
 * request.
 */
void finish_not_held(struct work_claim *c, int64_t now_ms, finish_fn *done, void *ctx);

/*
 * Plans a retry of the request, after retry_after_ms at least, but in time before the
 * lease ends. unknown: claimd may have done what it asks.
 */
void
finish_retry(struct work_claim *c, int64_t now_ms, int64_t retry_after_ms, bool unknown);

/*
 * The queue has no dead-letter queue: releases the jobs with a pause of pause_s and the
 * same reasons instead, with the next request. Returns their number.
 */
size_t finish_without_dead_letters(struct work_claim *c,
                                   const struct work_backoff *backoff, uint32_t random);

/* Gives up all jobs that are not RUNNING. */
void finish_give_up(struct work_claim *c, finish_fn *done, void *ctx);

#endif
