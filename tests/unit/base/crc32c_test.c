/*
 * The checksum of journal frames has the values of RFC 3720, with the instruction of the
 * processor and without it. Read claimd/base/crc32c.h next.
 */
#include "claimd/base/crc32c.h"

#include "support/check_main.h"
#include "support/random.h"

#include <string.h>

START_TEST(it_is_the_crc_of_rfc_3720)
{
    uint8_t bytes[32];

    ck_assert_uint_eq(crc32c(0, "123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof(bytes)); /* B.4 */
    ck_assert_uint_eq(crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    ck_assert_uint_eq(crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    ck_assert_uint_eq(crc32c(0, bytes, sizeof(bytes)), 0x46dd794e);
    ck_assert_uint_eq(crc32c(0, bytes, 0), 0);
}

START_TEST(with_and_without_the_instruction_it_is_the_same_from_any_place_on)
{
    struct random r = {random_seed("crc32c")};
    uint8_t bytes[256];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)random_next(&r);
    for (size_t i = 0; i < 2000; i++) {
        size_t from = random_below(&r, 64), len = random_below(&r, 128);
        size_t cut = random_below(&r, len + 1);
        uint32_t whole = crc32c_portable(7, bytes + from, len);

        ck_assert_uint_eq(crc32c(7, bytes + from, len), whole);
        ck_assert_uint_eq(
            crc32c(crc32c(7, bytes + from, cut), bytes + from + cut, len - cut), whole);
    }
}
