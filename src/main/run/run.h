/*
 * run: what claimd run has started and waits for.
 *
 *     claimd run ---- server 1 .. n     killed when claimd run dies, however it dies
 *          |
 *          +--------- CMD               likewise; its input and output are its own
 *          |
 *        parent                         when it dies, CMD gets SIGTERM, and then SIGKILL
 *
 * One thread, which sleeps until there is a signal, the parent dies, or a server is ready. Each server
 * has a session of its own, so that it gets no signals of the terminal.
 */
#ifndef MAIN_RUN_RUN_H
#define MAIN_RUN_RUN_H

#include "claimd/base/bytes.h"
#include "main/config.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit statuses. All but the first as shells have them. */
enum {
    RUN_BROKEN = 70,   /* a server has failed */
    RUN_CANNOT = 126,  /* the command is there, but cannot be run */
    RUN_NO_SUCH = 127, /* it is not there */
    RUN_SIGNALLED = 128
};

#define RUN_SECOND_NS INT64_C(1000000000)

/* ------------------------------------------------------------------ command line */

enum { RUN_INSTANCES_MOST = 64 };

struct run_words {
    size_t instances; /* at least 1 */
    bool numbered;    /* --instances was there */
    bool fail_on_leak;
    const char *log; /* a file; NULL: none */

    /* Owned; the words are borrowed. Options of the server, what it needs in front of them. */
    char **server;
    size_t server_count;
    char *const *command; /* borrowed; ends with NULL */
};

/*
 * Reads the words behind "run", such as "--instances 2 --max-wait 5 -- pytest -q". An exit status;
 * after an error message nothing is owned.
 */
int run_words_read(char *const *argv, struct run_words *out);
void run_words_free(struct run_words *words);

/* ------------------------------------------------------------------ processes */

/* Words for the command line of a server: where it listens, and the descriptor that tells where that is. */
#define RUN_SERVER_LISTEN "127.0.0.1:0"
#define RUN_SERVER_READY  "3"

struct run_server {
    pid_t pid;        /* 0: it never ran, or has ended and was waited for */
    int ready;        /* pipe that tells where it listens; -1: closed */
    int status;       /* of waitpid(), once it has ended */
    char address[64]; /* "127.0.0.1:40123"; empty: it has not told yet */
};

struct test_run {
    struct run_words words;
    struct run_server *servers; /* owned */
    char region[CONFIG_TEXT_CAP];
    int log;            /* -1: none */
    sigset_t before;    /* what was blocked before we came */
    int signals;        /* signalfd; -1 */
    pid_t parent;       /* 0: it is none that we can see */
    int parent_end;     /* readable when it has died; -1: not known */
    pid_t command;      /* CMD, then the process that reports; 0: it does not run */
    int command_status; /* of waitpid() */
    int stopped_by;     /* a signal, while there is no CMD that it could go to */
    int64_t kill_at_ns; /* CMD; 0: never */
    bool serving;       /* no server should end now */
    bool orphaned;      /* our parent has died */
    bool broken;        /* a server has ended */
    bool unasked;       /* in the process that reports: a server did not tell its leaks */
};

/* Starts CMD, which finds in its environment where the servers are. 0, or an exit status after an error message. */
int run_command_start(struct test_run *r);

/* ------------------------------------------------------------------ waiting */

/*
 * Signals are read from now on, and go to CMD if they are for it; the parent's death is ours. False:
 * errno.
 */
bool run_take_signals(struct test_run *r);

/* Sleeps until CMD has ended. Kills it at kill_at_ns. */
void run_await_command(struct test_run *r);

/* Starts all servers and waits until all have told where they listen. From then on none should end. An
 * exit status; other than COMMAND_GOOD after an error message. */
int run_servers_start(struct test_run *r);

/* Ends the servers, by SIGKILL when their time is over. They have less of it if we are to end, or
 * another signal comes. */
void run_servers_stop(struct test_run *r, bool hurried);

/* ------------------------------------------------------------------ leaks */

/* A server's report of what tests have forgotten (docs/api.md 23.8), for people. */

/* Lines that are written of each kind; what there is more is only counted. */
enum { LEAK_REPORT_LINES = 100 };

struct leak_report {
    FILE *to;
    const char *of; /* written behind each line: " (instance 2)"; "" for none */
    size_t claims, unread, dead_letters;
};

/*
 * Writes the leaks of a page, a document of GET /claimd/leaks. False: it is none. next: the target
 * of the next page; empty: there is none.
 */
enum { LEAK_REPORT_NEXT_CAP = 4096 };
bool leak_report_page(struct leak_report *r, struct bytes page,
                      char next[LEAK_REPORT_NEXT_CAP]);

size_t leak_report_count(const struct leak_report *r);

/* A line with what there was; nothing if there was nothing. */
void leak_report_sum_up(const struct leak_report *r);

#endif
