/*
 * snapshot: a table of the queues of a project, or of all projects, at about one moment,
 * which all viewers of a page share.
 *
 * A table is built in slices by the requests for it. snapshot.c has the steps.
 *
 *     no build --snapshot_use()--> building --last slice--> present; wakes all that wait
 *        ^                          |    ^
 *        +--- none waits -- snapshot_leave() -- one waits --+
 *
 * A selection (an order, a project, a part of the names) is made once for each table and
 * kept with it.
 *
 *   Cost     making: O(queues) of the store's survey, in slices. A selection: O(queues *
 *            log queues), the first time. Reading a row: O(1)
 *   Memory   about 150 bytes for each queue, at most SNAPSHOT_ROWS, in the budget, twice
 *            during a build. Tables of SNAPSHOT_TABLES projects stay, the others are
 *            freed when a build ends
 *   Threads  any. A snapshot does not change, apart from its selections, which its lock
 *            protects
 */
#ifndef API_SNAPSHOT_H
#define API_SNAPSHOT_H

#include "api/notices.h"
#include "claimd/api/api.h"
#include "claimd/store/metrics.h"

enum { SNAPSHOT_ROWS = 50000, SNAPSHOT_LIFE_MS = 1000, SNAPSHOT_TABLES = 64 };

enum queue_sort { SORT_OLDEST_READY, SORT_READY, SORT_CLAIMED, SORT_NAME, QUEUE_SORTS };

/* The key of a queue in an order, the smallest one first. It does not change while time
 * passes. */
uint64_t queue_sort_key(enum queue_sort sort, bool has_oldest, int64_t posted_ms,
                        const struct store_population *here);

struct snapshots; /* opaque: those of an api */
struct snapshot;  /* opaque */

/* Makes an owner without a table, owned. sampler: borrowed, for the notices, or NULL.
 * ST_NO_MEMORY. */
enum status
snapshots_new(struct mem *mem, struct sampler *sampler, struct snapshots **out);

/* No snapshot may be in use. NULL is fine. */
void snapshots_free(struct snapshots *all);

/*
 * Returns the present snapshot of a project (absent: of all), in use until
 * snapshot_release(). Call again with the same progress after ST_AGAIN (a slice is done,
 * or another request builds) and ST_WAIT (another request builds, and notifies the
 * listener of `waiting`, which is NULL for a request that must not wait). real_ms: the
 * time by a clock that no test stops. ST_NO_MEMORY, and statuses of the store.
 */
enum status snapshot_use(struct snapshots *all, struct store *store, struct store_op *op,
                         int64_t real_ms, struct bytes project, struct progress *progress,
                         struct waiting *waiting, struct snapshot **out);
void snapshot_release(struct snapshot *s);

/* True if a request is for a snapshot, so it may wait for a build. */
bool snapshot_may_wait(const struct request *req);

/* Ends the part of a request in a build, if it has one. */
void snapshot_leave(struct snapshots *all, struct progress *progress);

/* Time of the store when it was made. */
int64_t snapshot_ms(const struct snapshot *s);

/* Queues of the project, or of all. *complete: the snapshot has all of them. */
uint64_t snapshot_total(const struct snapshot *s, bool *complete);

/* The queues of a project (absent: of all) whose names have a part (absent: any), in an
 * order. */
struct snapshot_selection {
    /* Valid until snapshot_release() and snapshot_selection_end(). */
    const uint32_t *rows;
    size_t count;
    struct store_population sum;
    const struct notice_summary *notices; /* NULL if there is a part */
    void *own;                            /* not kept with the snapshot; NULL: kept */
};

/* Ended by snapshot_selection_end(). ST_NO_MEMORY. */
enum status
snapshot_select(struct snapshot *s, enum queue_sort sort, struct bytes project,
                struct bytes part, struct snapshot_selection *out);

void snapshot_selection_end(struct snapshot *s, struct snapshot_selection *selection);

/* Writes a row. Counters and expired messages stay zero. */
void
snapshot_read(const struct snapshot *s, uint32_t row, struct store_queue_metrics *out);

#endif
