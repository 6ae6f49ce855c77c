/*
 * store_setup: the journal of a store in memory, or a store on Redis with its threads
 * (docs/scale-out.md), and the clock of the store.
 *
 * Order of calls with a journal. Without one, these functions do nothing:
 *
 *     store_setup_open()      opens and locks the directory, before the engine is opened
 *     store_setup_recover()   replays the journal, before the first request
 *     store_setup_close()     writes and closes the journal, before the engine is closed
 *
 * With Redis, store_setup_connect() opens the store, and store_setup_disconnect() ends
 * its threads.
 */
#ifndef MAIN_STORE_SETUP_H
#define MAIN_STORE_SETUP_H

#include "claimd/base/clock.h"
#include "claimd/base/executor.h"
#include "claimd/base/log.h"
#include "claimd/base/supervisor.h"
#include "claimd/journal/journal.h"
#include "claimd/metrics/exposition.h"
#include "claimd/store/sealer.h"
#include "claimd/store/store.h"
#include "main/config.h"
#include "main/exit_status.h"

struct store_setup {
    struct metrics_source source;        /* of the journal or Redis */
    struct log *log;                     /* borrowed */
    const struct supervisor *supervisor; /* borrowed */
    struct clock clock;                  /* continues the time of the journal */
    struct clock *test_clock;            /* borrowed, of the test API; NULL: none */
    const struct clock *now;   /* clock of the store: `clock`, test_clock or another */
    struct disk *disk;         /* owned; NULL: no journal */
    struct journal *journal;   /* owned */
    bool unloads;              /* messages may leave memory (backlog_memory) */
    struct store *redis;       /* borrowed; NULL: the store is in memory */
    struct executor *executor; /* owned; NULL without Redis */
    char *password;            /* owned, of Redis; NULL: none */
    uint8_t boot_id[JOURNAL_BOOT_ID_BYTES]; /* of the machine */
};

/*
 * Opens the journal, if the option names one. The clock of the store is `clock`, or
 * test_clock if that is not NULL. With a journal it is s->clock instead of a running
 * `clock`. store_setup_recover() sets s->clock or test_clock to the time of the journal.
 * ST_IO, and ST_UNAVAILABLE if another process uses the directory, after an error
 * message; ST_NO_MEMORY.
 */
enum status
store_setup_open(struct store_setup *s, const struct config *config, struct log *log,
                 const struct supervisor *supervisor, const struct clock *clock,
                 struct clock *test_clock, struct config_errors *errors);

/* The log for the engine, the server and the notifier. NULL: there is no journal. */
struct store_log *store_setup_log(const struct store_setup *s);

/* The body files of the journal; NULL: there is no journal. */
struct store_runs *store_setup_runs(const struct store_setup *s);

/*
 * Replays the journal into the store, and starts the committer. ST_CONFLICT after an
 * error message if the journal must not be used as it is (exit status 3). Other statuses
 * as store_setup_open().
 */
enum status store_setup_recover(struct store_setup *s, const struct config *config,
                                struct store *store, struct config_errors *errors);

/* Call it after a move of the store's clock. Any thread. */
void store_setup_clock_moved(struct store_setup *s);

/* True if the store is on Redis, false if it is in memory. */
bool store_is_redis(const struct config *config);

/*
 * Connects to Redis, and starts the threads. The caller owns the store. config, mem and
 * sealer are borrowed for its life. If the clock is stopped, its time is the time of the
 * store. ST_UNAVAILABLE, ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status store_setup_connect(struct store_setup *s, const struct config *config,
                                struct mem *mem, const struct store_sealer *sealer,
                                struct store **out, struct config_errors *errors);

/* Adds the metrics of the journal or of Redis, if there is one. */
void store_setup_add_metrics(struct store_setup *s, struct metrics *metrics);

/* Ends the threads. The caller closes the store afterwards. */
void store_setup_disconnect(struct store_setup *s, struct mem *mem);

void store_setup_close(struct store_setup *s);

#endif
