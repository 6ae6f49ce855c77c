/*
 * SipHash-1-3 has the values of another implementation, and the mixing of numbers has no
 * collisions. Read claimd/base/hash.h next.
 */
#include "claimd/base/hash.h"

#include "support/check_main.h"

/* The bytes 00 01 .. 0f. */
static const struct hash_key some_key = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};

START_TEST(siphash_agrees_with_another_implementation)
{
    static const struct hash_key zero = {0, 0};
    static const struct {
        size_t len; /* the text is the bytes 00 01 02 ... */
        uint64_t hash;
    } rows[] = {
        /* hash(bytes(range(len))) of CPython 3.11 with PYTHONHASHSEED=0 */
        {1, 0x68a914128e01e473ULL},  {7, 0x2f098ab0c751325aULL},
        {8, 0xead411e67ebe2eeaULL},  {9, 0x75927f9d95124362ULL},
        {15, 0xf30eb725bb91c9eaULL}, {16, 0x8972188433a5c5b7ULL},
        {40, 0x95bc321ab41d8206ULL},
    };
    char text[64];

    for (int i = 0; i < 64; i++)
        text[i] = (char)i;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_uint_eq(hash_bytes(&zero, bytes_of(text, rows[i].len)), rows[i].hash);
}

START_TEST(bytes_above_127_are_taken_unsigned)
{
    const struct hash_key zero = {0, 0};

    ck_assert_uint_ne(hash_bytes(&zero, bytes_of("\x80", 1)),
                      hash_bytes(&zero, bytes_of("\x80\x00", 2)));
    ck_assert_uint_ne(hash_bytes(&zero, bytes_str("\xff\x01")),
                      hash_bytes(&zero, bytes_str("\xff\xff")));
}

START_TEST(another_key_is_another_hash)
{
    const struct hash_key other = {some_key.k0, some_key.k1 + 1};

    ck_assert_uint_ne(hash_bytes(&some_key, bytes_str("queue")),
                      hash_bytes(&other, bytes_str("queue")));
    ck_assert_uint_eq(hash_bytes(&other, BYTES_NONE), hash_bytes(&other, bytes_str("")));
}

/* The inverse of hash_mix(): that there is one shows that no two numbers collide. */
static uint64_t
unmix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0x9cb4b2f8129337dbULL; /* inverse of the second factor */
    x ^= x >> 33;
    x *= 0x4f74430c22a54005ULL; /* inverse of the first */
    return x ^ (x >> 33);
}

START_TEST(the_scramble_can_be_undone)
{
    for (uint64_t i = 0; i < 1000; i++) {
        ck_assert_uint_eq(unmix(hash_mix(i)), i);
        ck_assert_uint_eq(unmix(hash_mix(~i << 32)), ~i << 32);
    }
}
