/*
 * signals: SIGTERM and SIGINT, taken by a thread of their own.
 *
 * The first one calls `stop`; the second ends the process at once with 128 and its
 * number. Blocked signals reach a process even as PID 1, where the kernel drops those
 * that nobody handles.
 */
#ifndef MAIN_SIGNALS_H
#define MAIN_SIGNALS_H

#include "claimd/base/status.h"

#include <pthread.h>

typedef void signal_stop_fn(void *ctx);

struct signals {
    pthread_t thread;
    int signal_fd, end_fd; /* owned */
    signal_stop_fn *stop;
    void *ctx; /* borrowed */
};

/* Blocks the two in the calling thread and those it starts, and ignores SIGPIPE. */
void signals_block(void);

/* Starts taking them; those that came since signals_block() count. ST_UNAVAILABLE. */
enum status signals_start(struct signals *s, signal_stop_fn *stop, void *ctx);

/* Ends the thread. */
void signals_end(struct signals *s);

#endif
