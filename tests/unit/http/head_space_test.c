/*
 * The block of memory that libmicrohttpd gets for a connection suffices for any head of a
 * request within the limits, and for the head of the response. Declared in
 * src/http/mhd/internal.h.
 */
#include "http/mhd/internal.h"

#include "claimd/api/api.h"
#include "support/check_main.h"

enum { HEAD = 6144, LINES = 64, RECORD = 64 };

START_TEST(a_request_at_its_limits_leaves_space)
{
    for (size_t head = 1024; head <= 1 << 20; head *= 2)
        for (size_t lines = 8; lines <= 1024; lines *= 2) {
            const struct head_use use = {.head = head, .records = lines};

            ck_assert_msg(head_space_suffices(head_space_block(head, lines, 0), &use),
                          "%zu bytes, %zu lines", head, lines);
        }
}

START_TEST(cookies_of_a_large_head_leave_space)
{
    for (size_t head = 1024; head <= 1 << 20; head *= 2)
        for (size_t lines = 8; lines <= 1024; lines *= 2) {
            const struct head_use use = {.head = head, .records = lines, .cookies = head};

            ck_assert_msg(head_space_suffices(head_space_block(head, lines, head), &use),
                          "%zu bytes, %zu lines", head, lines);
        }
}

START_TEST(the_counted_head_fits_into_the_block)
{
    /* The worst of what the client may have sent, and the response's head beside it. */
    for (size_t head = 100; head <= HEAD; head += 100)
        for (size_t lines = 0; lines <= LINES; lines++) {
            const struct head_use use = {.head = head, .records = lines};
            size_t block = head_space_block(HEAD, LINES, 0);
            size_t read = head > block / 2 ? head : block / 2;

            ck_assert(head_space_suffices(block, &use));
            ck_assert_uint_le(read + lines * RECORD + RESPONSE_HEAD_MAX + 317, block);
        }
}

START_TEST(cookies_may_leave_too_little)
{
    struct head_use use = {.head = HEAD, .records = LINES};
    size_t block = head_space_block(HEAD, LINES, 0);

    ck_assert(head_space_suffices(block, &use));
    use.cookies = block / 2; /* libmicrohttpd copies them */
    ck_assert(!head_space_suffices(block, &use));
    use = (struct head_use){.head = 500, .records = 8, .cookies = 200};
    ck_assert(head_space_suffices(block, &use));
    use.records = 4 * LINES;
    ck_assert(!head_space_suffices(block, &use));
}

START_TEST(the_block_is_hardly_more_than_what_is_needed)
{
    size_t needed = HEAD + LINES * RECORD + RESPONSE_HEAD_MAX;

    ck_assert_uint_le(head_space_block(HEAD, LINES, 0), needed + 1024);
}
