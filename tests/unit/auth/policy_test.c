/*
 * Which role may do which action by default, and how a policy file replaces single rules
 * (docs/api.md 15.4). Read claimd/auth/policy.h next.
 */
#include "claimd/auth/policy.h"
#include "support/check_main.h"

#include <string.h>

/* Reads a policy over the usual one; ' stands for ". Returns why it was refused, or
 * "". */
static const char *
read_policy(struct policy *p, const char *text)
{
    static struct reason why;
    char copy[512];
    struct policy before;
    enum status st;

    ck_assert_uint_lt(strlen(text), sizeof(copy));
    for (size_t i = 0; i <= strlen(text); i++)
        copy[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    *p = before = policy_default;
    reason_init(&why);
    st = policy_read(p, bytes_str(copy), &why);
    if (st == ST_OK)
        return "";
    ck_assert_int_eq(st, ST_BAD_VALUE);
    ck_assert_int_eq(memcmp(p, &before, sizeof(before)), 0);
    ck_assert_str_ne(why.text, "");
    return why.text;
}

/* The roles that may do it, by their first letters. */
static const char *
who_may(const struct policy *p, enum action action)
{
    static char letters[ROLE_COUNT + 1];
    size_t len = 0;

    for (unsigned role = 0; role < ROLE_COUNT; role++)
        if (policy_allows(p, (enum role)role, action))
            letters[len++] = role_name((enum role)role)[0];
    letters[len] = '\0';
    return letters;
}

START_TEST(names_lead_to_what_they_name)
{
    for (unsigned i = 0; i < ACTION_COUNT; i++)
        ck_assert_uint_eq(action_find(bytes_str(action_name((enum action)i))), i);
    for (unsigned i = 0; i < ROLE_COUNT; i++)
        ck_assert_uint_eq(role_find(bytes_str(role_name((enum role)i))), i);
    ck_assert_int_eq(action_find(bytes_str("claims")), ACTION_COUNT);
    ck_assert_int_eq(action_find(bytes_str("")), ACTION_COUNT);
    ck_assert_int_eq(role_find(bytes_str("Admin")), ROLE_COUNT);
}

START_TEST(an_admin_may_do_everything_and_each_role_has_its_own)
{
    const struct policy *p = &policy_default;

    for (unsigned i = 0; i < ACTION_COUNT; i++)
        ck_assert(policy_allows(p, ROLE_ADMIN, (enum action)i));
    ck_assert_str_eq(who_may(p, ACTION_CLAIMS_CREATE), "wa");
    ck_assert_str_eq(who_may(p, ACTION_MESSAGES_CREATE), "pa");
    ck_assert_str_eq(who_may(p, ACTION_MESSAGES_GET_ALL), "rwoa");
    ck_assert_str_eq(who_may(p, ACTION_QUEUES_DELETE), "oa");
    ck_assert_str_eq(who_may(p, ACTION_QUEUES_STATS), "rpwoa");
    ck_assert_str_eq(who_may(p, ACTION_HEALTH_GET), "oa");
}

START_TEST(a_rule_replaces_the_default_roles)
{
    struct policy p;

    ck_assert_str_eq(read_policy(&p, "{}"), "");
    ck_assert_int_eq(memcmp(&p, &policy_default, sizeof(p)), 0);
    ck_assert_str_eq(read_policy(&p, "{'queues:purge': 'role:worker or role:reader',"
                                     " 'messages:pop': '!', 'health:get': ' @ '}"),
                     "");
    ck_assert_str_eq(who_may(&p, ACTION_QUEUES_PURGE), "rw");
    ck_assert_str_eq(who_may(&p, ACTION_MESSAGES_POP), "");
    ck_assert_str_eq(who_may(&p, ACTION_HEALTH_GET), "rpwoa");
    ck_assert_str_eq(who_may(&p, ACTION_QUEUES_DELETE), "oa");
    ck_assert_str_eq(read_policy(&p, "{'home:get': '  role:admin   or  role:admin '}"),
                     "");
    ck_assert_str_eq(who_may(&p, ACTION_HOME_GET), "a");
}

START_TEST(an_invalid_policy_changes_nothing)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", ""},
        {"[]", "an object of actions and rules"},
        {"{'queues:purge': '@'", ""},
        {"{'queues:purge': '@'} x", ""},
        {"{'queues:burn': '@'}", "the action queues:burn does not exist"},
        {"{'queues:purge': '@', 'x': '!'}", "the action x does not exist"},
        {"{'queues:purge': ['@']}", "is not a string"},
        {"{'queues:purge': '!', 'queues:purge': '@'}", "queues:purge has two rules"},
        {"{'queues:purge': ''}", "a rule must be"},
        {"{'queues:purge': 'admin'}", "not admin"},
        {"{'queues:purge': 'role:'}", "the role \"\" does not exist"},
        {"{'queues:purge': 'role:boss'}", "the role \"boss\" does not exist"},
        {"{'queues:purge': 'role:admin and role:worker'}", "joined by or"},
        {"{'queues:purge': 'role:admin role:worker'}", "joined by or"},
        {"{'queues:purge': 'role:admin or'}", "must follow or"},
        {"{'queues:purge': 'role:admin or @'}", "not @"},
        {"{'queues:purge': '@ or role:admin'}", "not @"},
        {"{'queues:purge': 'role:admin or or role:worker'}", "not or"},
    };
    struct policy p;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *why = read_policy(&p, rows[i].text);

        ck_assert_msg(strstr(why, rows[i].why) != NULL && why[0] != '\0', "%s: \"%s\"",
                      rows[i].text, why);
    }
}
