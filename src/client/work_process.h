/*
 * work_process: the command of one job, in a process group of its own.
 *
 * The command gets the body of the message on standard input, and metadata on descriptor 3. Both are files
 * in memory, so the command may read them at any time, or never. It writes to the standard output of this
 * process. Its standard error goes through a pipe: process_read_errors() passes it on, and keeps the last bytes
 * as the reason of a failure. The command gets no other descriptors.
 *
 * The group ends with the command: process_reap() kills what is left of it, so that no part of a job runs on
 * while the message is delivered again. A process that leaves the group, with setsid(1), is not found. If this
 * process ends, the kernel kills the command.
 *
 *   Cost     start: one vfork, two files in memory and two pipes
 *   Threads  one. SIGCHLD must not be ignored, and SIGPIPE must be blocked or ignored
 */
#ifndef CLIENT_WORK_PROCESS_H
#define CLIENT_WORK_PROCESS_H

#include "claimd/base/bytes.h"

#include <signal.h>
#include <sys/types.h>

/* Bytes of standard error that are kept; the most that one call passes on. */
enum { PROCESS_TAIL = 1024, PROCESS_CHUNK = 4096 };

/* Exit statuses of a shell for a command that it cannot run or does not find. */
enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

struct work_process {
    pid_t pid;        /* 0: not started, or reaped */
    int errors;       /* reads its standard error; owned. -1: closed */
    int status;       /* as of waitpid(2), when reaped */
    size_t most_left; /* when reaped: bytes of standard error that are still read */
    size_t tail_len;
    char tail[PROCESS_TAIL]; /* the last bytes of its standard error */
};

struct process_start {
    char *const *command;     /* its words, then NULL */
    char *const *environment; /* its whole environment, then NULL */
    struct bytes input, metadata;
    const sigset_t *signals; /* its signal mask */
};

/*
 * Makes sure that descriptors 0 to 3 are in use, so that no file of this process ever gets a number that a
 * command needs. Call it before anything else is opened. False with errno.
 */
bool process_reserve_descriptors(void);

/*
 * Starts a command. Returns 0, or why it cannot run, as errno: ENOENT if there is no such command. Until it is
 * started, *p needs no initialization.
 */
int process_start(struct work_process *p, const struct process_start *start);

/* Sends a signal to the group. No effect after process_reap(). */
void process_signal(const struct work_process *p, int number);

/*
 * Reads up to PROCESS_CHUNK bytes of standard error, without blocking, and writes them to the standard error of
 * this process. Call it only if that does not block. At the end of the data `errors` becomes -1.
 */
void process_read_errors(struct work_process *p);

/* Kills the rest of the group of a command that has ended, and takes its status. Its standard error may have more. */
void process_reap(struct work_process *p);

/* True if all was read that the command has written to standard error. A process that has left the group may write
 * for ever, so some more bytes count as all. */
bool process_is_read(const struct work_process *p);

/* Kills the group, reaps the command, and closes its standard error. It may wait for the kernel. */
void process_end(struct work_process *p);

/* True if a write of up to PROCESS_CHUNK bytes to standard error does not block now. */
bool stderr_is_writable(void);

#endif
