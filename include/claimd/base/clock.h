/*
 * clock: the only place that knows what time it is.
 *
 * Everything else takes `now_ms` as a parameter. Times are milliseconds since 1970 in
 * UTC. The system clock advances monotonically from the wall-clock time at its start: an
 * administrator who sets the clock neither expires nor revives anything.
 *
 *   Threads  any; a manual clock may be moved while others read it
 */
#ifndef CLAIMD_BASE_CLOCK_H
#define CLAIMD_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct clock {
    bool manual;
    int64_t offset_ms;         /* system: wall minus monotonic at the start */
    _Atomic int64_t manual_ms; /* manual: the time that is shown */
};

void clock_init_system(struct clock *c);
void clock_init_manual(struct clock *c, int64_t start_ms);

int64_t clock_now_ms(const struct clock *c);

/*
 * Nanoseconds of a clock that only runs forward, for telling how long something took.
 * Never for deciding anything: what happens depends on `now_ms` alone.
 */
int64_t clock_stopwatch_ns(void);

/* Moves a manual clock; never backwards (asserted). */
void clock_advance(struct clock *c, int64_t by_ms);

/* Writes "YYYY-MM-DDTHH:MM:SSZ" and a NUL. */
#define CLOCK_TEXT_CAP 21
void clock_text(int64_t ms, char out[CLOCK_TEXT_CAP]);

#endif
