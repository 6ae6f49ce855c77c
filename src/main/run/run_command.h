/*
 * run_command: the command that `claimd run` runs: its environment, its start, its end.
 */
#ifndef MAIN_RUN_COMMAND_H
#define MAIN_RUN_COMMAND_H

#include "main/run/run_words.h"

#include <signal.h>
#include <sys/types.h>

/* Exit statuses, as shells have them. */
enum {
    RUN_CANNOT = 126,  /* it is there, but cannot be run */
    RUN_NO_SUCH = 127, /* it is not there */
    RUN_SIGNALLED = 128
};

struct run_server;

/*
 * Sets in our own environment what the command is to find: where the servers are, for programs
 * of ours and of OpenStack. What it says of another cloud is taken out. False: no memory.
 */
bool run_command_prepare(const struct run_words *words, const struct run_server *servers,
                         const char *region);

/*
 * Starts it, with these signals blocked; it is killed when we die. *pid is it. 0, or an exit
 * status after an error message.
 */
int run_command_start(const struct run_words *words, const sigset_t *blocked, pid_t *pid);

/* What waitpid() says, as an exit status. */
int run_command_exit(int status);

#endif
