#include "notify/notifier.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

enum {
    TAKEN_A_ROUND = 64,   /* then transfers have their turn */
    UNSETTLED_MOST = 256, /* parcels that wait for the log */
    HINDERED_MS = 100,    /* until it is tried again, without memory or store */
    MISSING_MS = 60000,   /* likewise without libcurl, or with a log that is lost */
    RESTING_MS = 30000    /* without transfers; then connections are closed */
};

static int64_t
now_ms(const struct notify *n)
{
    return clock_now_ms(n->config.clock);
}

/* ------------------------------------------------------------------ giving back */

static void
remember(struct notify *n, int64_t again_ms)
{
    if (again_ms < n->next_again_ms)
        n->next_again_ms = again_ms;
    if (again_ms > n->last_again_ms)
        n->last_again_ms = again_ms;
}

/* Has the store see what is due of that. */
static void
keep_time(struct notify *n)
{
    int64_t now = now_ms(n), next_ms;

    if (now < n->next_again_ms)
        return;
    store_housekeep(n->config.store, now, &next_ms);
    n->hungry = true;
    n->next_again_ms = INT64_MAX;
    if (now < n->last_again_ms)
        n->next_again_ms = next_ms <= now               ? now + 1
                           : next_ms < n->last_again_ms ? next_ms
                                                        : n->last_again_ms;
}

static void
give_lent(struct notify *n, struct store_delivery *lent, enum store_outcome outcome,
          int64_t wait_ms)
{
    struct store_visit visit = {.now_ms = now_ms(n), .flush_later = true};

    if (outcome == STORE_OUTCOME_PUT_OFF)
        counter_add(&n->figures.put_off, 1);
    store_delivery_done(n->config.store, &visit, lent, outcome, visit.now_ms + wait_ms);
    n->gave_back = true;
    if (outcome == STORE_OUTCOME_FAILED || outcome == STORE_OUTCOME_PUT_OFF)
        remember(n, visit.now_ms + wait_ms);
}

static void
give_back(struct notify *n, struct parcel *p, enum store_outcome outcome, int64_t wait_ms)
{
    give_lent(n, &p->lent, outcome, wait_ms);
    parcel_free(n->config.mem, p);
}

/* It was tried, and this came of it. took_ns: -1 if it was not sent at all. */
static void
conclude(struct notify *n, struct parcel *p, const struct ending *how,
         const struct reason *why, int64_t took_ns)
{
    struct verdict v;

    verdict_reach(how, &p->lent, &v);
    figures_count(&n->figures, v.kind, took_ns);
    if (p->kept_out)
        counter_add(&n->figures.kept_out, 1);
    herald_tell(&n->herald, p, &v, how, why);
    give_back(n, p, v.outcome, v.wait_ms);
}

/* ------------------------------------------------------------------ sending */

/* It was not sent, for this reason. */
static void
not_sent(struct notify *n, struct parcel *p, enum status st, const struct reason *why)
{
    const struct ending impossible = {.kind = ENDING_IMPOSSIBLE};

    host_leave(&n->hosts, p->host);
    if (st == ST_BAD_VALUE || st == ST_NOT_FOUND) {
        conclude(n, p, &impossible, why, -1);
        return;
    }
    if (st == ST_UNAVAILABLE)
        herald_tell_missing(&n->herald, why);
    give_back(n, p, STORE_OUTCOME_PUT_OFF,
              st == ST_UNAVAILABLE ? MISSING_MS : HINDERED_MS);
}

/* There is room for it at its host. */
static void
send_parcel(struct notify *n, struct parcel *p)
{
    struct reason why;
    enum status st;

    reason_init(&why);
    st = courier_load(&n->courier, &why);
    if (st == ST_OK)
        st = courier_send(&n->courier, p, &why);
    if (st == ST_OK)
        host_begin(&n->hosts, p->host);
    else
        not_sent(n, p, st, &why);
}

/* It may be told: now, or when its host has room, or later. */
static void
dispatch(struct notify *n, struct parcel *p)
{
    int64_t wait_ms;

    p->host = hosts_find(&n->hosts, p->target.place);
    if (p->host == NULL)
        give_back(n, p, STORE_OUTCOME_PUT_OFF, HINDERED_MS);
    else if (host_has_room(&n->hosts, p->host))
        send_parcel(n, p);
    else if (!host_wait(&n->hosts, p->host, &p->link, &wait_ms))
        give_back(n, p, STORE_OUTCOME_PUT_OFF, wait_ms);
}

static void
send_waiting(struct notify *n)
{
    struct host *host;
    struct list *link;

    while ((link = hosts_next(&n->hosts, &host)) != NULL)
        send_parcel(n, container_of(link, struct parcel, link));
}

/* ------------------------------------------------------------------ taking */

/* Nobody may be told of what may be lost. */
static void
settle(struct notify *n, struct parcel *p)
{
    switch (store_log_durability(n->config.store_log, p->lent.position)) {
    case STORE_DURABLE:
        dispatch(n, p);
        break;
    case STORE_LOST:
        give_back(n, p, STORE_OUTCOME_PUT_OFF, MISSING_MS);
        break;
    default:
        list_add_before(&n->unsettled, &p->link);
        n->unsettled_count++;
    }
}

