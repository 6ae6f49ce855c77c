/*
 * prefer: the header Prefer of a request (RFC 7240).
 *
 *   Threads  any
 */
#ifndef API_PREFER_H
#define API_PREFER_H

#include "claimd/base/bytes.h"

/*
 * The seconds of `wait` in the header Prefer (RFC 7240). 0 if there is none, or if it is
 * not a whole number. The first `wait` counts. INT64_MAX if the number is larger. header:
 * may be absent.
 */
int64_t prefer_wait(struct bytes header);

/* True if the header Prefer has the preference `details`. header: may be absent. */
bool prefer_details(struct bytes header);

#endif
