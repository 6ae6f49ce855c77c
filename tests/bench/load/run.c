#include "load/run.h"

#include "claimd/base/buf.h"
#include "load/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

/* ------------------------------------------------------------------ one phase */

#define THREADS_MAX 64

#define SAMPLE_NS (STOPWATCH_SECOND / 10)

/* CPU times and requests at one moment, or their difference between two. */
struct meters {
    int64_t at_ns;
    double server_cpu, own_cpu; /* seconds */
    uint64_t requests;
};

/* Runs the drivers of a plan to their end, and samples them. */
struct phase {
    const struct plan *plan;           /* borrowed */
    const char *title;                 /* in lines of progress; NULL: print none */
    struct stats *stats;               /* borrowed; receives the sum of the drivers */
    struct series *series;             /* NULL: keep no series */
    const struct process_list *server; /* NULL or empty: not measured */

    struct driver *drivers[THREADS_MAX];
    struct stats *counts[THREADS_MAX]; /* of the drivers */
    unsigned count;
    bool begun, done;      /* `from` is defined; `used` is defined */
    struct meters from;    /* at plan->from_ns */
    struct meters used;    /* between from_ns and to_ns of the plan */
    struct sample printed; /* of the last line of progress */
    unsigned ticks;        /* calls of phase_tick() */
};

static struct sample
sample_read(const struct phase *p, int64_t now)
{
    struct sample s = {.at = (double)(now - p->plan->from_ns) / (double)STOPWATCH_SECOND};

    for (unsigned i = 0; i < p->count; i++) {
        const struct live_stats *live = &p->counts[i]->live;

        s.requests += atomic_load_explicit(&live->requests, memory_order_relaxed);
        s.messages += atomic_load_explicit(&live->messages, memory_order_relaxed);
        s.errors += atomic_load_explicit(&live->errors, memory_order_relaxed);
    }
    return s;
}

static struct meters
read_meters(const struct phase *p, int64_t now)
{
    struct process_usage usage = {.cpu_seconds = 0};

    if (p->server != NULL)
        (void)process_usage(p->server, &usage); /* 0 if the server is gone */
    return (struct meters){now, usage.cpu_seconds, process_own_cpu(),
                           sample_read(p, now).requests};
}

static void
end_meters(struct phase *p, int64_t now)
{
    const struct meters to = read_meters(p, now);

    p->used =
        (struct meters){to.at_ns - p->from.at_ns, to.server_cpu - p->from.server_cpu,
                        to.own_cpu - p->from.own_cpu, to.requests - p->from.requests};
    p->done = true;
}

/* Samples the drivers. It costs them no more than loads of their counters. */
static void
phase_tick(struct phase *p)
{
    int64_t now = stopwatch_now();
    struct sample s = sample_read(p, now);
    double span;

    if (p->ticks == 0)
        p->printed = s;
    if (!p->begun && now >= p->plan->from_ns) {
        p->from = read_meters(p, now);
        p->begun = true;
    }
    if (p->begun && !p->done && now >= p->plan->to_ns)
        end_meters(p, now);
    if (p->begun && !p->done && p->series != NULL)
        (void)series_add(p->series, s); /* without memory, the series has a gap */
    span = s.at - p->printed.at;
    if (++p->ticks % 10 != 0 || p->done || p->title == NULL || span <= 0)
        return;
    fprintf(stderr, "%-8s %6.1f s  %9.0f requests/s  %9.0f messages/s  %llu errors\n",
            p->title, s.at, (double)(s.requests - p->printed.requests) / span,
            (double)(s.messages - p->printed.messages) / span,
            (unsigned long long)s.errors);
    p->printed = s;
}

static const char *
start_drivers(struct phase *p)
{
    while (p->count < p->plan->threads) {
        struct stats *stats = calloc(1, sizeof(struct stats));

        if (stats == NULL)
            return "out of memory";
        p->drivers[p->count] = driver_start(p->plan, p->count, stats);
        if (p->drivers[p->count] == NULL) {
            free(stats);
            return "cannot start a thread";
        }
        p->counts[p->count++] = stats;
    }
    return NULL;
}

/* Blocks until all drivers have ended. Returns NULL, or why the phase failed: a constant
 * text. */
