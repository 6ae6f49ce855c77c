/*
 * work_guard: the processes that start the commands of `claimd work`, and end all that is
 * left of them.
 *
 *     claimd work ---- spawner ---+---- guard ---- command ---- its descendants
 *          :              :       |       :
 *          :.... socket ..:.......|.......: socket for each guard
 *                                 +---- guard ---- ...
 *
 * A guard runs one command at a time. It is a child subreaper, so each descendant of the
 * command stays a descendant of the guard, also after setsid(1) or a double fork. The
 * guard kills all of them
 *
 *     - when the command has ended,
 *     - when claimd work says so,
 *     - when claimd work has ended, so that the socket is closed,
 *     - when the lease is about to end, although claimd work does not run, for example
 *       after SIGSTOP.
 *
 * Only then it reports the end. The spawner forks the guards. It is forked before the
 * runner needs much memory, and so the guards stay small. If a guard is killed, its
 * descendants become children of the spawner, which kills them, and then closes the
 * socket. The processes block all signals and have groups of their own, so that Ctrl-C
 * and Ctrl-Z do not reach them.
 *
 *   Times    milliseconds of now_ms()
 *   Cost     a job: one vfork, and a message in each direction
 *   Threads  one in each process. SIGCHLD must not be ignored
 */
#ifndef CLIENT_WORK_GUARD_H
#define CLIENT_WORK_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The files of a command: standard input, standard error, and metadata or, if it is kept,
 * standard output. Bytes of the variables of a job.
 */
enum { GUARD_FILES = 3, GUARD_VARIABLES_MOST = 4096 };

/* The name of the processes. */
#define GUARD_NAME "job-guard"

struct guard_setup {
    char *const *command;     /* its words, then NULL */
    char *const *environment; /* of each command, then NULL. Jobs add their variables */
    size_t most;              /* guards at the same time */
    const sigset_t *signals;  /* signal mask of the commands */
    bool keep;                /* a command is kept for many jobs */
};

enum guard_order_kind {
    GUARD_START, /* starts a command, with GUARD_FILES descriptors */
    GUARD_LEASE, /* the lease was renewed, or another one counts */
    GUARD_STOP   /* SIGTERM to the group now, SIGKILL to all at kill_ms */
};

struct guard_order {
    enum guard_order_kind kind;
    int64_t term_ms; /* START, LEASE: SIGTERM without an order. INT64_MAX: never */
    int64_t kill_ms; /* SIGKILL without an order. INT64_MAX: never */
    size_t len;      /* START: bytes of the variables, each with a NUL at its end */
    char variables[GUARD_VARIABLES_MOST];
};

/* The bytes of an order without the variables. */
#define GUARD_ORDER_LEAST offsetof(struct guard_order, variables)

/* The command and all its descendants have ended. */
struct guard_report {
    int error;        /* errno: the command could not start. 0: it has run */
    int status;       /* as of waitpid(2) */
    bool lease_ended; /* the guard ended it without an order, because of the lease */
    bool foreign;     /* processes are left that it may not signal */
};

/* Milliseconds of a clock that runs on while the system is suspended. */
int64_t now_ms(void);

/*
 * Forks the spawner, which borrows *setup and all that it points to. The spawner gets the
 * socket of each new guard through `control`, as a descriptor of a message. If it cannot
 * fork a guard, it sends a report with the error to that socket. Returns its process, or
 * -1 with errno.
 */
pid_t spawner_start(const struct guard_setup *setup, int *control);

/* Sends `len` bytes and descriptors without blocking. False with errno. */
bool message_send(int control, const void *data, size_t len, const int *files,
                  size_t file_count);

#endif
