/*
 * expiry_log: once a minute, a line in the log for each queue in which messages expired unread.
 *
 * Its thread reads the counters of the queues that /metrics shows, and those of all other queues
 * together, and compares them with the counters of the minute before.
 *
 *   Cost     a minute: one store_queue_figures() for each shown queue, however many there are
 *   Memory   24 bytes for each shown queue, twice
 *   Threads  its own; expiry_log_look() is for the thread, or for a test without one
 */
#ifndef MAIN_EXPIRY_LOG_H
#define MAIN_EXPIRY_LOG_H

#include "claimd/base/log.h"
#include "claimd/base/mem.h"
#include "claimd/store/store.h"

struct expiry_log;

struct expiry_log_config {
    struct mem *mem; /* borrowed, as is all that follows */
    struct store *store;
    const struct clock *clock; /* the store's time */
    const struct log *log;
    size_t queues; /* that are shown, at most */
};

/* Makes one without a thread, owned: expiry_log_close() it. ST_NO_MEMORY. */
enum status
expiry_log_open(const struct expiry_log_config *config, struct expiry_log **out);

/* Starts the thread. ST_UNAVAILABLE. */
enum status expiry_log_start(struct expiry_log *e);

/* Logs what expired unread since the last look. */
void expiry_log_look(struct expiry_log *e);

/* Ends the thread, if there is one. Fine for NULL. */
void expiry_log_close(struct expiry_log *e);

#endif
