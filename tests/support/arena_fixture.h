/*
 * arena_fixture: an account, an arena and a buffer for tests of things that need them.
 *
 * A test program includes this once, begins its cases with ARENA_CASE, and finds them
 * fresh in `f` in each test; mem_destroy() asserts that a test left nothing behind.
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

/* The text written since the last call is exactly this. */
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
