#include "http/section.h"

#include "claimd/http/tls.h"
#include "http/answer.h"
#include "http/front.h"
#include "http/secure.h"
#include "http/stuck.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>

/* How often libmicrohttpd is run in a row while it says that work is left. */
enum { RUNS_IN_A_ROW = 16 };

/*
 * Should libmicrohttpd say for FRUITLESS rounds, in which nothing of ours was called, that
 * work is left, the section takes naps; whatever happens wakes it. (A connection that was
 * held while it was stuck takes a second to end: stuck.h, front_give_up().)
 */
enum { FRUITLESS = 8, NAP_MS = 10 };

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

enum {
    FLAGS = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
            MHD_ALLOW_SUSPEND_RESUME
};

/* What all daemons of the worker w are told. */
#define OPTIONS                                                                          \
    MHD_OPTION_EXTERNAL_LOGGER, log_mhd, w, MHD_OPTION_URI_LOG_CALLBACK, front_target,   \
        w, MHD_OPTION_NOTIFY_COMPLETED, front_completed, w,                              \
        MHD_OPTION_NOTIFY_CONNECTION, front_connection, w, MHD_OPTION_UNESCAPE_CALLBACK, \
        front_keep_escapes, w, MHD_OPTION_CONNECTION_MEMORY_LIMIT, w->block,             \
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)config->max_connections + 1,              \
        MHD_OPTION_CONNECTION_TIMEOUT, mhd_timeout_s(config)

static struct MHD_Daemon *
start_mhd(struct worker *w)
{
    const struct server_config *config = w->shared->config;

    return MHD_start_daemon(FLAGS, 0, NULL, NULL, front_request, w, OPTIONS,
                            MHD_OPTION_END);
}

static struct MHD_Daemon *
start_secure_mhd(struct worker *w)
{
    const struct server_config *config = w->shared->config;

    return MHD_start_daemon(FLAGS | MHD_USE_TLS, 0, NULL, NULL, front_request, w, OPTIONS,
                            MHD_OPTION_HTTPS_PRIORITIES, TLS_PRIORITIES,
                            MHD_OPTION_HTTPS_CERT_CALLBACK, secure_certificate,
                            MHD_OPTION_HTTPS_MEM_TRUST, tls_authorities(config->tls),
                            MHD_OPTION_END);
}

/* Starts the daemon and watches it in the worker's epoll set. ST_NO_MEMORY, ST_IO. */
static enum status
section_open(struct worker *w, struct section *s, bool tls)
{
    *s = (struct section){.source = {SOURCE_SECTION}, .tls = tls, .due_ms = INT64_MAX};
    s->mhd = tls ? start_secure_mhd(w) : start_mhd(w);
    if (s->mhd == NULL)
        return ST_NO_MEMORY;
    if (worker_watch(w, MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                     &s->source) == ST_OK)
        return ST_OK;
    section_close(s);
    return ST_IO;
}

void
section_close(struct section *s)
{
    if (s->mhd != NULL)
        MHD_stop_daemon(s->mhd);
    s->mhd = NULL;
}

size_t
sections_beyond(size_t connections)
{
    return connections / SECTION_CONNS;
}

size_t
sections_least(const struct server_config *config)
{
    return config->tls == NULL ? 1 : 2;
}

enum status
sections_open_first(struct worker *w)
{
    const size_t least = sections_least(w->shared->config);
    enum status st = ST_OK;

    while (st == ST_OK && w->section_count < least) {
        st = section_open(w, &w->sections[w->section_count], w->section_count > 0);
        if (st == ST_OK)
            w->section_count++;
    }
    return st;
}

struct section *
section_choose(struct worker *w, bool tls)
{
    struct section *least = &w->sections[tls ? 1 : 0];

    for (size_t i = 0; i < w->section_count; i++) {
        struct section *s = &w->sections[i];

        if (s->tls != tls)
            continue;
        if (s->conns < SECTION_CONNS)
            return s;
        if (s->conns < least->conns)
            least = s;
    }
    /* Without memory or descriptors for another one it is only slower. */
    if (w->section_count < w->section_room &&
        section_open(w, &w->sections[w->section_count], tls) == ST_OK)
        return &w->sections[w->section_count++];
    return least;
}

/* Lets one daemon work; says when it wants to again. */
static int64_t
run(struct worker *w, struct section *s)
{
    /* In naps once is enough: it has had its chances. */
    int runs = s->fruitless < FRUITLESS ? RUNS_IN_A_ROW : 1;
    MHD_UNSIGNED_LONG_LONG left = 0;

    w->called = s->due = false;
    for (int i = 0; i < runs && left == 0; i++) {
        (void)MHD_run(s->mhd); /* fails only after a shutdown */
        answer_hold_fresh(w);
        secure_hold_idle(w);
        if (MHD_get_timeout(s->mhd, &left) == MHD_NO) {
            s->fruitless = 0;
            return INT64_MAX;
        }
    }
    if (left == 0)
        stuck_look(w, s);
    s->fruitless = left == 0 && !w->called ? s->fruitless + 1 : 0;
    if (s->fruitless >= FRUITLESS)
        return w->now_ms + NAP_MS;
    return left > INT32_MAX ? INT64_MAX : w->now_ms + (int64_t)left;
}

bool
sections_due(const struct worker *w)
{
    for (size_t i = 0; i < w->section_count; i++)
        if (w->sections[i].due)
            return true;
    return false;
}

/* Closes the last ones if nobody is there any more; the first ones stay. */
static void
close_empty(struct worker *w)
{
    while (w->section_count > sections_least(w->shared->config) &&
           w->sections[w->section_count - 1].conns == 0)
        section_close(&w->sections[--w->section_count]);
}

int64_t
sections_run(struct worker *w)
{
    int64_t next_ms = INT64_MAX;

    for (size_t i = 0; i < w->section_count; i++) {
        struct section *s = &w->sections[i];

        if (s->due || s->due_ms <= w->now_ms)
            s->due_ms = run(w, s);
        if (s->due_ms < next_ms)
            next_ms = s->due_ms;
    }
    close_empty(w);
    return next_ms;
}
