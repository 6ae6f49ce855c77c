/*
 * signals: those that a server takes, taken by a thread of their own.
 *
 *     SIGTERM, SIGINT    the first calls `stop`. Another one ends the process at once, with
 *                        128 and its number, but only SIGNALS_APART_MS or more after the
 *                        first: whoever means one stop may well send two signals, as
 *                        timeout(1) does, to the process and then to its group
 *     SIGHUP             calls `reload`
 *     SIGUSR1            calls `pause`: the first time, and every other time to end it
 *     time               calls `look`, at the pace that it asks for
 *
 * What is ignored, another SIGTERM that comes too soon, is told to `ignored`. Blocked signals reach a process even as PID 1,
 * where the kernel drops those that nobody handles.
 */
#ifndef MAIN_SIGNALS_H
#define MAIN_SIGNALS_H

#include "claimd/base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SIGNALS_APART_MS = 1000 };

/* What is to be done about a signal. */
enum signal_verdict {
    SIGNAL_STOP,
    SIGNAL_END,
    SIGNAL_RELOAD,
    SIGNAL_PAUSE,
    SIGNAL_IGNORE
};

/* What there is to remember between signals. */
struct signal_history {
    bool stopped;       /* one that stops has come */
    int64_t stopped_ms; /* when; defined if one has */
};

/* Judges a signal that came at now_ms, by a clock that nobody sets. */
enum signal_verdict
signal_judge(struct signal_history *history, int number, int64_t now_ms);

/* Called in the thread of the signals. */
struct signal_calls {
    void (*stop)(void *ctx);
    void (*reload)(void *ctx);
    void (*pause)(void *ctx);
    void (*ignored)(void *ctx, const char *name); /* "SIGTERM" */
    int64_t (*look)(void *ctx); /* milliseconds until the next call; -1: none */
    void *ctx;                  /* borrowed */
};

struct signals {
    pthread_t thread;
    int signal_fd, end_fd; /* owned */
    struct signal_calls calls;
    struct signal_history history; /* these belong to the thread */
    int64_t look_ms;               /* when to look, by the stopwatch; -1: never */
};

/* Blocks the four in the calling thread and those it starts, and ignores SIGPIPE. */
void signals_block(void);

/* Starts taking them; those that came since signals_block() count. ST_UNAVAILABLE. */
enum status signals_start(struct signals *s, const struct signal_calls *calls);

/* Ends the thread. */
void signals_end(struct signals *s);

#endif
