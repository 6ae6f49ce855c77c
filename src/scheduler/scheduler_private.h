/* scheduler_private: the parts of the scheduler, and what they share. */
#ifndef SCHEDULER_SCHEDULER_PRIVATE_H
#define SCHEDULER_SCHEDULER_PRIVATE_H

#include "claimd/base/counter.h"
#include "claimd/base/lock.h"
#include "claimd/base/thread.h"
#include "claimd/schedule/definition.h"
#include "claimd/scheduler/scheduler.h"

#include <stdatomic.h>

/* X(NAME, name of the metric, help) */
#define SCHEDULER_COUNTERS(X)                                                            \
    X(POSTED, "claimd_schedule_posts", "Number of messages that schedules have posted.") \
    X(MISSED, "claimd_schedule_missed",                                                  \
      "Number of due times without a message, because they passed while the server was " \
      "down or could not post.")                                                         \
    X(SKIPPED, "claimd_schedule_skipped",                                                \
      "Number of due times without a message, because the message before was still in "  \
      "the queue.")                                                                      \
    X(REFUSED, "claimd_schedule_refused",                                                \
      "Number of tries to post a message for a due time that failed.")

enum scheduler_counter {
#define SCHEDULER_ENUM(name, metric, help) SCHEDULER_##name,
    SCHEDULER_COUNTERS(SCHEDULER_ENUM)
#undef SCHEDULER_ENUM
        SCHEDULER_COUNTERS_END
};

struct scheduler {
    struct scheduler_config config;
    struct metrics_source source;
    struct counter counts[SCHEDULER_COUNTERS_END];
    pthread_t thread;
    bool started;
    int event_fd; /* wakes the thread */
    int step_fd;  /* readable when the wall clock was set; -1: not available */
    struct store_wakeup wakeup;
    _Atomic bool has_events; /* a project has something to do, or is new */
    _Atomic bool closing;
    struct lock lock;     /* guards `projects` */
    struct list projects; /* struct watched, owned; only the thread removes */
};

/* A project with schedules. */
struct watched {
    struct list link;
    struct scheduler *scheduler; /* borrowed */
    struct store_waiter waiter;
    struct store_listener listener;
    struct testapi_waiter *test_waiter; /* owned; NULL: no test API */
    _Atomic bool notified;              /* schedules may be due */
    _Atomic bool read;                  /* its schedules were read once */
    struct store_queue queue;           /* of schedules; points behind this structure */
    char project[];
};

/* The longest time to the next try for a due time that was refused. */
enum { TRY_MOST_MS = 60000 };

/* The time of a call. */
struct moment {
    int64_t now_ms;   /* of the store */
    int64_t ahead_ms; /* the wall clock less that */
};

/* A schedule that was read from its message. */
struct loaded {
    struct schedule schedule; /* texts point into `text` */
    struct schedule_progress progress;
    struct zone *zone; /* owned reference; NULL: UTC */
    struct buf text;   /* owned: the definition */
};

struct moment scheduler_now(const struct scheduler *s);

/* The time of the store at which the wall clock shows this one. RECURRENCE_NEVER: the
 * last. */
int64_t store_time(const struct moment *at, int64_t wall_ms);

/* Reads a schedule. After a failure *why says what is wrong with it; free it in any case.
 * ST_BAD_VALUE, ST_NO_MEMORY, statuses of zones_get() and of open_body(). */
enum status loaded_read(const struct watched *w, const struct store_message *m,
                        const struct moment *at, struct loaded *out, struct reason *why);
void loaded_free(struct loaded *l);

/* Posts for a schedule that is due, which a claim holds, and releases it until its next
 * due time. */
void
schedule_run(struct watched *w, const struct store_message *m, struct bytes claim_id);

/* Reads all schedules of a project, and corrects the delays of those whose next due time
 * is another one than they wait for. If it returns another status than ST_OK, some may
 * not be corrected. */
enum status schedules_read(struct watched *w);

#endif
