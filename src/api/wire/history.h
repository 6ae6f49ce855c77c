/*
 * wire/history: entries of the history, as documents show them (docs/api.md 23.5).
 */
#ifndef API_WIRE_HISTORY_H
#define API_WIRE_HISTORY_H

#include "claimd/base/buf.h"
#include "claimd/testapi/history.h"

/* Appends an entry as an object. */
void history_write(struct buf *out, const struct history_entry *e);

/*
 * Reads a comma-separated list of names of events into a set of bits. False: something in it is
 * none.
 */
bool history_read_events(struct bytes text, uint32_t *out);

#endif
