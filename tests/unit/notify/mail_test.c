/*
 * The lines of a mail (docs/api.md 20.5): one address, a subject that adds no line, and a
 * body in base64. Declared in src/notify/compose.h.
 */
#include "notify/compose.h"

#include "support/arena_fixture.h"

ARENA_CASE("mail");

START_TEST(one_address_is_one)
{
    static const char *const good[] = {"a@b", "first.last+tag@mail.example.org",
                                       "o'neil@example.org", "x=y@h"};
    static const char *const bad[] = {
        "",      "a",       "@b",      "a@",          "a@b@c",
        "a b@c", "a@b,c@d", "a@b>",    "<a@b",        "a@b\r\nBcc:",
        "a@b\n", "a@b\t",   "\"a\"@b", "a@[1.1.1.1]", "a@b;c@d",
        "a:b@c", "(x)a@b",  "a\\@b",   "\xc3\xa4@b",  "a@b\x7f",
    };
    char longest[MAIL_ADDRESS_MOST + 1];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(mail_is_address(bytes_str(good[i])), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!mail_is_address(bytes_str(bad[i])), "%s", bad[i]);
    memset(longest, 'a', sizeof(longest));
    longest[1] = '@';
    ck_assert(mail_is_address(bytes_of(longest, MAIL_ADDRESS_MOST)));
    ck_assert(!mail_is_address(bytes_of(longest, MAIL_ADDRESS_MOST + 1)));
    ck_assert(!mail_is_address(bytes_of("a@b\0c", 5)));
}

/* The address and the subject of a URI; NULL: it has none that will do. */
static void
expect_read(const char *rest, const char *address, const char *subject)
{
    struct buf to, about;

    buf_init(&to, f.mem);
    buf_init(&about, f.mem);
    ck_assert_msg(mail_read(bytes_str(rest), &to, &about) == (address != NULL), "%s",
                  rest);
    if (address != NULL) {
        ck_assert(bytes_equal_str(buf_view(&to), address));
        ck_assert(bytes_equal_str(buf_view(&about), subject));
    }
    buf_fini(&to);
    buf_fini(&about);
}

START_TEST(a_uri_has_an_address_and_perhaps_a_subject)
{
    expect_read("me@example.org", "me@example.org", "");
    expect_read("me@example.org?subject=New%20job%21", "me@example.org", "New job!");
    expect_read("m%65@h?cc=x@y&SUBJECT=a+b&bcc=z@y&body=b", "me@h", "a+b");
    expect_read("me@h?subject=a&subject=b", "me@h", "a");
    expect_read("me@h?subject=%zz%4", "me@h", "%zz%4");
    expect_read("me@h?subject", "me@h", "");
    expect_read("me@h%0d%0aBcc:x@y", NULL, NULL);
    expect_read("me@h,you@h", NULL, NULL);
    expect_read("me@h%2cyou@h", NULL, NULL);
    expect_read("?subject=x", NULL, NULL);
}

static void
write_head(const char *subject)
{
    const struct mail_head head = {.from = BYTES_LIT("mq@example.org"),
                                   .to = BYTES_LIT("me@h"),
                                   .subject = bytes_str(subject),
                                   .id = BYTES_LIT("5f-7"),
                                   .sent_ms = 1700000000000};

    mail_write_head(&f.out, &head);
}

#define IN_FRONT                                                                         \
    "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\nFrom: <mq@example.org>\r\nTo: <me@h>\r\n"
#define BEHIND                                                                           \
    "\r\nMessage-ID: <5f-7@example.org>\r\nAuto-Submitted: auto-generated\r\n"           \
    "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"                   \
    "Content-Transfer-Encoding: base64\r\n\r\n"

START_TEST(a_plain_subject_is_as_it_is)
{
    write_head("New job!");
    expect_written(IN_FRONT "Subject: New job!" BEHIND);
    write_head("");
    expect_written(IN_FRONT "Subject: " BEHIND);
}

START_TEST(no_subject_adds_a_line)
{
    /* Python's b64encode() of the texts, with blanks for what is no character. */
    write_head("a\r\nBcc: x@y");
    expect_written(IN_FRONT "Subject: =?UTF-8?B?YSAgQmNjOiB4QHk=?=" BEHIND);
    write_head("=?UTF-8?Q?x?=");
    expect_written(IN_FRONT "Subject: =?UTF-8?B?PT9VVEYtOD9RP3g/PQ==?=" BEHIND);
}

START_TEST(words_end_between_characters)
{
    /* 38 letters, and one of two bytes, which does not fit into the first word. */
    write_head("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa4");
    expect_written(
        IN_FRONT
        "Subject: =?UTF-8?B?YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=?="
        "\r\n =?UTF-8?B?w6Q=?=" BEHIND);
}

START_TEST(no_line_is_longer_than_76)
{
    char subject[5000];
    size_t line = 0;

    memset(subject, 'x', sizeof(subject));
    subject[sizeof(subject) - 1] = '\0';
    write_head(subject);
    mail_write_text(&f.out, bytes_str(subject));
    for (size_t i = 0; i < f.out.len; i++) {
        line = f.out.data[i] == '\n' ? 0 : line + 1;
        ck_assert_uint_le(line, 76 + 1); /* the CR */
    }
}

START_TEST(a_text_is_base64)
{
    mail_write_text(&f.out, bytes_str("{\"body\":1}\n.\n"));
    expect_written("eyJib2R5IjoxfQouCg==\r\n");
    mail_write_text(&f.out, bytes_str(""));
    expect_written("");
}
