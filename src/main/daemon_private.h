/* daemon_private: the parts of a daemon, for daemon.c and for program.c, which reloads
 * options. */
#ifndef MAIN_DAEMON_PRIVATE_H
#define MAIN_DAEMON_PRIVATE_H

#include "claimd/api/api.h"
#include "claimd/base/supervisor.h"
#include "claimd/engine/engine.h"
#include "claimd/http/server.h"
#include "claimd/notify/notify.h"
#include "claimd/scheduler/scheduler.h"
#include "claimd/testapi/testapi.h"
#include "main/daemon.h"
#include "main/process_metrics.h"
#include "main/resources.h"
#include "main/store_setup.h"

struct daemon {
    const struct clock *clock; /* borrowed */
    struct log log;
    struct supervisor supervisor;
    struct watchdog watchdog;
    struct mem *mem;
    struct testapi *testapi; /* NULL without `ci` */
    struct store_setup store_setup;
    struct store *store;
    struct store_sealer sealer;
    struct config config; /* the signal thread changes reloadable options */
    struct resources resources;
    struct api_condition condition;
    struct metrics metrics;
    struct process_metrics process;
    struct metrics_source seal_metrics;
    struct api *api;
    struct notify *notify;
    struct sampler *sampler;
    struct zones *zones;
    struct scheduler *scheduler;
    struct api_scheduler watch; /* of the api */
    struct server *server;
    _Atomic int64_t drain_ms;
    int ready_fd; /* -1: none */
};

/* Notifies the supervisor of `assignments` (NULL: none) and the addresses. False on
 * failure. */
bool daemon_notify_state(const struct daemon *d, const char *assignments);

/* The limits of the store. */
struct engine_limits daemon_stored_limits(const struct config *config);

/* One of so many requests has a line in the log; 0: no request has one. */
uint64_t daemon_logged_requests(const struct config *config);

#endif
