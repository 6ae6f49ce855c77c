#include "api/wire/query.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <stdlib.h>

struct bytes
query_decode(struct bytes text, bool plus_is_space, struct arena *arena)
{
    char *copy;

    if (text.len == 0)
        return bytes_str("");
    if (memchr(text.data, '%', text.len) == NULL &&
        (!plus_is_space || memchr(text.data, '+', text.len) == NULL))
        return text;
    copy = arena_alloc(arena, text.len);
    return copy == NULL ? BYTES_NONE
                        : bytes_of(copy, uri_decode(copy, text, plus_is_space));
}

enum status
query_parse(struct bytes text, struct arena *arena, struct query *out)
{
    size_t most = text.len > 0, count = 0;
    struct query_pair *pairs = NULL;
    struct query_names *asked = NULL;

    for (size_t i = 0; i < text.len; i++)
        most += text.data[i] == '&';
    if (most > QUERY_PAIRS_MAX)
        return ST_BAD_PARAMETER;
    if (most > 0) {
        pairs = arena_array(arena, most, sizeof(*pairs));
        asked = arena_alloc(arena, sizeof(*asked));
        if (pairs == NULL || asked == NULL)
            return ST_NO_MEMORY;
        asked->count = 0;
    }
    while (text.len > 0) {
        struct bytes value = bytes_cut(&text, '&');
        struct bytes name = bytes_cut(&value, '=');
        struct query_pair *pair = &pairs[count];

        pair->name = query_decode(name, true, arena);
        pair->value = query_decode(value, true, arena);
        pair->used = false;
        if (!bytes_present(pair->name) || !bytes_present(pair->value))
            return ST_NO_MEMORY;
        count += pair->value.len > 0;
    }
    out->pairs = pairs;
    out->count = count;
    out->asked = asked;
    return ST_OK;
}

static void
query_note(const struct query *q, const char *name)
{
    struct query_names *asked = q->asked;
    size_t i = 0;

    if (asked == NULL)
        return;
    while (i < asked->count && strcmp(asked->all[i], name) != 0)
        i++;
    if (i == asked->count && i < sizeof(asked->all) / sizeof(asked->all[0]))
        asked->all[asked->count++] = name;
}

struct bytes
query_get(const struct query *q, const char *name)
{
    struct bytes value = BYTES_NONE;

    query_note(q, name);
    for (size_t i = q->count; i > 0; i--) {
        if (!bytes_equal_str(q->pairs[i - 1].name, name))
            continue;
        q->pairs[i - 1].used = true;
        if (!bytes_present(value))
            value = q->pairs[i - 1].value;
    }
    return value;
}

/* True for digits, also with a sign. */
static bool
is_decimal(struct bytes text)
{
    size_t at = text.len > 0 && (text.data[0] == '-' || text.data[0] == '+');

    if (at == text.len)
        return false;
    for (; at < text.len; at++)
        if (text.data[at] < '0' || text.data[at] > '9')
            return false;
    return true;
}

enum status
query_i64(const struct query *q, const char *name, int64_t *out)
{
    struct bytes text = query_get(q, name);

    if (!bytes_present(text) || bytes_to_i64(text, out))
        return ST_OK;
    return is_decimal(text) ? ST_BAD_VALUE : ST_BAD_PARAMETER;
}

static bool
is_one_of(struct bytes text, const char *const *spellings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_equal_str(text, spellings[i]))
            return true;
    return false;
}

enum status
query_bool(const struct query *q, const char *name, bool *out)
{
    static const char *const yes[] = {"true", "True", "t", "yes", "y", "1", "on"};
    static const char *const no[] = {"false", "False", "f", "no", "n", "0", "off"};
    struct bytes text = query_get(q, name);

    if (!bytes_present(text))
        return ST_OK;
    if (is_one_of(text, yes, sizeof(yes) / sizeof(yes[0])))
        *out = true;
    else if (is_one_of(text, no, sizeof(no) / sizeof(no[0])))
        *out = false;
    else
        return ST_BAD_PARAMETER;
    return ST_OK;
}

enum status
query_limit(const struct query *q, const char *name, int64_t max, size_t *out)
{
    int64_t value = 0;
    enum status st;

    if (!bytes_present(query_get(q, name)))
        return ST_OK;
    st = query_i64(q, name, &value);
    if (st != ST_OK)
        return st;
    if (value < 1 || value > max)
        return ST_BAD_VALUE;
    *out = (size_t)value;
    return ST_OK;
}

enum status
query_list(const struct query *q, const char *name, bool cut, size_t max,
           struct arena *arena, struct bytes **items, size_t *count)
{
    struct bytes *found = arena_array(arena, max, sizeof(*found));
    size_t n = 0;

    if (found == NULL)
        return ST_NO_MEMORY;
    query_note(q, name);
    for (size_t i = 0; i < q->count; i++) {
        struct bytes rest = q->pairs[i].value;

        if (!bytes_equal_str(q->pairs[i].name, name))
            continue;
        q->pairs[i].used = true;
        while (rest.len > 0) {
            const struct bytes item = cut ? bytes_cut(&rest, ',') : rest;

            if (!cut)
                rest.len = 0;
            if (item.len > 0 && n++ < max)
                found[n - 1] = item;
        }
    }
    *items = found;
    *count = n;
    return n > max ? ST_BAD_VALUE : ST_OK;
}

