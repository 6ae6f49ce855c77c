/*
 * daemon: opens, runs and closes the daemons of libmicrohttpd for a worker, and gives
 * connections to them. Declared in mhd.h. A daemon has at most 512 connections, because
 * resuming one walks all suspended ones. The parts of the wall share internal.h.
 *
 *     1. mhd_add() gets a new connection. arrival_look() waits for its first bytes, and
 *        mhd_admit() gives it to the daemon with the right block of memory.
 *     2. mhd_event() marks a daemon with an event as due (sockets.c).
 *     3. mhd_run() runs the daemons that are due, once more after http_between_runs().
 *        The callbacks in callbacks.c run inside.
 *     4. A daemon that always claims to have work takes naps (IDLE_POLLS).
 *
 * Read callbacks.c next.
 */
#include "claimd/base/invariant.h"
#include "claimd/http/server.h"
#include "claimd/http/tls.h"
#include "http/mhd/internal.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>

/* How often a round runs a daemon while it claims that work is left. */
enum { RUNS_IN_A_ROW = 16 };

/*
 * If a daemon claims for IDLE_POLLS rounds without a callback that work is left, it takes
 * naps. Any event ends them. (A connection that was suspended while it was stuck takes a
 * second to end: mhd_end().)
 */
enum { IDLE_POLLS = 8, NAP_MS = 10 };

/*
 * libmicrohttpd reads from a connection with TLS until GnuTLS reports EAGAIN, which takes
 * another run. If all input is read, that run can wait for the next event, and at most
 * this long.
 */
enum { READ_MS = 1000 };

/* libmicrohttpd logs this before it sends a built-in page, with the status and the
 * page. */
static const char built_in_page[] = "Error processing request";

/*
 * libmicrohttpd closes some connections without a response because of their request line.
 * 1.0 logs the reason before, with this format. All these reasons, and no other one, name
 * "the request".
 */
static const char reason_format[] = "%s\n";
static const char reason_request[] = "he request";
static const char reason_no_space[] = "No space left";

/* ------------------------------------------------------------------ versions */

/*
 * libmicrohttpd 1.0 has the soname of 0.9.75, so the version is known only at run time.
 * It differs in two ways that matter here:
 *
 * - It queues a new connection and opens it later, unless a flag says that the daemon has
 *   one thread. 0.9.75 ignores the flag.
 * - It refuses malformed heads and chunks if it is strict. 0.9.75 leaves them to claimd,
 *   which sees from the addresses of the texts whether anything was cut out between them
 *   (callbacks.c).
 */
enum { NO_THREAD_SAFETY = 1 << 19 };

static bool
strict_library(void)
{
    return strncmp(MHD_get_version(), "0.", 2) != 0;
}

const char *
server_library_version(void)
{
    return MHD_get_version();
}

bool
server_library_is_known(void)
{
    const char *version = MHD_get_version();

    return strcmp(version, "0.9.75") == 0 || strncmp(version, "1.0.", 4) == 0;
}

/* ------------------------------------------------------------------ opening */

/* Sees from a line of its log that libmicrohttpd refuses a request by itself. */
static void
look_for_refusal(struct mhd *m, const char *format, va_list args)
{
    unsigned code = MHD_HTTP_BAD_REQUEST;
    const char *text;

    if (m->running != NULL)
        m->running->refuses = true;
    if (strncmp(format, built_in_page, sizeof(built_in_page) - 1) == 0) {
        code = va_arg(args, unsigned);
        mhd_replace_page(m, code, va_arg(args, const char *));
    } else if (m->strict && strcmp(format, reason_format) == 0) {
        text = va_arg(args, const char *);
        if (strncmp(text, reason_no_space, sizeof(reason_no_space) - 1) == 0)
            code = MHD_HTTP_URI_TOO_LONG;
        if (strstr(text, reason_request) != NULL)
            mhd_replace_page(m, code, text);
    }
}

/* The log of libmicrohttpd. Its lines report what clients do, so they have level
 * debug. */
static void __attribute__((format(printf, 2, 0)))
log_mhd(void *cls, const char *format, va_list args)
{
    struct mhd *m = cls;
    const struct log *log = m->config.server->log;
    char text[256];
    va_list copy;

    va_copy(copy, args);
    look_for_refusal(m, format, copy);
    va_end(copy);
    if (!log_wants(log, LOG_DEBUG))
        return;
    (void)vsnprintf(text, sizeof(text), format, args);
    log_event(log, LOG_DEBUG, "libmicrohttpd",
              LOG_B("text", bytes_trim(bytes_str(text))));
}

/* For MHD_OPTION_UNESCAPE_CALLBACK: leaves the text alone, the API decodes. */
static size_t
keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls, (void)connection;
    return strlen(text);
}

