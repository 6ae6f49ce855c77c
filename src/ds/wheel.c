#include "claimd/ds/wheel.h"
#include "claimd/base/sometimes.h"

#include "claimd/base/invariant.h"
#include "claimd/base/mem.h"

/*
 * Slots of level L are 64^L ms wide, and a level has 128 of them, used in a circle:
 *
 *   level 0  |.|.|.|.| ... 128 slots of 1 ms
 *   level 1  |   .   |   .   | ... 128 slots of 64 ms
 *   level 2  |            .            | ... 128 slots of 4.1 s
 *             ^present
 *
 * With 64 slots a level would reach exactly to the end of the present slot of the level
 * above. The other 64 let it hold all of the slot after that, so this one can be emptied
 * at any time while the present moves through the slot before it.
 *
 * A tick is a millisecond with the sign bit flipped, so that ticks are unsigned and in
 * the order of time. The unit of a tick at level L is tick >> 6 L: a slot, not yet folded
 * into the circle. Invariants (wheel_audit checks them):
 *
 *   - a deadline is in `due` if its tick <= present, otherwise in the slot of its unit at
 *     a level where that unit is 1 .. 127 units after the present one (at the top level
 *     a deadline that is farther away may be in a slot before its own)
 *   - so no slot of the present unit has a deadline, at any level
 *   - bit i of a level's `used` is set if slot i has a deadline; a head whose bit is
 *     clear is not initialised (an unused wheel touches little memory)
 */
enum {
    LEVELS = 7,
    UNIT_BITS = 6,
    SLOTS = 128,
    WORD_BITS = 64,
};

struct level {
    uint64_t used[SLOTS / WORD_BITS];
    struct list slot[SLOTS];
};

struct wheel {
    struct mem *mem;
    uint64_t present;   /* tick */
    uint64_t next_hint; /* before this tick no slot begins, nor has to be emptied */
    size_t armed;       /* deadlines in slots and in due */
    struct list due;
    struct level level[LEVELS];
};

/* A slot by its unit. */
struct spot {
    unsigned level;
    uint64_t unit;
};

static uint64_t
tick_of(int64_t ms)
{
    return (uint64_t)ms ^ (uint64_t)1 << 63;
}

static int64_t
ms_of(uint64_t tick)
{
    return (int64_t)(tick ^ (uint64_t)1 << 63);
}

static uint64_t
unit_of(uint64_t tick, unsigned level)
{
    return tick >> (UNIT_BITS * level);
}

static uint64_t
unit_start(uint64_t unit, unsigned level)
{
    return unit << (UNIT_BITS * level);
}

static bool
is_used(const struct level *level, unsigned slot)
{
    return (level->used[slot / WORD_BITS] >> slot % WORD_BITS & 1) != 0;
}

struct wheel *
wheel_new(struct mem *mem, int64_t now_ms)
{
    struct wheel *w = mem_calloc(mem, 1, sizeof(*w));

    if (w == NULL)
        return NULL;
    w->mem = mem;
    w->present = tick_of(now_ms);
    w->next_hint = UINT64_MAX;
    list_init(&w->due);
    return w;
}

void
wheel_restart(struct wheel *w, int64_t now_ms)
{
    ENSURE(w->armed == 0);
    w->present = tick_of(now_ms);
    w->next_hint = UINT64_MAX;
}

void
wheel_free(struct wheel *w)
{
    if (w != NULL)
        mem_free(w->mem, w);
}

/* The lowest level that reaches the tick; it is after the present. */
static struct spot
choose_spot(const struct wheel *w, uint64_t tick)
{
    struct spot at = {0, tick};

    while (at.unit - unit_of(w->present, at.level) >= SLOTS) {
        if (at.level == LEVELS - 1) {
            at.unit = unit_of(w->present, at.level) + SLOTS - 1;
            break;
        }
        at.level++;
        at.unit = unit_of(tick, at.level);
    }
    return at;
}

/* The tick from which on a used slot needs attention: it begins, or is to be emptied. */
static uint64_t
attention_start(struct spot at)
{
    return unit_start(at.level == 0 ? at.unit : at.unit - 1, at.level);
}

