/*
 * store_setup: what keeps the messages beyond the engine, as the configuration wants it.
 *
 * The journal, and the store's time. Without one (journal = none) none of these does anything:
 *
 *     durability_open()      takes the directory; before the store is opened
 *     durability_recover()   the store is as it was; before any request
 *     durability_close()     all is on the disk; before the store is closed
 *
 * A store on Redis, instead of the engine, and the threads that ask it (docs/scale-out.md).
 */
#ifndef MAIN_STORE_SETUP_H
#define MAIN_STORE_SETUP_H

#include "claimd/base/clock.h"
#include "claimd/base/executor.h"
#include "claimd/base/log.h"
#include "claimd/journal/journal.h"
#include "claimd/metrics/exposition.h"
#include "claimd/store/sealer.h"
#include "claimd/store/store.h"
#include "main/config.h"
#include "main/supervisor.h"

/* ------------------------------------------------------------------ journal */

struct durability {
    struct metrics_source source;        /* of metrics: only with a journal */
    struct disk *disk;                   /* owned; NULL: there is no journal */
    struct journal *journal;             /* owned */
    struct log *log;                     /* borrowed */
    const struct supervisor *supervisor; /* borrowed */
    struct clock clock;                  /* ahead of the wall clock if the journal is */
    struct clock *steered;               /* borrowed; NULL: there is none */
    const struct clock *now; /* the store's: that one, or one of the daemon's */
};

/*
 * The store's time is the clock's; or, if there is one, that of `steered`, which then is moved
 * where the journal needs it. ST_IO, ST_NO_MEMORY, and ST_UNAVAILABLE if another process has the
 * directory, after an error message.
 */
enum status
durability_open(struct durability *d, const struct config *config, struct log *log,
                const struct supervisor *supervisor, const struct clock *clock,
                struct clock *steered, struct config_errors *errors);

/* The log for the engine that is about to be opened, and for what waits for it; NULL: none. */
struct store_log *durability_log(const struct durability *d);

/*
 * ST_CONFLICT after an error message: what is in the directory must not be used as it is (exit
 * status 3). Otherwise as above.
 */
enum status durability_recover(struct durability *d, const struct config *config,
                               struct store *store, struct config_errors *errors);

/* The clock was moved. Any thread. */
void durability_age(struct durability *d);

/* Adds the journal's figures, if there is one. */
void durability_measure(struct durability *d, struct metrics *metrics);

void durability_close(struct durability *d);

/* ------------------------------------------------------------------ Redis */

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
