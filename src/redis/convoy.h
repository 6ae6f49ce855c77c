/*
 * convoy: requests for one node that are there at the same time travel together, in one pipeline
 * with one WAIT behind it (group commit; Hendler et al., Flat Combining, SPAA 2010).
 *
 *     if (convoy_join(c, &mine, lingers, &riders)) {
 *         ... ask for all of `riders` ...
 *         convoy_arrive(c, &mine, &riders);
 *     }
 *
 * Whoever comes when few are under way leads one, alone. Who comes later waits; when a convoy has
 * arrived, the first of those leads the next, with all that have come until it starts.
 *
 *   Order     those that wait travel in the order in which they came
 *   Threads   any
 *   Blocking  convoy_join() of who does not lead: until all is done, by somebody else
 */
#ifndef REDIS_CONVOY_H
#define REDIS_CONVOY_H

#include "claimd/base/lock.h"
#include "claimd/ds/list.h"

#include <semaphore.h>
#include <stddef.h>

enum {
    CONVOYS = 1,             /* under way to a node at a time */
    CONVOY_RIDERS = 64,      /* of one, at most */
    CONVOY_BYTES = 256 << 10 /* likewise, but for the last of them */
};

struct convoy {
    struct lock lock;
    struct list waiting;
    unsigned under_way;
};

/* One request. It is its owner's, and until convoy_join() has returned also the leader's. */
struct rider {
    struct list link;
    sem_t turn;
    size_t bytes;
    bool leads;
};

void convoy_init(struct convoy *c);
void convoy_fini(struct convoy *c);

/*
 * True: the caller leads, and *riders are those that travel, its own one first. False: somebody has
 * asked for it. lingers: before it starts it lets other threads run that can, which may come along:
 * for pipelines that cost others much (WAIT).
 */
bool convoy_join(struct convoy *c, struct rider *mine, bool lingers, struct list *riders);

/* All but the leader's own may go; the next convoy starts. */
void convoy_arrive(struct convoy *c, const struct rider *mine, struct list *riders);

#endif
