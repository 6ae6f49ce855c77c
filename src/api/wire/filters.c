#include "api/wire/filters.h"

#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <stdlib.h>

/* By length, then by bytes: any order that is quick to compare will do. */
static int
compare_names(struct bytes a, struct bytes b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return a.len == 0 ? 0 : memcmp(a.data, b.data, a.len);
}

/* Of one name the one sent first comes first. */
static int
compare_filters(const void *a, const void *b)
{
    const struct query_pair *x = ((const struct filter *)a)->pair;
    const struct query_pair *y = ((const struct filter *)b)->pair;
    int order = compare_names(x->name, y->name);

    if (order != 0)
        return order;
    return x < y ? -1 : x > y;
}

enum status
filters_make(const struct query *q, filter_name_fn *is_filter, struct arena *arena,
             struct filters *out)
{
    struct filters f = {.count = 0};

    f.all = arena_array(arena, q->count, sizeof(*f.all));
    if (f.all == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < q->count; i++) {
        const struct query_pair *pair = &q->pairs[i];

        if (!is_filter(pair->name))
            continue;
        f.all[f.count++] = (struct filter){pair, false};
        if (pair->name.len > f.name_max)
            f.name_max = pair->name.len;
    }
    f.name = arena_alloc(arena, f.name_max + 4);
    if (f.name == NULL)
        return ST_NO_MEMORY;
    if (f.count > 1)
        qsort(f.all, f.count, sizeof(*f.all), compare_filters);
    for (size_t i = 0; i < f.count; i++) {
        f.all[i].counts = i + 1 == f.count || compare_names(f.all[i].pair->name,
                                                            f.all[i + 1].pair->name) != 0;
        f.wanted += f.all[i].counts;
    }
    *out = f;
    return ST_OK;
}

/* The filter of this name that counts; NULL if there is none. */
static const struct filter *
find(const struct filters *f, struct bytes name)
{
    size_t low = 0, high = f->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_names(f->all[middle].pair->name, name);

        if (order == 0 && f->all[middle].counts)
            return &f->all[middle];
        if (order > 0)
            high = middle;
        else
            low = middle + 1; /* of the same name the last one counts */
    }
    return NULL;
}

/* The name of a member, its escapes undone; absent if it is longer than any filter's. */
static struct bytes
plain_name(const struct filters *f, const struct json_scan_name *name)
{
    struct bytes rest = name->text;
    size_t len = 0;

    if (!name->escaped)
        return rest;
    while (rest.len > 0) {
        len += utf8_write(json_string_next(&rest), f->name + len);
        if (len > f->name_max)
            return BYTES_NONE;
    }
    return bytes_of(f->name, len);
}

static bool
value_matches(const struct json_scan_value *value, struct bytes text)
{
    int64_t number;

    if (value->kind == SCAN_STRING)
        return json_string_equals(json_scan_inside(value), text);
    return value->kind == SCAN_INTEGER && bytes_to_i64(text, &number) &&
           json_scan_to_i64(value) == number;
}

bool
filters_match(const struct filters *f, struct bytes json)
{
    struct json_scan scan;
    struct json_scan_name found;
    struct json_scan_value value;
    size_t met = 0;

    json_scan_begin(&scan, json);
    if (f->wanted == 0 || !json_scan_enter(&scan, SCAN_OBJECT))
        return f->wanted == 0;
    /* Each name stands only once in a document as the store has it. */
    while (met < f->wanted && json_scan_member(&scan, &found) &&
           json_scan_value(&scan, &value)) {
        struct bytes name = plain_name(f, &found);
        const struct filter *wanted = bytes_present(name) ? find(f, name) : NULL;

        if (wanted == NULL)
            continue;
        if (!value_matches(&value, wanted->pair->value))
            return false;
        met++;
    }
    return met == f->wanted;
}

bool
filters_have(const struct filters *f, const struct query_pair *pair)
{
    const struct filter *found = find(f, pair->name);

    return found != NULL && found->pair == pair;
}
