/*
 * run: the processes of `claimd run`.
 *
 *     parent
 *          |                        when the parent ends, CMD gets SIGTERM, then SIGKILL
 *     claimd run ---- server 1 .. n the kernel kills these if claimd run ends in any way
 *          |
 *          +--------- CMD           likewise; inherits standard input, output and error
 *
 * One thread, which sleeps until a signal arrives, the parent ends, or a server is ready.
 * Each server has its own session, so that it gets no signals of the terminal.
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

/* Exit statuses. All but the first are those of shells. */
enum {
    RUN_BROKEN = 70,    /* a server has failed */
    RUN_CANNOT = 126,   /* CMD cannot be run */
    RUN_NO_SUCH = 127,  /* CMD does not exist */
    RUN_SIGNALLED = 128 /* plus the number of the signal */
};

#define RUN_SECOND_NS INT64_C(1000000000)

/* ------------------------------------------------------------------ command line */

enum { RUN_INSTANCES_MOST = 64 };

struct run_words {
    size_t instances; /* at least 1 */
    bool numbered;    /* --instances is given */
    bool fail_on_leak;
    const char *log; /* a file; NULL: none */

    /* Command line of a server; the array is owned, the words are borrowed. */
    char **server;
    size_t server_count;
    char *const *command; /* borrowed; ends with NULL */
};

/*
 * Reads the words behind "run", such as "--instances 2 --max-wait 5 -- pytest -q".
 * Returns an exit status. After an error message nothing is owned.
 */
int run_words_read(char *const *argv, struct run_words *out);
void run_words_free(struct run_words *words);

/* ------------------------------------------------------------------ processes */

/* Values of --listen and --ready-fd for a server. */
#define RUN_SERVER_LISTEN "127.0.0.1:0"
#define RUN_SERVER_READY  "3"

struct run_server {
    pid_t pid;        /* 0: it does not run */
    int ready;        /* pipe from which its address is read; -1: closed */
    int status;       /* of waitpid(), after its end */
    char address[64]; /* "127.0.0.1:40123"; empty: not known yet */
};

struct test_run {
    struct run_words words;
    struct run_server *servers; /* owned */
    char region[CONFIG_TEXT_CAP];
    int log;            /* -1: none */
    sigset_t before;    /* the signal mask at the start */
    int signals;        /* signalfd; -1: not open */
    pid_t parent;       /* 0: in another PID namespace */
    int parent_end;     /* pidfd of the parent, readable after its end; -1: none */
    pid_t command;      /* CMD, then the process that reports leaks; 0: does not run */
    int command_status; /* of waitpid() */
    int stopped_by;     /* a signal that arrived while CMD did not run; 0: none */
    int64_t kill_at_ns; /* time to kill CMD; 0: never */
    bool serving;       /* a server that ends now has failed */
    bool orphaned;      /* the parent has ended */
    bool broken;        /* a server has failed */
    bool leaks_unknown; /* in the process that reports: a server did not report */
};

/* Starts CMD with the addresses of the servers in its environment. Returns 0, or an exit
 * status after an error message. */
int run_command_start(struct test_run *r);

/* ------------------------------------------------------------------ waiting */

/*
 * Blocks signals and opens `signals` and `parent_end`. From now on the functions below
 * forward signals to CMD. False and errno on failure.
 */
bool run_read_signals(struct test_run *r);

/* Waits for the end of CMD. Kills it at kill_at_ns. */
void run_wait_for_command(struct test_run *r);

/*
 * Starts all servers, and waits for their addresses. Returns an exit status; if it is not
 * COMMAND_GOOD, after an error message.
 */
int run_servers_start(struct test_run *r);

/*
 * Ends the servers: by SIGTERM and, after a time limit, by SIGKILL. The limit is shorter
 * if `hurried` or if a signal arrives.
 */
void run_servers_stop(struct test_run *r, bool hurried);

/* ------------------------------------------------------------------ leaks */

/* Prints the leaks that servers report (docs/api.md 23.8). */

/* Maximum number of printed leaks of each kind. Further ones are only counted. */
enum { LEAK_REPORT_LINES = 100 };

struct leak_report {
    FILE *to;
    const char *of; /* the end of each line: " (instance 2)", or "" */
    size_t claims, unread, dead_letters;
    size_t left_out; /* further ones that the server has only counted */
    size_t expired;  /* of all: ended by time */
};

/*
 * Prints the leaks of a response to GET /claimd/leaks. False if the text is no such
 * document. next: the target of the next page; empty: there is none.
 */
enum { LEAK_REPORT_NEXT_CAP = 4096 };
bool leak_report_page(struct leak_report *r, struct bytes page,
                      char next[LEAK_REPORT_NEXT_CAP]);

size_t leak_report_count(const struct leak_report *r);

/* Prints a line with the numbers of leaks, or nothing if there was none. */
void leak_report_write_sum(const struct leak_report *r);

#endif
