/*
 * wheel: deadlines in a hierarchical timing wheel (Varghese & Lauck 1987).
 *
 * A wheel stores deadlines and runs no code. The owner embeds a `struct deadline`, arms
 * it, and later advances the wheel and drains the due deadlines. Ticks are one
 * millisecond, so "due" is exact: after wheel_advance(w, now, ...) has returned true,
 * exactly the deadlines with due_ms <= now can be drained.
 *
 *   Cost     arm, disarm, drain O(1); advance O(due) plus at most 6 moves per deadline (4
 *            for two weeks), in slices: a call does at most `budget` moves
 *   Range    7 levels x 128 slots, 64^level ms wide: 276 years; a deadline beyond that
 *            waits in the last slot, and the wheel places it again when the slot is due
 *   Memory   14 KB, untouched while unused; a deadline lives in its owner
 *   Threads  the caller holds the lock of the owner
 *
 * wheel_advance() empties a slot of an upper level into the levels below ahead of time.
 * It does so during the slot before, with the budget that is left. So a million deadlines
 * in one second do not move at once (docs/adr/0002-millisecond-wheel.md).
 */
#ifndef CLAIMD_DS_WHEEL_H
#define CLAIMD_DS_WHEEL_H

#include "claimd/ds/list.h"

#include <stdint.h>

#define WHEEL_NEVER INT64_MAX

struct deadline {
    struct list link; /* private to the wheel; unlinked when not armed */
    int64_t due_ms;   /* readable by the owner while armed */
};

struct wheel; /* opaque */

struct mem;

/* Makes a wheel whose current time is now_ms. NULL: no memory. */
struct wheel *wheel_new(struct mem *mem, int64_t now_ms);

/* Sets the current time of a wheel without armed deadlines, forward or back. */
void wheel_restart(struct wheel *w, int64_t now_ms);

/* Frees the wheel, but not the armed deadlines. */
void wheel_free(struct wheel *w);

static inline bool
deadline_armed(const struct deadline *d)
{
    return list_linked(&d->link);
}

/* (Re)arms d for due_ms. w borrows d until it is disarmed or drained. */
void wheel_arm(struct wheel *w, struct deadline *d, int64_t due_ms);

/* Disarms d; no effect if it is not armed. Also removes a due deadline that was not
 * drained yet. */
void wheel_disarm(struct wheel *w, struct deadline *d);

/*
 * Advances the current time of the wheel towards now_ms (never backwards), with at most
 * `budget` > 0 moves. A move puts one deadline on a lower level, or all deadlines of one
 * millisecond on the list of due deadlines. True: all deadlines due by now_ms can be
 * drained. False: call it again. Between the calls, the owner may arm, disarm and drain
 * deadlines. The budget that is left empties the next slots ahead of time.
 */
bool wheel_advance(struct wheel *w, int64_t now_ms, size_t budget);

/* Removes and returns a due deadline; NULL: no deadline is due. Returns earlier deadlines
 * first. A deadline that was due when the owner armed it comes after all that were due
 * then. */
struct deadline *wheel_drain(struct wheel *w);

/* Puts back the deadline that was drained last: it is due again, before all others. */
void wheel_put_back(struct wheel *w, struct deadline *d);

/*
 * Returns the time of the next call of wheel_advance(), if the owner arms nothing
 * meanwhile. It is at or before the earliest deadline, or WHEEL_NEVER if no deadline is
 * armed. It is the current time of the wheel if a deadline is due, if wheel_advance()
 * returned false, or if a slot is partly emptied ahead of time. Then each call of
 * wheel_advance() makes progress. An owner that sleeps until this time wakes up at most
 * once per level for a single deadline.
 */
int64_t wheel_next_ms(const struct wheel *w);

/* Returns the time of wheel_next_ms() or an earlier one, in O(1). After wheel_disarm(),
 * it may stay too early until wheel_advance() reaches it. */
int64_t wheel_next_hint_ms(const struct wheel *w);

/* True if every invariant holds. O(n): for tests and debug builds. */
bool wheel_audit(const struct wheel *w);

#endif
