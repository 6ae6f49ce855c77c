/*
 * housekeeper: lets one worker at a time do a store's housekeeping.
 *
 * A worker is a thread that uses the store. It asks before it sleeps, and now and then
 * while it is busy. The first one runs a slice and, before it sleeps, reads the store's
 * next deadline again. The others ask again a little later, for work that the first may
 * leave.
 *
 *   Cost     asking: a comparison within ASK_MS of the last time, then store_next_ms()
 *   Threads  the shared part: any; a struct housekeeping belongs to one worker
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
    struct trimmer trimmer;    /* for memory that the store has freed */
    _Atomic bool busy;         /* a worker runs a slice */
};

/* One worker's view. */
struct housekeeping {
    struct housekeeper *shared;
    int64_t asked_ms; /* real time of the last call; INT64_MIN: call again */
};

/*
 * Runs a slice if one is due, else trims if useful. Returns the milliseconds that the
 * worker may sleep as far as this is concerned: 0 if work is left, -1 for any time. With
 * a manual clock no worker waits for deadlines, because a change of the clock wakes the
 * workers.
 */
int64_t housekeeping_step(struct housekeeping *h, int64_t real_ms);

/* Makes the next step read the store's next deadline in any case. */
void housekeeping_hurry(struct housekeeping *h);

#endif
