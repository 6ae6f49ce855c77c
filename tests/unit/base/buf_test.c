/*
 * A growing buffer: once an allocation has failed, it reports the failure at the end and
 * keeps the content that it had. Read claimd/base/buf.h next.
 */
#include "claimd/base/buf.h"

#include "support/check_main.h"

struct fixture {
    struct mem *mem;
    struct buf buf;
};

static void
fixture_open(struct fixture *f)
{
    f->mem = mem_new(0);
    buf_init(&f->buf, f->mem);
}

static void
fixture_close(struct fixture *f)
{
    buf_fini(&f->buf);
    mem_destroy(f->mem);
}

#define BUF_TEST(id) FIXTURE_TEST(id, struct fixture, fixture_open(f), fixture_close(f))

BUF_TEST(an_untouched_buffer_is_an_empty_text_without_memory)
{
    ck_assert(bytes_present(buf_view(&f->buf)));
    ck_assert_uint_eq(buf_view(&f->buf).len, 0);
    buf_add(&f->buf, NULL, 0);
    ck_assert_uint_eq(mem_used(f->mem), 0);
}

BUF_TEST(appends_follow_each_other)
{
    static const struct bytes whole =
        BYTES_LIT("{\"n\": 18446744073709551615 -9223372036854775808 0, 007\0}");

    buf_str(&f->buf, "{\"n\": ");
    buf_u64(&f->buf, UINT64_MAX);
    buf_byte(&f->buf, ' ');
    buf_i64(&f->buf, INT64_MIN);
    buf_byte(&f->buf, ' ');
    buf_u64(&f->buf, 0);
    buf_printf(&f->buf, "%s%03d", ", ", 7);
    buf_bytes(&f->buf, bytes_of("\0}", 2));
    ck_assert(bytes_equal(buf_view(&f->buf), whole));
}

BUF_TEST(a_long_text_arrives_whole_however_it_is_cut)
{
    for (size_t i = 0; i < 100000; i++)
        buf_byte(&f->buf, (char)('a' + i % 26));
    buf_printf(&f->buf, "%5000d", 1);
    ck_assert_uint_eq(f->buf.len, 105000);
    for (size_t i = 0; i < 100000; i++)
        ck_assert_int_eq(f->buf.data[i], (char)('a' + i % 26));
    ck_assert_int_eq(f->buf.data[104999], '1');
    ck_assert(!f->buf.failed);
}

BUF_TEST(reserved_space_needs_no_memory_later)
{
    ck_assert(buf_reserve(&f->buf, 5000));
    mem_fail_from(f->mem, 1);
    for (int i = 0; i < 5000; i++)
        buf_byte(&f->buf, 'x');
    ck_assert(!f->buf.failed);
}

BUF_TEST(once_failed_it_stays_failed_and_keeps_what_it_had)
{
    buf_str(&f->buf, "kept");
    mem_fail_nth(f->mem, 1);
    ck_assert(!buf_reserve(&f->buf, 10000));
    ck_assert(f->buf.failed);
    buf_str(&f->buf,
            "lost"); /* there would be space, but the response has a hole already */
    buf_byte(&f->buf, '!');
    buf_printf(&f->buf, "%d", 1);
    ck_assert(bytes_equal_str(buf_view(&f->buf), "kept"));
}

BUF_TEST(an_absurd_reserve_fails_without_trying)
{
    buf_byte(&f->buf, 'x');
    ck_assert(!buf_reserve(&f->buf, SIZE_MAX));
    ck_assert(f->buf.failed);
}

BUF_TEST(a_reset_forgets_content_and_failure_and_keeps_little_memory)
{
    size_t small;

    buf_str(&f->buf, "short");
    small = mem_used(f->mem);
    buf_reset(&f->buf, 4096);
    ck_assert_uint_eq(mem_used(f->mem), small); /* worth keeping */
    ck_assert_uint_eq(f->buf.len, 0);
    ck_assert(buf_reserve(&f->buf, 100000));
    f->buf.failed = true;
    buf_reset(&f->buf, 4096);
    ck_assert_uint_eq(mem_used(f->mem), 0); /* too large to keep */
    buf_str(&f->buf, "again");
    ck_assert(bytes_equal_str(buf_view(&f->buf), "again"));
}
