/*
 * work_loop: the event loop of `claimd work`, in one thread. It waits for the transfers of libcurl, the signals, and
 * the standard errors of the commands.
 *
 *     RUN ----SIGUSR1----> QUIET     claims no more
 *      |                     |
 *      +---------+-----------+-- SIGTERM, a broken command, a server that is away for too long
 *      |         |
 *      |       STOP    claims no more; jobs may run for grace_s, then it ends and releases them
 *      |         |
 *      |         +-- SIGTERM
 *      |         |
 *      |       HURRY   ends and releases all jobs now
 *      |
 *    DRAIN   claims no more, because it has all jobs that it wants; ends when they are done
 */
#ifndef CLIENT_WORK_LOOP_H
#define CLIENT_WORK_LOOP_H

#include "client/work_options.h"

struct client;

/* Runs until the end. Returns the exit status. */
int work_run(const struct work_options *o, const struct client *server);

#endif
