/*
 * work_options: the options of `claimd work`, and its run (work_runner.h).
 */
#ifndef CLIENT_WORK_OPTIONS_H
#define CLIENT_WORK_OPTIONS_H

#include "client/work_outcome.h"

enum {
    WORK_QUEUES_MOST = 32,
    WORK_PARALLEL_MOST = 500,
    WORK_LEASE_LEAST_S = 3,
    WORK_LEASE_MOST_S = 43200
};

struct work_options {
    const char *const *queues;
    size_t queue_count;
    char *const *command; /* its words, then NULL; NULL: `service` is set */
    const char *service;  /* URL; NULL: `command` is set */
    const char *health;   /* URL; NULL: without --health */
    int64_t parallel, lease_s, wait_s, grace_s;
    int64_t timeout_s, give_up_s, max_jobs; /* 0: no limit */
    struct work_backoff backoff;
    bool raw, exit_when_empty;
};

struct client;

/* Runs the event loop until the end. Returns the exit status. */
int work_run(const struct work_options *o, const struct client *server);

#endif
