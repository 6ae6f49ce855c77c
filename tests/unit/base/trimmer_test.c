/*
 * When an idle server returns freed memory to the system: after a time without requests,
 * and only if enough of it was freed. Read claimd/base/trimmer.h next.
 */
#include "claimd/base/trimmer.h"
#include "support/check_main.h"

enum { MUCH = 3 * 1024 * 1024, LITTLE = 512 * 1024, NOW = 1000000 };

static struct mem *mem;
static struct trimmer trimmer;

static void
fixture_open(void)
{
    mem = mem_new(0);
    ck_assert_ptr_nonnull(mem);
    trimmer_init(&trimmer, mem);
}

static void
fixture_close(void)
{
    mem_destroy(mem);
}

/* Uses this much memory for a moment in which the trimmer looks. */
static void
use(size_t size)
{
    void *block = mem_alloc(mem, size);

    ck_assert_ptr_nonnull(block);
    ck_assert_int_eq(trimmer_step(&trimmer, NOW), -1);
    mem_free(mem, block);
}

TEST_CASE("trimmer", .setup = fixture_open, .teardown = fixture_close);

START_TEST(it_trims_after_a_time_without_requests)
{
    use(MUCH);
    trimmer_busy(&trimmer, NOW);
    ck_assert_int_eq(trimmer_step(&trimmer, NOW), 50);
    ck_assert_int_eq(trimmer_step(&trimmer, NOW + 20), 30);
    trimmer_busy(&trimmer, NOW + 40);
    ck_assert_int_eq(trimmer_step(&trimmer, NOW + 50), 40);
    ck_assert_uint_ge(atomic_load(&trimmer.high), MUCH);
    ck_assert_int_eq(trimmer_step(&trimmer, NOW + 90), -1); /* now it trims */
    ck_assert_uint_eq(atomic_load(&trimmer.high), 0);
}

START_TEST(it_does_not_bother_about_little)
{
    use(LITTLE);
    ck_assert_int_eq(trimmer_step(&trimmer, NOW), -1);
    ck_assert_uint_ge(atomic_load(&trimmer.high), LITTLE);
}

START_TEST(it_does_not_bother_about_a_small_part_of_much)
{
    void *most = mem_alloc(mem, 4 * MUCH);

    ck_assert_ptr_nonnull(most);
    use(MUCH);
    ck_assert_int_eq(trimmer_step(&trimmer, NOW), -1);
    ck_assert_uint_ge(atomic_load(&trimmer.high), 5 * MUCH);
    mem_free(mem, most);
}

START_TEST(after_a_trim_it_begins_anew)
{
    use(MUCH);
    ck_assert_int_eq(trimmer_step(&trimmer, NOW), -1);
    use(LITTLE);
    ck_assert_int_eq(trimmer_step(&trimmer, NOW), -1);
    ck_assert_uint_ge(atomic_load(&trimmer.high), LITTLE);
    ck_assert_uint_lt(atomic_load(&trimmer.high), MUCH);
}
