/*
 * notifier: the thread that delivers messages to subscribers. Declared in
 * claimd/notify/notify.h.
 *
 *     1. notify_due() and notify_durable() wake the thread: a delivery may be due, or
 *        durable.
 *     2. lease_due() leases due deliveries from the store (store_delivery_next()), while
 *        there is capacity.
 *     3. send_if_durable() keeps a delivery back until its change is durable, because a
 *        crash may undo the change.
 *     4. If the host has capacity, send_delivery() sends it. Otherwise it waits for its
 *        host, or the store gets it back for a while if too many wait (hosts.h).
 *     5. http_client_send() composes the notification and starts the transfer.
 *        http_client_perform() continues all transfers.
 *     6. finish_attempt() decides what follows from the end of a transfer
 *        (outcome_decide()), counts it and logs it.
 *     7. return_leased() returns the delivery with its outcome (store_delivery_done()).
 *        The store knows when to retry. expire_due() does the housekeeping for these
 *        deadlines, because workers do not know of them.
 *     8. send_waiting() sends the next deliveries of a host that has capacity again.
 *
 * Read delivery.h and http_client.h next.
 */
#include "claimd/base/sometimes.h"
#include "claimd/notify/notify.h"

#include "claimd/base/entropy.h"
#include "claimd/base/thread.h"
#include "notify/http_client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A transfer is slow if it takes this part of its time limit. */
enum { SLOW_PART = 4 };

enum {
    LEASED_A_ROUND = 64,    /* before transfers have their turn */
    NOT_DURABLE_MOST = 256, /* deliveries that wait for the log */
    RETRY_MS = 100,         /* time to a retry if the store or memory has failed */
    UNAVAILABLE_MS = 60000, /* likewise if libcurl is missing or the log is lost */
    IDLE_MS = 30000 /* time without transfers after which connections are closed */
};

struct notify {
    struct notify_config config;
    struct metrics_source source;
    struct notify_metrics metrics;
    pthread_t thread;
    int event_fd; /* wakes the thread */
    struct store_wakeup wakeup;
    struct store_listener due;     /* of store_delivery_watch() */
    struct store_listener durable; /* of store_log_listen() */
    _Atomic bool has_events;       /* a delivery may be due, or durable */
    _Atomic bool closing;
    /* The rest belongs to the thread. */
    struct hosts hosts;
    struct http_client client;
    struct delivery_log delivery_log;
    struct list not_durable; /* deliveries that are not durable yet, oldest first */
    size_t not_durable_count;
    bool more_due; /* more deliveries may be due */
    bool failing;  /* the store or memory has failed: retry after RETRY_MS */
    bool returned; /* a delivery was returned since the last flush */
    /*
     * When returned deliveries are due: the next one (INT64_MAX: none), and the last one
     * (0: none). Workers do not know of these deadlines, so this thread does the
     * housekeeping for them.
     */
    int64_t next_again_ms, last_again_ms;
};

static int64_t
now_ms(const struct notify *n)
{
    return clock_now_ms(n->config.clock);
}

/* ------------------------------------------------------------------ returning */

/* Does the housekeeping of the store if a returned delivery is due. */
static void
expire_due(struct notify *n)
{
    int64_t now = now_ms(n), next_ms;

    if (now < n->next_again_ms)
        return;
    store_housekeep(n->config.store, now, &next_ms);
    n->more_due = true;
    n->next_again_ms = INT64_MAX;
    if (now < n->last_again_ms)
        n->next_again_ms = next_ms <= now               ? now + 1
                           : next_ms < n->last_again_ms ? next_ms
                                                        : n->last_again_ms;
}

