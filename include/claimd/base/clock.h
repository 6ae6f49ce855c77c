/*
 * clock: the only place that knows what time it is.
 *
 * Everything else takes `now_ms` as a parameter. Times are milliseconds since 1970 in
 * UTC. A running clock advances monotonically from the wall-clock time at its start: an
 * administrator who sets the wall clock changes no deadline. A standing clock shows the same
 * time until it is moved. Neither is ever moved backwards.
 *
 * A running clock rounds down to a millisecond. Add one to a deadline that must not be early
 * (`round_up_ms` of the engine). It keeps the fraction of a millisecond at which the wall
 * clock's begin, so each process that runs on one machine shows the same time, and a deadline
 * stays where it was over a restart. A process may be late by the time between two readings of
 * the system's clocks (less than a microsecond as a rule), and is never ahead of the wall clock.
 *
 *   Threads  any; a clock may be moved, stopped and started while others read it
 */
#ifndef CLAIMD_BASE_CLOCK_H
#define CLAIMD_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct clock {
    _Atomic int64_t hand; /* running: twice the milliseconds added to the monotonic clock;
                             standing: twice the time shown, plus one */
    int64_t
        phase_ns; /* running: added to the monotonic clock before it is rounded down */
};

/* Runs, with the wall clock. */
void clock_init_system(struct clock *c);

/* Runs; it showed the first moment of the millisecond ms when clock_stopwatch_ns() was that. */
void clock_init_since(struct clock *c, int64_t ms, int64_t stopwatch_ns);

/* Stands. */
void clock_init_manual(struct clock *c, int64_t start_ms);

int64_t clock_now_ms(const struct clock *c);

/* Does it stand? Nobody needs to wait for anything by it then: whoever moves it tells. */
bool clock_stands(const struct clock *c);

void clock_stop(struct clock *c);
void clock_start(struct clock *c);

/* Moves it, by at least nothing (asserted). */
void clock_advance(struct clock *c, int64_t by_ms);

/* Moves it to this time, unless it is later already. */
void clock_reach(struct clock *c, int64_t to_ms);

/*
 * Nanoseconds of a clock that only runs forward, for telling how long something took.
 * Never for deciding anything: what happens depends on `now_ms` alone.
 */
int64_t clock_stopwatch_ns(void);

/* Writes "YYYY-MM-DDTHH:MM:SSZ" and a NUL. */
#define CLOCK_TEXT_CAP 21
void clock_text(int64_t ms, char out[CLOCK_TEXT_CAP]);

#endif
