/*
 * wheel: deadlines in a hierarchical timing wheel (Varghese & Lauck 1987).
 *
 * A wheel remembers deadlines; it never runs code. The owner embeds a `struct deadline`,
 * arms it, and later advances the wheel and drains whatever has fallen due. Ticks are one
 * millisecond, so "due" is exact: after wheel_advance(w, now, ...) has returned true, the
 * drained deadlines are precisely those with due_ms <= now.
 *
 *   Cost     arm, disarm O(1); advance O(due) plus at most 5 moves a deadline in its
 * life, in slices: a call does at most `budget` moves Range    7 levels x 64 slots: 139
 * years, longer ones are clamped to the last slot Memory   never allocates: a deadline
 * lives in its owner Threads  none: the lock that guards the owner guards the wheel
 *
 * A slot of an upper level is emptied into the level below before its time comes, during
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
 * Moves the present towards now_ms (never backwards), with at most `budget` moves of
 * deadlines. True when everything due by now_ms can be drained; false: call again.
 */
bool wheel_advance(struct wheel *w, int64_t now_ms, size_t budget);

/* Returns one due deadline, now disarmed, or NULL when none is left. */
struct deadline *wheel_drain(struct wheel *w);

/*
 * When to call wheel_advance() again if nothing is armed meanwhile: a time at or before
 * the earliest deadline, WHEEL_NEVER when nothing is armed, the past when something is
 * due.
 */
int64_t wheel_next_ms(const struct wheel *w);

size_t wheel_armed(const struct wheel *w);

/* True if every invariant holds. O(n): for tests and debug builds. */
bool wheel_audit(const struct wheel *w);

#endif
