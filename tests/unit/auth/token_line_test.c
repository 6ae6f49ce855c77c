/*
 * The lines of a token file (docs/api.md 15.2): what a line says, the error for an
 * invalid one, and the digest that the file has instead of the token. Read
 * claimd/auth/token_line.h next.
 */
#include "claimd/auth/token_line.h"
#include "support/arena_fixture.h"

#include <string.h>

/* Of whatever it may be. */
#define DIGEST "sha256:0ffd8ba77be9f6e7d6a39b0e6d2e35a9a9a3a2ab2d7ab0cd0b1bbc1d9c9ee0ff"

static const char *
refusal(const char *text)
{
    static struct reason why;
    struct token_line line;

    reason_init(&why);
    ck_assert_msg(token_line_read(bytes_str(text), &line, &why) == ST_BAD_VALUE, "%s",
                  text);
    return why.text;
}

ARENA_CASE("token line");

START_TEST(a_line_is_read_as_it_was_written)
{
    static const char *const lines[] = {
        "invoices worker billing,archive 2027-03-31T00:00:00Z " DIGEST "\n",
        "pages.and_more-9 admin * never " DIGEST "\n",
        "1234567890123456789012345678901234567890123456789012345678901234 admin * "
        "never " DIGEST "\n",
        "r reader \xc3\xa4 1970-01-01T00:00:00Z " DIGEST "\n"};
    struct token_line line;
    struct reason why;

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        buf_reset(&f.out, SIZE_MAX);
        ck_assert_int_eq(token_line_read(bytes_str(lines[i]), &line, &why), ST_OK);
        token_line_write(&f.out, &line);
        buf_byte(&f.out, '\0');
        ck_assert_str_eq(f.out.data, lines[i]);
    }
    ck_assert_int_eq(
        token_line_read(bytes_str("\t a  \t producer\tp \t never " DIGEST " \r"), &line,
                        &why),
        ST_OK);
    ck_assert(bytes_equal_str(line.name, "a"));
    ck_assert_int_eq(line.role, ROLE_PRODUCER);
    ck_assert(bytes_equal_str(line.projects, "p"));
    ck_assert_int_eq(line.expires_ms, TOKEN_NEVER);
}

START_TEST(a_line_that_is_none_is_refused_with_a_reason)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"a admin * never", "a line must be"},
        {"a admin * never " DIGEST " more", "a line must be"},
        {"\xc3\xa4 admin * never " DIGEST, "a name must be"},
        {"a/b admin * never " DIGEST, "a name must be"},
        {"12345678901234567890123456789012345678901234567890123456789012345 admin * "
         "never " DIGEST,
         "a name must be"},
        {"a boss * never " DIGEST, "the role \"boss\" does not exist"},
        {"a admin p,,q never " DIGEST, "projects must be"},
        {"a admin , never " DIGEST, "projects must be"},
        {"a admin p\x01 never " DIGEST, "projects must be"},
        {"a admin * tomorrow " DIGEST, "EXPIRES is tomorrow"},
        {"a admin * 2027-02-29T00:00:00Z " DIGEST, "EXPIRES is 2027-02-29"},
        {"a admin * 2027-03-31T00:00:00 " DIGEST, "EXPIRES is 2027-03-31"},
        {"a admin * 2027-03-31T24:00:00Z " DIGEST, "EXPIRES is 2027-03-31"},
        {"a admin * never sha256:12", "the digest of a token"},
        {"a admin * never "
         "sha512:0ffd8ba77be9f6e7d6a39b0e6d2e35a9a9a3a2ab2d7ab0cd0b1bbc1d9c9e"
         "e0ff",
         "the digest of a token"},
        {"a admin * never "
         "sha256:0FFD8BA77BE9F6E7D6A39B0E6D2E35A9A9A3A2AB2D7AB0CD0B1BBC1D9C9E"
         "E0FF",
         "the digest of a token"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(strstr(refusal(rows[i].text), rows[i].why) != NULL, "%s: %s",
                      rows[i].text, refusal(rows[i].text));
}

START_TEST(blanks_and_comments_are_no_lines)
{
    ck_assert(token_line_blank(bytes_str("")));
    ck_assert(token_line_blank(bytes_str(" \t\r")));
    ck_assert(token_line_blank(bytes_str("  # a admin * never")));
    ck_assert(!token_line_blank(bytes_str("a # b")));
}

START_TEST(projects_are_taken_by_their_whole_names)
{
    const struct bytes two = BYTES_LIT("p,q/r"), all = BYTES_LIT("*");

    ck_assert(token_line_has(two, bytes_str("p")));
    ck_assert(token_line_has(two, bytes_str("q/r")));
    ck_assert(!token_line_has(two, bytes_str("q")));
    ck_assert(!token_line_has(two, bytes_str("p,q/r")));
    ck_assert(!token_line_has(two, bytes_str("")));
    ck_assert(!token_line_has(two, bytes_str("*")));
    ck_assert(token_line_has(all, bytes_str("p")));
    ck_assert(token_line_has(all, bytes_str("")));
    ck_assert(!bytes_present(token_line_project(two)));
    ck_assert(!bytes_present(token_line_project(all)));
    ck_assert(bytes_equal_str(token_line_project(bytes_str("p")), "p"));
    ck_assert(!token_line_has(bytes_str("*,p"), bytes_str("q"))); /* a project named so */
}

START_TEST(the_digest_is_that_of_the_standard)
{
    /* FIPS 180-2, B.1 */
    static const uint8_t abc[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                  0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                  0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                  0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    struct token_digest digest;

    token_digest_of(bytes_str("abc"), &digest);
    ck_assert_int_eq(memcmp(digest.bytes, abc, sizeof(abc)), 0);
}

START_TEST(tokens_are_long_and_never_the_same)
{
    char one[TOKEN_TEXT_LEN + 1], other[TOKEN_TEXT_LEN + 1];
    char expected[2 * TOKEN_SECRET_BYTES + 1];
    uint8_t secret[TOKEN_SECRET_BYTES];
    struct entropy entropy, same;

    entropy_init_seeded(&entropy, 1);
    entropy_init_seeded(&same, 1);
    ck_assert_int_eq(entropy_reserve(&entropy, 2 * TOKEN_SECRET_BYTES), ST_OK);
    ck_assert_int_eq(entropy_reserve(&same, TOKEN_SECRET_BYTES), ST_OK);
    token_make(&entropy, one);
    token_make(&entropy, other);
    entropy_take(&same, secret, sizeof(secret));
    *hex_write_bytes(expected, bytes_of((const char *)secret, sizeof(secret))) = '\0';
    ck_assert_str_eq(one + strlen(TOKEN_PREFIX), expected); /* all bytes are random */
    ck_assert_uint_eq(strlen(one), TOKEN_TEXT_LEN);
    ck_assert_int_eq(strncmp(one, TOKEN_PREFIX, strlen(TOKEN_PREFIX)), 0);
    ck_assert_uint_eq(strspn(one + strlen(TOKEN_PREFIX), "0123456789abcdef"), 64);
    ck_assert_str_ne(one, other);
}
