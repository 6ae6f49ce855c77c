/*
 * work_loop: the event loop of `claimd work`, in one thread. It waits for the transfers of libcurl, the signals, and
 * the standard errors of the commands.
 */
#ifndef CLIENT_WORK_LOOP_H
#define CLIENT_WORK_LOOP_H

#include "client/work_options.h"

struct client;

/* Runs until the end. Returns the exit status. */
int work_run(const struct work_options *o, const struct client *server);

#endif