static void
place(struct wheel *w, struct deadline *d)
{
    uint64_t tick = tick_of(d->due_ms);
    struct spot at;
    struct level *level;
    unsigned slot;

    if (tick <= w->present) {
        list_add_before(&w->due, &d->link);
        return;
    }
    at = choose_spot(w, tick);
    if (attention_start(at) < w->next_hint)
        w->next_hint = attention_start(at);
    level = &w->level[at.level];
    slot = at.unit % SLOTS;
    if (!is_used(level, slot)) {
        level->used[slot / WORD_BITS] |= (uint64_t)1 << slot % WORD_BITS;
        list_init(&level->slot[slot]);
    }
    list_add_before(&level->slot[slot], &d->link);
}

static void
mark_unused(struct level *level, unsigned slot)
{
    level->used[slot / WORD_BITS] &= ~((uint64_t)1 << slot % WORD_BITS);
}

void
wheel_arm(struct wheel *w, struct deadline *d, int64_t due_ms)
{
    wheel_disarm(w, d);
    d->due_ms = due_ms;
    place(w, d);
    w->armed++;
}

void
wheel_disarm(struct wheel *w, struct deadline *d)
{
    const struct list *head = d->link.next;

    if (!deadline_armed(d))
        return;
    ENSURE(w->armed > 0); /* d is armed in this wheel */
    if (head == d->link.prev && head != &w->due) {
        /* The only deadline of its slot: both neighbours are the head. */
        size_t l =
            (size_t)((const char *)head - (const char *)w->level) / sizeof(*w->level);

        mark_unused(&w->level[l], (unsigned)(head - w->level[l].slot));
    }
    list_remove(&d->link);
    w->armed--;
}

/* Distance in units from the present slot to the first used one; 0 if there is none. */
static unsigned
first_used(const struct wheel *w, unsigned l)
{
    const struct level *level = &w->level[l];
    unsigned from = unit_of(w->present, l) % SLOTS;

    /* First the slots from the present one to the end of its word, then the other word,
     * then the slots of the first word before the present one. */
    for (unsigned word = 0; word <= SLOTS / WORD_BITS; word++) {
        unsigned at = (from / WORD_BITS + word) % (SLOTS / WORD_BITS);
        uint64_t bits = level->used[at];

        if (word == 0)
            bits &= UINT64_MAX << from % WORD_BITS;
        if (bits != 0)
            return (at * WORD_BITS + (unsigned)__builtin_ctzll(bits) - from) % SLOTS;
    }
    return 0;
}

/* Finds the first tick after the present at which a used slot begins, or has to be
 * emptied. False, and UINT64_MAX: no slot is used. */
static bool
next_used(const struct wheel *w, bool attention, uint64_t *tick)
{
    bool found = false;

    *tick = UINT64_MAX;
    for (unsigned l = 0; l < LEVELS; l++) {
        const unsigned ahead = first_used(w, l);
        const struct spot at = {l, unit_of(w->present, l) + ahead};
        const uint64_t start = attention ? attention_start(at) : unit_start(at.unit, l);

        if (ahead == 0)
            continue;
        if (start < *tick)
            *tick = start;
        found = true;
    }
    return found;
}

/*
 * Moves the deadlines of the slot after the present one to lower levels. True: the slot
 * is empty now. False: the budget ended before. A deadline beyond the top level returns
 * to the far end of that level.
 */
static bool
empty_next_slot(struct wheel *w, unsigned l, size_t *budget)
{
    unsigned slot = (unit_of(w->present, l) + 1) % SLOTS;
    struct list *head = &w->level[l].slot[slot];

    if (!is_used(&w->level[l], slot))
        return true;
    for (; !list_empty(head); --*budget) {
        struct list *node = head->next;

        SOMETIMES_IF(*budget == 0, WHEEL_ENDS_EARLY);
        if (*budget == 0)
            return false;
        SOMETIMES_IF(node->next != head, WHEEL_CASCADES);
        __builtin_prefetch(node->next->next); /* a long list is a chain of cache misses */
        list_remove(node);
        place(w, container_of(node, struct deadline, link));
    }
    mark_unused(&w->level[l], slot);
    return true;
}

