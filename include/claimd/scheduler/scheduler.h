/*
 * scheduler: the thread that posts the messages of schedules when they are due
 * (docs/schedules.md, docs/adr/0030-schedules.md).
 *
 * A schedule is a message in the queue of schedules of its project
 * (claimd/schedule/definition.h), delayed until its next due time. The thread waits for
 * such messages as a worker does. It claims those that are due, and one finish posts the
 * message and releases the schedule until the time after that. So a due time posts once,
 * also over crashes, and if several claimd share a store.
 *
 *   Cost     an idle scheduler sleeps. Once an hour, and when the wall clock was set, it
 *            reads all schedules, a page at a time
 *   Memory   200 bytes for each project with schedules
 *   Threads  one of its own. scheduler_watch() from any thread
 */
#ifndef CLAIMD_SCHEDULER_SCHEDULER_H
#define CLAIMD_SCHEDULER_SCHEDULER_H

#include "claimd/base/buf.h"
#include "claimd/base/log.h"
#include "claimd/metrics/exposition.h"
#include "claimd/schedule/zones.h"
#include "claimd/store/sealer.h"
#include "claimd/store/store.h"

#include <stdatomic.h>

struct scheduler; /* opaque */
struct testapi;

/* All pointers are borrowed for the life of the scheduler. */
struct scheduler_config {
    struct mem *mem;
    struct store *store;
    const struct clock *clock;     /* of the store */
    const struct clock *real;      /* gives the wall clock */
    const struct clock *time_base; /* as in struct api_config */
    struct log *log;
    struct zones *zones;
    struct testapi *testapi; /* waits for the scheduler before it moves the clock; NULL:
                              * none */
    const struct store_sealer *sealer; /* encrypts messages for queues that want it */
    /* Decrypts a body, as in struct notify_config. */
    enum status (*open_body)(void *ctx, const struct store_queue *queue,
                             struct bytes body, struct buf *out);
    void *open_ctx;
    const _Atomic bool *closed; /* maintenance: it posts nothing; NULL: never */
};

/* Makes a scheduler without a thread. The caller owns *out. ST_NO_MEMORY, ST_UNAVAILABLE
 * (no descriptor). */
enum status scheduler_open(const struct scheduler_config *config, struct scheduler **out);

/* Starts the thread. ST_UNAVAILABLE. */
enum status scheduler_start(struct scheduler *s);

/* One round of the thread: posts for all schedules that are due. Tests call it instead of
 * scheduler_start(), after scheduler_reload(). False: the store has failed. */
bool scheduler_step(struct scheduler *s);

/* Adds the metrics. Call it before any thread reads metrics. */
void scheduler_measure(struct scheduler *s, struct metrics *metrics);

/* The project has a schedule, perhaps the first one. ST_NO_MEMORY. */
enum status scheduler_watch(struct scheduler *s, struct bytes project);

/* Any schedules may have changed, as by the load of a dump: reads all of them. Statuses
 * of store_project_list(). */
enum status scheduler_reload(struct scheduler *s);

/* Ends the thread. Before the store closes. NULL is fine. */
void scheduler_close(struct scheduler *s);

#endif
