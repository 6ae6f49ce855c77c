#include "http/address.h"

#include "support/check_main.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static enum status
parse(const char *text, struct address *out)
{
    char error[256] = "";
    enum status st = address_parse(text, out, error, sizeof(error));

    ck_assert_int_eq(st == ST_OK, error[0] == '\0');
    return st;
}

START_TEST(addresses_read_back_as_they_were_written)
{
    static const char *const texts[] = {"127.0.0.1:8888", "0.0.0.0:0", "[::1]:65535",
                                        "[::]:8888", "unix:/run/claimd.sock"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct address address;
        char text[ADDRESS_TEXT_CAP];

        ck_assert_int_eq(parse(texts[i], &address), ST_OK);
        address_text(&address.sock.any, address.len, text);
        ck_assert_str_eq(text, texts[i]);
    }
}
END_TEST

START_TEST(what_is_no_address_is_refused)
{
    static const char *const texts[] = {
        "",      "8888",     "127.0.0.1",       ":8888",
        "[]:1",  "::1:8888", "127.0.0.1:",      "127.0.0.1:http",
        "unix:", "[::1",     "127.0.0.1:70000x"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct address address;

        ck_assert_msg(parse(texts[i], &address) == ST_BAD_VALUE, "%s", texts[i]);
    }
}
END_TEST

START_TEST(a_socket_path_has_room_for_its_nul)
{
    struct address address;
    char text[256] = "unix:/";

    memset(text + 6, 'x', 106); /* 107 characters and a NUL */
    ck_assert_int_eq(parse(text, &address), ST_OK);
    memset(text + 6, 'x', 107);
    ck_assert_int_eq(parse(text, &address), ST_BAD_VALUE);
}
END_TEST

START_TEST(a_client_without_a_name_is_called_unix)
{
    const struct sockaddr nameless = {.sa_family = AF_UNIX};
    char text[ADDRESS_TEXT_CAP];

    address_text(&nameless, sizeof(nameless.sa_family), text);
    ck_assert_str_eq(text, "unix");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("address");
    TCase *tc = test_case(suite, "address");

    tcase_add_test(tc, addresses_read_back_as_they_were_written);
    tcase_add_test(tc, what_is_no_address_is_refused);
    tcase_add_test(tc, a_socket_path_has_room_for_its_nul);
    tcase_add_test(tc, a_client_without_a_name_is_called_unix);
    return check_main(suite);
}
