#include "api/uri.h"
#include "support/arena_fixture.h"

START_TEST(hrefs_are_percent_encoded)
{
    uri_write(&f.out, bytes_str("Az09-._~ /&=%\xc3\xa9"));
    expect_written("Az09-._~%20%2F%26%3D%25%C3%A9");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("uri");
    TCase *tc = arena_test_case(suite, "uri");

    tcase_add_test(tc, hrefs_are_percent_encoded);
    return check_main(suite);
}
