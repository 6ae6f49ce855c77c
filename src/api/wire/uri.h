/*
 * uri: what of a request's path and query may be repeated in an answer.
 *
 *   Memory   an arena's; a text without anything to change is returned as it is
 *   Threads  none
 */
#ifndef API_WIRE_URI_H
#define API_WIRE_URI_H

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

/* ------------------------------------------------------------------ the next page */

/*
 * The link to the next page of a listing, as it goes into the document.
 *
 * It repeats the parameters that were given and adds the new marker:
 *
 *     next_page_begin(&next, out, path);
 *     if (limit was given)
 *         next_page_number(&next, "limit", limit);
 *     next_page_text(&next, "marker", last);
 *     next_page_end(&next); -> ,"links":[{"rel":"next","href":"..."}]
 */

struct next_page {
    struct buf *out; /* borrowed */
    char mark;       /* '?' before the first parameter, then '&' */
};

void next_page_begin(struct next_page *next, struct buf *out, struct bytes path);
void next_page_number(struct next_page *next, const char *name, uint64_t value);
void next_page_bool(struct next_page *next, const char *name, bool value);
void next_page_text(struct next_page *next, struct bytes name, struct bytes value);
void next_page_end(struct next_page *next);

/* What an empty page has instead. */
void next_page_none(struct buf *out);

#endif
