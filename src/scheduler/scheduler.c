/*
 * scheduler: the thread of the scheduler (claimd/scheduler/scheduler.h).
 *
 *     1. scheduler_watch() adds a project, and wakes the thread.
 *     2. run_project() claims schedules that are due. If there are none, its waiter stays
 *        in the wait queue of the queue of schedules, and the store wakes the thread.
 *     3. schedule_run() posts the message of each claimed schedule (run.c).
 *     4. run_project() reads all schedules at the start, once an hour, and when the wall
 *        clock was set, because rules of time zones and the distance between the clocks
 *        change (read.c).
 *
 * Read run.c next.
 */
#include "scheduler/scheduler_private.h"

#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"
#include "claimd/testapi/testapi.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    CLAIMED_AT_ONCE = 64,  /* schedules that one claim takes */
    CLAIM_TTL_S = 10,      /* of such a claim: after a crash they are due again then */
    READ_MS = 3600 * 1000, /* time after which all schedules are read again */
    LOOK_MS = 5000,        /* likewise the list of projects of a store that others use */
    RETRY_MS = 1000        /* time to a retry if the store has failed */
};

struct moment
scheduler_now(const struct scheduler *s)
{
    const struct clock *base =
        s->config.time_base != NULL ? s->config.time_base : s->config.real;
    struct moment at = {.now_ms = clock_now_ms(s->config.clock)};

    at.ahead_ms = clock_to_wall_ms(base, at.now_ms) - at.now_ms;
    if (s->config.store->blocks) { /* which uses the wall clock */
        at.now_ms += at.ahead_ms;
        at.ahead_ms = 0;
    }
    return at;
}

/* ------------------------------------------------------------------ waking */

static void
fire_wakeup(struct store_wakeup *wakeup)
{
    (void)eventfd_write(container_of(wakeup, struct scheduler, wakeup)->event_fd, 1);
}

static struct store_wakeup *
notify_watched(struct store_listener *listener, enum store_notification notification)
{
    struct watched *w = container_of(listener, struct watched, listener);

    (void)notification;
    atomic_store(&w->notified, true);
    return atomic_exchange(&w->scheduler->has_events, true) ? NULL
                                                            : &w->scheduler->wakeup;
}

/* Sleeps until something happens, at most for so long. */
static bool
wait_for_events(struct scheduler *s, int timeout_ms)
{
    struct pollfd fds[] = {{.fd = s->event_fd, .events = POLLIN},
                           {.fd = s->step_fd, .events = POLLIN}};
    eventfd_t count;
    bool step;

    (void)poll(fds, 2, timeout_ms);
    (void)eventfd_read(s->event_fd, &count);
    step = (fds[1].revents & POLLIN) != 0 &&
           read(s->step_fd, &count, sizeof(count)) < 0 && errno == ECANCELED;
    atomic_store(&s->has_events, false);
    return step;
}

/* A timer that never ends, and is readable when the wall clock was set. -1: without. */
static int
open_step_timer(void)
{
    const struct itimerspec never = {.it_value = {.tv_sec = CALENDAR_LAST}};
    const int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);

    if (fd >= 0 && timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET,
                                   &never, NULL) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* ------------------------------------------------------------------ projects */

static struct watched *
find_watched(const struct scheduler *s, struct bytes project)
{
    for (struct list *at = s->projects.next; at != &s->projects; at = at->next) {
        struct watched *w = container_of(at, struct watched, link);

        if (bytes_equal(w->queue.project, project))
            return w;
    }
    return NULL;
}

static struct watched *
new_watched(struct scheduler *s, struct bytes project)
{
    struct watched *w = mem_calloc(s->config.mem, 1, sizeof(*w) + project.len);

    if (w == NULL)
        return NULL;
    w->scheduler = s;
    w->listener.notify = notify_watched;
    if (project.len > 0)
        memcpy(w->project, project.data, project.len);
    w->queue = (struct store_queue){.project = bytes_of(w->project, project.len),
                                    .name = bytes_str(SCHEDULES_NAME),
                                    .kind = STORE_SCHEDULES};
    w->waiter.listener = &w->listener;
    if (s->config.testapi == NULL)
        return w;
    w->test_waiter =
        testapi_waiter_new(s->config.testapi, w->queue.project, &w->listener);
    if (w->test_waiter != NULL) {
        w->waiter.listener = testapi_waiter_listener(w->test_waiter);
        return w;
    }
    mem_free(s->config.mem, w);
    return NULL;
}