static void
return_leased(struct notify *n, struct store_delivery *leased, enum store_outcome outcome,
              int64_t wait_ms)
{
    struct store_op op = {.now_ms = now_ms(n), .flush_later = true};
    const int64_t again_ms = op.now_ms + wait_ms;

    if (outcome == STORE_OUTCOME_BACKED_OFF)
        counter_add(&n->metrics.backed_off, 1);
    store_delivery_done(n->config.store, &op, leased, outcome, again_ms);
    n->returned = true;
    if (outcome != STORE_OUTCOME_FAILED && outcome != STORE_OUTCOME_BACKED_OFF)
        return;
    if (again_ms < n->next_again_ms)
        n->next_again_ms = again_ms;
    if (again_ms > n->last_again_ms)
        n->last_again_ms = again_ms;
}

static void
return_delivery(struct notify *n, struct delivery *p, enum store_outcome outcome,
                int64_t wait_ms)
{
    return_leased(n, &p->leased, outcome, wait_ms);
    delivery_free(n->config.mem, p);
}

/* Ends an attempt. duration_ns: -1 if nothing was sent. */
static void
finish_attempt(struct notify *n, struct delivery *p, const struct ending *how,
               const struct reason *why, int64_t duration_ns)
{
    struct outcome v;

    outcome_decide(how, &p->leased, &v);
    notify_metrics_count(&n->metrics, v.kind, duration_ns);
    if (p->blocked)
        counter_add(&n->metrics.blocked, 1);
    delivery_log_outcome(&n->delivery_log, p, &v, how, why);
    return_delivery(n, p, v.outcome, v.wait_ms);
}

/* ------------------------------------------------------------------ sending */

/* Sends a delivery whose host has capacity. */
static void
send_delivery(struct notify *n, struct delivery *p)
{
    const struct ending impossible = {.kind = ENDING_IMPOSSIBLE};
    struct reason why;
    enum status st;

    reason_init(&why);
    st = http_client_send(&n->client, p, &why);
    if (st == ST_OK) {
        host_begin(&n->hosts, p->host);
        return;
    }
    host_release(&n->hosts, p->host);
    if (st == ST_BAD_VALUE || st == ST_NOT_FOUND) {
        finish_attempt(n, p, &impossible, &why, -1);
        return;
    }
    if (st == ST_UNAVAILABLE)
        delivery_log_missing(&n->delivery_log, &why);
    return_delivery(n, p, STORE_OUTCOME_BACKED_OFF,
                    st == ST_UNAVAILABLE ? UNAVAILABLE_MS : RETRY_MS);
}

static void
send_waiting(struct notify *n)
{
    struct host *host;
    struct list *link;

    while ((link = hosts_dequeue(&n->hosts, false, &host)) != NULL)
        send_delivery(n, container_of(link, struct delivery, link));
}

/* ------------------------------------------------------------------ leasing */

/* Sends a durable delivery, enqueues it, or puts it off. A crash may undo a change that
 * is not durable, so its delivery waits for the log. */
static void
send_if_durable(struct notify *n, struct delivery *p)
{
    int64_t wait_ms = RETRY_MS;

    switch (store_log_durability(n->config.store_log, p->leased.lsn)) {
    case STORE_DURABLE:
        p->host = hosts_find(&n->hosts, p->target.origin);
        if (p->host != NULL && host_has_capacity(&n->hosts, p->host))
            send_delivery(n, p);
        else if (p->host == NULL || !host_enqueue(&n->hosts, p->host, &p->link, &wait_ms))
            return_delivery(n, p, STORE_OUTCOME_BACKED_OFF, wait_ms);
        break;
    case STORE_LOST:
        SOMETIMES(NOTIFY_LOST);
        return_delivery(n, p, STORE_OUTCOME_BACKED_OFF, UNAVAILABLE_MS);
        break;
    default:
        SOMETIMES(NOTIFY_NOT_DURABLE);
        list_add_before(&n->not_durable, &p->link);
        n->not_durable_count++;
    }
}

static bool
has_capacity(const struct notify *n)
{
    return n->hosts.running < n->config.workers &&
           n->not_durable_count < NOT_DURABLE_MOST;
}

