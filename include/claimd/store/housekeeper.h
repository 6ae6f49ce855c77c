/*
 * housekeeper: lets one worker at a time do a store's housekeeping.
 *
 * A worker is a thread that uses the store. Each asks before it sleeps and now and then
 * while busy. Whoever is first does a slice and, going to sleep, looks at the store's next
 * deadline again; the others come back a little later, for what it may leave.
 *
 *   Cost     asking: a comparison within ASK_MS of the last question, then
 *            store_next_ms()
 *   Threads  the shared part any; a struct housekeeping belongs to one worker
 */
#ifndef CLAIMD_STORE_HOUSEKEEPER_H
#define CLAIMD_STORE_HOUSEKEEPER_H

#include "claimd/base/clock.h"
#include "claimd/base/trimmer.h"
#include "claimd/store/store.h"

#include <stdatomic.h>

struct housekeeper {
    struct store *store;       /* borrowed */
    const struct clock *clock; /* borrowed; the store's time */
    struct trimmer trimmer;    /* for when the store has freed much */
    _Atomic bool busy;         /* somebody is at it */
};

/* One worker's view. */
struct housekeeping {
    struct housekeeper *shared;
    int64_t asked_ms; /* real time of the last question; INT64_MIN: ask again */
};

/*
 * Does a slice if one is due; if not, trims when there is reason to. Returns for how many
 * milliseconds the worker may sleep as far as all this is concerned: 0 when work is left,
 * -1 for as long as it likes. With a manual clock nobody waits for deadlines: whoever
 * moves it wakes the workers.
 */
int64_t housekeeping_step(struct housekeeping *h, int64_t real_ms);

/* The next step asks the store, however short ago it was asked. */
void housekeeping_hurry(struct housekeeping *h);

#endif
