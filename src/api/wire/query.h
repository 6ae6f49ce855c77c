/*
 * query: the parameters behind the question mark (docs/api.md 3.7).
 *
 * Parsed once into name and value, percent-decoded (`+` is a space, a bad escape stays as
 * it is). Parameters with an empty value are dropped, so they count as absent.
 *
 *   Cost     parse O(length); each accessor O(parameters)
 *   Memory   the request's arena
 *   Bounds   QUERY_PAIRS_MAX parameters
 */
#ifndef API_WIRE_QUERY_H
#define API_WIRE_QUERY_H

#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"
#include "claimd/base/status.h"
#include "claimd/store/store.h"

/* More than any client needs, few enough that looking through them stays cheap. */
#define QUERY_PAIRS_MAX 256

struct query_pair {
    struct bytes name;  /* decoded */
    struct bytes value; /* decoded, never empty */
};

struct query {
    const struct query_pair *pairs; /* in the order sent */
    size_t count;
};

/* Parses text (absent: no parameters). ST_BAD_PARAMETER: too many; ST_NO_MEMORY. */
enum status query_parse(struct bytes text, struct arena *arena, struct query *out);

/* The last value of this name; absent if there is none. */
struct bytes query_get(const struct query *q, const char *name);

/*
 * These read one parameter into *out and leave *out alone if it is absent.
 * ST_BAD_PARAMETER: not a decimal integer / not one of the spellings of a boolean;
 * ST_BAD_VALUE: an integer that no int64_t holds / not within 1..max.
 */
enum status query_i64(const struct query *q, const char *name, int64_t *out);
enum status query_bool(const struct query *q, const char *name, bool *out);
enum status
query_limit(const struct query *q, const char *name, int64_t max, size_t *out);

/*
 * Every value of this name, cut at its commas if `cut`; empty items are dropped. Absent or nothing
 * but commas: no items. ST_BAD_VALUE: more than max, as *count says; ST_NO_MEMORY.
 */
enum status query_list(const struct query *q, const char *name, bool cut, size_t max,
                       struct arena *arena, struct bytes **items, size_t *count);

/*
 * Undoes percent-encoding into a copy from the arena, NUL-terminated; absent without
 * memory. For paths plus_is_space is false.
 */
struct bytes query_decode(struct bytes text, bool plus_is_space, struct arena *arena);

/* ------------------------------------------------------------------ filters of a listing */

/*
 * What a listing of queues wants of their metadata (docs/api.md 7.6).
 *
 * Every filter must match: the document has a member of this name with this value, as text
 * or as integer.
 *
 *   Cost     making them O(n log n) for n parameters; a document: one pass, a search among
 *            the filters for each of its members, whatever their number
 *   Memory   the request's arena
 */

struct filter {
    const struct query_pair *pair; /* of the query */
    bool counts;                   /* of those of one name only the last does */
};

struct filters {
    struct filter *all; /* in order of their names, so that one can be searched for */
    size_t count;
    size_t wanted;   /* those that count */
    size_t name_max; /* longest name */
    char *name;      /* room for it */
};

/* True for the name of a parameter that filters. */
typedef bool filter_name_fn(struct bytes name);

/* Takes the parameters of q for which is_filter() holds. ST_NO_MEMORY. */
enum status filters_make(const struct query *q, filter_name_fn *is_filter,
                         struct arena *arena, struct filters *out);

/* True if the document meets every filter that counts. */
bool filters_match(const struct filters *f, struct bytes json);

/* True if this parameter of the query is a filter that counts. O(log n) */
bool filters_have(const struct filters *f, const struct query_pair *pair);

/* ------------------------------------------------------------------ percent-encoding */

/* What of a path and a query may be repeated in a response. */

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
