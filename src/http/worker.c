#include "http/worker.h"

#include "claimd/base/invariant.h"
#include "claimd/base/thread.h"
#include "http/answer.h"
#include "http/front.h"
#include "http/refusal.h"
#include "http/reply.h"
#include "http/secure.h"
#include "http/stuck.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS = 32, MAILS_A_ROUND = 256 };

enum status
worker_watch(struct worker *w, int fd, struct source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

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
    atomic_init(&w->seen_round, 0);
    atomic_init(&w->over, false);
    list_init(&w->chunked);
    list_init(&w->ended);
    secure_init(w);
    w->block = room_block(config->max_header_bytes, config->max_headers);
    conn_table_init(&w->conns, config->idle_seconds * 1000,
                    config->request_seconds * 1000);
    exchange_pool_init(&w->exchanges, config->mem);
    traffic_init(&w->traffic, config->mem);
    request_ids_init(&w->ids, tag, index);
    w->housekeeping.shared = &shared->housekeeper;
    housekeeping_hurry(&w->housekeeping);
    st = mailbox_init(&w->mailbox);
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    linger_init(&w->linger, w->epoll_fd, shared->linger_slots);
    if (st != ST_OK || w->epoll_fd < 0)
        goto fail_io;
    w->no_memory = reply_prepared(REFUSAL_NO_MEMORY);
    w->section_room =
        sections_least(config) * (1 + sections_beyond(config->max_connections));
    w->sections = mem_calloc(config->mem, w->section_room, sizeof(*w->sections));
    st = w->no_memory == NULL || w->sections == NULL ? ST_NO_MEMORY : answer_init(w);
    if (st == ST_OK)
        st = sections_open_first(w);
    if (st == ST_OK)
        st = worker_watch(w, w->mailbox.event_fd, &w->mailbox.source);
    if (st != ST_OK)
        worker_fini(w);
    return st;

fail_io:
    worker_fini(w);
    return ST_IO;
}

void
worker_fini(struct worker *w)
{
    while (w->section_count > 0)
        section_close(&w->sections[--w->section_count]);
    mem_free(w->shared->config->mem, w->sections);
    w->sections = NULL;
    answer_fini(w);
    if (w->no_memory != NULL)
        MHD_destroy_response(w->no_memory);
    linger_fini(&w->linger);
    exchange_pool_fini(&w->exchanges);
    traffic_fini(&w->traffic);
    mailbox_fini(&w->mailbox);
    if (w->epoll_fd >= 0)
        (void)close(w->epoll_fd);
}

/* ------------------------------------------------------------------ the loop */

struct conn *
worker_conn(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
        ->socket_context;
}

/* Gives a new connection to libmicrohttpd. */
static void
adopt(struct worker *w, struct conn *c)
{
    c->section = section_choose(w, c->kind == LISTEN_TLS);
    c->section->due = true;
    w->adopting = c;
    if (MHD_add_connection(c->section->mhd, c->fd, &c->peer.any, c->peer_len) ==
        MHD_YES) {
        secure_wait(w, c);
        return;
    }
    if (w->adopting == NULL)
        return;
    /* Out of memory before front_connection() heard of it; the socket is closed. */
    w->adopting = NULL;
    mem_free(w->shared->config->mem, c);
    atomic_fetch_sub_explicit(&w->load, 1, memory_order_relaxed);
}

bool
worker_read_mail(struct worker *w)
{
    unsigned news;

    if (!mailbox_look(&w->mailbox))
        return false;
    for (int i = 0; i < MAILS_A_ROUND; i++) {
        struct mail *mail = mailbox_take(&w->mailbox, &news);
        struct conn *c;

        if (mail == NULL)
            return false;
        c = container_of(mail, struct conn, mail);

        if ((news & MAIL_ARRIVED) != 0)
            adopt(w, c);
        else
            answer_news(w, c, news);
    }
    (void)mailbox_note(&w->mailbox); /* the rest in the next round */
    return true;
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
    (void)w;
    ENSURE(c->held);
    MHD_resume_connection(c->mhd);
    c->held = false;
    c->section->due = true; /* or libmicrohttpd would not notice */
}

/*
 * Where another process goes on with the listening sockets, nobody need notice the change: who has
 * connected this short a time before is about to say what for.
 */
enum { NEWCOMER_MS = 1000 };

static int64_t
awaited_until(const struct worker *w, const struct conn *c)
{
    return w->shared->relieved && !c->used ? c->since_ms + NEWCOMER_MS : 0;
}

/*
 * Closes connections that wait for nothing. What the kernel has received for one is a request
 * that somebody has sent: libmicrohttpd is about to read it. Returns when to look again.
 */
static int64_t
end_idle(struct worker *w)
{
    struct list *head = &w->conns.phases[CONN_WAITING], *at = head->next;
    int64_t next_ms = INT64_MAX;

    while (at != head) {
        struct conn *c = container_of(at, struct conn, link);

        at = at->next;
        if (conn_unread(c) == UNREAD_DATA)
            continue;
        if (awaited_until(w, c) <= w->now_ms)
            front_time_out(w, c);
        else if (awaited_until(w, c) < next_ms)
            next_ms = awaited_until(w, c);
    }
    return next_ms;
}

