/*
 * arena_fixture: an account, an arena and a buffer for tests of things that need them.
 *
 * A test program includes this once, takes its case from arena_test_case(), and finds
 * them fresh in `f` in each test; mem_destroy() asserts that a test left nothing behind.
 */
#ifndef TESTS_SUPPORT_ARENA_FIXTURE_H
#define TESTS_SUPPORT_ARENA_FIXTURE_H

#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "support/check_main.h"

struct arena_fixture {
    struct mem *mem;
    struct arena arena;
    struct buf out;
};

static struct arena_fixture f;

static inline void
arena_fixture_open(void)
{
    f.mem = mem_new(0);
    ck_assert_ptr_nonnull(f.mem);
    arena_init(&f.arena, f.mem);
    buf_init(&f.out, f.mem);
}

static inline void
arena_fixture_close(void)
{
    buf_fini(&f.out);
    arena_fini(&f.arena);
    mem_destroy(f.mem);
}

/* Begins a case whose tests have them. */
#define ARENA_CASE(name)                                                                 \
    TEST_CASE(name, .setup = arena_fixture_open, .teardown = arena_fixture_close)

static inline TCase *
arena_test_case(Suite *suite, const char *name)
{
    TCase *tc = test_case(suite, name);

    tcase_add_checked_fixture(tc, arena_fixture_open, arena_fixture_close);
    return tc;
}

/* What was written since the last call is exactly this. */
static inline void
expect_written(const char *text)
{
    struct bytes written = buf_view(&f.out);

    ck_assert(!f.out.failed);
    ck_assert_msg(bytes_equal_str(written, text), "expected %s, got %.*s", text,
                  (int)written.len, written.data);
    buf_reset(&f.out, SIZE_MAX);
}

#endif