static void
lease_due(struct notify *n)
{
    for (size_t i = 0; n->more_due && i < LEASED_A_ROUND && has_capacity(n); i++) {
        struct store_op op = {.now_ms = now_ms(n), .flush_later = true};
        struct store_delivery leased = {.store = NULL};
        enum status st = store_delivery_next(n->config.store, &op, &leased);
        struct delivery *p = st == ST_OK ? delivery_new(n->config.mem, &leased) : NULL;

        if (p != NULL)
            send_if_durable(n, p);
        else if (st == ST_OK)
            return_leased(n, &leased, STORE_OUTCOME_BACKED_OFF, RETRY_MS);
        else if (st == ST_NOT_FOUND)
            n->more_due = false;
        else if (st != ST_AGAIN)
            n->failing = true;
        if (n->failing)
            return;
    }
}

/* ------------------------------------------------------------------ rounds */

/* The time until there is work; -1: unlimited. */
static int
sleep_ms(const struct notify *n)
{
    int longest_ms = -1;
    int64_t left_ms;

    if (n->failing)
        longest_ms = RETRY_MS;
    else if (n->more_due && has_capacity(n))
        longest_ms = 0;
    else if (n->client.multi != NULL && n->hosts.running == 0)
        longest_ms = IDLE_MS;
    if (n->next_again_ms == INT64_MAX)
        return longest_ms;
    left_ms = n->next_again_ms - now_ms(n);
    if (left_ms < 0)
        left_ms = 0;
    return longest_ms >= 0 && longest_ms < left_ms ? longest_ms
           : left_ms < INT_MAX                     ? (int)left_ms
                                                   : INT_MAX;
}

/* Sleeps until there is work. */
static void
wait_for_events(struct notify *n)
{
    struct pollfd wakeup = {.fd = n->event_fd, .events = POLLIN};
    int timeout_ms = sleep_ms(n);
    eventfd_t count;

    if (n->hosts.running > 0)
        http_client_wait(&n->client, n->event_fd, timeout_ms < 0 ? INT_MAX : timeout_ms);
    else if (poll(&wakeup, 1, timeout_ms) == 0 && timeout_ms == IDLE_MS)
        http_client_close_idle(&n->client);
    (void)eventfd_read(n->event_fd, &count); /* there may be nothing to read */
}

static void
run_round(struct notify *n)
{
    size_t count = n->not_durable_count;
    struct ending how;
    struct reason why;
    struct delivery *p;

    n->failing = false;
    if (atomic_exchange(&n->has_events, false))
        n->more_due = true;
    expire_due(n);
    n->not_durable_count = 0;
    while (count-- > 0)
        send_if_durable(n,
                        container_of(list_pop(&n->not_durable), struct delivery, link));
    send_waiting(n);
    lease_due(n);
    http_client_perform(&n->client);
    while ((p = http_client_next_ended(&n->client, &how, &why)) != NULL) {
        int64_t duration_ns = clock_stopwatch_ns() - p->began_ns;

        host_end(&n->hosts, p->host, duration_ns / 1000000, !how.timed_out);
        finish_attempt(n, p, &how, &why, duration_ns);
    }
    send_waiting(n);
    if (n->returned)
        store_log_flush(n->config.store_log);
    n->returned = false;
    counter_set(&n->metrics.in_flight, n->hosts.running);
    counter_set(&n->metrics.waiting, n->hosts.waiting + n->not_durable_count);
}

/* Returns all deliveries to the store, as put off. */
static void
return_all(struct notify *n)
{
    struct host *host;
    struct list *link;

    while (!list_empty(&n->client.sent)) {
        struct delivery *p = container_of(n->client.sent.next, struct delivery, link);

        SOMETIMES(NOTIFY_CLOSED_BUSY);
        http_client_abort(&n->client, p);
        host_end(&n->hosts, p->host, 0, true);
        return_delivery(n, p, STORE_OUTCOME_BACKED_OFF, 0);
    }
    while ((link = hosts_dequeue(&n->hosts, true, &host)) != NULL) {
        host_release(&n->hosts, host);
        return_delivery(n, container_of(link, struct delivery, link),
                        STORE_OUTCOME_BACKED_OFF, 0);
    }
    while ((link = list_pop(&n->not_durable)) != NULL)
        return_delivery(n, container_of(link, struct delivery, link),
                        STORE_OUTCOME_BACKED_OFF, 0);
    store_log_flush(n->config.store_log);
}