/*
 * Ends what lasts too long, and when draining what waits for nothing. Returns when to look
 * again, if there is no other reason to.
 */
static int64_t
end_phases(struct worker *w)
{
    struct conn *c;

    while ((c = conn_overdue(&w->conns, w->now_ms)) != NULL)
        front_time_out(w, c);
    if (!atomic_load(&w->shared->draining))
        return INT64_MAX;
    answer_drain(w);
    return end_idle(w);
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

/*
 * Runs what is due, and once more for news that came of it: a message that was posted here
 * and somebody here has waited for. Returns when to run again.
 */
static int64_t
run_sections(struct worker *w)
{
    int64_t next_ms = sections_run(w);

    (void)worker_read_mail(w);
    return sections_due(w) ? sections_run(w) : next_ms;
}

/* All of a round except waiting. Returns for how long there is nothing to do. */
static int64_t
work(struct worker *w)
{
    int64_t sleep_ms;

    bool knocking = secure_admit(w);

    answer_slices(w);
    answer_commits(w);
    sleep_ms = until(w, run_sections(w));
    front_push_ends(w);
    sleep_ms = sooner(sleep_ms, until(w, end_phases(w)));
    sleep_ms = sooner(sleep_ms, until(w, answer_expire(w)));
    if (knocking || sections_due(w) || !list_empty(&w->parked.slices) ||
        atomic_load(&w->parked.log_moved))
        sleep_ms = 0;
    sleep_ms = sooner(sleep_ms, until(w, conn_next_ms(&w->conns)));
    sleep_ms = sooner(sleep_ms, until(w, linger_expire(&w->linger, w->now_ms)));
    sleep_ms = sooner(
        sleep_ms,
        until(w, refused_settle(&w->shared->refused, w->shared->config->log, w->now_ms)));
    sleep_ms = sooner(sleep_ms, housekeeping_step(&w->housekeeping, w->now_ms));
    /* All requests of the round share a commit. */
    store_log_flush(w->shared->config->store_log);
    return sleep_ms;
}

static void
handle_event(struct worker *w, struct source *source)
{
    struct conn *c;

    switch (source->kind) {
    case SOURCE_MAILBOX:
        mailbox_reset(&w->mailbox);
        housekeeping_hurry(&w->housekeeping); /* somebody may have moved the clock */
        return;
    case SOURCE_SECTION:
        container_of(source, struct section, source)->due = true;
        return;
    case SOURCE_LINGER:
        linger_read(&w->linger, source);
        return;
    case SOURCE_CONN:
        c = container_of(source, struct conn, source); /* freed in work() only: alive */
        if (c->held && c->phase == CONN_RECEIVING)
            stuck_wake(w, c);
        else if (secure_is_waiting(c))
            secure_knock(w, c);
        else
            front_hung_up(w, c);
        return;
    default:
        ENSURE(source->kind == SOURCE_MAILBOX); /* the acceptor's are not ours */
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
    const size_t phases = CONN_PHASES;

    for (size_t i = 0; i < phases; i++) {
        struct list *head = &w->conns.phases[i], *at = head->next;

        while (at != head) {
            struct conn *c = container_of(at, struct conn, link);

            at = at->next;
            if (!c->held)
                continue;
            conn_enter(&w->conns, c, CONN_DOOMED, w->now_ms);
            worker_let_go(w, c);
        }
    }
    for (size_t i = 0; i < w->section_count; i++)
        (void)MHD_run(w->sections[i].mhd);
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
        atomic_store_explicit(&w->seen_round, w->round, memory_order_release);
        if (sleep_ms != 0 && !mailbox_rest(&w->mailbox))
            sleep_ms = 0;
        n = epoll_wait(w->epoll_fd, events, EVENTS,
                       sleep_ms > INT_MAX ? INT_MAX : (int)sleep_ms);
        mailbox_rise(&w->mailbox);
        w->now_ms = clock_now_ms(&w->shared->real);
        w->round_ns = clock_stopwatch_ns();
        if (n > 0)
            trimmer_busy(&w->shared->housekeeper.trimmer, w->now_ms);
        for (int i = 0; i < n; i++)
            handle_event(w, events[i].data.ptr);
        (void)worker_read_mail(w);
        sleep_ms = work(w);
    }
}

static void *
thread_main(void *arg)
{
    struct worker *w = arg;

    w->now_ms = clock_now_ms(&w->shared->real);
    loop(w);
    atomic_store_explicit(&w->over, true, memory_order_release);
    answer_await_remote(w);
    while (worker_read_mail(w)) /* what came in the last moment is closed with the rest */
        continue;
    w->cut_off += conn_unfinished(&w->conns);
    let_all_go(w);
    for (size_t i = 0; i < w->section_count; i++)
        section_close(&w->sections[i]);
    (void)eventfd_write(w->shared->done_fd, 1); /* fails only when the counter is full */
    return NULL;
}

enum status
worker_start(struct worker *w)
{
    const enum status st = thread_start(&w->thread, thread_main, w);

    w->started = st == ST_OK;
    return st;
}

void
worker_join(struct worker *w)
{
    if (w->started)
        (void)pthread_join(w->thread, NULL); /* fails only when misused */
    w->started = false;
}
