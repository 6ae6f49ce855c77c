/* Each status has a name and a text of its own. The list is in claimd/base/status.h. */
#include "claimd/base/status.h"

#include "support/check_main.h"

#include <string.h>

START_TEST(every_outcome_has_a_name_and_a_text_of_its_own)
{
    for (int i = 0; i < ST_COUNT; i++) {
        ck_assert_uint_gt(strlen(status_name((enum status)i)), 0);
        ck_assert_uint_gt(strlen(status_text((enum status)i)), 0);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(status_name((enum status)i), status_name((enum status)j));
    }
    ck_assert_str_eq(status_name(ST_OK), "OK");
    ck_assert_str_eq(status_name(ST_NO_MEMORY), "NO_MEMORY");
}

START_TEST(an_unknown_outcome_is_named_so)
{
    ck_assert_str_eq(status_name(ST_COUNT), "UNKNOWN");
    ck_assert_str_eq(status_text(ST_COUNT), "unknown outcome");
}
