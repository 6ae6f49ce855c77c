/*
 * work_lease: the lease of a claim, as the worker that holds it must see it. A state
 * machine with a given clock, without requests and processes of its own.
 *
 *      begin           1/3                 2/3            11/12     end
 *        |--------------|===================|===============|--------|
 *        |              renew, and retry    lost: SIGTERM   SIGKILL  claimd may deliver
 *        |              until a response    to the jobs              the messages again
 *        +-- the request was sent whose response confirmed the lease
 *
 * claimd starts a lease when it gets the request, so counting from the time before the
 * request was sent is never too late. A confirmed renewal starts the lease again. A
 * renewal that claimd refuses makes the lease lost at once, and the time until SIGKILL is
 * short, because another worker may already have the messages. A lost lease stays lost.
 *
 *   Times    milliseconds of a clock that also runs while the system is suspended
 *   Threads  one
 */
#ifndef CLIENT_WORK_LEASE_H
#define CLIENT_WORK_LEASE_H

#include <stdbool.h>
#include <stdint.h>

static inline int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct work_lease {
    int64_t ttl_ms;
    int64_t start_ms; /* the last confirmed request was sent */
    int64_t renew_ms; /* the next renewal is due, unless one is under way */
    int64_t sent_ms;  /* the renewal under way was sent */
    int64_t pause_ms; /* before the next retry */
    int64_t kill_ms;  /* lost: jobs get SIGKILL */
    bool renewing;    /* a renewal is under way */
    bool refused;     /* and the next step has not yet said so */
    bool lost;
};

enum lease_step {
    LEASE_WAIT,  /* nothing is due */
    LEASE_RENEW, /* send a renewal, and call lease_renewal_sent() */
    LEASE_LOST,  /* became lost: send SIGTERM */
    LEASE_KILL   /* send SIGKILL to what still runs. Returned again and again */
};

/* Starts a lease of ttl_ms > 0 that a response to a request of sent_ms has confirmed. */
void lease_begin(struct work_lease *l, int64_t ttl_ms, int64_t sent_ms);

/*
 * Says what is due. *next_ms: the time of the next call at the latest; INT64_MAX: none.
 */
enum lease_step lease_step(struct work_lease *l, int64_t now_ms, int64_t *next_ms);

void lease_renewal_sent(struct work_lease *l, int64_t now_ms);

/* claimd has confirmed the renewal. */
void lease_renewed(struct work_lease *l);

/*
 * The renewal got no response, or one that asks for a retry, after retry_after_ms at
 * least.
 */
void lease_renewal_failed(struct work_lease *l, int64_t now_ms, int64_t retry_after_ms);

/*
 * claimd has refused the renewal, because the claim has ended. The next step is
 * LEASE_LOST, even if the lease was lost before, with a shorter time until SIGKILL.
 */
void lease_refused(struct work_lease *l);

/*
 * The guard of a job ends it at these times, if the runner does not run: SIGTERM,
 * SIGKILL. The lease is lost before.
 */
int64_t lease_term_ms(const struct work_lease *l);
int64_t lease_kill_ms(const struct work_lease *l);

/* From this time on the messages may have been delivered to another worker. */
static inline int64_t
lease_end_ms(const struct work_lease *l)
{
    return l->start_ms + l->ttl_ms;
}

/* True if the messages may have been delivered to another worker. */
static inline bool
lease_ended(const struct work_lease *l, int64_t now_ms)
{
    return now_ms >= lease_end_ms(l);
}

#endif
