/*
 * The file that maps client certificates to users (docs/api.md 15.3): its lines, their
 * order, and the error for each invalid line. Declared in claimd/auth/token_line.h.
 */
#include "claimd/auth/token_line.h"

#include "support/arena_fixture.h"

#include <string.h>

static const char *
refusal(const char *text)
{
    static struct reason why;
    struct token_line line;

    reason_init(&why);
    ck_assert_msg(certificate_line_read(bytes_str(text), &line, &why) == ST_BAD_VALUE,
                  "%s", text);
    return why.text;
}

static struct token_list *
take(const char *list)
{
    struct token_list *c;
    struct reason why = {""};
    size_t bad_line;

    ck_assert_msg(token_list_read(f.mem, bytes_str(list), certificate_line_read, &c,
                                  &bad_line, &why) == ST_OK,
                  "%s", why.text);
    return c;
}

/* The name that a certificate with these names stands for. */
static void
stands_for(const struct token_list *c, const char *names, const char *expected)
{
    const struct certificate shown = {.good = true, .names = bytes_str(names)};
    const struct token_line *line = token_list_find_certificate(c, &shown);

    if (expected == NULL)
        ck_assert_msg(line == NULL, "%s", names);
    else
        ck_assert_msg(line != NULL && bytes_equal_str(line->name, expected), "%s", names);
}

ARENA_CASE("certificates");

START_TEST(a_line_maps_a_certificate_to_a_user)
{
    struct token_line line;
    struct reason why;

    ck_assert_int_eq(
        certificate_line_read(bytes_str(" w1\tworker  a,b  subject:CN=A B,O=C  \r"),
                              &line, &why),
        ST_OK);
    ck_assert(bytes_equal_str(line.name, "w1"));
    ck_assert_int_eq(line.role, ROLE_WORKER);
    ck_assert(bytes_equal_str(line.projects, "a,b"));
    ck_assert(bytes_equal_str(line.subject, "subject:CN=A B,O=C"));
}

START_TEST(a_line_that_is_none_is_refused_with_a_reason)
{
    static const char *const rows[][2] = {
        {"a", "a line must be"},
        {"a admin", "a line must be"},
        {"a admin *", "a line must be"},
        {"a admin * ", "a line must be"},
        {"a/b admin * dns:x", "a name must be"},
        {"a king * dns:x", "the role \"king\" does not exist"},
        {"a admin ,, dns:x", "projects must be"},
        {"a admin * x", "is identified by"},
        {"a admin * dns:", "is identified by"},
        {"a admin * DNS:x", "is identified by"},
        {"a admin * ip:127.0.0.1", "is identified by"},
        {"a admin * dns:x\x01y", "is identified by"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(strstr(refusal(rows[i][0]), rows[i][1]) != NULL, "%s: %s",
                      rows[i][0], refusal(rows[i][0]));
}

START_TEST(the_first_line_that_fits_counts)
{
    struct token_list *c = take("# who is who\n"
                                "a worker p dns:A.Example\n\n"
                                "b admin * subject:CN=x,O=y z\n"
                                "a reader p uri:spiffe://x/A\n");

    ck_assert_uint_eq(token_list_count(c), 3);
    stands_for(c, "dns:a.example", "a");
    stands_for(c, "subject:CN=x,O=y z", "b");
    stands_for(c, "email:m@x\nuri:spiffe://x/A", "a");
    stands_for(c, "subject:CN=x,O=y z\ndns:a.example", "a");
    stands_for(c, "dns:a.example.org\ndns:example\nsubject:CN=x", NULL);
    stands_for(c, "uri:spiffe://x/a", NULL); /* only hosts know no case */
    stands_for(c, "email:a.example", NULL);
    stands_for(c, "", NULL);
    token_list_free(c);
}

START_TEST(a_list_is_taken_as_a_whole_or_not_at_all)
{
    static const struct {
        const char *list;
        size_t line;
        const char *why;
    } rows[] = {
        {"a worker p dns:a\nnonsense\n", 2, "a line must be"},
        {"a worker p dns:a\n\nb worker p dns:A\n", 3,
         "the certificate of b is also that of a"},
    };
    struct token_list *c;
    struct reason why;
    size_t bad_line;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_int_eq(token_list_read(f.mem, bytes_str(rows[i].list),
                                         certificate_line_read, &c, &bad_line, &why),
                         ST_BAD_VALUE);
        ck_assert_uint_eq(bad_line, rows[i].line);
        ck_assert_msg(strstr(why.text, rows[i].why) != NULL, "%s", why.text);
    }
}

START_TEST(without_memory_nothing_is_left_behind)
{
    struct token_list *c = NULL;
    struct reason why;
    size_t bad_line;

    for (uint64_t nth = 1; c == NULL; nth++) {
        enum status st;

        mem_fail_nth(f.mem, nth);
        st = token_list_read(f.mem, bytes_str("a worker p dns:a\n"),
                             certificate_line_read, &c, &bad_line, &why);
        mem_fail_nth(f.mem, 0);
        ck_assert_int_eq(st, c == NULL ? ST_NO_MEMORY : ST_OK);
    }
    token_list_free(c);
}
