/*
 * next_page: the link to the next page of a listing, as it goes into the document.
 *
 * It repeats the parameters that were given and adds the new marker:
 *
 *     next_page_begin(&next, out, path);
 *     if (limit was given)
 *         next_page_number(&next, "limit", limit);
 *     next_page_text(&next, "marker", last);
 *     next_page_end(&next); -> ,"links":[{"rel":"next","href":"..."}]
 */
#ifndef API_WIRE_NEXT_PAGE_H
#define API_WIRE_NEXT_PAGE_H

#include "claimd/base/buf.h"

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
