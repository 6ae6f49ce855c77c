/*
 * store_setup: what keeps the messages beyond the engine, and the store's time.
 *
 * With a journal (without one, the functions do nothing):
 *
 *     store_setup_open()      takes the directory; before the store is opened
 *     store_setup_recover()   the store is as it was; before any request
 *     store_setup_close()     all is on the disk; before the store is closed
 *
 * Or a store on Redis, instead of the engine, and the threads that ask it (docs/scale-out.md).
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

struct store_setup {
    struct metrics_source source;        /* of metrics: with a journal or Redis */
    struct log *log;                     /* borrowed */
    const struct supervisor *supervisor; /* borrowed */
    struct clock clock;                  /* ahead of the wall clock if the journal is */
    struct clock *steered;               /* borrowed; NULL: there is none */
    const struct clock *now;   /* the store's: that one, or one of the daemon's */
    struct disk *disk;         /* owned; NULL: there is no journal */
    struct journal *journal;   /* owned */
    struct store *redis;       /* borrowed: the daemon's; NULL: the store is another */
    struct executor *executor; /* owned; with Redis, as is the password */
    char *password;            /* NULL: there is none */
};

/*
 * The store's time is the clock's; or, if there is one, that of `steered`, which then is moved
 * where the journal needs it. ST_IO, ST_NO_MEMORY, and ST_UNAVAILABLE if another process has the
 * directory, after an error message.
 */
enum status
store_setup_open(struct store_setup *s, const struct config *config, struct log *log,
                 const struct supervisor *supervisor, const struct clock *clock,
                 struct clock *steered, struct config_errors *errors);

/* The log for the engine that is about to be opened, and for what waits for it; NULL: none. */
struct store_log *store_setup_log(const struct store_setup *s);

/*
 * ST_CONFLICT after an error message: what is in the directory must not be used as it is (exit
 * status 3). Otherwise as above.
 */
enum status store_setup_recover(struct store_setup *s, const struct config *config,
                                struct store *store, struct config_errors *errors);

/* The clock was moved. Any thread. */
void store_setup_age(struct store_setup *s);

/* Is the store another one than the engine? */
bool store_is_redis(const struct config *config);

/*
 * Connects to Redis, and starts the threads; the store is the caller's. The configuration and the
 * others are borrowed for its life. A clock that stands is the store's time. ST_UNAVAILABLE,
 * ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status store_setup_connect(struct store_setup *s, const struct config *config,
                                struct mem *mem, const struct store_sealer *sealer,
                                struct store **out, struct config_errors *errors);

/* Adds the metrics of the journal or of Redis, if there is one. */
void store_setup_measure(struct store_setup *s, struct metrics *metrics);

/* Ends the threads; the store is closed behind it. */
void store_setup_disconnect(struct store_setup *s, struct mem *mem);

void store_setup_close(struct store_setup *s);

#endif
