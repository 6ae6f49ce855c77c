/*
 * Every error status has a title in the error document (docs/api.md 4.2 to 4.4), and a
 * description where the specification has one. Read src/api/problem.h next.
 */
#include "api/problem.h"
#include "support/arena_fixture.h"

ARENA_CASE("problem");

START_TEST(errors_have_a_title_and_mostly_a_description)
{
    problem_document(&f.out, bytes_str("Not found"), bytes_str("no \"q\""));
    expect_written("{\"title\":\"Not found\",\"description\":\"no \\\"q\\\"\"}");
    problem_document(&f.out, bytes_str("404 Not Found"), BYTES_NONE);
    expect_written("{\"title\":\"404 Not Found\"}");
}
