/*
 * The suggestion for a misspelled option or command ("did you mean"). Read
 * claimd/base/nearest.h next.
 */
#include "claimd/base/nearest.h"

#include "support/check_main.h"

static const char *
find(const char *name)
{
    static const char *const known[] = {
        "ttl", "delay", "body", "_max_claim_count", "_dead_letter_queue", "messages"};
    struct nearest n = nearest_begin(bytes_str(name));

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        nearest_offer(&n, known[i]);
    return n.found == NULL ? "" : n.found;
}

START_TEST(a_misspelled_name_is_like_the_right_one)
{
    ck_assert_str_eq(find("tll"), "ttl"); /* changed */
    ck_assert_str_eq(find("tlt"), "ttl"); /* swapped */
    ck_assert_str_eq(find("tt"), "ttl");
    ck_assert_str_eq(find("TTL"), "ttl");
    ck_assert_str_eq(find("deley"), "delay");
    ck_assert_str_eq(find("delays"), "delay");
    ck_assert_str_eq(find("_max_claims"), "_max_claim_count");
    ck_assert_str_eq(find("_max_claim_cuont"), "_max_claim_count");
    ck_assert_str_eq(find("_dead_leter_queue"), "_dead_letter_queue");
    ck_assert_str_eq(find("dead_letter_queue"), "_dead_letter_queue");
    ck_assert_str_eq(find("mesages"), "messages");
}

/* The hint for a name lives while it is compared. */
static void
ck_hint(const char *name, const char *const *known, size_t count, const char *expected)
{
    const struct nearest_hint hint = nearest_hint(bytes_str(name), known, count);

    ck_assert_str_eq(hint.text, expected);
}

START_TEST(a_hint_names_another_name_only)
{
    static const char *const known[] = {"ttl", "delay"};

    ck_assert_str_eq(nearest_of(bytes_str("tll"), known, 2), "ttl");
    ck_assert_str_eq(nearest_of(bytes_str("TTL"), known, 2), "ttl");
    ck_assert_ptr_null(nearest_of(bytes_str("ttl"), known, 2));
    ck_assert_ptr_null(nearest_of(bytes_str("color"), known, 2));
    ck_hint("deley", known, 2, " (did you mean \"delay\"?)");
    ck_hint("delay", known, 2, "");
    ck_hint("deley", known, 0, "");
}

START_TEST(another_name_is_like_none)
{
    char longest[100];

    ck_assert_str_eq(find("priority"), "");
    ck_assert_str_eq(find("x"), "");
    ck_assert_str_eq(find(""), "");
    memset(longest, 't', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    ck_assert_str_eq(find(longest), "");
}
