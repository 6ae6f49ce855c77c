/*
 * wishes: what a subscription's options want of a delivery (docs/api.md 20.2, 20.5).
 *
 *     {"post_headers": {"X-Token": "a"}, "post_data": "...", "from": "...", "subject": "..."}
 *
 * Members of other types count as left out.
 *
 *   Cost     O(length), without memory
 */
#ifndef NOTIFY_WISHES_H
#define NOTIFY_WISHES_H

#include "claimd/base/buf.h"
#include "claimd/json/scan.h"

/* Texts are insides of JSON strings, absent if they are left out; they borrow the options. */
struct wishes {
    struct bytes post_headers; /* an object, verbatim */
    struct bytes post_data, from, subject;
};

void wishes_read(struct bytes options, struct wishes *out);

/* Appends a text of the wishes, its escapes undone. */
void wish_write(struct buf *out, struct bytes inside);

enum { HEADERS_MOST = 64, HEADER_LINE_MOST = 8192 };

/*
 * Calls `take` with each header of the object that may be sent, as the line that libcurl wants
 * (NUL-terminated, in `line`), until it says false, which is then returned; also without memory.
 * Left out is what is no header, and what would change what the request means or who it
 * says it is from.
 */
bool wished_headers(struct bytes post_headers, struct buf *line,
                    bool (*take)(void *ctx, const char *line), void *ctx);

#endif
