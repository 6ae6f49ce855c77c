/* Nouns and verbs behind a number. Read claimd/base/plural.h next. */
#include "claimd/base/plural.h"

#include "support/check_main.h"

START_TEST(only_one_is_singular)
{
    ck_assert_str_eq(plural_s(0), "s");
    ck_assert_str_eq(plural_s(1), "");
    ck_assert_str_eq(plural_s(2), "s");
    ck_assert_str_eq(plural_are(0), "are");
    ck_assert_str_eq(plural_are(1), "is");
    ck_assert_str_eq(plural_are(2), "are");
}
