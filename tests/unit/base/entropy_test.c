/*
 * Random bytes of ids: a seed repeats them in the simulation, the system never does, and
 * a source that fails is reported. Read claimd/base/entropy.h next.
 */
#include "claimd/base/entropy.h"

#include "claimd/base/bytes.h"
#include "support/check_main.h"

#include <string.h>

/* A source that counts its bytes up, or fails. */
struct source {
    uint8_t next;
    unsigned draws;
    bool broken;
};

static enum status
fill_counting(void *ctx, void *out, size_t len)
{
    struct source *source = ctx;

    source->draws++;
    if (source->broken)
        return ST_UNAVAILABLE;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = source->next++;
    return ST_OK;
}

static void
take(struct entropy *e, uint8_t *out, size_t len)
{
    ck_assert_int_eq(entropy_reserve(e, len), ST_OK);
    entropy_take(e, out, len);
}

START_TEST(the_same_seed_gives_the_same_bytes)
{
    struct entropy a, b, c;
    uint8_t from_a[48], from_b[48], from_c[48];
    bool differs = false;

    entropy_init_seeded(&a, 7);
    entropy_init_seeded(&b, 7);
    entropy_init_seeded(&c, 8);
    for (int i = 0; i < 100; i++) { /* several pools */
        take(&a, from_a, sizeof(from_a));
        take(&b, from_b, sizeof(from_b));
        take(&c, from_c, sizeof(from_c));
        ck_assert_mem_eq(from_a, from_b, sizeof(from_a));
        differs = differs || memcmp(from_a, from_c, sizeof(from_a)) != 0;
    }
    ck_assert(differs);
}

START_TEST(no_byte_is_handed_out_twice)
{
    struct source source = {0};
    struct entropy e = {.fill = fill_counting, .ctx = &source};
    uint8_t first[16], second[16], nothing[512] = {0};

    take(&e, first, 16);
    take(&e, second, 16);
    ck_assert_uint_eq(first[0], 0);
    ck_assert_uint_eq(second[0], 16);
    ck_assert_uint_eq(source.draws, 1);
    while (e.left > 0)
        take(&e, first, 16);
    ck_assert_mem_eq(e.pool, nothing, sizeof(e.pool)); /* nor left behind in memory */
    take(&e, first, 16);
    ck_assert_uint_eq(source.draws, 2);
}

START_TEST(a_broken_source_is_reported_before_anything_is_taken)
{
    struct source source = {.broken = true};
    struct entropy e = {.fill = fill_counting, .ctx = &source};
    uint8_t out[64];

    ck_assert_int_eq(entropy_reserve(&e, 1), ST_UNAVAILABLE);
    ck_assert_uint_eq(e.left, 0);
    source.broken = false;
    take(&e, out, sizeof(out));
    source.broken = true;
    take(&e, out, sizeof(out)); /* the rest of the pool is still good */
}

START_TEST(the_system_source_does_not_repeat_itself)
{
    struct entropy a, b;
    uint8_t from_a[64], from_b[64], again[64];

    entropy_init_system(&a);
    entropy_init_system(&b);
    take(&a, from_a, sizeof(from_a));
    take(&b, from_b, sizeof(from_b));
    take(&a, again, sizeof(again));
    ck_assert_mem_ne(from_a, from_b, sizeof(from_a));
    ck_assert_mem_ne(from_a, again, sizeof(from_a));
}

START_TEST(a_uuid_has_its_canonical_form)
{
    char a[37], b[37];

    uid_text(a);
    uid_text(b);
    ck_assert_uint_eq(strlen(a), 36);
    for (size_t i = 0; i < 36; i++) {
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;

        ck_assert(hyphen ? a[i] == '-' : hex_value(a[i]) >= 0);
        ck_assert(a[i] < 'A' || a[i] > 'F');
    }
    ck_assert_int_eq(a[14], '4'); /* random */
    ck_assert_str_ne(a, b);
}
