#include "client/work_runner.h"

#include "claimd/json/scan.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Until a half-closed long poll must have responded. */
enum { POLL_END_MS = 1000 };

void
work_log(const char *format, ...)
{
    char line[1024];
    va_list args;
    int len, n;

    va_start(args, format);
    n = snprintf(line, sizeof(line), "claimd work: ");
    len = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
    va_end(args);
    if (len < 0)
        return;
    len += n;
    if ((size_t)len > sizeof(line) - 2)
        len = sizeof(line) - 2;
    for (int i = 0; i < len; i++)
        if (iscntrl((unsigned char)line[i]))
            line[i] = ' ';
    line[len] = '\n';
    /* The loop must not wait for the reader of the log, because the leases run on. */
    if (stderr_is_writable() && write(STDERR_FILENO, line, (size_t)len + 1) < 0)
        return;
}

uint32_t
random_u32(struct runner *r)
{
    uint32_t value = 0;

    if (entropy_reserve(&r->entropy, sizeof(value)) == ST_OK)
        entropy_take(&r->entropy, &value, sizeof(value));
    return value;
}

void
log_job(const struct work_job *j, const char *text)
{
    work_log("job %.*s of %.*s, attempt %lld: %s", (int)j->id.len, j->id.data,
             (int)j->claim->queue.len, j->claim->queue.data, (long long)j->attempt, text);
}

/* ------------------------------------------------------------------ modes */

void
report_state(struct runner *r, const char *assignment)
{
    static const char *const modes[] = {"working", "quiet", "draining", "stopping",
                                        "stopping"};

    (void)supervisor_notify(&r->supervisor, assignment, "%s%s", modes[r->mode],
                            r->away_ms >= 0           ? ", the server is away"
                            : r->service.away_ms >= 0 ? ", the service is away"
                                                      : "");
}

/*
 * claimd responds at once if only the sending half is closed, so that no claim is made
 * that this process never sees.
 */
void
poll_end(struct runner *r)
{
    if (r->poll.handle == NULL || r->poll_end_ms != INT64_MAX)
        return;
    if (transfer_end_waiting(&r->poll))
        r->poll_end_ms = r->now_ms + POLL_END_MS;
    else
        transfer_reset(r->multi, &r->poll);
}

void
mode_enter(struct runner *r, enum mode mode)
{
    if (r->mode >= mode)
        return;
    r->mode = mode;
    poll_end(r);
    report_state(r, mode >= MODE_STOP ? "STOPPING=1" : NULL);
}

void
runner_stop(struct runner *r, int status)
{
    if (r->mode >= MODE_STOP)
        return;
    r->status = status;
    r->stop_ms = r->now_ms + r->o->grace_s * 1000;
    r->end_ms = r->stop_ms + STOP_KILL_MS + LAST_MS;
    mode_enter(r, MODE_STOP);
}

/* Enters HURRY. */
static void
runner_hurry(struct runner *r)
{
    mode_enter(r, MODE_HURRY);
    r->stop_ms = r->now_ms;
    r->end_ms = r->now_ms + LAST_MS;
    transfer_reset(r->multi, &r->poll);
}

/* ------------------------------------------------------------------ the server */

void
server_responded(struct runner *r)
{
    if (r->away_ms < 0)
        return;
    work_log("the server responds again after %lld s",
             (long long)(r->now_ms - r->away_ms) / 1000);
    r->away_ms = -1;
    report_state(r, NULL);
}

/* Text of a problem document, or of the error without response. */
static void
describe_failure(const struct work_transfer *t, char *out, size_t cap)
{
    const struct bytes body = buf_view(&t->body);
    const struct json_scan_value value = json_member(body, "description");
    const struct bytes text =
        value.kind == SCAN_STRING ? json_scan_inside(&value) : BYTES_NONE;

    if (t->status == 0)
        (void)snprintf(out, cap, "%s", t->error);
    else
        (void)snprintf(out, cap, "HTTP status %ld%s%.*s", t->status,
                       text.len > 0 ? ": " : "", (int)text.len, text.data);
}

void
server_failed(struct runner *r, const char *why)
{
    if (r->away_ms >= 0)
        return;
    r->away_ms = r->now_ms;
    work_log("waiting for the server %s: %s", r->server->web.url, why);
    report_state(r, NULL);
}

static bool
fail_if(struct runner *r, const struct work_transfer *t, bool failed)
{
    char why[512];

    if (!failed)
        return false;
    describe_failure(t, why, sizeof(why));
    server_failed(r, why);
    return true;
}

bool
needs_retry(struct runner *r, const struct work_transfer *t)
{
    return fail_if(r, t,
                   t->status == 0 || t->status >= 500 || t->status == HTTP_TOO_MANY);
}

bool
claim_needs_retry(struct runner *r, const struct work_transfer *t)
{
    const bool is_of_claimd =
        json_member(buf_view(&t->body), "title").kind == SCAN_STRING;

    return needs_retry(r, t) || fail_if(r, t, t->status == 404 && !is_of_claimd);
}

