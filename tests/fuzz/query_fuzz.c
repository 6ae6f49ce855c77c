/*
 * Query strings: parameters are those a naive reader finds, and what the accessors say
 * fits together.
 *
 * Input: a query string.
 */
#include "fuzz/fuzz.h"

#include "api/wire/query.h"

#include <stdlib.h>

/* Percent-decoding a byte at a time. Returns the length; out has text.len bytes. */
static size_t
decode_naively(struct bytes text, bool plus_is_space, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '%' && i + 2 < text.len && hex_value(text.data[i + 1]) >= 0 &&
            hex_value(text.data[i + 2]) >= 0) {
            c = (char)(hex_value(text.data[i + 1]) * 16 + hex_value(text.data[i + 2]));
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        out[len++] = c;
    }
    return len;
}

static void
expect_decoded(struct bytes text, bool plus_is_space, struct bytes decoded)
{
    char *naive = malloc(text.len == 0 ? 1 : text.len);

    fuzz_check(naive != NULL, "out of memory");
    fuzz_check(
        bytes_equal(decoded, bytes_of(naive, decode_naively(text, plus_is_space, naive))),
        "decoded to '%.*s'", (int)decoded.len, decoded.data);
    free(naive);
}

/* Every parameter with a value, in the order sent. */
static void
check_pairs(const struct query *q, struct bytes text)
{
    size_t found = 0;

    while (bytes_present(text)) {
        struct bytes value = bytes_cut(&text, '&'), name = bytes_cut(&value, '=');

        if (value.len == 0)
            continue;
        fuzz_check(found < q->count, "a parameter is missing");
        expect_decoded(name, true, q->pairs[found].name);
        expect_decoded(value, true, q->pairs[found].value);
        found++;
    }
    fuzz_check(found == q->count, "%zu parameters instead of %zu", q->count, found);
}

static void
check_numbers(const struct query *q, const char *name)
{
    int64_t number = -77;
    size_t limit = 77;
    bool flag = true;
    enum status st = query_i64(q, name, &number);

    fuzz_check(st == ST_OK || number == -77, "a refused number was stored");
    st = query_limit(q, name, 20, &limit);
    fuzz_check(limit == 77 || (st == ST_OK && limit >= 1 && limit <= 20), "limit %zu",
               limit);
    fuzz_check(!bytes_present(query_get(q, name)) ? st == ST_OK && limit == 77
                                                  : st != ST_OK || limit != 77,
               "a limit out of nothing");
    st = query_bool(q, name, &flag);
    fuzz_check(st == ST_OK || flag, "a refused flag was stored");
}

static void
check_list(const struct query *q, const char *name, struct arena *arena)
{
    enum { MAX = 20 };
    struct bytes *items = NULL;
    size_t count = 0;

    if (query_list(q, name, true, MAX, arena, &items, &count) != ST_OK)
        return;
    fuzz_check(count <= MAX, "%zu items", count);
    for (size_t i = 0; i < count; i++)
        fuzz_check(items[i].len > 0 && memchr(items[i].data, ',', items[i].len) == NULL,
                   "an item is empty or two");
}

static bool
any_name(struct bytes name)
{
    (void)name;
    return true;
}

/* Of the parameters of one name the last is the filter that counts. */
static void
check_filters(const struct query *q, struct arena *arena)
{
    struct filters filters;
    size_t wanted = 0;

    fuzz_check(filters_make(q, any_name, arena, &filters) == ST_OK, "no memory");
    for (size_t i = 0; i < q->count; i++) {
        bool later = false;

        for (size_t j = i + 1; j < q->count; j++)
            later = later || bytes_equal(q->pairs[i].name, q->pairs[j].name);
        wanted += !later;
        fuzz_check(filters_have(&filters, &q->pairs[i]) == !later, "parameter %zu of %zu",
                   i, q->count);
    }
    fuzz_check(wanted == filters.wanted, "%zu filters count, not %zu", filters.wanted,
               wanted);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"limit", "echo", "ids", "include_claimed",
                                        "marker"};
    struct bytes text = fuzz_input(data, size);
    struct fuzz_memory m;
    struct query q;

    fuzz_memory_open(&m);
    expect_decoded(text, false, query_decode(text, false, &m.arena));
    if (query_parse(text, &m.arena, &q) == ST_OK) {
        check_pairs(&q, text);
        check_filters(&q, &m.arena);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            check_numbers(&q, names[i]);
            check_list(&q, names[i], &m.arena);
        }
    }
    fuzz_memory_close(&m);
    return 0;
}
