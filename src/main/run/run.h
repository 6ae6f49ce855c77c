/*
 * run: what claimd run has started and waits for.
 *
 *     claimd run ---- server 1 .. n     killed when claimd run dies, whatever it dies of
 *          |
 *          +--------- CMD               likewise; its input and output are its own
 *          |
 *        parent                         when it dies, CMD gets SIGTERM, and then SIGKILL
 *
 * One thread, which sleeps until there is a signal, the parent dies, or a server is ready.
 */
#ifndef MAIN_RUN_RUN_H
#define MAIN_RUN_RUN_H

#include "main/config.h"
#include "main/run/run_command.h"
#include "main/run/run_server.h"

#include <poll.h>
#include <signal.h>

enum { RUN_BROKEN = 70 }; /* exit status: it is a server that has failed */

#define RUN_SECOND_NS INT64_C(1000000000)

struct run {
    struct run_words words;
    struct run_server *servers; /* owned */
    char region[CONFIG_TEXT_CAP];
    int log;            /* -1: none */
    sigset_t before;    /* what was blocked before we came */
    int signals;        /* signalfd; -1 */
    pid_t parent;       /* 0: it is none that we can see */
    int parent_end;     /* readable when it has died; -1: not known */
    pid_t command;      /* CMD, then who reports; 0: it does not run */
    int command_status; /* of waitpid() */
    int stopped_by;     /* a signal, while there is no CMD that it could go to */
    int64_t kill_at_ns; /* CMD; 0: never */
    bool serving;       /* no server should end now */
    bool orphaned;      /* our parent has died */
    bool broken;        /* a server has ended */
    bool unasked;       /* of who reports: one did not tell its leaks */
};

/* ------------------------------------------------------------------ watch.c */

/* Signals are read from now on, and go to CMD if they are for it. False: errno. */
bool run_take_signals(struct run *r);

/* From now on its death is ours. */
void run_watch_parent(struct run *r);

/* Takes note of all who have ended. */
void run_reap(struct run *r);

/* A complaint about a server that has ended. */
void run_tell_end(const struct run_server *s);

/*
 * Sleeps until something happens, also with these descriptors, behind which there is room for
 * two; until_ns (clock_stopwatch_ns()) 0: or for ever.
 */
void run_rest(struct run *r, struct pollfd *fds, size_t count, int64_t until_ns);

/* 0: that moment has come. */
int run_left_ms(int64_t until_ns);

/* ------------------------------------------------------------------ servers.c */

/* These return COMMAND_GOOD, or an exit status after an error message. */
int run_servers_start(struct run *r);

/* Until all have told where they listen. */
int run_servers_await(struct run *r);

/* From now on none should end; one that has ended already is told. */
int run_servers_begin(struct run *r);

/* They end, if need be by SIGKILL: when their time is over, of which there is less if somebody wants
 * us to end, or another signal comes. */
void run_servers_stop(struct run *r, bool hurried);

#endif
