/*
 * expiry_log: logs once a minute each queue in which messages expired unread.
 *
 * A thread reads the counters of the queues that /metrics shows, and the sums of all other queues. It
 * compares them with those of the minute before.
 *
 *   Cost     per minute: one store_queue_metrics() for each shown queue
 *   Memory   48 bytes for each shown queue
 *   Threads  one of its own; only that thread, or a test without it, calls expiry_log_check()
 */
#ifndef MAIN_EXPIRY_LOG_H
#define MAIN_EXPIRY_LOG_H

#include "claimd/base/log.h"
#include "claimd/base/mem.h"
#include "claimd/store/store.h"

struct expiry_log;

struct expiry_log_config {
    struct mem *mem; /* all pointers are borrowed */
    struct store *store;
    const struct clock *clock; /* of the store */
    const struct log *log;
    size_t queues; /* maximum number of queues that /metrics shows */
};

/* Makes one without a thread, owned. ST_NO_MEMORY. */
enum status
expiry_log_open(const struct expiry_log_config *config, struct expiry_log **out);

/* Starts the thread. ST_UNAVAILABLE. */
enum status expiry_log_start(struct expiry_log *e);

/* Logs the messages that expired unread since the last check. */
void expiry_log_check(struct expiry_log *e);

/* Ends the thread and frees e. NULL is fine. */
void expiry_log_close(struct expiry_log *e);

#endif
