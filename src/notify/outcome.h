/*
 * outcome: the outcome of an attempt, its consequence for the store (docs/api.md 20.4), its metrics and its
 * log line.
 *
 *     2xx                    the message is delivered
 *     410                    the subscription ends
 *     429, 5xx, no response  the attempt failed: retried when the policy says so, and not before the
 *                            Retry-After of 429 and 503; or given up
 *     any other              a permanent failure: given up at once. claimd does not follow redirects
 */
#ifndef NOTIFY_OUTCOME_H
#define NOTIFY_OUTCOME_H

#include "claimd/base/log.h"
#include "claimd/json/reason.h"
#include "claimd/metrics/exposition.h"
#include "claimd/store/subscription.h"
#include "notify/delivery.h"

/* The longest wait that a subscriber may ask for. */
enum { RETRY_AFTER_MOST_S = 3600 };

/* How a try ended. */
struct ending {
    enum ending_kind {
        ENDING_ANSWER,    /* with a status */
        ENDING_NONE,      /* without an answer, or with one that was broken off */
        ENDING_IMPOSSIBLE /* it cannot be sent: no try will be better */
    } kind;
    int status;            /* ANSWER; of mail 250, or 400 for a permanent refusal */
    int64_t retry_after_s; /* ANSWER; 0: it says nothing */
    bool timed_out;        /* NONE */
};

enum outcome_kind {
    OUTCOME_DELIVERED,
    OUTCOME_FAILED,   /* it is tried again */
    OUTCOME_REFUSED,  /* the subscriber does not want this one */
    OUTCOME_GIVEN_UP, /* the last try failed, or none is possible */
    OUTCOME_GONE,
    OUTCOME_KINDS
};

struct outcome {
    enum outcome_kind kind;
    enum store_outcome outcome;
    int64_t wait_ms; /* FAILED: until the next try */
};

void outcome_decide(const struct ending *e, const struct store_delivery *d,
                    struct outcome *out);

/* ------------------------------------------------------------------ metrics */

/* What /metrics shows of deliveries (docs/metrics.md). One thread counts, any reads. */
struct figures {
    struct counter tries[OUTCOME_KINDS]; /* by outcome */
    struct counter put_off;              /* were not tried */
    struct counter kept_out;             /* by the guard */
    struct counter in_flight, waiting;   /* now */
    struct buckets took_us;
};

void figures_count(struct figures *f, enum outcome_kind kind, int64_t took_ns);

void figures_write(const struct figures *f, uint64_t slow_hosts, struct exposition *x);

/* ------------------------------------------------------------------ log */

/* Log lines of deliveries, at most one a second of failed ones, so that a dead subscriber does not fill the
 * log. Of an address they show only protocol, host and port (delivery.h). */
struct delivery_log {
    const struct log *log;
    int64_t written_ns;    /* the last line of a failure; 0: none yet */
    uint64_t omitted;      /* since then */
    struct reason missing; /* as last logged */
};

void delivery_log_outcome(struct delivery_log *h, const struct delivery *p,
                          const struct outcome *v, const struct ending *how,
                          const struct reason *why);

/* Something is missing, such as libcurl: logged once, until it is something else. */
void delivery_log_missing(struct delivery_log *h, const struct reason *why);

#endif
