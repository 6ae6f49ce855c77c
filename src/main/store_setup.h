/*
 * store_setup: what keeps the messages where that is not the engine: a store on Redis, and the threads
 * that ask it (docs/scale-out.md).
 */
#ifndef MAIN_STORE_SETUP_H
#define MAIN_STORE_SETUP_H

#include "claimd/base/clock.h"
#include "claimd/base/executor.h"
#include "claimd/base/log.h"
#include "claimd/metrics/exposition.h"
#include "claimd/store/sealer.h"
#include "claimd/store/store.h"
#include "main/config.h"

struct store_setup {
    struct metrics_source source; /* of metrics */
    struct store *store;          /* borrowed: the daemon's; NULL: there is none */
    struct executor *executor;    /* owned, likewise */
    const struct log *log;        /* borrowed */
    char *password;               /* owned; NULL: there is none */
};

/* Is the store another one than the engine? */
bool store_is_redis(const struct config *config);

/*
 * Connects, and starts the threads; the store is the caller's. The configuration and the others are
 * borrowed for its life. A clock that stands is the store's time. ST_UNAVAILABLE, ST_BAD_VALUE after
 * an error message; ST_NO_MEMORY.
 */
enum status
store_setup_open(struct store_setup *b, const struct config *config, struct mem *mem,
                 const struct store_sealer *sealer, const struct clock *clock,
                 const struct log *log, struct store **out, struct config_errors *errors);

/* Adds its figures, if there is one. */
void store_setup_measure(struct store_setup *b, struct metrics *metrics);

/* Ends the threads; the store is closed behind it. */
void store_setup_close(struct store_setup *b, struct mem *mem);

#endif
