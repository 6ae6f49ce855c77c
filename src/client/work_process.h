/*
 * work_process: the command of one job, or a command that is kept for many, as the runner
 * sees it.
 *
 * The command gets the body of the message on standard input, and metadata on descriptor
 * 3. Both are files in memory, so the command may read them at any time, or never. It
 * writes to the standard output of this process. Its standard error goes through a pipe:
 * process_read_errors() passes it on, and keeps the last bytes as the reason of a
 * failure. The command gets no other descriptors.
 *
 * If it is kept (guard_setup), standard input and output are pipes instead, whose other
 * ends never block, and there is no descriptor 3.
 *
 * A guard starts the command in a process group of its own, and ends all its descendants
 * (work_guard.h). The command is over when its guard has reported that. So no part of a
 * job runs on while the message is delivered again. Guards stay for later commands.
 *
 *   Cost     start: two files in memory, a pipe, a message to the guard, and its vfork
 *   Threads  one. SIGCHLD must not be ignored, and SIGPIPE must be blocked or ignored
 */
#ifndef CLIENT_WORK_PROCESS_H
#define CLIENT_WORK_PROCESS_H

#include "claimd/base/bytes.h"
#include "client/work_guard.h"

/* Bytes of standard error that are kept; the most that one call passes on. */
enum { PROCESS_TAIL = 1024, PROCESS_CHUNK = 4096 };

/* Exit statuses of a shell for a command that it cannot run or does not find. */
enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

struct work_process {
    struct guard_link *guard; /* runs it. NULL: not started, or over */
    int errors;               /* reads its standard error; owned. -1: closed */
    int input, output; /* kept: writes its standard input, reads its standard output;
                                 owned. -1: closed */
    bool ordered;      /* its guard got more orders than the start */
    int64_t stop_ms;   /* SIGKILL was ordered for this time. INT64_MAX: was not */
    bool untaken;      /* when over: its guard was killed before it took the start */
    struct guard_report report; /* when over */
    size_t most_left; /* when over: bytes of standard error that are still read */
    size_t tail_len;
    char tail[PROCESS_TAIL]; /* the last bytes of its standard error */
};

/* A process that was not started. */
#define PROCESS_NONE                                                                     \
    ((struct work_process){.errors = -1, .input = -1, .output = -1, .stop_ms = INT64_MAX})

/* The runner's end of a guard. */
struct guard_link {
    int control;
    struct work_process *process; /* borrowed. NULL: idle */
};

struct work_guards {
    struct guard_setup setup;
    int control; /* of the spawner */
    pid_t spawner;
    struct guard_link *all; /* `count` are open, of setup.most */
    size_t count;
};

struct process_start {
    struct bytes input, metadata; /* unless it is kept */
    struct bytes variables;       /* each with a NUL at its end */
    int64_t term_ms, kill_ms;     /* when the guard ends the command, without a renewal */
};

/*
 * Makes sure that descriptors 0 to 3 are in use, so that no file of this process ever
 * gets a number that a command needs. Call it before anything else is opened. False with
 * errno.
 */
bool process_reserve_descriptors(void);

/*
 * Starts the spawner. Call it while this process is small. False with errno. ENOSYS: the
 * system has no child subreapers.
 */
bool guards_init(struct work_guards *g, const struct guard_setup *setup);

/* Ends all guards with all that they run, and waits for that. No effect if *g is zero. */
void guards_fini(struct work_guards *g);

/*
 * waitpid(2) has returned this status of a child. If it is the spawner, it must not stay
 * stopped, and if it has ended, the next start makes a new one.
 */
void guards_child_changed(struct work_guards *g, pid_t pid, int status);

/*
 * Takes what guard `i` reports, without blocking. A guard without a process may vanish:
 * then the last one gets its place. So call it from the last guard to the first.
 */
void guards_read(struct work_guards *g, size_t i);

/*
 * Number of commands that can start now. A busy spawner starts no guards besides those
 * that wait for it.
 */
size_t guards_limit(const struct work_guards *g);

/*
 * Starts a command, without waiting. Returns 0, or why that is impossible, as errno.
 * EBUSY: there is no idle guard, and the spawner is busy. A command that cannot run is
 * reported when it is over. Until it is started, *p needs no initialization.
 */
int process_start(struct work_process *p, struct work_guards *g,
                  const struct process_start *start);

/*
 * The lease was renewed, or another lease counts. False: it is over, or its guard reads
 * no orders now. Then the earlier times remain.
 */
bool process_renew(struct work_process *p, int64_t term_ms, int64_t kill_ms);

/*
 * Sends SIGTERM to the group now, unless that was done, and kills all that is left at
 * kill_ms. A later call can make that earlier. No effect if it is over.
 */
void process_stop(struct work_process *p, int64_t kill_ms);

/*
 * Reads up to PROCESS_CHUNK bytes of standard error, without blocking, and writes them to
 * the standard error of this process. Call it only if that does not block. At the end of
 * the data `errors` becomes -1.
 */
void process_read_errors(struct work_process *p);

/*
 * True if all was read that the command has written to standard error. A process of
 * another user may write for ever, so some more bytes count as all.
 */
bool process_is_read(const struct work_process *p);

/* Closes standard input of a kept command, which should end then. */
void process_end_input(struct work_process *p);

/* Bytes of standard input that a kept command has not read. */
size_t process_unread(const struct work_process *p);

/*
 * Closes its files. If it is not over, nothing is reported any more, and
 * guards_fini() ends it.
 */
void process_end(struct work_process *p);

/* True if a write of up to PROCESS_CHUNK bytes to standard error does not block now. */
bool stderr_is_writable(void);

#endif
