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

/* A hand that runs so far ahead of the monotonic clock, and one that stands there. */
static int64_t
running(int64_t ahead_ms)
{
    return 2 * ahead_ms;
}

static int64_t
standing(int64_t at_ms)
{
    return 2 * at_ms + 1;
}

static bool
stands(int64_t hand)
{
    return (hand & 1) != 0;
}

static int64_t
shown_ms(int64_t hand)
{
    return stands(hand) ? (hand - 1) / 2 : read_ms(CLOCK_MONOTONIC) + hand / 2;
}

void
clock_init_system(struct clock *c)
{
    atomic_init(&c->hand, running(read_ms(CLOCK_REALTIME) - read_ms(CLOCK_MONOTONIC)));
}

void
clock_init_manual(struct clock *c, int64_t start_ms)
{
    atomic_init(&c->hand, standing(start_ms));
}

int64_t
clock_now_ms(const struct clock *c)
{
    return shown_ms(atomic_load(&c->hand));
}

bool
clock_stands(const struct clock *c)
{
    return stands(atomic_load(&c->hand));
}

void
clock_stop(struct clock *c)
{
    int64_t hand = atomic_load(&c->hand);

    while (!stands(hand) &&
           !atomic_compare_exchange_weak(&c->hand, &hand, standing(shown_ms(hand))))
        continue;
}

void
clock_start(struct clock *c)
{
    int64_t hand = atomic_load(&c->hand);

    while (stands(hand) &&
           !atomic_compare_exchange_weak(
               &c->hand, &hand, running(shown_ms(hand) - read_ms(CLOCK_MONOTONIC))))
        continue;
}

void
clock_advance(struct clock *c, int64_t by_ms)
{
    ENSURE(by_ms >= 0);
    atomic_fetch_add(&c->hand, 2 * by_ms);
}

void
clock_reach(struct clock *c, int64_t to_ms)
{
    int64_t hand = atomic_load(&c->hand), by_ms;

    do
        by_ms = to_ms - shown_ms(hand);
    while (by_ms > 0 && !atomic_compare_exchange_weak(&c->hand, &hand, hand + 2 * by_ms));
}

int64_t
clock_stopwatch_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail, as above */
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
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
