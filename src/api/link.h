/*
 * link: the link to the next page of a listing, as it goes into the document.
 *
 * It repeats the parameters that were given and adds the new marker:
 *
 *     link_begin(&link, out, path);
 *     if (limit was given)
 *         link_number(&link, "limit", limit);
 *     link_text(&link, "marker", last);
 *     link_end(&link);              -> ,"links":[{"rel":"next","href":"..."}]
 */
#ifndef API_LINK_H
#define API_LINK_H

#include "claimd/base/buf.h"

struct link {
    struct buf *out; /* borrowed */
    char mark;       /* '?' before the first parameter, then '&' */
};

void link_begin(struct link *link, struct buf *out, struct bytes path);
void link_number(struct link *link, const char *name, uint64_t value);
void link_bool(struct link *link, const char *name, bool value);
void link_text(struct link *link, struct bytes name, struct bytes value);
void link_end(struct link *link);

/* What an empty page has instead. */
void link_none(struct buf *out);

#endif
