/*
 * daemon_private: what a daemon is made of, for daemon.c, which puts it together and takes it
 * apart, and program.c, which changes it while it runs.
 */
#ifndef MAIN_DAEMON_PRIVATE_H
#define MAIN_DAEMON_PRIVATE_H

#include "claimd/api/api.h"
#include "claimd/engine/engine.h"
#include "claimd/http/server.h"
#include "claimd/notify/notify.h"
#include "claimd/testapi/testapi.h"
#include "main/admission.h"
#include "main/daemon.h"
#include "main/expiry_log.h"
#include "main/key_files.h"
#include "main/process_metrics.h"
#include "main/store_setup.h"
#include "main/supervisor.h"

/* What the configuration only names: taken from outside. */
struct named {
    struct listen_list listen;
    int64_t socket_group; /* -1: none */
    struct tls *tls;      /* owned; NULL: there is none */
    struct admission admission;
    struct signer *signer, *webhooks; /* owned */
    char *smtp_password;              /* owned; NULL: there is none */
    struct seal *seal;                /* owned */
    struct auth *auth;                /* owned; NULL: no identity stub */
};

struct daemon {
    const struct clock *clock; /* borrowed */
    struct log log;
    struct supervisor supervisor;
    struct watchdog watchdog;
    struct mem *mem;
    struct testapi *testapi; /* NULL: there is none */
    struct store_setup store_setup;
    struct store *store;
    struct store_sealer sealer;
    struct config config; /* the live options belong to the thread of the signals */
    struct named named;
    struct api_condition condition;
    struct metrics metrics;
    struct process_metrics process;
    struct sealing_source sealing;
    struct api *api;
    struct notify *notify;
    struct expiry_log *expiry_log;
    struct server *server;
    _Atomic int64_t drain_ms;
    int ready_fd; /* -1: none */
};

/* The scheme of a listener, as a client may write it. */
const char *daemon_scheme(const struct daemon *d, size_t index);

/* What the supervisor shows while all is well, after `assignments`. */
bool daemon_tell_state(const struct daemon *d, const char *assignments);

/* The limits of the store. */
struct engine_limits daemon_stored_limits(const struct config *config);

/* One request in so many has a line in the log; 0: none has. */
uint64_t daemon_logged_requests(const struct config *config);

#endif
