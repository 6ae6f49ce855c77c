/*
 * signals: those that a server takes, taken by a thread of their own.
 *
 *     SIGTERM, SIGINT    the first calls daemon_stop(). Another one ends the process at once, with
 *                        128 and its number, but only SIGNALS_APART_MS or more after the first: a
 *                        supervisor that means one stop may send two signals, as timeout(1) does, to
 *                        the process and then to its group. An earlier one is logged and ignored
 *     SIGHUP             calls daemon_reload()
 *     SIGUSR1            calls daemon_pause()
 *     time               calls daemon_look(), at the pace that it asks for
 *
 * Blocked signals reach a process even as PID 1, where the kernel drops those without a handler.
 */
#ifndef MAIN_SIGNALS_H
#define MAIN_SIGNALS_H

#include "main/daemon.h"

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

/* Judges a signal that came at now_ms, by a clock that is never set. */
enum signal_verdict
signal_judge(struct signal_history *history, int number, int64_t now_ms);

struct signals {
    pthread_t thread;
    int signal_fd, end_fd;         /* owned */
    struct daemon *daemon;         /* borrowed */
    struct signal_history history; /* these belong to the thread */
    int64_t look_ms;               /* when to look, by the stopwatch; -1: never */
};

/* Blocks the four in the calling thread and those it starts, and ignores SIGPIPE. */
void signals_block(void);

/* Starts taking them; those that came since signals_block() count. ST_UNAVAILABLE. */
enum status signals_start(struct signals *s, struct daemon *daemon);

/* Ends the thread. */
void signals_end(struct signals *s);

#endif
