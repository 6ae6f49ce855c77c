#include "api/wire/query.h"
#include "support/arena_fixture.h"

ARENA_CASE("uri");

START_TEST(hrefs_are_percent_encoded)
{
    uri_write(&f.out, bytes_str("Az09-._~ /&=%\xc3\xa9"));
    expect_written("Az09-._~%20%2F%26%3D%25%C3%A9");
}
