/*
 * query: the parameters of a request (docs/api.md 3.7), filters made of them, and
 * percent-encoding.
 *
 * query_parse() decodes names and values: `+` is a space, and a bad escape stays as it
 * is. It drops parameters with an empty value, so they count as absent.
 *
 *   Cost     parse O(length); each accessor O(parameters)
 *   Memory   the request's arena
 *   Bounds   QUERY_PAIRS_MAX parameters
 *   Threads  any: no state
 */
#ifndef API_WIRE_QUERY_H
#define API_WIRE_QUERY_H

#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"
#include "claimd/base/status.h"
#include "claimd/store/store.h"

/* More than any client needs, and few enough to search them. */
#define QUERY_PAIRS_MAX 256

struct query_pair {
    struct bytes name;  /* decoded */
    struct bytes value; /* decoded, never empty */
    bool used;          /* an accessor has returned it */
};

/* The names that accessors have asked for, each once: the parameters of the operation. */
struct query_names {
    const char *all[16]; /* further ones are left out */
    size_t count;
};

struct query {
    struct query_pair *pairs; /* in the order sent */
    size_t count;
    struct query_names *asked; /* NULL: not wanted */
};

/* Parses text (absent: no parameters). ST_BAD_PARAMETER: too many; ST_NO_MEMORY. */
enum status query_parse(struct bytes text, struct arena *arena, struct query *out);

/* The last value of this name. Absent if there is none. */
struct bytes query_get(const struct query *q, const char *name);

/*
 * Read a parameter into *out, which stays as it is if the parameter is absent.
 * ST_BAD_PARAMETER: not a decimal integer, or no spelling of a boolean; ST_BAD_VALUE: no
 * int64_t, or not within 1..max.
 */
enum status query_i64(const struct query *q, const char *name, int64_t *out);
enum status query_bool(const struct query *q, const char *name, bool *out);
enum status
query_limit(const struct query *q, const char *name, int64_t max, size_t *out);

/*
 * Reads all values of this name, without empty ones. cut: cuts them at commas.
 * ST_BAD_VALUE: more than max, with their number in *count; ST_NO_MEMORY.
 */
enum status query_list(const struct query *q, const char *name, bool cut, size_t max,
                       struct arena *arena, struct bytes **items, size_t *count);

/* Decodes percent-encoding. Returns `text` itself if it has none. Absent without
 * memory. */
struct bytes query_decode(struct bytes text, bool plus_is_space, struct arena *arena);

/* -------------------------------------------------------------- filters of a listing */

/*
 * Filters on the metadata of queues (docs/api.md 7.6). A document matches if it has a
 * member for each filter, with the same name and the same value, as text or as integer.
 *
 *   Cost     filters_make() O(n log n) for n parameters. filters_match(): one pass over
 *            the document, with a binary search for each member
 *   Memory   the request's arena
 */

struct filter {
    const struct query_pair *pair; /* of the query */
    bool counts;                   /* the last one of its name */
};

struct filters {
    struct filter *all; /* by name, for a binary search */
    size_t count;
    size_t wanted;   /* filters that count */
    size_t name_max; /* length of the longest name */
    char *name;      /* space for a decoded name */
};

/* True for the name of a parameter that filters. */
typedef bool filter_name_fn(struct bytes name);

/* Makes filters of the parameters for which is_filter() is true. ST_NO_MEMORY. */
enum status filters_make(const struct query *q, filter_name_fn *is_filter,
                         struct arena *arena, struct filters *out);

/* True if the document matches every filter that counts. */
bool filters_match(const struct filters *f, struct bytes json);

/* True if this parameter of the query is a filter that counts. O(log n). */
bool filters_have(const struct filters *f, const struct query_pair *pair);

/* ------------------------------------------------------------------ percent-encoding */

/*
 * Percent-encodes the bytes of a path or query that a URI, a header or JSON cannot
 * contain. Other bytes, also percent signs, stay. Without such bytes, *out is the text
 * itself, else a copy with a NUL. ST_NO_MEMORY.
 */
enum status uri_tidy(struct arena *arena, struct bytes text, struct bytes *out);

/* Percent-encodes all bytes that are not unreserved, with digits a to f, for a segment of
 * a path. Ends with a NUL. ST_NO_MEMORY. */
enum status uri_segment(struct arena *arena, struct bytes text, struct bytes *out);

/*
 * Longest prefix of a path: a Location of 891 bytes (claimd/api/api.h) still fits behind
 * it.
 */
enum { URI_PREFIX_MAX = 128 };

/*
 * The prefix that a proxy names in X-Forwarded-Prefix, without slashes at its end: "/mq"
 * for "/mq/". Empty unless it begins with a slash and has only segments of unreserved
 * characters, none of them "." or "..".
 */
struct bytes uri_prefix(struct bytes text);

/* ------------------------------------------------------------------ the next page */

/* A parameter of a listing. It has one of the three pointers. */
struct parameter {
    const char *name; /* NULL: the listing has fewer parameters */
    size_t *limit;    /* these stay as they are if the parameter is absent */
    bool *flag;
    struct bytes *text;
    int64_t most;       /* of the limit */
    const char *option; /* that sets `most` */
};

/* The parameters of a listing, which the link to the next page repeats. */
struct listing {
    struct parameter parameters[4];
    struct filters filters; /* zero: none */
};

/*
 * Writes the link to the next page of a listing. It has the parameters that the request
 * has, and the new marker. Without a marker (absent), an empty list of links.
 */
void next_page_write(struct buf *out, struct bytes path, const struct query *q,
                     const struct listing *listing, struct bytes marker);

/* Write a link piece by piece: ,"links":[{"rel":"next","href":"PATH?NAME=VALUE&..."}] */
struct next_page {
    struct buf *out; /* borrowed */
    char mark;       /* '?' before the first parameter, then '&' */
};

void next_page_begin(struct next_page *next, struct buf *out, struct bytes path);
void next_page_number(struct next_page *next, const char *name, uint64_t value);
void next_page_text(struct next_page *next, struct bytes name, struct bytes value);
void next_page_end(struct next_page *next);

#endif