static const char *
phase_run(struct phase *p)
{
    const char *failure = start_drivers(p), *why;
    unsigned ended = 0;

    while (failure == NULL && ended < p->count) {
        struct timespec wait = {.tv_nsec = SAMPLE_NS};
        int64_t now;

        phase_tick(p);
        /* Sleep until the next sample, or until the measurement begins or ends. */
        now = stopwatch_now();
        if (now < p->plan->from_ns && p->plan->from_ns - now < SAMPLE_NS)
            wait.tv_nsec = p->plan->from_ns - now;
        else if (now < p->plan->to_ns && p->plan->to_ns - now < SAMPLE_NS)
            wait.tv_nsec = p->plan->to_ns - now;
        nanosleep(&wait, NULL);
        while (ended < p->count && driver_ended(p->drivers[ended]))
            ended++;
    }
    if (p->begun && !p->done)
        end_meters(p, stopwatch_now());
    for (unsigned i = 0; i < p->count; i++) {
        if (failure != NULL)
            driver_cancel(p->drivers[i]);
        why = driver_join(p->drivers[i]);
        if (failure == NULL)
            failure = why;
        stats_merge(p->stats, p->counts[i]);
        free(p->counts[i]);
    }
    return failure;
}

/* ------------------------------------------------------------------ all phases */

/* Time to wait for responses after the end. A request without one is then unfinished. */
#define PATIENCE_NS (10 * STOPWATCH_SECOND)

/* Messages per claim of a HOLD phase: every server allows so many. */
#define HOLD_BATCH 20U

/* Messages per post of a FILL phase, unless the request becomes larger than
 * FILL_BYTES. */
#define FILL_BATCH 20U
#define FILL_BYTES 100000U

struct measurement {
    const struct options *options;
    struct result *result;
    struct mem *mem;
    struct endpoint endpoint;
    struct buf body_tail;
    struct buf http_tail;
    struct plan base; /* settings of all phases */
    char storm_base[64];
};

static int64_t
ns_of(double seconds)
{
    return (int64_t)(seconds * (double)STOPWATCH_SECOND);
}

static void
build_base_plan(struct measurement *run)
{
    /* {"n":"0000000000000000","d":"xxxx"}, body_bytes long */
    static const char head[] = "{\"n\":\"", data[] = "\",\"d\":\"";
    const struct options *o = run->options;
    size_t fixed = sizeof head - 1 + BODY_NUMBER + sizeof data - 1 + 2;

    run->base = (struct plan){.protocol = o->protocol,
                              .endpoint = &run->endpoint,
                              .scenario = o->scenario,
                              .deleting = o->deleting,
                              .spin = o->spin,
                              .connections = (unsigned)o->connections,
                              .threads = (unsigned)o->threads,
                              .queues = (unsigned)o->queues,
                              .batch = (unsigned)o->batch,
                              .queue_base = o->queue,
                              .message_ttl = o->message_ttl,
                              .claim_ttl = o->claim_ttl,
                              .claim_grace = o->claim_grace,
                              .pace.connections = (unsigned)o->connections,
                              .to_ns = INT64_MAX,
                              .give_up_ns = INT64_MAX};
    buf_str(&run->body_tail, data);
    for (size_t n = fixed; n < (size_t)o->body_bytes; n++)
        buf_byte(&run->body_tail, (char)('a' + n % 26));
    buf_str(&run->body_tail, "\"}");
    buf_printf(&run->http_tail,
               " HTTP/1.1\r\nHost: %s\r\nClient-ID: %s\r\nX-Project-ID: %s\r\n"
               "Accept: application/json\r\n",
               run->endpoint.host, o->client_id, o->project);
    if (o->token[0] != '\0')
        buf_printf(&run->http_tail, "X-Auth-Token: %s\r\n", o->token);
    run->base.body_head = bytes_of(head, sizeof head - 1);
    run->base.body_tail = buf_view(&run->body_tail);
    run->base.http_tail = buf_view(&run->http_tail);
    snprintf(run->storm_base, sizeof run->storm_base, "%s-storm", o->queue);
}

/* Runs a phase with this plan until its quota is used up. A refused request is a
 * failure. */
