#include "http/worker.h"

#include "claimd/base/invariant.h"
#include "http/front.h"
#include "http/refusal.h"
#include "http/reply.h"
#include "http/stuck.h"

#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How often libmicrohttpd is run in a row while it says that work is left. */
enum { RUNS_IN_A_ROW = 16, EVENTS = 32 };

/*
 * Should libmicrohttpd say for FRUITLESS rounds, in which nothing of ours was called, that
 * work is left, the worker takes naps; whatever happens wakes it. (A connection that was
 * held while it was stuck takes a second to end: stuck.h, front_give_up().)
 */
enum { FRUITLESS = 8, NAP_MS = 10 };

/* Slices done in a round: what the others wait for at most. */
enum { SLICES_A_ROUND = 4 };

/* What libmicrohttpd remarks before it answers by itself; the status comes first. */
static const char own_page[] = "Error processing request";

/* Its other remarks are about what clients do, too: for debugging only. */
static void __attribute__((format(printf, 2, 0)))
log_mhd(void *cls, const char *format, va_list args)
{
    struct worker *w = cls;
    const struct log *log = w->shared->config->log;
    char text[256];

    if (strncmp(format, own_page, sizeof(own_page) - 1) == 0) {
        va_list copy;

        va_copy(copy, args);
        front_own_page(w, va_arg(copy, unsigned));
        va_end(copy);
    }
    if (!log_wants(log, LOG_DEBUG))
        return;
    (void)vsnprintf(text, sizeof(text), format, args);
    log_event(log, LOG_DEBUG, "libmicrohttpd",
              LOG_B("text", bytes_trim(bytes_str(text))));
}

/*
 * libmicrohttpd's own time-out counts from the last byte. It reads the clock six times a
 * request, so it is left off where every phase ends by our limits before it could strike.
 */
static unsigned
mhd_timeout_s(const struct server_config *config)
{
    return config->idle_seconds < config->request_seconds ? (unsigned)config->idle_seconds
                                                          : 0;
}

static struct MHD_Daemon *
start_mhd(struct worker *w)
{
    const struct server_config *config = w->shared->config;

    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
            MHD_ALLOW_SUSPEND_RESUME,
        0, NULL, NULL, front_request, w, MHD_OPTION_EXTERNAL_LOGGER, log_mhd, w,
        MHD_OPTION_URI_LOG_CALLBACK, front_target, w, MHD_OPTION_NOTIFY_COMPLETED,
        front_completed, w, MHD_OPTION_NOTIFY_CONNECTION, front_connection, w,
        MHD_OPTION_UNESCAPE_CALLBACK, front_keep_escapes, w,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, w->block, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)config->max_connections + 1, MHD_OPTION_CONNECTION_TIMEOUT,
        mhd_timeout_s(config), MHD_OPTION_END);
}

static enum status
watch(struct worker *w, int fd, void *data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};

    return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? ST_OK : ST_IO;
}

