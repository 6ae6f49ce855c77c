/*
 * roster: the names of the queues that the records of a journal are about, by their tags.
 *
 *   Cost     O(1) a record
 *   Threads  none
 */
#ifndef JOURNAL_ROSTER_H
#define JOURNAL_ROSTER_H

#include "claimd/ds/hashmap.h"
#include "journal/record.h"

struct roster {
    struct mem *mem; /* owned */
    struct hashmap by_tag, by_name;
};

enum status roster_init(struct roster *roster);
void roster_fini(struct roster *roster);

/* Learns what a record says of names. ST_NO_MEMORY. */
enum status roster_note(struct roster *roster, const struct record *record);

/* What the queue with this tag is called, also when it has gone; NULL: it is not known. */
const struct store_queue *roster_name(const struct roster *roster, uint32_t tag);

/*
 * By what was noted: may a store be told what happens in the queue with this tag? Not if it has
 * no name, nor if another one took its name though nothing says that it was gone.
 */
bool roster_can_place(const struct roster *roster, uint32_t tag);

/* True if another one has taken its name. */
bool roster_replaced(const struct roster *roster, uint32_t tag);

#endif
