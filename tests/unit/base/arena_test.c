/*
 * An arena returns aligned memory, frees all of it at once, and keeps one block for the
 * next request. Read claimd/base/arena.h next.
 */
#include "claimd/base/arena.h"

#include "support/check_main.h"

#include <stdalign.h>

struct fixture {
    struct mem *mem;
    struct arena arena;
};

static void
fixture_open(struct fixture *f)
{
    f->mem = mem_new(0);
    arena_init(&f->arena, f->mem);
}

static void
fixture_close(struct fixture *f)
{
    arena_fini(&f->arena);
    mem_destroy(f->mem); /* asserts that all blocks were given back */
}

#define ARENA_TEST(id) FIXTURE_TEST(id, struct fixture, fixture_open(f), fixture_close(f))

ARENA_TEST(pieces_are_aligned_and_do_not_overlap)
{
    char *piece[200];

    for (size_t i = 0; i < 200; i++) {
        piece[i] = arena_alloc(&f->arena, i * 7);
        ck_assert_ptr_nonnull(piece[i]);
        ck_assert_uint_eq((uintptr_t)piece[i] % alignof(max_align_t), 0);
        memset(piece[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t at = 0; at < i * 7; at++)
            ck_assert_uint_eq((unsigned char)piece[i][at], i);
}

ARENA_TEST(a_piece_larger_than_a_block_gets_one_of_its_own)
{
    char *large;

    large = arena_alloc(&f->arena, 1000000);
    ck_assert_ptr_nonnull(large);
    memset(large, 'x', 1000000);
}

ARENA_TEST(a_reset_keeps_one_ordinary_block)
{
    size_t one_block;

    ck_assert_ptr_nonnull(arena_alloc(&f->arena, 1));
    one_block = mem_used(f->mem);
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_nonnull(arena_alloc(&f->arena, 500));
    ck_assert_ptr_nonnull(arena_alloc(&f->arena, 1000000));
    arena_reset(&f->arena);
    ck_assert_uint_eq(mem_used(f->mem), one_block);
    mem_fail_from(f->mem, 1);
    ck_assert_ptr_nonnull(arena_alloc(&f->arena, 500)); /* from the kept block */
}

ARENA_TEST(a_reset_after_large_pieces_only_keeps_nothing)
{
    arena_reset(&f->arena);
    ck_assert_ptr_nonnull(arena_alloc(&f->arena, 100000));
    arena_reset(&f->arena);
    ck_assert_uint_eq(mem_used(f->mem), 0);
}

ARENA_TEST(copies_and_prints_end_with_a_nul_that_does_not_count)
{
    struct bytes text;

    text = arena_copy(&f->arena, bytes_of("a\0b", 3));
    ck_assert(bytes_equal(text, bytes_of("a\0b", 3)));
    ck_assert_int_eq(text.data[3], '\0');
    text = arena_copy(&f->arena, BYTES_NONE);
    ck_assert_uint_eq(text.len, 0);
    ck_assert_int_eq(text.data[0], '\0');
    text = arena_printf(&f->arena, "%s/%d", "queues", 12);
    ck_assert(bytes_equal_str(text, "queues/12"));
    ck_assert_int_eq(text.data[9], '\0');
    text = arena_printf(&f->arena, "%9000d", 1); /* more than a block */
    ck_assert_uint_eq(text.len, 9000);
}

ARENA_TEST(without_memory_there_is_nothing_and_no_harm)
{
    mem_fail_from(f->mem, 1);
    ck_assert_ptr_null(arena_alloc(&f->arena, 1));
    ck_assert(!bytes_present(arena_copy(&f->arena, bytes_str("text"))));
    ck_assert(!bytes_present(arena_printf(&f->arena, "%d", 1)));
    mem_fail_from(f->mem, 0);
    ck_assert_ptr_nonnull(arena_alloc(&f->arena, 1));
}

ARENA_TEST(sizes_that_overflow_are_refused)
{
    ck_assert_ptr_null(arena_alloc(&f->arena, SIZE_MAX));
    ck_assert_ptr_null(arena_alloc(&f->arena, SIZE_MAX - 40));
    ck_assert_ptr_null(arena_array(&f->arena, SIZE_MAX / 8 + 2, 8)); /* 8 when it wraps */
    ck_assert(!bytes_present(arena_copy(&f->arena, bytes_of("x", SIZE_MAX))));
    ck_assert_ptr_nonnull(arena_array(&f->arena, 10, 8));
    ck_assert_ptr_nonnull(arena_array(&f->arena, 10, 0));
}