static bool
run_quota(const struct measurement *run, struct plan p, enum scenario scenario,
          const char *title, int64_t quota)
{
    _Atomic int64_t left = quota;
    struct phase phase = {.plan = &p, .title = run->options->quiet ? NULL : title};
    struct stats *stats = calloc(1, sizeof(struct stats));
    const char *failure;
    char text[64];

    if (stats == NULL)
        return bench_error(title, "out of memory");
    p.scenario = scenario;
    p.quota = &left;
    p.from_ns = stopwatch_now();
    phase.stats = stats;
    failure = phase_run(&phase);
    if (failure == NULL && stats_errors(stats) > 0) {
        snprintf(text, sizeof text, "the server refused requests (status %d)",
                 stats->first_error);
        failure = text;
    }
    if (failure != NULL)
        bench_error(title, failure);
    free(stats);
    return failure == NULL;
}

/* Deletes and creates the queues, unless --keep is given. */
static bool
create_queues(const struct measurement *run, const char *queue_base, unsigned queues)
{
    struct plan p = run->base;

    if (run->options->keep)
        return true;
    p.queue_base = queue_base;
    p.queues = queues;
    return run_quota(run, p, SCENARIO_PREPARE, "prepare", queues);
}

/* Posts in larger batches, because filling is not measured. */
static bool
fill_queues(const struct measurement *run, struct plan p, int64_t count)
{
    if (p.batch < FILL_BATCH && plan_body_len(&p) * FILL_BATCH <= FILL_BYTES)
        p.batch = FILL_BATCH;
    return run_quota(run, p, SCENARIO_FILL, "fill", count);
}

static uint64_t
resident_bytes(const struct measurement *run)
{
    struct process_usage usage = {.resident_bytes = 0};

    (void)process_usage(&run->options->server, &usage); /* 0 if it fails */
    return usage.resident_bytes;
}

static bool
make_backlog(struct measurement *run)
{
    const struct options *o = run->options;
    struct plan p = run->base;
    int64_t begin = stopwatch_now();

    if (o->backlog == 0)
        return true;
    p.message_ttl = o->message_ttl;
    run->result->resident_before = resident_bytes(run);
    if (!fill_queues(run, p, o->backlog))
        return false;
    run->result->fill_seconds =
        (double)(stopwatch_now() - begin) / (double)STOPWATCH_SECOND;
    run->result->resident_after = resident_bytes(run);
    p.claim_ttl = 43200;
    p.batch = HOLD_BATCH;
    return o->held == 0 || run_quota(run, p, SCENARIO_HOLD, "hold", o->held);
}

/* Makes storm_count messages or claims that expire in the second after *storm_ns. */
static bool
make_storm(struct measurement *run, int64_t *storm_ns)
{
    const struct options *o = run->options;
    struct plan p = run->base;

    *storm_ns = 0;
    if (o->storm == STORM_NONE)
        return true;
    if (!create_queues(run, run->storm_base, (unsigned)o->storm_queues))
        return false;
    *storm_ns = stopwatch_now() + o->storm_lead * STOPWATCH_SECOND;
    p.queue_base = run->storm_base;
    p.queues = (unsigned)o->storm_queues;
    if (o->storm == STORM_MESSAGES)
        p.expire_ns = *storm_ns;
    if (!fill_queues(run, p, o->storm_count))
        return false;
    p.expire_ns = *storm_ns;
    p.batch = 1;
    if (o->storm == STORM_CLAIMS &&
        !run_quota(run, p, SCENARIO_HOLD, "hold", o->storm_count))
        return false;
    if (stopwatch_now() + ns_of(o->warmup) + STOPWATCH_SECOND > *storm_ns)
        return bench_error(
            "storm", "the preparation took longer than --storm-lead. Raise --storm-lead");
    return true;
}

/*
 * Sets the begin and end of the measurement. A storm is in its middle, with half of the
 * duration before and half after it. The storm window is the second in which everything
 * expires and the one after it.
 */
static void
set_times(struct measurement *run, struct plan *p, int64_t storm_ns)
{
    const struct options *o = run->options;
    int64_t now = stopwatch_now();

    p->from_ns = now + ns_of(o->warmup);
    if (storm_ns != 0) {
        int64_t half = ns_of(o->duration / 2);

        if (storm_ns - half > p->from_ns)
            p->from_ns = storm_ns - half;
        p->storm_from_ns = storm_ns;
        p->storm_to_ns = storm_ns + 2 * STOPWATCH_SECOND;
        p->to_ns = storm_ns + 2 * STOPWATCH_SECOND + half;
        run->result->storm_at =
            (double)(storm_ns - p->from_ns) / (double)STOPWATCH_SECOND;
    } else {
        p->to_ns = p->from_ns + ns_of(o->duration);
    }
    p->give_up_ns = p->to_ns + PATIENCE_NS;
    p->pace.rate = o->rate;
    p->pace.start_ns = now + STOPWATCH_SECOND / 20;
    run->result->seconds = (double)(p->to_ns - p->from_ns) / (double)STOPWATCH_SECOND;
}

