/*
 * An href in a response is percent-encoded, so that a client can send it back as it is.
 * The encoder is in src/api/wire/query.h.
 */
#include "api/wire/query.h"
#include "support/arena_fixture.h"

ARENA_CASE("uri");

START_TEST(hrefs_are_percent_encoded)
{
    buf_uri(&f.out, bytes_str("Az09-._~ /&=%\xc3\xa9"));
    expect_written("Az09-._~%20%2F%26%3D%25%C3%A9");
}
