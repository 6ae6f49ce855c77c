/*
 * The account of memory is exact, the budget admits requests up to its last byte, and a
 * chosen allocation fails, which many other tests use. Read claimd/base/mem.h next.
 */
#include "claimd/base/mem.h"

#include "support/check_main.h"

#include <string.h>

START_TEST(the_account_goes_up_and_comes_back_to_nothing)
{
    struct mem *mem = mem_new(0);
    char *a, *b;
    size_t with_a;

    a = mem_alloc(mem, 1000);
    with_a = mem_used(mem);
    ck_assert_uint_ge(with_a, 1000);
    b = mem_calloc(mem, 10, 50);
    ck_assert_uint_ge(mem_used(mem), with_a + 500);
    for (size_t i = 0; i < 500; i++)
        ck_assert_int_eq(b[i], 0);
    mem_free(mem, b);
    ck_assert_uint_eq(mem_used(mem), with_a);
    mem_free(mem, a);
    mem_free(mem, NULL);
    ck_assert_uint_eq(mem_used(mem), 0);
    mem_destroy(mem);
    mem_destroy(NULL);
}

START_TEST(a_block_that_changes_its_size_is_counted_as_it_is)
{
    struct mem *mem = mem_new(0);
    char *block = mem_realloc(mem, NULL, 10);
    char *moved;

    memcpy(block, "123456789", 10);
    moved = mem_realloc(mem, block, 100000);
    ck_assert_str_eq(moved, "123456789");
    ck_assert_uint_ge(mem_used(mem), 100000);
    moved = mem_realloc(mem, moved, 10);
    ck_assert_uint_lt(mem_used(mem), 100000);
    ck_assert_str_eq(moved, "123456789");
    mem_free(mem, moved);
    mem_destroy(mem);
}

START_TEST(a_failed_change_of_size_leaves_the_block)
{
    struct mem *mem = mem_new(0);
    char *block = mem_alloc(mem, 10);
    size_t used = mem_used(mem);

    memcpy(block, "123456789", 10);
    mem_fail_nth(mem, 1);
    ck_assert_ptr_null(mem_realloc(mem, block, 100000));
    ck_assert_str_eq(block, "123456789");
    ck_assert_uint_eq(mem_used(mem), used);
    mem_free(mem, block);
    mem_destroy(mem);
}

START_TEST(the_budget_admits_up_to_its_last_byte_and_keeps_a_quarter_for_responses)
{
    struct mem *mem = mem_new(1000000);
    void *block = mem_alloc(mem, 1000);
    size_t left = 1000000 - mem_used(mem);

    ck_assert(mem_admits(mem, left - 250000));
    ck_assert(!mem_admits(mem, left - 250000 + 1));
    ck_assert(mem_admits_for(mem, left, MEM_RESPONSES));
    ck_assert(!mem_admits_for(mem, left + 1, MEM_RESPONSES));
    ck_assert(mem_admits_for(mem, SIZE_MAX, MEM_FREE));
    ck_assert(!mem_admits(mem, SIZE_MAX));
    mem_set_budget(mem, 10); /* less than is in use already */
    ck_assert(!mem_admits(mem, 0));
    ck_assert_uint_eq(mem_budget(mem), 10);
    mem_set_budget(mem, 0);
    ck_assert(mem_admits(mem, SIZE_MAX)); /* no budget */
    mem_free(mem, block);
    mem_destroy(mem);
}

START_TEST(the_budget_refuses_nothing_by_itself)
{
    struct mem *mem = mem_new(1);
    void *block = mem_alloc(mem, 1000);

    ck_assert_ptr_nonnull(block);
    mem_free(mem, block);
    mem_destroy(mem);
}

/* Which of six allocations of the three kinds fail, as bits. */
static unsigned
failures(struct mem *mem)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < 6; i++) {
        void *block = i % 3 == 0   ? mem_alloc(mem, 8)
                      : i % 3 == 1 ? mem_calloc(mem, 1, 8)
                                   : mem_realloc(mem, NULL, 8);

        if (block == NULL)
            failed |= 1U << i;
        mem_free(mem, block);
    }
    return failed;
}

START_TEST(the_nth_allocation_fails_once)
{
    struct mem *mem = mem_new(0);

    for (unsigned nth = 1; nth <= 6; nth++) {
        mem_fail_nth(mem, nth);
        ck_assert_uint_eq(failures(mem), 1U << (nth - 1));
        ck_assert_uint_eq(failures(mem), 0);
    }
    mem_fail_nth(mem, 3);
    mem_fail_nth(mem, 0);
    ck_assert_uint_eq(failures(mem), 0);
    mem_destroy(mem);
}

START_TEST(from_the_nth_on_all_fail_until_switched_off)
{
    struct mem *mem = mem_new(0);

    mem_fail_from(mem, 4);
    ck_assert_uint_eq(failures(mem), 0x38);
    ck_assert_uint_eq(failures(mem), 0x3f);
    mem_fail_from(mem, 0);
    ck_assert_uint_eq(failures(mem), 0);
    mem_destroy(mem);
}

START_TEST(attempts_are_counted_whether_they_fail_or_not)
{
    struct mem *mem = mem_new(0);
    uint64_t before;

    ck_assert_ptr_nonnull(mem);
    before = mem_attempts(mem);
    (void)failures(mem); /* none is planned */
    mem_fail_from(mem, 1);
    (void)failures(mem); /* all fail */
    ck_assert_uint_eq(mem_attempts(mem) - before, 12);
    mem_destroy(mem);
}