static void
settle_all(struct notify *n)
{
    size_t count = n->unsettled_count;

    n->unsettled_count = 0;
    while (count-- > 0)
        settle(n, container_of(list_pop(&n->unsettled), struct parcel, link));
}

static bool
has_room(const struct notify *n)
{
    return n->hosts.running < n->config.workers && n->unsettled_count < UNSETTLED_MOST;
}

static void
take(struct notify *n, struct store_delivery *lent)
{
    struct parcel *p = parcel_new(n->config.mem, lent);

    if (p != NULL)
        settle(n, p);
    else
        give_lent(n, lent, STORE_OUTCOME_PUT_OFF, HINDERED_MS);
}

static void
take_what_is_due(struct notify *n)
{
    for (size_t i = 0; n->hungry && i < TAKEN_A_ROUND && has_room(n); i++) {
        struct store_visit visit = {.now_ms = now_ms(n), .flush_later = true};
        struct store_delivery lent = {.store = NULL};
        enum status st = store_delivery_next(n->config.store, &visit, &lent);

        if (st == ST_OK)
            take(n, &lent);
        else if (st == ST_NOT_FOUND)
            n->hungry = false;
        else if (st != ST_AGAIN)
            n->hindered = true;
        if (n->hindered)
            return;
    }
}

/* ------------------------------------------------------------------ rounds */

static void
collect(struct notify *n)
{
    struct ending how;
    struct reason why;
    struct parcel *p;

    while ((p = courier_next(&n->courier, &how, &why)) != NULL) {
        int64_t took_ns = clock_stopwatch_ns() - p->began_ns;

        host_end(&n->hosts, p->host, took_ns / 1000000, !how.timed_out);
        conclude(n, p, &how, &why, took_ns);
    }
}

static void
empty_wakeup(const struct notify *n)
{
    uint64_t rung;

    (void)!read(n->event_fd, &rung, sizeof(rung)); /* nothing to read is fine */
}

static int
longest_sleep(const struct notify *n)
{
    if (n->hindered)
        return HINDERED_MS;
    if (n->hungry && has_room(n))
        return 0;
    return n->courier.multi != NULL && n->hosts.running == 0 ? RESTING_MS : -1;
}

/* The same, if it is not time before for what was given back. */
static int
sleep_ms(const struct notify *n)
{
    int longest_ms = longest_sleep(n);
    int64_t left_ms;

    if (n->next_again_ms == INT64_MAX)
        return longest_ms;
    left_ms = n->next_again_ms - now_ms(n);
    if (left_ms < 0)
        left_ms = 0;
    return longest_ms >= 0 && longest_ms < left_ms ? longest_ms
           : left_ms < INT_MAX                     ? (int)left_ms
                                                   : INT_MAX;
}

/* Until there is something to do. */
static void
sleep_well(struct notify *n)
{
    struct pollfd wakeup = {.fd = n->event_fd, .events = POLLIN};
    int timeout_ms = sleep_ms(n);

    if (n->hosts.running > 0)
        courier_wait(&n->courier, n->event_fd, timeout_ms < 0 ? INT_MAX : timeout_ms);
    else if (poll(&wakeup, 1, timeout_ms) == 0 && timeout_ms == RESTING_MS)
        courier_rest(&n->courier);
    empty_wakeup(n);
}

static void
show(struct notify *n)
{
    counter_set(&n->figures.in_flight, n->hosts.running);
    counter_set(&n->figures.waiting, n->hosts.waiting + n->unsettled_count);
}

static void
go_round(struct notify *n)
{
    n->hindered = false;
    if (atomic_exchange(&n->told, false))
        n->hungry = true;
    keep_time(n);
    settle_all(n);
    send_waiting(n);
    take_what_is_due(n);
    courier_go_on(&n->courier);
    collect(n);
    send_waiting(n);
    if (n->gave_back)
        store_log_flush(n->config.store_log);
    n->gave_back = false;
    show(n);
}

/* Everything that was lent goes back as it was. */
static void
give_back_all(struct notify *n)
{
    struct host *host;
    struct list *link;

    while (!list_empty(&n->courier.sent)) {
        struct parcel *p = container_of(n->courier.sent.next, struct parcel, link);

        courier_break_off(&n->courier, p);
        host_end(&n->hosts, p->host, 0, true);
        give_back(n, p, STORE_OUTCOME_PUT_OFF, 0);
    }
    while ((link = hosts_drain(&n->hosts, &host)) != NULL) {
        host_leave(&n->hosts, host);
        give_back(n, container_of(link, struct parcel, link), STORE_OUTCOME_PUT_OFF, 0);
    }
    while ((link = list_pop(&n->unsettled)) != NULL)
        give_back(n, container_of(link, struct parcel, link), STORE_OUTCOME_PUT_OFF, 0);
    store_log_flush(n->config.store_log);
}

void
notify_work(struct notify *n)
{
    n->hungry = true;
    while (!atomic_load(&n->closing)) {
        go_round(n);
        if (!atomic_load(&n->told))
            sleep_well(n);
    }
    give_back_all(n);
}
