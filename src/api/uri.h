/*
 * uri: what of a request's path and query may be repeated in an answer.
 *
 *   Memory   an arena's; a text without anything to change is returned as it is
 *   Threads  none
 */
#ifndef API_URI_H
#define API_URI_H

#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/base/status.h"

/*
 * Makes a path or query as sent fit for a header and for JSON without further escapes:
 * bytes that a URI may not hold are percent-encoded, the others (percent signs among
 * them) stay. A copy ends with a NUL. ST_NO_MEMORY.
 */
enum status uri_tidy(struct arena *arena, struct bytes text, struct bytes *out);

/*
 * Makes any text one segment of a path: every byte that is not unreserved (RFC 3986) is
 * percent-encoded. NUL-terminated. ST_NO_MEMORY.
 */
enum status uri_segment(struct arena *arena, struct bytes text, struct bytes *out);

/* The same appended to a buffer, for parts of a href, with digits A to F. */
void uri_write(struct buf *out, struct bytes text);

#endif
