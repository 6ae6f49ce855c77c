/*
 * notices: why a queue needs the attention of an operator (docs/api.md 26.1). The
 * thresholds are those of the alerts in docs/prometheus/claimd.rules.yml.
 *
 *   Cost     O(1) for each queue. Adding to a summary, too
 *   Threads  any
 */
#ifndef API_NOTICES_H
#define API_NOTICES_H

#include "claimd/store/metrics.h"
#include "claimd/store/sampler.h"

/* The most urgent one first. */
enum notice {
    NOTICE_NO_WORKER,
    NOTICE_READY_TOO_OLD,
    NOTICE_CLAIM_TOO_OLD,
    NOTICE_RETURNED,
    NOTICE_PAUSED,
    NOTICE_DEAD_LETTERS,
    NOTICES
};

extern const char *const notice_names[NOTICES];

/* The state of a queue that its notices depend on. */
struct notice_facts {
    const struct store_population *here; /* borrowed */
    int64_t ready_age_ms;                /* of the oldest ready message; 0: none */
    int64_t claim_age_ms;                /* of the oldest claim; 0: none */
    uint64_t waiters;
    unsigned paused;                 /* of enum store_pause */
    const struct store_rates *rates; /* borrowed; NULL: the queue has no history */
};

/* True if a queue has no messages. Then it has no notice other than NOTICE_PAUSED. */
bool notices_is_empty(const struct store_population *here);

/* Sets messages[n] for each notice that the queue has: the messages that it is about.
 * Returns the notices as bits, 1 << n. */
unsigned notices_find(const struct notice_facts *facts, uint64_t messages[NOTICES]);

enum { NOTICE_ROWS = 3 };

/* The notices of many queues, and the queues to name: those with the largest weights. */
struct notice_summary {
    uint64_t queues, messages;
    struct {
        uint32_t row; /* chosen by the caller */
        uint64_t messages, weight;
    } first[NOTICE_ROWS]; /* as many as `queues`, at most */
};

/* Adds the queue of a row to the summary of each notice that it has. */
void notices_add(struct notice_summary summaries[NOTICES],
                 const struct notice_facts *facts, uint32_t row);

#endif
