/*
 * wheel: deadlines in a hierarchical timing wheel (Varghese & Lauck 1987).
 *
 * A wheel stores deadlines and runs no code. The owner embeds a `struct deadline`, arms
 * it, and later advances the wheel and drains the due ones. Ticks are one millisecond, so
 * "due" is exact: after wheel_advance(w, now, ...) has returned true, exactly the
 * deadlines with due_ms <= now can be drained.
 *
 *   Cost     arm, disarm, drain O(1); advance O(due) plus at most 6 moves per deadline (4
 *            for two weeks), in slices: a call does at most `budget` moves
 *   Range    7 levels x 128 slots, 64^level ms wide: 276 years; a deadline beyond that
 *            waits in the last slot and is placed again when its time comes
 *   Memory   14 KB, untouched while unused; a deadline lives in its owner
 *   Threads  the owner's lock
 *
 * A slot of an upper level is emptied into the levels below ahead of time, during the
 * slot before it, with the rest of the budgets. So a million deadlines in one second do
 * not move at once (docs/adr/0002-millisecond-wheel.md).
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

/* Makes a wheel whose present is now_ms. NULL without memory. */
struct wheel *wheel_new(struct mem *mem, int64_t now_ms);

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
 * Moves the present towards now_ms (never backwards), with at most `budget` > 0 moves. A
 * move takes a deadline to a lower level, or all deadlines of one millisecond to the due
 * ones. True: everything due by now_ms can be drained. False: call again; meanwhile
 * deadlines may be armed, disarmed and drained. The rest of the budget empties the next
 * slots ahead of time.
 */
bool wheel_advance(struct wheel *w, int64_t now_ms, size_t budget);

/* Removes and returns a due deadline; NULL: there is none. Earlier ones come first, but
 * one that was due when it was armed comes after those that were due already. */
struct deadline *wheel_drain(struct wheel *w);

/*
 * When to call wheel_advance() again if nothing is armed meanwhile: a time at or before
 * the earliest deadline, or WHEEL_NEVER if none is armed. It is the present of the wheel
 * if a deadline is due, if an advance was cut short, or if a slot is being emptied ahead
 * of time: then each call makes progress. An owner that sleeps until this time wakes up
 * at most once per level for a single deadline.
 */
int64_t wheel_next_ms(const struct wheel *w);

/* The same in O(1), but perhaps too early: arming makes it earlier, disarming does not
 * make it later before the next wheel_advance() that reaches it. */
int64_t wheel_next_hint_ms(const struct wheel *w);

/* True if every invariant holds. O(n): for tests and debug builds. */
bool wheel_audit(const struct wheel *w);

#endif
