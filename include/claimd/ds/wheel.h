/*
 * wheel: deadlines in a hierarchical timing wheel (Varghese & Lauck 1987).
 *
 * A wheel remembers deadlines; it never runs code. The owner embeds a `struct deadline`,
 * arms it, and later advances the wheel and drains whatever has fallen due. Ticks are one
 * millisecond, so "due" is exact: after wheel_advance(w, now, ...) has returned true, the
 * drained deadlines are precisely those with due_ms <= now.
 *
 *   Cost     arm, disarm, drain O(1); advance O(due) plus at most 6 moves a deadline in
 *            its life (4 for two weeks), in slices: a call does at most `budget` moves
 *   Range    7 levels x 128 slots, 64^level ms wide: 276 years; a deadline beyond that
 *            waits in the last slot and is placed again when its time comes
 *   Memory   14 KB, untouched while unused; a deadline lives in its owner
 *   Threads  none: the lock that guards the owner guards the wheel
 *
 * A slot of an upper level is emptied into the levels below before its time comes, during
 * the slot before it, with what is left of the budgets, so that a million deadlines in
 * one second do not move in one go (docs/adr/0002-millisecond-wheel.md).
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

/* Returns a wheel whose present is now_ms, owned; NULL if out of memory. */
struct wheel *wheel_new(struct mem *mem, int64_t now_ms);

/* Frees the wheel; deadlines still armed are forgotten, not touched. */
void wheel_free(struct wheel *w);

static inline bool
deadline_armed(const struct deadline *d)
{
    return list_linked(&d->link);
}

/* (Re)arms d for due_ms. w borrows d until it is disarmed or drained. */
void wheel_arm(struct wheel *w, struct deadline *d, int64_t due_ms);

/* Disarms d; does nothing if it is not armed. Also takes back a due one not drained yet.
 */
void wheel_disarm(struct wheel *w, struct deadline *d);

/*
 * Moves the present towards now_ms (never backwards), with at most `budget` > 0 moves: a
 * deadline to a lower level, or all deadlines of one millisecond to the due ones. True
 * when everything due by now_ms can be drained; false: call again. Between the calls
 * deadlines may be armed, disarmed and drained. What is left of the budget is spent on
 * emptying the next slots ahead of their time.
 */
bool wheel_advance(struct wheel *w, int64_t now_ms, size_t budget);

/*
 * Returns one due deadline, now disarmed, or NULL when none is left. Earlier ones come
 * first, but one that was due when it was armed comes after those due already.
 */
struct deadline *wheel_drain(struct wheel *w);

/*
 * When to call wheel_advance() again if nothing is armed meanwhile: a time at or before
 * the earliest deadline, WHEEL_NEVER when nothing is armed. It is the present of the
 * wheel when something is due, when an advance was cut short, or when a slot is being
 * emptied ahead of its time: then there is work now, and each call gets on with it. An
 * owner that sleeps until this time wakes at most once a level for a lone deadline.
 */
int64_t wheel_next_ms(const struct wheel *w);

/*
 * The same in O(1), but perhaps too early: arming moves it ahead, disarming does not move
 * it back before the next wheel_advance() that reaches it.
 */
int64_t wheel_calm_ms(const struct wheel *w);

/* True if every invariant holds. O(n): for tests and debug builds. */
bool wheel_audit(const struct wheel *w);

#endif
