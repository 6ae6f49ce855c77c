/*
 * alert_rules: the conditions of docs/prometheus/claimd.rules.yml, on what claimd itself
 * sees once a minute (docs/adr/0031-alerts.md).
 *
 * The server's rules look at struct alert_minutes: the sums of /metrics that they need,
 * for an hour. The rules of queues look at struct alert_queue, which alert_queue_read()
 * makes of the samples in claimd/store/sampler.h.
 *
 *   Cost     a rule O(minutes), alert_queue_read() O(samples)
 *   Memory   struct alert_minutes: 80 KiB
 *   Threads  those of the owner
 */
#ifndef API_ALERT_RULES_H
#define API_ALERT_RULES_H

#include "claimd/metrics/exposition.h"
#include "claimd/store/metrics.h"
#include "claimd/store/sampler.h"

/* ALERT_MINUTES: an hour, and its beginning. */
enum { ALERT_MINUTES = 61, ALERT_HISTOGRAMS = 4, ALERT_BUCKETS = BUCKETS_MAX + 1 };

enum alert_input {
    ALERT_READY,
    ALERT_BACK_EXPIRED,
    ALERT_CLAIMED,
    ALERT_LATE_DELETIONS,
    ALERT_REST_READY,   /* these five: of queues that /metrics does not show */
    ALERT_REST_WAITING, /* ready, and no dead letters */
    ALERT_REST_DEAD_LETTERED,
    ALERT_REST_UNREAD,
    ALERT_REST_LETTERS_EXPIRED,
    ALERT_POSTS_REFUSED,
    ALERT_PAUSED_POSTS_REFUSED,
    ALERT_RESPONSES_5XX,
    ALERT_RESPONSES,
    ALERT_CONNECTIONS,
    ALERT_MAX_CONNECTIONS,
    ALERT_CONNECTIONS_REFUSED,
    ALERT_WAITERS,
    ALERT_MAX_WAITERS,
    ALERT_TRIES_FAILED, /* for good */
    ALERT_TRIES_ENDED,
    ALERT_NOTIFICATIONS_DROPPED,
    ALERT_NOTIFICATIONS_ENDED, /* and dropped */
    ALERT_BACKLOG_BYTES,
    ALERT_POSTPONED,
    ALERT_SLOW_HOSTS,
    ALERT_NOT_ALLOWED,
    ALERT_SCHEDULE_REFUSED,
    ALERT_MEMORY_USED,
    ALERT_MEMORY_BUDGET,
    ALERT_JOURNAL_FAILED,
    ALERT_JOURNAL_FULL,
    ALERT_JOURNAL_LEFT,
    ALERT_BYTES,
    ALERT_UNLOADED_BYTES,
    ALERT_MESSAGES,
    ALERT_SLOTS_WITHOUT_OWNER,
    ALERT_UNCONFIRMED,
    ALERT_MAP_AGE,
    ALERT_PRIMARIES,
    ALERT_OUTBOX_AGE,
    ALERT_DECRYPTION_FAILURES,
    ALERT_RELOAD_OK,
    ALERT_LOG_LINES_DROPPED,
    ALERT_EXPIRY_LAG,
    ALERT_INPUTS
};

/* NAN: /metrics has no such sample. */
struct alert_minute {
    int64_t at_ms;
    double inputs[ALERT_INPUTS];
    double buckets[ALERT_HISTOGRAMS][ALERT_BUCKETS]; /* cumulative */
};

/* Zero at the beginning. */
struct alert_minutes {
    struct alert_minute minutes[ALERT_MINUTES]; /* number n is at n % ALERT_MINUTES */
    double bounds[ALERT_HISTOGRAMS][ALERT_BUCKETS];
    size_t bound_counts[ALERT_HISTOGRAMS];
    uint64_t count; /* of minutes so far */
};

/* Begins a minute without samples. */
void alert_minutes_begin(struct alert_minutes *m, int64_t now_ms);

/* Adds to a sum of the minute. */
void alert_minutes_add(struct alert_minutes *m, enum alert_input input, double value);

/* Adds a sample of /metrics. `arg` is a struct alert_minutes. */
exposition_take alert_minutes_take;

/* A queue, and what happened in it. */
struct alert_queue {
    bool is_topic;
    uint64_t ready, dead_letters, claims, waiters;
    double ready_age_s, claim_age_s; /* 0: none */
    bool paused;                     /* its claims are */
    bool only_subscribers; /* it has some, and no claim has delivered a message */
    bool was_paused;       /* within 30 minutes */
    double least_ready;    /* within 30 minutes */
    double ready_hour_ago; /* NAN: not known */
    double ready_slope;    /* messages per second, over 15 minutes */
    double delivered;      /* within 30 minutes */
    double worked;         /* delivered and deleted within 2 minutes */
    double dead_lettered, unread, letters_expired; /* within 15 minutes */
};

/* Fills in what follows from the samples of a queue. */
void alert_queue_read(struct alert_queue *q, const struct store_sample *samples,
                      size_t count, int64_t now_ms);

struct alert_rule;

/* Whether the condition holds now, and the value that the alert is about. */
typedef bool alert_server_rule(const struct alert_rule *rule,
                               const struct alert_minutes *m, double *value);
typedef bool alert_queue_rule(const struct alert_queue *q, double *value);

struct alert_rule {
    const char *name;
    const char *severity;
    unsigned for_minutes; /* the condition must hold so long */
    const char *summary, *action;
    const char *unit;          /* of the value; NULL: it is not shown */
    alert_server_rule *server; /* NULL: the rule is only about queues */
    alert_queue_rule *queue;   /* NULL: it is only about the server */
    /* For `server`: */
    unsigned minutes;
    enum alert_input part, whole;
    double limit;
};

/* In the order of claimd.rules.yml. Without ClaimdDown and ClaimdRestarts, which a server
 * cannot see. */
extern const struct alert_rule alert_rules[];
extern const size_t alert_rule_count;

#endif
