#include "claimd/base/clock.h"

#include "claimd/base/invariant.h"

#include <stdio.h>
#include <time.h>

static int64_t
read_ms(clockid_t which)
{
    struct timespec ts;

    (void)clock_gettime(which, &ts); /* cannot fail for these two clocks */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void
clock_init_system(struct clock *c)
{
    c->manual = false;
    c->offset_ms = read_ms(CLOCK_REALTIME) - read_ms(CLOCK_MONOTONIC);
    atomic_init(&c->manual_ms, 0);
}

void
clock_init_manual(struct clock *c, int64_t start_ms)
{
    c->manual = true;
    c->offset_ms = 0;
    atomic_init(&c->manual_ms, start_ms);
}

int64_t
clock_now_ms(const struct clock *c)
{
    if (c->manual)
        return atomic_load(&c->manual_ms);
    return read_ms(CLOCK_MONOTONIC) + c->offset_ms;
}

int64_t
clock_stopwatch_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail, as above */
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void
clock_advance(struct clock *c, int64_t by_ms)
{
    ENSURE(c->manual && by_ms >= 0);
    atomic_fetch_add(&c->manual_ms, by_ms);
}

void
clock_text(int64_t ms, char out[CLOCK_TEXT_CAP])
{
    time_t seconds = (time_t)(ms / 1000 - (ms % 1000 < 0));
    struct tm tm;

    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(out, CLOCK_TEXT_CAP, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        (void)snprintf(out, CLOCK_TEXT_CAP, "9999-12-31T23:59:59Z");
}
