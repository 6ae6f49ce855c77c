/*
 * The slot of a key is the one that Redis Cluster computes. Declared in
 * src/redis/script.h.
 */
#include "redis/script.h"

#include "support/check_main.h"

/* Redis Cluster specification: CRC16 of "123456789" is 0x31C3. */
START_TEST(a_slot_is_the_crc16_of_the_key)
{
    ck_assert_uint_eq(slot_of(bytes_str("123456789")), 0x31c3);
    ck_assert_uint_eq(slot_of(bytes_str("")), 0);
    ck_assert_uint_eq(slot_of(bytes_str("foo")), 12182); /* CLUSTER KEYSLOT of 7.0 */
    ck_assert_uint_eq(slot_of(bytes_str("bar")), 5061);
}

START_TEST(only_what_stands_in_the_first_braces_counts)
{
    ck_assert_uint_eq(slot_of(bytes_str("a{foo}b")), slot_of(bytes_str("foo")));
    ck_assert_uint_eq(slot_of(bytes_str("{foo}{bar}")), slot_of(bytes_str("foo")));
    ck_assert_uint_eq(slot_of(bytes_str("foo{{bar}}")), slot_of(bytes_str("{bar")));
}

/* CLUSTER KEYSLOT foo{}{bar}: 8363. */
START_TEST(empty_or_open_braces_are_part_of_the_key)
{
    ck_assert_uint_eq(slot_of(bytes_str("foo{}{bar}")), 8363);
    ck_assert_uint_ne(slot_of(bytes_str("x{foo")), slot_of(bytes_str("foo")));
}