void
server_refused(struct runner *r, const struct work_transfer *t, const char *request)
{
    const bool is_refusal = t->status >= 400; /* claimd has no other status here */
    char why[512];

    server_responded(r);
    describe_failure(t, why, sizeof(why));
    work_log(is_refusal ? "the server refuses %s: %s"
                        : "the response to %s is not one of claimd: %s",
             request, why);
    runner_stop(r, is_refusal ? COMMAND_FAILED : COMMAND_UNAVAILABLE);
}

/* ------------------------------------------------------------------ signals */

enum { SIGNALS_APART_MS = 100 };

static bool
signals_open(struct runner *r)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1};
    struct sigaction hangup;
    sigset_t set;

    /* The parent may have set SIGCHLD to be ignored. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        (void)sigaddset(&set, numbers[i]);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* nohup */
        (void)sigaddset(&set, SIGHUP);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)sigaddset(&set, SIGPIPE); /* standard error may have no reader */
    return r->signals >= 0 && sigprocmask(SIG_BLOCK, &set, &r->before) == 0;
}

/*
 * Reaps the spawner, if it was killed, and processes that this one inherited, for example
 * as PID 1.
 */
static void
children_reap(struct runner *r)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0)
        guards_child_changed(&r->guards, pid, status);
}

static void
signals_read(struct runner *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            continue; /* the others of the same number may be lost */
        if (info.ssi_signo == SIGUSR1) {
            mode_enter(r, MODE_QUIET);
        } else if (r->mode < MODE_STOP) {
            r->stopped_ms = r->now_ms;
            runner_stop(r, EXIT_SUCCESS);
        } else if (r->now_ms >= r->stopped_ms + SIGNALS_APART_MS) {
            runner_hurry(r); /* timeout(1) signals a process and then its group */
        }
    }
    children_reap(r);
}

/* ------------------------------------------------------------------ the loop */

/*
 * poll(2) does not count the time in which the system is suspended, and leases end in it.
 * So a runner with jobs looks at the clock this often.
 */
enum { AWAKE_MS = 5000 };

/*
 * Descriptors besides those of libcurl: the signals, the guards, those of kept commands,
 * and the standard errors of commands, or that of this process while it cannot take more.
 */
static unsigned
descriptors_list(struct runner *r, struct curl_waitfd *fds)
{
    unsigned count = 0;

    fds[count++] = (struct curl_waitfd){.fd = r->signals, .events = CURL_WAIT_POLLIN};
    for (size_t i = 0; i < r->guards.count; i++)
        fds[count++] = (struct curl_waitfd){.fd = r->guards.all[i].control,
                                            .events = CURL_WAIT_POLLIN};
    r->slot_fds = slots_poll(r, fds + count);
    count += r->slot_fds;
    if (r->stderr_blocked) {
        fds[count++] =
            (struct curl_waitfd){.fd = STDERR_FILENO, .events = CURL_WAIT_POLLOUT};
        return count;
    }
    for (const struct work_claim *c = r->claims; c != NULL; c = c->next)
        for (size_t i = 0; i < c->count; i++)
            if (c->jobs[i].process.errors >= 0)
                fds[count++] = (struct curl_waitfd){.fd = c->jobs[i].process.errors,
                                                    .events = CURL_WAIT_POLLIN};
    return count;
}

/*
 * Passes on what commands have written to standard error, a part of each in turn. fds:
 * those of the commands, as descriptors_list() listed them, with events.
 */
static void
errors_pass_on(struct runner *r, const struct curl_waitfd *fds)
{
    if (r->stderr_blocked) {
        r->stderr_blocked = !stderr_is_writable();
        return;
    }
    for (struct work_claim *c = r->claims; c != NULL; c = c->next)
        for (size_t i = 0; i < c->count; i++) {
            if (c->jobs[i].process.errors < 0 || fds++->revents == 0)
                continue;
            r->stderr_blocked = !stderr_is_writable();
            if (r->stderr_blocked)
                return;
            process_read_errors(&c->jobs[i].process);
        }
}

static void
descriptors_read(struct runner *r, const struct curl_waitfd *fds)
{
    const size_t guards = r->guards.count;

    fds++; /* the signals */
    slots_read(r, fds + guards);
    errors_pass_on(r, fds + guards + r->slot_fds);
    for (size_t i = guards; i > 0; i--)
        if (fds[i - 1].revents != 0)
            guards_read(&r->guards, i - 1);
}

/* Goes on with all transfers. False: none has ended. */
static bool
transfers_read(struct runner *r)
{
    struct work_transfer *t;
    bool any = false;
    int running;

    (void)curl_multi_perform(r->multi, &running);
    for (; (t = transfers_next(r->multi)) != NULL; any = true) {
        switch (t->use) {
        case TRANSFER_CLAIM:
            read_claim_response(r);
            break;
        case TRANSFER_RENEWAL:
            read_renewal_response(r, t->owner);
            break;
        case TRANSFER_FINISH:
            read_finish_response(r, t->owner);
            break;
        case TRANSFER_SERVICE:
            service_ended(r, t->owner);
            break;
        case TRANSFER_HEALTH:
            read_health_response(r);
            break;
        }
    }
    return any;
}

