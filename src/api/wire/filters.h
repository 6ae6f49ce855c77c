/*
 * filters: what a listing of queues wants of their metadata (docs/api.md 7.6).
 *
 * Every filter must match: the document has a member of this name with this value, as text
 * or as integer.
 *
 *   Cost     making them O(n log n) for n parameters; a document: one pass, a search among
 *            the filters for each of its members, whatever their number
 *   Memory   the request's arena
 */
#ifndef API_WIRE_FILTERS_H
#define API_WIRE_FILTERS_H

#include "api/wire/query.h"
#include "claimd/store/store.h"

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

#endif