/* -------------------------------------------------------------- filters of a listing */

/* By length, then by bytes, because that is fast to compare. */
static int
compare_names(struct bytes a, struct bytes b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return a.len == 0 ? 0 : memcmp(a.data, b.data, a.len);
}

/* By name, then in the order sent. */
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
        struct query_pair *pair = &q->pairs[i];

        if (!is_filter(pair->name))
            continue;
        pair->used = true;
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

/* The filter of this name that counts. NULL if there is none. */
static const struct filter *
find_filter(const struct filters *f, struct bytes name)
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

/* The decoded name of a member. Absent if it is longer than the name of any filter. */
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
    /* In a stored document, each name appears only once. */
    while (met < f->wanted && json_scan_member(&scan, &found) &&
           json_scan_value(&scan, &value)) {
        struct bytes name = plain_name(f, &found);
        const struct filter *wanted = bytes_present(name) ? find_filter(f, name) : NULL;

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
    const struct filter *found = find_filter(f, pair->name);

    return found != NULL && found->pair == pair;
}

/* ------------------------------------------------------------------ percent-encoding */

static bool
is_tidy(char c)
{
    return c > ' ' && c < 0x7f && strchr("\"<>\\^`{|}", c) == NULL;
}

typedef bool keep_fn(char c);

static size_t
count_others(struct bytes text, keep_fn *keeps)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += !keeps(text.data[i]);
    return count;
}

/* Makes a copy with a NUL, in which the bytes that keeps() rejects are
 * percent-encoded. */
static enum status
encode(struct arena *arena, struct bytes text, keep_fn *keeps, size_t others,
       struct bytes *out)
{
    char *copy = arena_alloc(arena, text.len + 2 * others + 1), *to = copy;

    if (copy == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < text.len; i++) {
        if (keeps(text.data[i])) {
            *to++ = text.data[i];
            continue;
        }
        *to++ = '%';
        hex_write(to, (uint8_t)text.data[i], 2);
        to += 2;
    }
    *to = '\0';
    *out = bytes_of(copy, (size_t)(to - copy));
    return ST_OK;
}

enum status
uri_tidy(struct arena *arena, struct bytes text, struct bytes *out)
{
    size_t untidy = count_others(text, is_tidy);

    if (untidy > 0)
        return encode(arena, text, is_tidy, untidy, out);
    *out = text;
    return ST_OK;
}

enum status
uri_segment(struct arena *arena, struct bytes text, struct bytes *out)
{
    return encode(arena, text, is_unreserved, count_others(text, is_unreserved), out);
}

struct bytes
uri_prefix(struct bytes text)
{
    struct bytes rest;

    while (text.len > 0 && text.data[text.len - 1] == '/')
        text.len--;
    if (text.len == 0 || text.len > URI_PREFIX_MAX || text.data[0] != '/')
        return BYTES_NONE;
    rest = bytes_of(text.data + 1, text.len - 1);
    while (bytes_present(rest)) {
        const struct bytes segment = bytes_cut(&rest, '/');

        if (segment.len == 0 || count_others(segment, is_unreserved) > 0 ||
            bytes_equal_str(segment, ".") || bytes_equal_str(segment, ".."))
            return BYTES_NONE;
    }
    return text;
}

/* ------------------------------------------------------------------ the next page */

void
next_page_begin(struct next_page *next, struct buf *out, struct bytes path)
{
    *next = (struct next_page){out, '?'};
    buf_str(out, ",\"links\":[{\"rel\":\"next\",\"href\":\"");
    buf_bytes(out, path);
}

static void
next_page_parameter(struct next_page *next, struct bytes name)
{
    buf_byte(next->out, next->mark);
    buf_uri(next->out, name);
    buf_byte(next->out, '=');
    next->mark = '&';
}

void
next_page_number(struct next_page *next, const char *name, uint64_t value)
{
    next_page_parameter(next, bytes_str(name));
    buf_u64(next->out, value);
}

void
next_page_text(struct next_page *next, struct bytes name, struct bytes value)
{
    next_page_parameter(next, name);
    buf_uri(next->out, value);
}

void
next_page_end(struct next_page *next)
{
    buf_str(next->out, "\"}]");
}

void
next_page_write(struct buf *out, struct bytes path, const struct query *q,
                const struct listing *listing, struct bytes marker)
{
    const struct parameter *all = listing->parameters;
    struct next_page next;

    if (!bytes_present(marker)) {
        buf_str(out, ",\"links\":[]");
        return;
    }
    next_page_begin(&next, out, path);
    for (size_t i = 0; i < sizeof(listing->parameters) / sizeof(*all); i++) {
        const struct bytes name = bytes_str(all[i].name);

        if (!bytes_present(name) || !bytes_present(query_get(q, name.data)))
            continue;
        if (all[i].limit != NULL)
            next_page_number(&next, name.data, *all[i].limit);
        else if (all[i].flag != NULL)
            next_page_text(&next, name, bytes_str(*all[i].flag ? "true" : "false"));
        else
            next_page_text(&next, name, *all[i].text);
    }
    for (size_t i = 0; i < q->count; i++)
        if (filters_have(&listing->filters, &q->pairs[i]))
            next_page_text(&next, q->pairs[i].name, q->pairs[i].value);
    next_page_text(&next, bytes_str("marker"), marker);
    next_page_end(&next);
}
