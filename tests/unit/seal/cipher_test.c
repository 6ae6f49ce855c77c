/* Vectors of those who have defined the algorithms. */
#include "seal/cipher.h"
#include "support/check_main.h"

#include <stdlib.h>
#include <string.h>

TEST_CASE("cipher");

/* Digits as bytes; returns how many. */
static size_t
read(const char *digits, uint8_t *out)
{
    size_t len = strlen(digits) / 2;

    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)(hex_value(digits[2 * i]) << 4 | hex_value(digits[2 * i + 1]));
    return len;
}

/* RFC 5869, A.1 and A.3. */
START_TEST(keys_are_derived_as_the_rfc_has_it)
{
    static const struct {
        const char *master, *salt, *info, *key;
    } rows[] = {
        {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c",
         "f0f1f2f3f4f5f6f7f8f9",
         "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b8871"
         "858"
         "65"},
        {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
         "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61"
         "a96"
         "c8"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t master[32], salt[32], info[32], key[64], made[64];
        size_t len = read(rows[i].key, key);
        struct bytes m = bytes_of((const char *)master, read(rows[i].master, master));
        struct bytes s = bytes_of((const char *)salt, read(rows[i].salt, salt));
        struct bytes n = bytes_of((const char *)info, read(rows[i].info, info));

        ck_assert_int_eq(cipher_derive(m, s, n, made, len), ST_OK);
        ck_assert_mem_eq(made, key, len);
    }
}

/* Test case 16 of McGrew & Viega, "The Galois/Counter Mode of Operation". */
START_TEST(bodies_are_encrypted_as_the_paper_has_it)
{
    uint8_t key[32], nonce[12], text[60] = {0}, more[20] = {0}, right[76];
    char made[76], back[60];
    struct bytes plain = bytes_of((const char *)text, sizeof(text));
    struct bytes with = bytes_of((const char *)more, sizeof(more));

    (void)read("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", key);
    (void)read("cafebabefacedbaddecaf888", nonce);
    (void)read("feedfacedeadbeeffeedfacedeadbeefabaddad2", more);
    (void)read("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
               "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
               text);
    (void)read("522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
               "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
               "76fc6ece0f4e1768cddf8853bb2d551b",
               right);
    ck_assert_int_eq(cipher_encrypt(key, nonce, with, plain, made), ST_OK);
    ck_assert_mem_eq(made, right, sizeof(right));
    ck_assert_int_eq(cipher_decrypt(key, nonce, with, bytes_of(made, sizeof(made)), back),
                     ST_OK);
    ck_assert_mem_eq(back, text, sizeof(text));
}

START_TEST(a_tag_that_is_not_the_text_s_is_found)
{
    static const uint8_t key[CIPHER_KEY], nonce[CIPHER_NONCE];
    static const char nothing[6];
    char made[6 + CIPHER_TAG] = "", back[6];
    struct bytes text = bytes_of(made, sizeof(made));

    ck_assert_int_eq(cipher_encrypt(key, nonce, BYTES_NONE, bytes_str("secret"), made),
                     ST_OK);
    for (size_t i = 6; i < sizeof(made); i++) {
        made[i] ^= 0x10;
        memset(back, 'x', sizeof(back));
        ck_assert_int_eq(cipher_decrypt(key, nonce, BYTES_NONE, text, back), ST_DAMAGED);
        ck_assert_mem_eq(back, nothing, sizeof(back));
        made[i] ^= 0x10;
    }
    ck_assert_int_eq(cipher_decrypt(key, nonce, BYTES_NONE, text, back), ST_OK);
    ck_assert_mem_eq(back, "secret", sizeof(back));
}
