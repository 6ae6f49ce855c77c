/*
 * prefer: the header Prefer (RFC 7240), of which claimd knows `wait`.
 *
 *   Cost     O(length of the header)
 *   Memory   none
 */
#ifndef API_WIRE_PREFER_H
#define API_WIRE_PREFER_H

#include "claimd/base/bytes.h"

/*
 * How many seconds the client prefers to wait: 0 if it says nothing about that, or
 * something that is not a whole number. Of several `wait` the first counts, whatever it
 * says; more than any int64_t is INT64_MAX. header: absent: not sent.
 */
int64_t prefer_wait(struct bytes header);

#endif