/*
 * Gives up a server or a service that is away for too long. Returns the time of the next
 * check.
 */
static int64_t
give_up_tick(struct runner *r)
{
    const bool is_server =
        r->away_ms >= 0 && (r->service.away_ms < 0 || r->away_ms < r->service.away_ms);
    const int64_t away_ms = is_server ? r->away_ms : r->service.away_ms,
                  end_ms = away_ms + r->o->give_up_s * 1000;

    if (r->o->give_up_s == 0 || away_ms < 0 || r->mode >= MODE_STOP)
        return INT64_MAX;
    if (r->now_ms < end_ms)
        return end_ms;
    work_log("giving up, because the %s is away for %lld s",
             is_server ? "server" : "service", (long long)r->o->give_up_s);
    runner_stop(r, COMMAND_UNAVAILABLE);
    return r->now_ms;
}

static void
runner_loop(struct runner *r, struct curl_waitfd *fds)
{
    for (;;) {
        enum mode before;
        int64_t next_ms;

        r->now_ms = now_ms();
        signals_read(r);
        before = r->mode;
        next_ms = give_up_tick(r);
        next_ms = earlier(next_ms, slots_tick(r));
        next_ms = earlier(next_ms, claims_tick(r));
        next_ms = earlier(next_ms, health_tick(r));
        next_ms = earlier(next_ms, claiming_tick(r));
        if (r->mode >= MODE_DRAIN && r->poll.handle == NULL && r->claims == NULL &&
            slots_are_over(r))
            return;
        if (r->mode >= MODE_STOP) {
            if (r->now_ms >= r->end_ms)
                return;
            next_ms = earlier(next_ms, r->end_ms);
        }
        if (transfers_read(r) || r->mode != before)
            continue;
        next_ms = next_ms < r->now_ms ? 0 : next_ms - r->now_ms;
        if (r->running > 0)
            next_ms = earlier(next_ms, AWAKE_MS);
        (void)curl_multi_poll(r->multi, fds, descriptors_list(r, fds),
                              (int)earlier(next_ms, INT_MAX), NULL);
        descriptors_read(r, fds);
    }
}

static void
runner_fini(struct runner *r)
{
    if (r->multi != NULL)
        claims_end(r);
    slots_close(r);
    guards_fini(&r->guards);
    if (r->multi != NULL) {
        transfer_reset(r->multi, &r->health);
        (void)curl_multi_cleanup(r->multi);
    }
    mem_free(r->mem, r->environment);
    if (r->signals >= 0)
        (void)close(r->signals);
}

/*
 * A job needs up to four descriptors of this process, and 1024 is the usual limit.
 * Commands keep the limit that they would have, because the spawner exists before.
 */
static void
descriptors_allow(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Starts what runs the commands, before this process needs much memory. */
static bool
commands_open(struct runner *r)
{
    struct guard_setup setup = {.command = r->o->command,
                                .most = (size_t)r->o->parallel,
                                .signals = &r->before,
                                .keep = r->o->batch > 0};

    if (r->o->command == NULL)
        return true;
    r->environment = work_environment(r->mem);
    setup.environment = r->environment;
    if (r->environment == NULL || !guards_init(&r->guards, &setup))
        return false;
    descriptors_allow();
    return slots_open(r);
}

#define NO_SUBREAPERS                                                                    \
    "the system has no child subreapers (prctl(2)), which end all processes of a job"

int
work_run(const struct work_options *o, const struct client *server)
{
    struct runner r = {.o = o,
                       .server = server,
                       .mem = mem_new(0),
                       .now_ms = now_ms(),
                       .poll_end_ms = INT64_MAX,
                       .away_ms = -1,
                       .signals = -1};
    struct curl_waitfd *fds = calloc(4 * (size_t)o->parallel + 2, sizeof(*fds));

    service_init(&r.service, o->health != NULL);
    if (o->service != NULL)
        url_describe(r.service_name, o->service);
    if (o->health != NULL)
        url_describe(r.health_name, o->health);
    entropy_init_system(&r.entropy);
    supervisor_init(&r.supervisor, getenv("NOTIFY_SOCKET"));
    if (r.mem == NULL || fds == NULL || !process_reserve_descriptors() ||
        !signals_open(&r) || !commands_open(&r) ||
        (r.multi = curl_multi_init()) == NULL) {
        work_log("cannot start: %s", errno == ENOSYS ? NO_SUBREAPERS : strerror(errno));
        r.status = COMMAND_FAILED;
    } else {
        transfer_init(&r.poll, r.mem, TRANSFER_CLAIM, NULL);
        transfer_init(&r.health, r.mem, TRANSFER_HEALTH, NULL);
        report_state(&r, "READY=1");
        runner_loop(&r, fds);
    }
    if (r.mem != NULL)
        runner_fini(&r);
    free(fds);
    mem_destroy(r.mem);
    if (r.unconfirmed && r.status == 0)
        r.status = COMMAND_UNAVAILABLE;
    return r.status;
}
