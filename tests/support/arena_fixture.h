/*
 * arena_fixture: an account, an arena and a buffer for tests of things that need them.
 */
#ifndef TESTS_SUPPORT_ARENA_FIXTURE_H
#define TESTS_SUPPORT_ARENA_FIXTURE_H

#include "claimd/base/arena.h"
#include "claimd/base/buf.h"

#include <check.h>

struct arena_fixture {
    struct mem *mem;
    struct arena arena;
    struct buf out;
};

static inline void
arena_fixture_open(struct arena_fixture *f)
{
    f->mem = mem_new(0);
    ck_assert_ptr_nonnull(f->mem);
    arena_init(&f->arena, f->mem);
    buf_init(&f->out, f->mem);
}

/* mem_destroy() asserts that nothing is left. */
static inline void
arena_fixture_close(struct arena_fixture *f)
{
    buf_fini(&f->out);
    arena_fini(&f->arena);
    mem_destroy(f->mem);
}

/* What was written since the last call is exactly this. */
static inline void
arena_fixture_expect(struct arena_fixture *f, const char *text)
{
    struct bytes written = buf_view(&f->out);

    ck_assert(!f->out.failed);
    ck_assert_msg(bytes_equal_str(written, text), "expected %s, got %.*s", text,
                  (int)written.len, written.data);
    buf_reset(&f->out, SIZE_MAX);
}

#endif
