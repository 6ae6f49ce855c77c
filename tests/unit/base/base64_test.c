#include "claimd/base/base64.h"

#include "support/check_main.h"

#include <string.h>

START_TEST(it_is_that_of_the_rfc)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xfb\xff\xfe", "+//+"},
    };
    char out[16];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i][0]), written = base64_write(out, cases[i][0], len);

        ck_assert_uint_eq(written, BASE64_LEN(len));
        ck_assert_uint_eq(written, strlen(cases[i][1]));
        ck_assert(memcmp(out, cases[i][1], written) == 0);
    }
}
END_TEST