enum status
scheduler_watch(struct scheduler *s, struct bytes project)
{
    struct store_wakeup *wakeup = NULL;
    struct watched *w;

    lock_acquire(&s->lock);
    w = find_watched(s, project);
    if (w == NULL) {
        w = new_watched(s, project);
        if (w == NULL) {
            lock_release(&s->lock);
            return ST_NO_MEMORY;
        }
        list_add_before(&s->projects, &w->link);
        /* It has work until its waiter waits. So the clock of the test API waits, too. */
        wakeup = w->waiter.listener->notify(w->waiter.listener, STORE_READY);
    }
    lock_release(&s->lock);
    if (wakeup != NULL)
        wakeup->fire(wakeup);
    return ST_OK;
}

/* Watches all projects that have schedules. */
static enum status
find_projects(struct scheduler *s)
{
    char marker[STORE_METRICS_NAME];
    struct store_page page = {.kind = STORE_SCHEDULES, .limit = 100};
    bool more = true;
    enum status st = ST_OK;

    while (st == ST_OK && more) {
        struct store_op op = {.now_ms = scheduler_now(s).now_ms};
        struct store_queues found = STORE_QUEUES_INIT;

        do
            st = store_project_list(s->config.store, &op, &page, &found);
        while (st == ST_AGAIN);
        for (size_t i = 0; st == ST_OK && i < found.count; i++)
            st = scheduler_watch(s, found.queues[i].name);
        more = found.count == page.limit;
        if (more) {
            const struct bytes last = found.queues[found.count - 1].name;

            ENSURE(last.len <= sizeof(marker));
            memcpy(marker, last.data, last.len);
            page.marker = bytes_of(marker, last.len);
        }
        store_queues_release(&found);
    }
    return st;
}

/* All schedules are read in the next round. */
static void
request_reading(struct scheduler *s)
{
    struct store_wakeup *wakeup = NULL;

    lock_acquire(&s->lock);
    for (struct list *at = s->projects.next; at != &s->projects; at = at->next) {
        struct watched *w = container_of(at, struct watched, link);
        struct store_wakeup *its;

        atomic_store(&w->read, false);
        its = w->waiter.listener->notify(w->waiter.listener, STORE_READY);
        wakeup = its != NULL ? its : wakeup;
    }
    lock_release(&s->lock);
    if (wakeup != NULL)
        wakeup->fire(wakeup);
}

enum status
scheduler_reload(struct scheduler *s)
{
    enum status st = find_projects(s);

    request_reading(s);
    return st;
}

/* ------------------------------------------------------------------ running */

/* Claims schedules that are due, and runs them. False: there are none, and the waiter
 * waits. ST_OK, or the store has failed. */
static enum status
run_due(struct watched *w, bool *more)
{
    const struct store_terms terms = {CLAIM_TTL_S, 0};
    struct store *store = w->scheduler->config.store;
    struct store_batch due = STORE_BATCH_INIT;
    struct store_op op = {.now_ms = scheduler_now(w->scheduler).now_ms,
                          .client = BYTES_LIT("scheduler"),
                          .waiter = &w->waiter};
    enum status st =
        store_claim_create(store, &op, &w->queue, &terms, CLAIMED_AT_ONCE, &due);

    *more = st == ST_AGAIN || (st == ST_OK && due.count > 0);
    for (size_t i = 0; st == ST_OK && i < due.count; i++)
        schedule_run(w, &due.messages[i], store_id_bytes(&due.claim_id));
    if (st == ST_OK)
        store_batch_release(&due);
    return st == ST_AGAIN ? ST_OK : st;
}

static enum status
run_project(struct watched *w)
{
    enum status st = ST_OK, read = ST_OK;
    bool more = true, retries;

    atomic_store(&w->notified, false); /* before a retry that a move waits for */
    retries = testapi_waiter_begin_retry(w->test_waiter);
    if (!atomic_exchange(&w->read, true))
        read = schedules_read(w);
    if (read != ST_OK)
        atomic_store(&w->read, false); /* tried again */
    while (st == ST_OK && more && !atomic_load(&w->scheduler->closing))
        st = run_due(w, &more);
    st = st == ST_OK ? read : st;
    if (st != ST_OK)
        atomic_store(&w->notified, true); /* tried again */
    if (retries)
        testapi_waiter_end_retry(w->scheduler->config.testapi);
    return st;
}

