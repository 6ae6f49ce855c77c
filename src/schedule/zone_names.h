/*
 * zone_names: the names of a directory of tzdata, to suggest one for a misspelled name.
 *
 *   Cost     one read of tzdata.zi, or a walk through at most ENTRIES_MOST entries
 *   Threads  any: no state
 */
#ifndef SCHEDULE_ZONE_NAMES_H
#define SCHEDULE_ZONE_NAMES_H

#include "claimd/schedule/zone.h"

/*
 * Writes the existing name that is most like this one; false: none is near. A name
 * without its region finds its zone: berlin finds Europe/Berlin. `directory` is a
 * descriptor, borrowed.
 */
bool zone_names_nearest(struct mem *mem, int directory, struct bytes name,
                        char near[ZONE_NAME_MOST + 1]);

#endif
