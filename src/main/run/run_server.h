/*
 * run_server: a claimd in a process of its own, for `claimd run`.
 *
 * It is killed when its parent dies, in whatever way, and has a session of its own: what is
 * typed at the terminal is not for it.
 */
#ifndef MAIN_RUN_SERVER_H
#define MAIN_RUN_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

/* Words for its command line: where it listens, and the descriptor that tells where that is. */
#define RUN_SERVER_LISTEN "127.0.0.1:0"
#define RUN_SERVER_READY  "3"

struct run_server {
    pid_t pid;        /* 0: it never ran, or has ended and was waited for */
    int ready;        /* pipe that tells where it listens; -1: closed */
    int status;       /* of waitpid(), once it has ended */
    char address[64]; /* "127.0.0.1:40123"; empty: it has not told yet */
};

/*
 * Starts it with these words; log: a descriptor for its standard error, -1: ours. False: errno
 * says why not.
 */
bool run_server_start(struct run_server *s, char *const *words, int log);

/* Reads where it listens, when `ready` is readable; false: it has ended instead. */
bool run_server_read_address(struct run_server *s);

/* Sends it a signal if it runs. */
void run_server_signal(const struct run_server *s, int number);

#endif