static bool
run_scenario(struct measurement *run, int64_t storm_ns)
{
    const struct options *o = run->options;
    struct result *r = run->result;
    struct plan p = run->base;
    struct phase phase = {.plan = &p, .stats = r->stats, .series = &r->series};
    _Atomic int64_t left = 0;
    const char *failure;

    if (!o->quiet)
        phase.title = "measure";
    if (o->server.count > 0)
        phase.server = &o->server;
    set_times(run, &p, storm_ns);
    p.wait = o->wait; /* the phases before neither wait nor pause */
    if (p.scenario == SCENARIO_DELIVERY) {
        p.producers = (unsigned)o->producers;
        p.poll_ns = o->poll * (STOPWATCH_SECOND / 1000);
        p.pace.connections = p.producers;
        left = pace_count(&p.pace, p.to_ns) * p.batch;
        p.quota = &left;
    }
    r->counted = scenario_counted(&p);
    failure = phase_run(&phase);
    r->has_server = o->server.count > 0;
    r->server_cpu_seconds = phase.used.server_cpu;
    r->server_requests = phase.used.requests;
    r->server_seconds = (double)phase.used.at_ns / (double)STOPWATCH_SECOND;
    r->own_cpu_seconds = phase.used.own_cpu;
    r->undelivered = left > 0 ? (uint64_t)left : 0;
    return failure == NULL || bench_error("measure", failure);
}

/*
 * Runs all phases. False after a message on standard error. The members of *out are owned
 * by the caller in either case.
 */
static bool
run_all(const struct options *o, struct result *out)
{
    struct measurement run = {.options = o, .result = out};
    int64_t storm_ns;
    bool fine = false;

    *out = (struct result){.stats = calloc(1, sizeof(struct stats))};
    run.mem = mem_new(0);
    if (out->stats == NULL || run.mem == NULL) {
        bench_error("start", "out of memory");
        goto out;
    }
    buf_init(&run.body_tail, run.mem);
    buf_init(&run.http_tail, run.mem);
    if (!endpoint_parse(o->endpoint, &run.endpoint)) {
        bench_error("the endpoint is not a valid address", o->endpoint);
        goto release;
    }
    build_base_plan(&run);
    fine = !run.body_tail.failed && !run.http_tail.failed &&
           create_queues(&run, o->queue, (unsigned)o->queues) && make_backlog(&run) &&
           make_storm(&run, &storm_ns) && run_scenario(&run, storm_ns);
release:
    buf_fini(&run.body_tail);
    buf_fini(&run.http_tail);
out:
    if (run.mem != NULL)
        mem_destroy(run.mem);
    return fine;
}

/* ------------------------------------------------------------------ the command */

typedef void report_fn(const struct options *o, const struct result *r, FILE *out);

/* Writes a report to a file. False after a message; true if path is NULL. */
static bool
write_file(const char *path, report_fn *write, const struct options *o,
           const struct result *r)
{
    FILE *out;
    bool bad;

    if (path == NULL)
        return true;
    out = fopen(path, "w");
    if (out != NULL) {
        write(o, r, out);
        bad = ferror(out) != 0;
        if (fclose(out) == 0 && !bad)
            return true;
    }
    (void)command_fails(COMMAND_FAILED, "cannot write %s: %s", path, strerror(errno));
    return false;
}

int
run_bench(const struct command_args *args)
{
    struct options options;
    struct result result;
    struct rlimit limit;
    bool good;

    if (!options_parse(&options, args))
        return COMMAND_USAGE;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) { /* each connection is an open file */
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* a failure shows when connecting */
    }
    good = run_all(&options, &result);
    if (good) {
        good = write_file(options.json, report_json, &options, &result);
        good = write_file(options.csv, report_csv, &options, &result) && good;
        if (!options.quiet)
            report_text(&options, &result, stdout);
    }
    good = good && stats_errors(result.stats) == 0;
    free(result.stats);
    free(result.series.samples);
    return good ? COMMAND_GOOD : COMMAND_FAILED;
}
