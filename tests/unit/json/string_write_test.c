/* Any bytes become a valid string of JSON. Declared in claimd/json/string.h. */
#include "claimd/json/string.h"
#include "support/arena_fixture.h"

ARENA_CASE("json_string_write");

START_TEST(strings_are_escaped_as_json_wants_it)
{
    json_string_write(&f.out, bytes_str("plain / text"));
    expect_written("\"plain / text\"");
    json_string_write(&f.out, bytes_str("\"\\\b\f\n\r\t\x01\x1f\x7f"));
    expect_written("\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    json_string_write(&f.out, bytes_of("a\0b", 3));
    expect_written("\"a\\u0000b\"");
    json_string_write(&f.out, bytes_str("\xc3\xa9\xf0\x9f\x98\x80"));
    expect_written("\"\xc3\xa9\xf0\x9f\x98\x80\"");
    json_string_write(&f.out, BYTES_NONE);
    expect_written("\"\"");
}

START_TEST(bytes_that_are_not_utf8_are_replaced)
{
    json_string_write(&f.out, bytes_str("a\xff\xc3"));
    expect_written("\"a\xef\xbf\xbd\xef\xbf\xbd\"");
}
