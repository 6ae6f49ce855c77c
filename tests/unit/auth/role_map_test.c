/*
 * The table that maps roles of Keystone to roles of claimd (docs/api.md 15.6). Declared
 * in claimd/auth/policy.h.
 */
#include "claimd/auth/policy.h"
#include "support/check_main.h"

#include <stdio.h>

/* The roles of claimd for a role, by a table, or the reason why the table is invalid. */
static const char *
meaning(const char *table, const char *role)
{
    static char text[REASON_CAP + 1];
    struct role_map map;
    struct reason why;
    role_set roles;

    reason_init(&why);
    if (role_map_read(&map, bytes_str(table), &why) != ST_OK) {
        (void)snprintf(text, sizeof(text), "%s", why.text);
        return text;
    }
    roles = role_map_find(&map, bytes_str(role));
    text[0] = '\0';
    for (unsigned i = 0; i < ROLE_COUNT; i++)
        if ((roles >> i & 1) != 0) {
            strcat(text, role_name((enum role)i));
            strcat(text, " ");
        }
    return text;
}

START_TEST(a_role_means_what_the_table_says)
{
    static const char table[] = "admin=admin, member = worker,reader=reader,";

    ck_assert_str_eq(meaning("admin=admin, member = worker", "admin"), "admin ");
    ck_assert_str_eq(meaning("admin=admin, member = worker", "member"), "worker ");
    ck_assert_str_eq(meaning("a role=worker", "a role"), "worker ");
    ck_assert_str_eq(meaning(table, "admin"), "must be NAME=ROLE, separated by commas");
}

START_TEST(several_entries_of_a_name_add_up)
{
    ck_assert_str_eq(meaning("member=producer, member=worker", "member"),
                     "producer worker ");
}

START_TEST(other_roles_mean_nothing)
{
    static const char *const others[] = {"Admin", "admin ", "adm",
                                         "",      "admins", "worker"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        ck_assert_str_eq(meaning("admin=admin,member=worker", others[i]), "");
}

START_TEST(names_are_compared_without_their_escapes)
{
    ck_assert_str_eq(meaning("admin=admin", "\\u0061dmin"), "admin ");
    ck_assert_str_eq(meaning("admin=admin", "admin\\u0000"), "");
}

START_TEST(an_invalid_table_is_refused)
{
    static const char form[] = "must be NAME=ROLE, separated by commas";

    ck_assert_str_eq(meaning("", "a"), form);
    ck_assert_str_eq(meaning("admin", "a"), form);
    ck_assert_str_eq(meaning("=admin", "a"), form);
    ck_assert_str_eq(meaning("a=worker,,b=worker", "a"), form);
    ck_assert_str_eq(meaning("a=boss", "a"),
                     "the role \"boss\" does not exist. Use one of these: reader, "
                     "producer, worker, operator, admin");
    ck_assert_str_eq(meaning("a=", "a"),
                     "the role \"\" does not exist. Use one of "
                     "these: reader, producer, worker, operator, admin");
    ck_assert_str_eq(meaning("a=b=worker", "a"),
                     "the role \"b=worker\" does not exist. Use one of these: reader, "
                     "producer, worker, operator, admin");
}

START_TEST(a_table_has_an_end)
{
    char table[4 * ROLE_MAP_MAX * 8] = "x=reader";

    for (int i = 1; i < ROLE_MAP_MAX; i++)
        strcat(table, ",y=reader");
    ck_assert_str_eq(meaning(table, "x"), "reader ");
    strcat(table, ",y=reader");
    ck_assert_str_eq(meaning(table, "x"), "must have at most 64 entries");
}
