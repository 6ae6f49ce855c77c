#include "claimd/base/clock.h"

#include "claimd/base/invariant.h"

#include <stdio.h>
#include <time.h>

enum { MS_NS = 1000000 };

static int64_t
read_ns(clockid_t which)
{
    struct timespec ts;

    (void)clock_gettime(which, &ts); /* cannot fail for these two clocks */
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Milliseconds since the machine was booted, in phase with those of the wall clock. */
static int64_t
monotonic_ms(const struct clock *c)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + (ts.tv_nsec + c->phase_ns) / MS_NS;
}

static bool
stands(int64_t encoded_time)
{
    return (encoded_time & 1) != 0;
}

static int64_t
shown_ms(const struct clock *c, int64_t encoded_time)
{
    return stands(encoded_time) ? (encoded_time - 1) / 2
                                : monotonic_ms(c) + encoded_time / 2;
}

/*
 * The difference between the wall clock and CLOCK_BOOTTIME. Two clocks cannot be read
 * at the same moment. The wall clock is read first, so the difference is too small by the
 * time between the readings, and never too large. The largest of several tries is the
 * closest. A try ends the search if its readings were less than close_ns apart.
 */
static int64_t
wall_ahead_ns(int64_t close_ns)
{
    enum { TRIES = 100 };
    int64_t ahead_ns = INT64_MIN;

    for (int i = 0; i < TRIES; i++) {
        const int64_t before_ns = read_ns(CLOCK_BOOTTIME);
        const int64_t wall_ns = read_ns(CLOCK_REALTIME);
        const int64_t after_ns = read_ns(CLOCK_BOOTTIME);

        if (wall_ns - after_ns > ahead_ns)
            ahead_ns = wall_ns - after_ns;
        if (after_ns - before_ns < close_ns)
            break;
    }
    return ahead_ns;
}

void
clock_init_system(struct clock *c)
{
    enum { CLOSE_NS = 1000 };
    const int64_t monotonic_ns = read_ns(CLOCK_BOOTTIME);
    const int64_t wall_ns = monotonic_ns + wall_ahead_ns(CLOSE_NS);

    clock_init_since(c, wall_ns / MS_NS, monotonic_ns - wall_ns % MS_NS);
}

void
clock_init_since(struct clock *c, int64_t ms, int64_t stopwatch_ns)
{
    const int64_t begun_ns = stopwatch_ns % MS_NS;

    c->wall_ahead_ms = 0;
    c->phase_ns = begun_ns <= 0 ? -begun_ns : MS_NS - begun_ns;
    atomic_init(&c->encoded_time, 2 * (ms - (stopwatch_ns + c->phase_ns) / MS_NS));
}

void
clock_init_manual(struct clock *c, int64_t start_ms)
{
    c->phase_ns = 0;
    c->wall_ahead_ms = 0;
    atomic_init(&c->encoded_time, 2 * start_ms + 1);
}

int64_t
clock_now_ms(const struct clock *c)
{
    return shown_ms(c, atomic_load(&c->encoded_time));
}

bool
clock_stands(const struct clock *c)
{
    return stands(atomic_load(&c->encoded_time));
}

void
clock_stop(struct clock *c)
{
    int64_t encoded_time = atomic_load(&c->encoded_time);

    while (!stands(encoded_time) &&
           !atomic_compare_exchange_weak(&c->encoded_time, &encoded_time,
                                         2 * shown_ms(c, encoded_time) + 1))
        continue;
}

void
clock_start(struct clock *c)
{
    int64_t encoded_time = atomic_load(&c->encoded_time);

    while (stands(encoded_time) && !atomic_compare_exchange_weak(
                                       &c->encoded_time, &encoded_time,
                                       2 * (shown_ms(c, encoded_time) - monotonic_ms(c))))
        continue;
}

void
clock_advance(struct clock *c, int64_t by_ms)
{
    ENSURE(by_ms >= 0);
    atomic_fetch_add(&c->encoded_time, 2 * by_ms);
}

void
clock_advance_to(struct clock *c, int64_t to_ms)
{
    int64_t encoded_time = atomic_load(&c->encoded_time), by_ms;

    do
        by_ms = to_ms - shown_ms(c, encoded_time);
    while (by_ms > 0 && !atomic_compare_exchange_weak(&c->encoded_time, &encoded_time,
                                                      encoded_time + 2 * by_ms));
}

int64_t
clock_stopwatch_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

int64_t
clock_monotonic_us(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000;
}

int64_t
clock_wall_ms(const struct clock *c)
{
    const int64_t encoded_time = atomic_load(&c->encoded_time);

    return stands(encoded_time) ? shown_ms(c, encoded_time) + c->wall_ahead_ms
                                : read_ns(CLOCK_REALTIME) / MS_NS;
}

static int64_t
divide_rounded(int64_t value, int64_t by)
{
    return (value + (value < 0 ? -by : by) / 2) / by;
}

int64_t
clock_wall_ahead_ms(const struct clock *c)
{
    enum { CLOSE_NS = 100000 }; /* the result is rounded to milliseconds */
    const int64_t encoded_time = atomic_load(&c->encoded_time);

    if (stands(encoded_time))
        return c->wall_ahead_ms;
    return divide_rounded(
        wall_ahead_ns(CLOSE_NS) - c->phase_ns - encoded_time / 2 * MS_NS, MS_NS);
}

int64_t
clock_to_wall_ms(const struct clock *c, int64_t ms)
{
    return c == NULL ? ms : ms + divide_rounded(clock_wall_ahead_ms(c), 1000) * 1000;
}

/* Writes `latest` if the year does not fit. */
static void
write_text(int64_t ms, const char *format, const char *latest, char *out, size_t cap)
{
    time_t seconds = (time_t)(ms / 1000 - (ms % 1000 < 0));
    struct tm tm;

    if (gmtime_r(&seconds, &tm) == NULL || strftime(out, cap, format, &tm) == 0)
        (void)snprintf(out, cap, "%s", latest);
}

void
clock_text(int64_t ms, char out[CLOCK_TEXT_CAP])
{
    write_text(ms, "%Y-%m-%dT%H:%M:%SZ", "9999-12-31T23:59:59Z", out, CLOCK_TEXT_CAP);
}

void
clock_http_text(int64_t ms, char out[CLOCK_HTTP_CAP])
{
    write_text(ms, "%a, %d %b %Y %H:%M:%S GMT", "Fri, 31 Dec 9999 23:59:59 GMT", out,
               CLOCK_HTTP_CAP);
}