/* Moves the present from just before `tick` onto it; false if the budget ended. */
static bool
enter_tick(struct wheel *w, uint64_t tick, size_t *budget)
{
    struct level *due = &w->level[0];
    const unsigned slot = tick % SLOTS;

    ENSURE(tick == w->present + 1);
    for (unsigned l = 1; l < LEVELS && tick % unit_start(1, l) == 0; l++)
        if (!empty_next_slot(w, l, budget))
            return false;
    if (*budget == 0)
        return false;
    --*budget;
    if (is_used(due, slot)) { /* one step for any number of deadlines */
        list_move(&w->due, &due->slot[slot]);
        mark_unused(due, slot);
    }
    w->present = tick;
    return true;
}

bool
wheel_advance(struct wheel *w, int64_t now_ms, size_t budget)
{
    uint64_t now = tick_of(now_ms);
    uint64_t tick;

    if (now < w->next_hint) {
        if (w->present < now)
            w->present = now;
        return true;
    }
    while (w->present < now) {
        if (!next_used(w, false, &tick) || tick > now) {
            w->present = now;
            break;
        }
        w->present = tick - 1; /* no slot begins in between */
        if (!enter_tick(w, tick, &budget))
            return false;
    }
    for (unsigned l = 1; l < LEVELS; l++)
        if (!empty_next_slot(w, l, &budget))
            return true; /* next_hint stays: the slot is not empty yet */
    (void)next_used(w, true, &w->next_hint);
    return true;
}

struct deadline *
wheel_drain(struct wheel *w)
{
    struct list *node = list_pop(&w->due);

    if (node == NULL)
        return NULL;
    ENSURE(w->armed > 0);
    w->armed--;
    return container_of(node, struct deadline, link);
}

void
wheel_put_back(struct wheel *w, struct deadline *d)
{
    ENSURE(!deadline_armed(d) && tick_of(d->due_ms) <= w->present);
    list_add_before(w->due.next, &d->link);
    w->armed++;
}

int64_t
wheel_next_ms(const struct wheel *w)
{
    uint64_t tick;

    if (!list_empty(&w->due))
        return ms_of(w->present);
    if (w->armed == 0)
        return WHEEL_NEVER;
    (void)next_used(w, true, &tick);
    return ms_of(tick > w->present ? tick : w->present);
}

int64_t
wheel_next_hint_ms(const struct wheel *w)
{
    uint64_t tick = list_empty(&w->due) ? w->next_hint : w->present;

    if (tick == UINT64_MAX)
        return WHEEL_NEVER;
    return ms_of(tick > w->present ? tick : w->present);
}

static bool
audit_slot(const struct wheel *w, unsigned l, unsigned ahead, size_t *armed)
{
    const uint64_t unit = unit_of(w->present, l) + ahead;
    unsigned slot = unit % SLOTS;
    const struct list *head = &w->level[l].slot[slot];

    if (!is_used(&w->level[l], slot))
        return true;
    if (ahead == 0 || list_empty(head))
        return false;
    for (const struct list *node = head->next; node != head;
         node = node->next, ++*armed) {
        uint64_t tick = tick_of(container_of(node, const struct deadline, link)->due_ms);

        if (node->next->prev != node || node->prev->next != node || tick <= w->present)
            return false;
        if (unit_of(tick, l) != unit && (l < LEVELS - 1 || unit_of(tick, l) < unit))
            return false;
    }
    return true;
}

bool
wheel_audit(const struct wheel *w)
{
    size_t armed = 0;
    uint64_t tick;

    for (const struct list *node = w->due.next; node != &w->due; node = node->next) {
        if (tick_of(container_of(node, const struct deadline, link)->due_ms) > w->present)
            return false;
        armed++;
    }
    for (unsigned l = 0; l < LEVELS; l++)
        for (unsigned ahead = 0; ahead < SLOTS; ahead++)
            if (!audit_slot(w, l, ahead, &armed))
                return false;
    (void)next_used(w, true, &tick);
    return armed == w->armed && w->next_hint <= tick;
}