static void *
thread_main(void *arg)
{
    struct notify *n = arg;

    n->more_due = true;
    while (!atomic_load(&n->closing)) {
        run_round(n);
        if (!atomic_load(&n->has_events))
            wait_for_events(n);
    }
    return_all(n);
    return NULL;
}

/* ------------------------------------------------------------------ wakeups */

static void
fire_wakeup(struct store_wakeup *wakeup)
{
    struct notify *n = container_of(wakeup, struct notify, wakeup);

    (void)eventfd_write(n->event_fd, 1); /* fails only if the counter is full */
}

static struct store_wakeup *
set_events(struct notify *n)
{
    return atomic_exchange(&n->has_events, true) ? NULL : &n->wakeup;
}

static struct store_wakeup *
notify_due(struct store_listener *listener, enum store_notification notification)
{
    (void)notification;
    return set_events(container_of(listener, struct notify, due));
}

static struct store_wakeup *
notify_durable(struct store_listener *listener, enum store_notification notification)
{
    (void)notification;
    return set_events(container_of(listener, struct notify, durable));
}

static void
write_metrics(struct metrics_source *source, struct exposition *x)
{
    struct notify *n = container_of(source, struct notify, source);

    notify_metrics_write(&n->metrics, counter_read(&n->hosts.slow), x);
}

void
notify_measure(struct notify *n, struct metrics *metrics)
{
    metrics_add(metrics, &n->source);
}

/* ------------------------------------------------------------------ life */

static void
notify_free(struct notify *n)
{
    http_client_fini(&n->client);
    hosts_fini(&n->hosts);
    if (n->event_fd >= 0)
        (void)close(n->event_fd);
    mem_free(n->config.mem, n);
}

enum status
notify_open(const struct notify_config *config, struct notify **out)
{
    struct hash_key key; /* secret, because subscribers choose the names of hosts */
    struct notify *n;
    enum status st = entropy_make_key(&key, sizeof(key));

    ENSURE(config->workers > 0);
    if (st != ST_OK)
        return st;
    n = mem_calloc(config->mem, 1, sizeof(*n));
    if (n == NULL)
        return ST_NO_MEMORY;
    n->config = *config;
    n->source.write = write_metrics;
    n->wakeup.fire = fire_wakeup;
    n->due.notify = notify_due;
    n->durable.notify = notify_durable;
    n->delivery_log.log = config->log;
    n->next_again_ms = INT64_MAX;
    list_init(&n->not_durable);
    hosts_init(&n->hosts, config->mem, key, config->workers,
               config->timeout_ms / SLOW_PART);
    http_client_init(&n->client, &n->config);
    n->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    st = n->event_fd < 0 ? ST_UNAVAILABLE : thread_start(&n->thread, thread_main, n);
    if (st != ST_OK) {
        notify_free(n);
        return st;
    }
    store_log_listen(config->store_log, &n->durable);
    store_delivery_watch(config->store, &n->due);
    /* There was no listener for earlier events. */
    if (set_events(n) != NULL)
        fire_wakeup(&n->wakeup);
    *out = n;
    return ST_OK;
}

void
notify_close(struct notify *n)
{
    if (n == NULL)
        return;
    store_delivery_watch(n->config.store, NULL);
    store_log_unlisten(n->config.store_log, &n->durable);
    atomic_store(&n->closing, true);
    fire_wakeup(&n->wakeup);
    (void)pthread_join(n->thread, NULL);
    notify_free(n);
}