enum status
worker_init(struct worker *w, struct worker_shared *shared, const char *tag,
            unsigned index)
{
    const struct server_config *config = shared->config;
    enum status st;

    *w = (struct worker){.shared = shared, .epoll_fd = -1, .mailbox.event_fd = -1};
    atomic_init(&w->load, 0);
    list_init(&w->chunked);
    list_init(&w->slices);
    list_init(&w->ended);
    w->block = room_block(config->max_header_bytes, config->max_headers);
    conn_table_init(&w->conns, config->idle_seconds * 1000,
                    config->request_seconds * 1000);
    exchange_pool_init(&w->exchanges, config->mem);
    request_ids_init(&w->ids, tag, index);
    w->housekeeping.shared = &shared->housekeeper;
    housekeeping_hurry(&w->housekeeping);
    st = mailbox_init(&w->mailbox);
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    linger_init(&w->linger, w->epoll_fd, shared->linger_slots);
    if (st != ST_OK || w->epoll_fd < 0)
        goto fail_io;
    w->no_memory = reply_prepared(REFUSAL_NO_MEMORY);
    w->mhd = start_mhd(w);
    if (w->no_memory == NULL || w->mhd == NULL) {
        worker_fini(w);
        return ST_NO_MEMORY;
    }
    if (watch(w, MHD_get_daemon_info(w->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
              w->mhd) == ST_OK &&
        watch(w, w->mailbox.event_fd, &w->mailbox) == ST_OK)
        return ST_OK;

fail_io:
    worker_fini(w);
    return ST_IO;
}

void
worker_fini(struct worker *w)
{
    if (w->mhd != NULL)
        MHD_stop_daemon(w->mhd);
    if (w->no_memory != NULL)
        MHD_destroy_response(w->no_memory);
    linger_fini(&w->linger);
    exchange_pool_fini(&w->exchanges);
    mailbox_fini(&w->mailbox);
    if (w->epoll_fd >= 0)
        (void)close(w->epoll_fd);
    w->mhd = NULL;
}

/* ------------------------------------------------------------------ the loop */

/* Gives what the acceptor sent to libmicrohttpd. */
static void
adopt_connections(struct worker *w)
{
    struct list arrived;
    struct list *link;

    list_init(&arrived);
    mailbox_take(&w->mailbox, &arrived);
    while ((link = list_pop(&arrived)) != NULL) {
        struct conn *c = container_of(link, struct conn, link);

        w->adopting = c;
        if (MHD_add_connection(w->mhd, c->fd, &c->peer.any, c->peer_len) == MHD_YES ||
            w->adopting == NULL)
            continue;
        /* Out of memory before front_connection() heard of it; the socket is closed. */
        w->adopting = NULL;
        mem_free(w->shared->config->mem, c);
        atomic_fetch_sub_explicit(&w->load, 1, memory_order_relaxed);
    }
}

void
worker_hold(struct worker *w, struct conn *c)
{
    (void)w;
    ENSURE(!c->held);
    MHD_suspend_connection(c->mhd);
    c->held = c->was_held = true;
}

void
worker_let_go(struct worker *w, struct conn *c)
{
    MHD_resume_connection(c->mhd);
    c->held = false;
    w->let_go = true;
}

/* Lets libmicrohttpd work. Returns for how long it can sleep, -1: for ever. */
static int64_t
run_mhd(struct worker *w)
{
    /* In naps once is enough: it has had its chances. */
    int runs = w->fruitless < FRUITLESS ? RUNS_IN_A_ROW : 1;
    MHD_UNSIGNED_LONG_LONG left = 0;

    w->called = w->let_go = false;
    for (int i = 0; i < runs && left == 0; i++) {
        (void)MHD_run(w->mhd); /* fails only after a shutdown */
        front_hold_fresh(w);
        if (MHD_get_timeout(w->mhd, &left) == MHD_NO) {
            w->fruitless = 0;
            return -1;
        }
    }
    if (left == 0)
        stuck_look(w);
    w->fruitless = left == 0 && !w->called ? w->fruitless + 1 : 0;
    if (w->fruitless >= FRUITLESS)
        return NAP_MS;
    return left > INT_MAX ? INT_MAX : (int64_t)left;
}

/*
 * Does some slices of requests that are answered so. Most are of the first in line, so that
 * many long ones are not all late; the last is of the next one, who then goes to the end
 * of the line, so that short ones need not wait for long ones.
 */
static void
do_slices(struct worker *w)
{
    struct conn *c;

    for (int i = 1; i < SLICES_A_ROUND && !list_empty(&w->slices); i++)
        (void)front_slice(w, container_of(w->slices.next, struct conn, turn));
    if (list_empty(&w->slices) || w->slices.next->next == &w->slices)
        return;
    c = container_of(w->slices.next->next, struct conn, turn);
    if (front_slice(w, c))
        return;
    list_remove(&c->turn);
    list_add_before(&w->slices, &c->turn);
}

/*
 * Closes connections that wait for nothing. What the kernel has received for one is a request
 * that somebody has sent: libmicrohttpd is about to read it.
 */
static void
end_idle(struct worker *w)
{
    struct list *head = &w->conns.phases[CONN_WAITING], *at = head->next;

    while (at != head) {
        struct conn *c = container_of(at, struct conn, link);

        at = at->next;
        if (conn_unread(c) != UNREAD_DATA)
            front_time_out(w, c);
    }
}

/* Ends what lasts too long, and when draining what waits for nothing. */
static void
end_phases(struct worker *w)
{
    struct conn *c;

    while ((c = conn_overdue(&w->conns, w->now_ms)) != NULL)
        front_time_out(w, c);
    if (atomic_load(&w->shared->draining))
        end_idle(w);
}

static int64_t
sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* The milliseconds from now to a deadline, -1 for none. */
static int64_t
until(const struct worker *w, int64_t deadline_ms)
{
    if (deadline_ms == INT64_MAX)
        return -1;
    return deadline_ms <= w->now_ms ? 0 : deadline_ms - w->now_ms;
}

/* All of a round except waiting. Returns for how long there is nothing to do. */
static int64_t
work(struct worker *w)
{
    int64_t sleep_ms;

    do_slices(w);
    sleep_ms = run_mhd(w);
    front_push_ends(w);
    end_phases(w);
    if (w->let_go || !list_empty(&w->slices))
        sleep_ms = 0;
    sleep_ms = sooner(sleep_ms, until(w, conn_next_ms(&w->conns)));
    sleep_ms = sooner(sleep_ms, until(w, linger_expire(&w->linger, w->now_ms)));
    sleep_ms = sooner(
        sleep_ms,
        until(w, refused_settle(&w->shared->refused, w->shared->config->log, w->now_ms)));
    return sooner(sleep_ms, housekeeping_step(&w->housekeeping, w->now_ms));
}

static void
handle_event(struct worker *w, void *data)
{
    if (data == &w->mailbox) {
        adopt_connections(w);
        housekeeping_hurry(&w->housekeeping); /* somebody may have moved the clock */
    } else if (linger_owns(&w->linger, data)) {
        linger_read(&w->linger, data);
    } else if (data != w->mhd) {
        struct conn *c = data; /* connections are freed in work() only: it is alive */

        if (c->held && c->phase == CONN_RECEIVING)
            stuck_wake(w, c);
        else
            front_hung_up(w, c);
    }
}

/* Draining, and everybody has been served, has heard it, and has gone. */
static bool
drained(const struct worker *w)
{
    return atomic_load(&w->shared->draining) && w->linger.count == 0 &&
           atomic_load_explicit(&w->load, memory_order_acquire) == 0;
}

/* libmicrohttpd cannot be stopped while it leaves connections alone. */
static void
let_all_go(struct worker *w)
{
    struct list *const lists[] = {&w->chunked, &w->slices};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (struct list *at = lists[i]->next; at != lists[i]; at = at->next) {
            struct conn *c = container_of(at, struct conn, turn);

            conn_enter(&w->conns, c, CONN_DOOMED, w->now_ms);
            if (c->held)
                worker_let_go(w, c);
        }
    (void)MHD_run(w->mhd);
}

static void
loop(struct worker *w)
{
    struct epoll_event events[EVENTS];
    int64_t sleep_ms = 0;

    while (!atomic_load(&w->shared->cut)) {
        int n;

        if (drained(w))
            break;
        w->round++;
        n = epoll_wait(w->epoll_fd, events, EVENTS,
                       sleep_ms > INT_MAX ? INT_MAX : (int)sleep_ms);
        w->now_ms = clock_now_ms(&w->shared->real);
        w->round_ns = clock_stopwatch_ns();
        if (n > 0)
            trimmer_busy(&w->shared->housekeeper.trimmer, w->now_ms);
        for (int i = 0; i < n; i++)
            handle_event(w, events[i].data.ptr);
        sleep_ms = work(w);
    }
}

static void *
thread_main(void *arg)
{
    struct worker *w = arg;

    w->now_ms = clock_now_ms(&w->shared->real);
    loop(w);
    adopt_connections(w); /* what came in the last moment is closed with the rest */
    w->cut_off += conn_unfinished(&w->conns);
    let_all_go(w);
    MHD_stop_daemon(w->mhd);
    w->mhd = NULL;
    (void)eventfd_write(w->shared->done_fd, 1); /* fails only when the counter is full */
    return NULL;
}

enum status
worker_start(struct worker *w)
{
    sigset_t all, before;
    int failed;

    /* Signals are for the threads of main. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    failed = pthread_create(&w->thread, NULL, thread_main, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    w->started = failed == 0;
    return failed == 0 ? ST_OK : ST_UNAVAILABLE;
}

void
worker_join(struct worker *w)
{
    if (w->started)
        (void)pthread_join(w->thread, NULL); /* fails only when misused */
    w->started = false;
}
