/*
 * clock: the only source of the time.
 *
 * All other code takes `now_ms` as a parameter. Times are milliseconds since 1970 in UTC.
 * A running clock advances monotonically from the wall-clock time at its start: if an
 * operator or a time service sets the wall clock, no deadline changes. It follows
 * CLOCK_BOOTTIME, so it also advances while the machine sleeps. A standing clock shows
 * the same time until a caller moves it. No clock ever moves backwards.
 *
 * So after the wall clock was set, a running clock is behind or ahead of it. A time that
 * claimd shows or sends to others must be a time of the wall clock: clock_wall_ms() is
 * the present one, and clock_to_wall_ms() converts a time of a clock.
 *
 * A running clock rounds down to a millisecond. If a deadline must not be early, add one
 * millisecond (`round_up_ms` of the engine). The clock keeps the phase of the wall
 * clock's milliseconds, so all processes on a machine show the same time, and a restart
 * does not move a deadline. clock_init_system() reads two clocks of the system one after
 * the other. So the clock may be late by the time between the two readings (mostly less
 * than a microsecond). It is never ahead of the wall clock.
 *
 *   Threads  any; one thread may move, stop and start a clock while other threads read it
 */
#ifndef CLAIMD_BASE_CLOCK_H
#define CLAIMD_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct clock {
    /* Running: twice the milliseconds that are added to those of CLOCK_BOOTTIME.
     * Standing: twice the time shown, plus one. */
    _Atomic int64_t encoded_time;
    /* Running: added to CLOCK_BOOTTIME before it is rounded down to milliseconds. */
    int64_t phase_ns;
    /* Standing: of clock_wall_ahead_ms(); 0 unless a test sets it. */
    int64_t wall_ahead_ms;
};

/* Makes a clock that runs with the wall clock. */
void clock_init_system(struct clock *c);

/* Makes a running clock that showed ms when clock_stopwatch_ns() returned
 * stopwatch_ns. */
void clock_init_since(struct clock *c, int64_t ms, int64_t stopwatch_ns);

/* Makes a standing clock, for tests. */
void clock_init_manual(struct clock *c, int64_t start_ms);

int64_t clock_now_ms(const struct clock *c);

/* True if the clock stands. Then no thread needs to sleep until a deadline, because every
 * change of the clock wakes the threads. */
bool clock_stands(const struct clock *c);

void clock_stop(struct clock *c);
void clock_start(struct clock *c);

/* Moves the clock by by_ms >= 0 (asserted); for tests. */
void clock_advance(struct clock *c, int64_t by_ms);

/* Moves the clock forward to to_ms. If the clock is at or after to_ms, it does not
 * change. */
void clock_advance_to(struct clock *c, int64_t to_ms);

/* Nanoseconds since the machine was booted, to measure durations. They include the time
 * for which the machine slept. Do not base a decision of the engine on them: decisions
 * depend on `now_ms` alone. */
int64_t clock_stopwatch_ns(void);

/* Microseconds of CLOCK_MONOTONIC, which systemd expects in a message about a reload. */
int64_t clock_monotonic_us(void);

/* The time of the wall clock. It jumps when the wall clock is set. If c stands, it is the
 * time of c and its wall_ahead_ms. */
int64_t clock_wall_ms(const struct clock *c);

/*
 * Milliseconds by which the wall clock is ahead of c; negative: behind it. It changes
 * only when the wall clock is set, or c is moved. Three readings of the system's
 * clocks.
 */
int64_t clock_wall_ahead_ms(const struct clock *c);

/* Converts a time of c to the wall clock as it is set now, by whole seconds. c NULL: it
 * is a time of the wall clock. */
int64_t clock_to_wall_ms(const struct clock *c, int64_t ms);

/* Writes "YYYY-MM-DDTHH:MM:SSZ" and a NUL. */
#define CLOCK_TEXT_CAP 21
void clock_text(int64_t ms, char out[CLOCK_TEXT_CAP]);

/* Writes the form of HTTP (RFC 9110, 5.6.7), "Sun, 06 Nov 1994 08:49:37 GMT", and a
 * NUL. */
#define CLOCK_HTTP_CAP 30
void clock_http_text(int64_t ms, char out[CLOCK_HTTP_CAP]);

#endif
