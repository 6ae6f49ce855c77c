#include "bench/phase.h"

#include "bench/driver.h"

#include <stdio.h>
#include <stdlib.h>

#define SAMPLE_NS (STOPWATCH_SECOND / 10)

/* What the meters show at one moment, for differences. */
struct meters {
    int64_t at_ns;
    double server_cpu;
    double own_cpu;
    uint64_t requests;
};

struct watch {
    struct phase *phase;
    struct driver *drivers[PHASE_THREADS_MAX];
    struct stats *stats[PHASE_THREADS_MAX];
    unsigned count;
    bool begun; /* `from` is defined */
    bool done;  /* the phase's figures are written */
    struct meters from;
    struct sample shown; /* at the last line of progress */
    unsigned turns;      /* of tick() */
};

static struct sample
take_sample(const struct watch *w, int64_t now)
{
    struct sample s = {.at = (double)(now - w->phase->plan->from_ns) /
                             (double)STOPWATCH_SECOND};

    for (unsigned i = 0; i < w->count; i++) {
        const struct live_stats *live = &w->stats[i]->live;

        s.requests += atomic_load_explicit(&live->requests, memory_order_relaxed);
        s.messages += atomic_load_explicit(&live->messages, memory_order_relaxed);
        s.errors += atomic_load_explicit(&live->errors, memory_order_relaxed);
    }
    return s;
}

static struct meters
read_meters(const struct watch *w, int64_t now)
{
    struct process_usage usage = {.cpu_seconds = 0};

    if (w->phase->server != NULL)
        (void)process_usage(w->phase->server, &usage); /* a dead server fails elsewhere */
    return (struct meters){.at_ns = now,
                           .server_cpu = usage.cpu_seconds,
                           .own_cpu = process_own_cpu(),
                           .requests = take_sample(w, now).requests};
}

static void
write_figures(struct watch *w, int64_t now)
{
    struct meters to = read_meters(w, now);
    struct phase *p = w->phase;

    p->seconds = (double)(to.at_ns - w->from.at_ns) / (double)STOPWATCH_SECOND;
    p->server_cpu_seconds = to.server_cpu - w->from.server_cpu;
    p->own_cpu_seconds = to.own_cpu - w->from.own_cpu;
    p->requests = to.requests - w->from.requests;
    w->done = true;
}

static void
show(struct watch *w, const struct sample *s)
{
    double span = s->at - w->shown.at;

    if (w->phase->title == NULL || span <= 0)
        return;
    fprintf(stderr, "%-8s %6.1f s  %9.0f requests/s  %9.0f messages/s  %llu errors\n",
            w->phase->title, s->at, (double)(s->requests - w->shown.requests) / span,
            (double)(s->messages - w->shown.messages) / span,
            (unsigned long long)s->errors);
    w->shown = *s;
}

/* One turn of the watching thread; nothing in it costs the drivers more than a load. */
static void
tick(struct watch *w)
{
    const struct plan *plan = w->phase->plan;
    int64_t now = stopwatch_now();
    struct sample s = take_sample(w, now);

    if (w->turns == 0)
        w->shown = s;
    if (!w->begun && now >= plan->from_ns) {
        w->from = read_meters(w, now);
        w->begun = true;
    }
    if (w->begun && !w->done && now >= plan->to_ns)
        write_figures(w, now);
    if (w->begun && !w->done && w->phase->series != NULL)
        (void)series_add(w->phase->series, s); /* a plot with a gap is no failure */
    if (++w->turns % 10 == 0 && !w->done)
        show(w, &s);
}

static bool
all_ended(const struct watch *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        if (!driver_ended(w->drivers[i]))
            return false;
    }
    return true;
}

/* Sleeps to the next sample, or to the moment the measurement begins or ends. */
static void
sleep_a_tick(const struct plan *plan)
{
    int64_t now = stopwatch_now();
    int64_t wait = SAMPLE_NS;
    struct timespec ts;

    if (now < plan->from_ns && plan->from_ns - now < wait)
        wait = plan->from_ns - now;
    else if (now < plan->to_ns && plan->to_ns - now < wait)
        wait = plan->to_ns - now;
    ts = (struct timespec){.tv_nsec = wait};
    nanosleep(&ts, NULL);
}

static const char *
start(struct watch *w)
{
    const struct plan *plan = w->phase->plan;

    while (w->count < plan->threads) {
        struct stats *stats = stats_new();

        if (stats == NULL)
            return "out of memory";
        w->drivers[w->count] = driver_start(plan, w->count, stats);
        if (w->drivers[w->count] == NULL) {
            free(stats);
            return "cannot start a thread";
        }
        w->stats[w->count++] = stats;
    }
    return NULL;
}

const char *
phase_run(struct phase *p)
{
    struct watch w = {.phase = p};
    const char *failure = start(&w);

    while (failure == NULL && !all_ended(&w)) {
        tick(&w);
        sleep_a_tick(p->plan);
    }
    if (w.begun && !w.done)
        write_figures(&w, stopwatch_now());
    for (unsigned i = 0; i < w.count; i++) {
        const char *why;

        if (failure != NULL)
            driver_cancel(w.drivers[i]);
        why = driver_join(w.drivers[i]);
        if (failure == NULL)
            failure = why;
        stats_merge(p->stats, w.stats[i]);
        free(w.stats[i]);
    }
    return failure;
}
