/*
 * delivery: a delivery in progress: its target, its transfer, the outcome of an attempt
 * (docs/api.md 20.4), and the metrics and log lines of deliveries.
 *
 *   Threads  one: that of the notifier. Any thread may read the metrics
 *   Memory   the text of the notification while it is sent
 */
#ifndef NOTIFY_DELIVERY_H
#define NOTIFY_DELIVERY_H

#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"
#include "claimd/base/log.h"
#include "claimd/ds/list.h"
#include "claimd/json/reason.h"
#include "claimd/metrics/exposition.h"
#include "claimd/store/subscription.h"
#include "claimd/web/curl_library.h"
#include "notify/hosts.h"

/*
 * The protocol and the origin of a subscriber's URI. Only the origin may be written to a
 * log, because users, passwords, paths (many web hooks have a secret there) and queries
 * must stay secret. libcurl parses the URI itself.
 *
 *     https://user:secret@Example.org:8443/hooks/T0/B0?key=secret
 *     origin: https://example.org:8443
 */
enum target_kind {
    TARGET_WEB,   /* http, https */
    TARGET_MAIL,  /* mailto */
    TARGET_TRUST, /* trust+http, trust+https: with credentials of Keystone */
    TARGET_OTHER  /* an unknown protocol */
};

enum { TARGET_ORIGIN_CAP = 272 };

struct target {
    enum target_kind kind;
    struct bytes rest;              /* the URI without "mailto:" */
    char origin[TARGET_ORIGIN_CAP]; /* lower-case; may be truncated; NUL-terminated */
};

/* Reads any text, which *out borrows. */
void target_read(struct bytes uri, struct target *out);

struct guard;

struct delivery {
    /* In one list: until its change is durable, its host is free, or it is sent. */
    struct list link;
    struct store_delivery leased;
    struct target target;
    struct host *host; /* NULL: not looked up yet */
    /* While it is sent: */
    const struct guard *guard; /* NULL: the operator named the address */
    CURL *handle;
    struct curl_slist *headers, *recipients;
    struct buf url, text;
    struct curl_transfer transfer;
    size_t text_read;      /* bytes of a mail that libcurl has read */
    size_t response_bytes; /* received so far, of the body */
    bool blocked;          /* by the guard */
    int64_t began_ns;
};

/* Makes a delivery of a leased one, owned. NULL: no memory. */
struct delivery *delivery_new(struct mem *mem, const struct store_delivery *leased);

/* Frees it. The store has its outcome (store_delivery_done()). It is not being sent. */
void delivery_free(struct mem *mem, struct delivery *d);

/* ------------------------------------------------------------------ outcomes */

/*
 * How an attempt ended, and what follows:
 *
 *     2xx                    the message is delivered
 *     410                    the subscription ends
 *     429, 5xx, no response  the attempt failed. The policy decides on a retry, which is
 *                            not earlier than the Retry-After of 429 and 503
 *     any other              refused: a permanent failure. claimd does not follow
 *                            redirects
 */
struct ending {
    enum ending_kind {
        ENDING_RESPONSE,    /* with a status */
        ENDING_NO_RESPONSE, /* or an incomplete one */
        ENDING_IMPOSSIBLE   /* the notification can never be sent */
    } kind;
    int status;            /* RESPONSE. Of mail: 250, or 400 for a permanent refusal */
    int64_t retry_after_s; /* RESPONSE; 0: not given */
    bool timed_out;        /* NO_RESPONSE */
};

/* The longest Retry-After. Longer ones count as this one. */
enum { RETRY_AFTER_MOST_S = 3600 };

enum outcome_kind {
    OUTCOME_DELIVERED,
    OUTCOME_FAILED,            /* claimd retries */
    OUTCOME_REFUSED,           /* the subscriber does not accept this notification */
    OUTCOME_PERMANENT_FAILURE, /* the last attempt failed, or none is possible */
    OUTCOME_GONE,              /* the subscription ends */
    OUTCOME_KINDS
};

struct outcome {
    enum outcome_kind kind;     /* for metrics and log */
    enum store_outcome outcome; /* for the store */
    int64_t wait_ms;            /* FAILED: time until the retry */
};

void outcome_decide(const struct ending *e, const struct store_delivery *d,
                    struct outcome *out);

/* ------------------------------------------------------------------ metrics */

/* The metrics of deliveries (docs/metrics.md). One thread counts, any thread reads. */
struct notify_metrics {
    struct counter tries[OUTCOME_KINDS]; /* number of attempts */
    struct counter backed_off;           /* deliveries without an attempt */
    struct counter blocked;              /* attempts, by the guard */
    struct counter in_flight, waiting;   /* current numbers */
    struct buckets duration_us;          /* of attempts */
};

/* duration_ns: -1 if nothing was sent. */
void notify_metrics_count(struct notify_metrics *f, enum outcome_kind kind,
                          int64_t duration_ns);

void notify_metrics_write(const struct notify_metrics *f, uint64_t slow_hosts,
                          struct exposition *x);

/* ------------------------------------------------------------------ log */

/* Log lines of deliveries. There is at most one line a second about failures, so that a
 * dead subscriber does not fill the log. Of an address they contain only the origin. */
struct delivery_log {
    const struct log *log;
    int64_t written_ns;    /* the last line about a failure; 0: none yet */
    uint64_t omitted;      /* lines since then */
    struct reason missing; /* the last text of delivery_log_missing() */
};

void delivery_log_outcome(struct delivery_log *h, const struct delivery *d,
                          const struct outcome *outcome, const struct ending *ending,
                          const struct reason *why);

/* Something is missing, such as libcurl. Logs a text once in a row. */
void delivery_log_missing(struct delivery_log *h, const struct reason *why);

#endif
