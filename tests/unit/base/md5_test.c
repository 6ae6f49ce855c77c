#include "claimd/base/md5.h"
#include "support/arena_fixture.h"

#include <stdlib.h>

ARENA_CASE("md5");

START_TEST(md5_gives_the_digests_of_rfc_1321)
{
    static const struct {
        const char *text, *digest;
    } vectors[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"1234567890123456789012345678901234567890123456789012345678901234567890123456789"
         "0",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        uint8_t digest[MD5_LEN];
        char hex[2 * MD5_LEN + 1] = {0};

        md5(bytes_str(vectors[i].text), digest);
        for (size_t at = 0; at < MD5_LEN; at++)
            hex_write(hex + 2 * at, digest[at], 2);
        ck_assert_str_eq(hex, vectors[i].digest);
    }
}
END_TEST

START_TEST(md5_pads_every_length_around_a_block)
{
    /* Of so many letters x. */
    static const struct {
        size_t length;
        const char *digest;
    } vectors[] = {{55, "04364420e25c512fd958a70738aa8f72"},
                   {56, "668a72d5ba17f08e62dabcafad6db14b"},
                   {63, "7dc2ca208106a2f703567bdff99d8981"},
                   {64, "c1bb4f81d892b2d57947682aeb252456"},
                   {65, "1bc932052302d074bdec39795fe00cf6"},
                   {119, "ab347a5f68c8a443cfcddc633f12c24f"},
                   {120, "fb98667f98096de92620b64f46e1c5b5"}};

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        char text[128], hex[2 * MD5_LEN + 1] = {0};
        uint8_t digest[MD5_LEN];

        memset(text, 'x', sizeof(text));
        md5(bytes_of(text, vectors[i].length), digest);
        for (size_t at = 0; at < MD5_LEN; at++)
            hex_write(hex + 2 * at, digest[at], 2);
        ck_assert_str_eq(hex, vectors[i].digest);
    }
}
END_TEST