/* The project behind w, or the first one (NULL); NULL: there is none. */
static struct watched *
next_watched(struct scheduler *s, const struct watched *w)
{
    struct list *at;

    lock_acquire(&s->lock);
    at = w == NULL ? s->projects.next : w->link.next;
    lock_release(&s->lock);
    return at == &s->projects ? NULL : container_of(at, struct watched, link);
}

bool
scheduler_step(struct scheduler *s)
{
    bool good = true;

    for (struct watched *w = NULL; (w = next_watched(s, w)) != NULL;)
        if (atomic_load(&w->notified) && run_project(w) != ST_OK)
            good = false;
    return good;
}

static void *
thread_main(void *arg)
{
    struct scheduler *s = arg;
    const bool shared = s->config.store->blocks;
    int64_t read_ms = clock_stopwatch_ns() / 1000000 + READ_MS;

    while (!atomic_load(&s->closing)) {
        const bool good = scheduler_step(s);
        int64_t now_ms = clock_stopwatch_ns() / 1000000;
        int64_t wait_ms = read_ms - now_ms;
        bool step;

        if (shared && wait_ms > LOOK_MS)
            wait_ms = LOOK_MS;
        if (!good)
            wait_ms = RETRY_MS;
        step = wait_for_events(s, wait_ms < 0 ? 0 : (int)wait_ms);
        now_ms = clock_stopwatch_ns() / 1000000;
        if (shared && !atomic_load(&s->closing))
            (void)find_projects(s); /* it is tried again */
        if (step || now_ms >= read_ms) {
            request_reading(s);
            read_ms = now_ms + READ_MS;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ life */

static void
write_metrics(struct metrics_source *source, struct exposition *x)
{
    static const struct {
        const char *name, *help;
    } families[SCHEDULER_COUNTERS_END] = {
#define SCHEDULER_FAMILY(name, metric, help) {metric, help},
        SCHEDULER_COUNTERS(SCHEDULER_FAMILY)
#undef SCHEDULER_FAMILY
    };
    struct scheduler *s = container_of(source, struct scheduler, source);

    for (size_t i = 0; i < SCHEDULER_COUNTERS_END; i++)
        metric_write(x, FAMILY_COUNTER, families[i].name, NULL, families[i].help,
                     counter_read(&s->counts[i]), 0);
}

void
scheduler_measure(struct scheduler *s, struct metrics *metrics)
{
    metrics_add(metrics, &s->source);
}

enum status
scheduler_open(const struct scheduler_config *config, struct scheduler **out)
{
    struct scheduler *s = mem_calloc(config->mem, 1, sizeof(*s));

    if (s == NULL)
        return ST_NO_MEMORY;
    s->config = *config;
    s->source.write = write_metrics;
    s->wakeup.fire = fire_wakeup;
    lock_init(&s->lock);
    list_init(&s->projects);
    s->step_fd = open_step_timer();
    s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->event_fd < 0) {
        scheduler_close(s);
        return ST_UNAVAILABLE;
    }
    *out = s;
    return ST_OK;
}

enum status
scheduler_start(struct scheduler *s)
{
    enum status st = find_projects(s);

    if (st == ST_NO_MEMORY)
        return st;
    st = thread_start(&s->thread, thread_main, s);
    s->started = st == ST_OK;
    return st;
}

static void
free_watched(struct scheduler *s, struct watched *w)
{
    store_waiter_leave(s->config.store, &w->waiter);
    testapi_waiter_free(w->test_waiter);
    mem_free(s->config.mem, w);
}

void
scheduler_close(struct scheduler *s)
{
    struct list *link;

    if (s == NULL)
        return;
    atomic_store(&s->closing, true);
    if (s->started) {
        fire_wakeup(&s->wakeup);
        (void)pthread_join(s->thread, NULL);
    }
    while ((link = list_pop(&s->projects)) != NULL)
        free_watched(s, container_of(link, struct watched, link));
    if (s->event_fd >= 0)
        (void)close(s->event_fd);
    if (s->step_fd >= 0)
        (void)close(s->step_fd);
    lock_fini(&s->lock);
    mem_free(s->config.mem, s);
}