static struct MHD_Daemon *
daemon_start(struct mhd *m, bool tls, size_t block)
{
    const struct server_config *server = m->config.server;
    const unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
                           MHD_ALLOW_SUSPEND_RESUME | MHD_USE_SUPPRESS_DATE_NO_CLOCK |
                           NO_THREAD_SAFETY | (tls ? MHD_USE_TLS : 0);
    /*
     * libmicrohttpd's own time limit counts from the last byte, and reads the clock six
     * times a request. It is off if the limits of the phases end each connection before.
     */
    const unsigned timeout_s = server->idle_seconds < server->request_seconds
                                   ? (unsigned)server->idle_seconds
                                   : 0;
    struct MHD_OptionItem of_tls[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)tls_certificate},
        {MHD_OPTION_HTTPS_MEM_TRUST, 0,
         tls ? (void *)(uintptr_t)tls_authorities(server->tls) : NULL},
        {MHD_OPTION_END, 0, NULL}};

    return MHD_start_daemon(
        flags, 0, NULL, NULL, mhd_on_request, m, MHD_OPTION_EXTERNAL_LOGGER, log_mhd, m,
        MHD_OPTION_URI_LOG_CALLBACK, mhd_on_target, m, MHD_OPTION_NOTIFY_COMPLETED,
        mhd_on_completed, m, MHD_OPTION_NOTIFY_CONNECTION, mhd_on_connection, m,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, m, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        block, MHD_OPTION_CONNECTION_LIMIT, (unsigned)server->max_connections + 1,
        MHD_OPTION_CONNECTION_TIMEOUT, timeout_s, MHD_OPTION_STRICT_FOR_CLIENT,
        m->strict ? 1 : 0, tls ? MHD_OPTION_ARRAY : MHD_OPTION_END, of_tls,
        MHD_OPTION_END);
}

static void
daemon_close(struct mhd_daemon *d)
{
    if (d->daemon != NULL)
        MHD_stop_daemon(d->daemon);
    d->daemon = NULL;
}

/* Starts the next daemon and watches it in the worker's epoll set. ST_NO_MEMORY,
 * ST_IO. */
static enum status
daemon_open(struct mhd *m, bool tls, bool large)
{
    struct mhd_daemon *d = &m->daemons[m->count];
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &d->source};
    int fd;

    *d = (struct mhd_daemon){.source = {SOURCE_MHD},
                             .mhd = m,
                             .tls = tls,
                             .large = large,
                             .block = large ? m->large_block : m->block,
                             .due_ms = INT64_MAX};
    ENSURE(m->count < m->capacity);
    d->daemon = daemon_start(m, tls, d->block);
    if (d->daemon == NULL)
        return ST_NO_MEMORY;
    fd = MHD_get_daemon_info(d->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    if (epoll_ctl(m->config.epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        daemon_close(d);
        return ST_IO;
    }
    m->count++;
    return ST_OK;
}

/* TLS is a property of a daemon. So a worker has one without TLS, and one with it if
 * needed. */
static size_t
initial_daemons(const struct server_config *server)
{
    return server->tls == NULL ? 1 : 2;
}

/* One more of each kind is for large heads. */
size_t
mhd_daemons(const struct server_config *config, size_t connections)
{
    return initial_daemons(config) * (2 + connections / MHD_DAEMON_CONNS);
}

static size_t
smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void
choose_blocks(struct mhd *m, size_t head, size_t lines)
{
    m->block =
        head_space_block(smaller(head, SMALL_HEAD), smaller(lines, SMALL_LINES), 0);
    m->large_block = head > SMALL_HEAD || lines > SMALL_LINES
                         ? head_space_block(head, lines, head)
                         : 0;
}

enum status
mhd_open(const struct mhd_config *config, struct mhd **out)
{
    const struct server_config *server = config->server;
    struct mhd *m = mem_calloc(server->mem, 1, sizeof(*m));
    enum status st = ST_OK;

    if (m == NULL)
        return ST_NO_MEMORY;
    m->config = *config;
    m->strict = strict_library();
    choose_blocks(m, server->max_header_bytes, server->max_headers);
    list_init(&m->pending_suspend);
    list_init(&m->chunked);
    list_init(&m->ended);
    list_init(&m->tls_pending);
    list_init(&m->tls_handshaking);
    m->no_memory = mhd_make_refusal(REFUSAL_NO_MEMORY, true, NULL);
    m->capacity = mhd_daemons(server, server->max_connections);
    m->daemons = mem_calloc(server->mem, m->capacity, sizeof(*m->daemons));
    if (m->no_memory == NULL || !mhd_make_empty(m) || m->daemons == NULL ||
        !transport_open(m))
        st = ST_NO_MEMORY;
    while (st == ST_OK && m->count < initial_daemons(server))
        st = daemon_open(m, m->count > 0, false);
    if (st != ST_OK) {
        mhd_close(m);
        return st;
    }
    *out = m;
    return ST_OK;
}

/* Resumes all connections, because a daemon with suspended connections cannot be
 * stopped. */
static void
resume_all(struct mhd *m)
{
    for (size_t i = 0; i < CONN_PHASES; i++) {
        struct list *head = &m->config.table->phases[i], *at = head->next;

        while (at != head) {
            struct conn *c = container_of(at, struct conn, link);

            at = at->next;
            if (c->mhd.connection == NULL) {
                arrival_close(m, c);
                continue;
            }
            if (!c->mhd.suspended)
                continue;
            mhd_set_phase(m, c, CONN_CLOSING);
            mhd_resume(c);
        }
    }
    for (size_t i = 0; i < m->count; i++) {
        m->running = &m->daemons[i];
        (void)MHD_run(m->running->daemon);
    }
}

void
mhd_close(struct mhd *m)
{
    struct mem *mem;

    if (m == NULL)
        return;
    mem = m->config.server->mem;
    resume_all(m);
    while (m->count > 0)
        daemon_close(&m->daemons[--m->count]);
    if (m->no_memory != NULL)
        MHD_destroy_response(m->no_memory);
    if (m->empty != NULL)
        MHD_destroy_response(m->empty);
    transport_close(m);
    mem_free(mem, m->daemons);
    mem_free(mem, m);
}

/* ------------------------------------------------------------------ connections */

/* The daemon for a connection with large heads. NULL if it is full or cannot be
 * opened. */
static struct mhd_daemon *
choose_large(struct mhd *m, bool tls)
{
    for (size_t i = 0; i < m->count; i++) {
        struct mhd_daemon *d = &m->daemons[i];

        if (d->tls == tls && d->large)
            return d->conns < LARGE_CONNS ? d : NULL;
    }
    return m->large_block != 0 && m->count < m->capacity &&
                   daemon_open(m, tls, true) == ST_OK
               ? &m->daemons[m->count - 1]
               : NULL;
}

/* The daemon for another connection. */
static struct mhd_daemon *
choose_daemon(struct mhd *m, bool tls)
{
    struct mhd_daemon *least = &m->daemons[tls ? 1 : 0];

    for (size_t i = 0; i < m->count; i++) {
        struct mhd_daemon *d = &m->daemons[i];

        if (d->tls != tls || d->large)
            continue;
        if (d->conns < MHD_DAEMON_CONNS)
            return d;
        if (d->conns < least->conns)
            least = d;
    }
    /* Without memory or descriptors for another daemon, the fullest ones grow and get
     * slower. */
    if (m->count < m->capacity && daemon_open(m, tls, false) == ST_OK)
        return &m->daemons[m->count - 1];
    return least;
}

void
mhd_admit(struct mhd *m, struct conn *c, bool large)
{
    const bool tls = c->kind == LISTEN_TLS;
    struct mhd_daemon *d = large ? choose_large(m, tls) : NULL;

    if (d == NULL)
        d = choose_daemon(m, tls);
    ENSURE(m->adding == NULL);
    c->mhd.daemon = d;
    d->due = true;
    m->adding = c;
    if (MHD_add_connection(d->daemon, c->fd, &c->peer.any, c->peer_len) == MHD_YES) {
        tls_wait(m, c);
        return;
    }
    if (m->adding == NULL)
        return; /* libmicrohttpd has opened it and closed it again */
    m->adding = NULL;
    /* There is no memory. libmicrohttpd has closed the socket. */
    mhd_set_phase(m, c, CONN_CLOSING);
    http_on_closed(c);
}

void
mhd_add(struct mhd *m, struct conn *c)
{
    c->mhd.daemon = &m->daemons[0];
    http_on_opened(c);
    arrival_look(m, c);
}

void
mhd_suspend_now(struct conn *c)
{
    ENSURE(!c->mhd.suspended);
    MHD_suspend_connection(c->mhd.connection);
    c->mhd.suspended = c->mhd.was_suspended = true;
    if (c->mhd.tls != NULL)
        transport_suspended(c);
}

void
mhd_suspend(struct conn *c)
{
    const struct exchange *ex = c->exchange;

    ENSURE(ex != NULL && !c->mhd.suspended);
    if (ex->state != EXCHANGE_RESPONDED && ex->received < ex->head.content_length)
        mhd_suspend_now(c);
    else
        list_add_before(&mhd_of(c)->pending_suspend, &c->mhd.pending_suspend);
}

void
mhd_resume(struct conn *c)
{
    if (!c->mhd.suspended)
        return;
    MHD_resume_connection(c->mhd.connection);
    c->mhd.suspended = false;
    if (c->mhd.tls != NULL)
        transport_resumed(c);
    c->mhd.daemon->due = true; /* libmicrohttpd notices it only when it runs */
}

/*
 * libmicrohttpd sees the end of a connection in its epoll set, and closes. A connection
 * that was suspended while it was stuck is no longer in that set. For such a connection
 * libmicrohttpd only checks the time limit, which is at least a second.
 */
void
mhd_end(struct conn *c, enum refusal why)
{
    struct mhd *m = mhd_of(c);
    /* After the end of the input, libmicrohttpd ends the session of an idle client with
     * TLS. */
    int how = c->mhd.tls != NULL && c->phase == CONN_WAITING ? SHUT_RD : SHUT_RDWR;

    if (c->mhd.connection == NULL) {
        arrival_close(m, c);
        return;
    }
    if (why != REFUSAL_NONE && c->exchange != NULL && c->exchange->code == 0)
        mhd_refuse_past(c->exchange, why);
    mhd_set_phase(m, c, CONN_CLOSING);
    (void)shutdown(c->fd, how);
    mhd_resume(c);
    if (c->mhd.was_suspended)
        (void)MHD_set_connection_option(c->mhd.connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                        1U);
    c->mhd.daemon->due = true; /* for the new time limit */
}

/* ------------------------------------------------------------------ the loop */

/* True if libmicrohttpd claims to have work only because of connections that it has read
 * from. */
static bool
only_read(const struct mhd *m, const struct mhd_daemon *d)
{
    const struct counter *counts = m->config.table->counts;

    return d->tls && !d->due && !d->refuses &&
           counter_read(&counts[CONN_RECEIVING]) == 0 &&
           counter_read(&counts[CONN_RESPONDING]) == 0 &&
           counter_read(&counts[CONN_CLOSING]) == 0 && list_empty(&m->tls_handshaking);
}

/* Runs a daemon. Returns when it must run again. */
static int64_t
run_daemon(struct mhd *m, struct mhd_daemon *d)
{
    /* In naps one run is enough. */
    int runs = d->idle_polls < IDLE_POLLS ? RUNS_IN_A_ROW : 1;
    MHD_UNSIGNED_LONG_LONG left = 0;
    struct list *link;
    int64_t now_ms = m->config.round->now_ms;

    m->called = d->due = false;
    m->running = d;
    for (int i = 0; i < runs && left == 0; i++) {
        bool read;

        transport_begin_run(m);
        (void)MHD_run(d->daemon); /* fails only after a shutdown */
        while ((link = list_pop(&m->pending_suspend)) != NULL)
            mhd_suspend_now(container_of(link, struct conn, mhd.pending_suspend));
        tls_suspend_idle(m);
        read = transport_is_read(m, d);
        if (MHD_get_timeout(d->daemon, &left) == MHD_NO)
            left = ULLONG_MAX;
        if (left > 0)
            d->refuses = false;
        if (left == 0 && read && only_read(m, d)) {
            d->idle_polls = 0;
            return now_ms + READ_MS;
        }
    }
    transport_reread(m, d, left > 0);
    if (left == 0 && !m->strict)
        chunk_watchdog(m, d);
    d->idle_polls = left == 0 && !m->called ? d->idle_polls + 1 : 0;
    if (d->idle_polls >= IDLE_POLLS)
        return now_ms + NAP_MS;
    return left > INT32_MAX ? INT64_MAX : now_ms + (int64_t)left;
}

static bool
any_due(const struct mhd *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->daemons[i].due)
            return true;
    return false;
}

static int64_t
run_due(struct mhd *m)
{
    int64_t next_ms = INT64_MAX;

    for (size_t i = 0; i < m->count; i++) {
        struct mhd_daemon *d = &m->daemons[i];

        if (d->due || d->due_ms <= m->config.round->now_ms)
            d->due_ms = run_daemon(m, d);
        if (d->due_ms < next_ms)
            next_ms = d->due_ms;
    }
    /* Closes empty daemons at the end, except the initial ones. */
    while (m->count > initial_daemons(m->config.server) &&
           m->daemons[m->count - 1].conns == 0)
        daemon_close(&m->daemons[--m->count]);
    return next_ms;
}

/* Runs the daemons once more for events of the first run, such as a post that wakes a
 * waiter. */
int64_t
mhd_run(struct mhd *m)
{
    int64_t next_ms;

    tls_admit(m);
    next_ms = run_due(m);
    http_between_runs(m->config.worker);
    if (any_due(m))
        next_ms = run_due(m);
    replay_rdhups(m);
    return next_ms;
}

bool
mhd_is_due(const struct mhd *m)
{
    return !list_empty(&m->tls_pending) || any_due(m);
}
