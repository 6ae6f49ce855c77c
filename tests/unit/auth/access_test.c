/*
 * Which caller a token, a certificate or a Keystone token identifies, and what the caller
 * may do (docs/api.md 15). A list of tokens is replaced as a whole, with its policy, or
 * not at all. Read claimd/auth/access.h next.
 */
#include "claimd/auth/access.h"
#include "support/arena_fixture.h"
#include "support/fake_keystone.h"

#include <stdio.h>
#include <string.h>

static const int64_t now_ms = INT64_C(1769860800000); /* 2026-01-31T12:00:00Z */

static struct access *access_under_test;

static void
setup(void)
{
    arena_fixture_open();
    ck_assert_int_eq(access_new(f.mem, &access_under_test), ST_OK);
}

static void
teardown(void)
{
    access_free(access_under_test);
    arena_fixture_close();
}

/* Adds a line for a token of this text. */
static void
line(const char *name, const char *role, const char *projects, const char *expires,
     const char *token)
{
    struct token_digest digest;

    token_digest_of(bytes_str(token), &digest);
    buf_printf(&f.out, "%s %s %s %s sha256:", name, role, projects, expires);
    for (size_t i = 0; i < sizeof(digest.bytes); i++)
        buf_printf(&f.out, "%02x", digest.bytes[i]);
    buf_byte(&f.out, '\n');
}

static void
take_lines(void)
{
    struct reason why;
    size_t bad_line;

    ck_assert_int_eq(access_replace(access_under_test, buf_view(&f.out), &policy_default,
                                    &bad_line, &why),
                     ST_OK);
}

/* The name of the caller, or the status and the reason. */
static const char *
identify_with(const struct certificate *certificate, const char *token,
              const char *project, enum action action)
{
    static char text[512];
    struct access_proof proof = {.verdict = NULL};
    const struct access_request request = {.token = bytes_str(token),
                                           .proof = &proof,
                                           .certificate = certificate,
                                           .project = bytes_str(project),
                                           .action = action,
                                           .now_ms = now_ms};
    struct access_caller caller;
    struct reason why;
    enum status st;

    reason_init(&why);
    st = access_ask(access_under_test, &request, &f.arena, &caller, &why);
    access_proof_drop(&proof);
    if (st == ST_OK)
        (void)snprintf(text, sizeof(text), "%s %s %s", caller.name.data,
                       role_name(caller.role),
                       bytes_present(caller.project) ? caller.project.data : "-");
    else
        (void)snprintf(text, sizeof(text), "%s: %s", status_name(st), why.text);
    return text;
}

static const char *
identify(const char *token, const char *project, enum action action)
{
    return identify_with(NULL, token, project, action);
}

static const char needs_token[] = "UNAUTHORIZED: a token is required. Send it in "
                                  "X-Auth-Token or as Authorization: Bearer TOKEN";

TEST_CASE("access", .setup = setup, .teardown = teardown);

START_TEST(without_a_list_access_is_denied)
{
    ck_assert_str_eq(identify("t", "p", ACTION_HOME_GET),
                     "UNAUTHORIZED: the token is unknown");
    ck_assert_str_eq(identify("", "p", ACTION_HOME_GET), needs_token);
    ck_assert_str_eq(identify(NULL, "p", ACTION_COUNT), needs_token);
    ck_assert_uint_eq(access_count(access_under_test), 0);
}

START_TEST(a_token_is_good_for_its_projects_and_its_role)
{
    line("one", "worker", "p", "never", "1");
    line("two", "reader", "p,q", "never", "2");
    line("all", "admin", "*", "never", "3");
    take_lines();
    ck_assert_uint_eq(access_count(access_under_test), 3);
    ck_assert_str_eq(identify("1", "p", ACTION_CLAIMS_CREATE), "one worker -");
    ck_assert_str_eq(identify("1", NULL, ACTION_CLAIMS_CREATE), "one worker p");
    ck_assert_str_eq(identify("1", "", ACTION_CLAIMS_CREATE), "one worker p");
    ck_assert_str_eq(identify("1", "q", ACTION_CLAIMS_CREATE),
                     "FORBIDDEN: the token is not for the project \"q\"");
    ck_assert_str_eq(
        identify("1", "p", ACTION_QUEUES_PURGE),
        "FORBIDDEN: the action queues:purge is not allowed for the role worker. Allowed "
        "roles: operator, admin");
    ck_assert_str_eq(identify("1", "p", ACTION_COUNT),
                     "one worker -"); /* it will be a 405 */
    ck_assert_str_eq(identify("2", "q", ACTION_QUEUES_GET), "two reader -");
    ck_assert_str_eq(identify("2", NULL, ACTION_QUEUES_GET),
                     "MISSING_PROJECT: the token is for several projects. Name one of "
                     "them in X-Project-ID");
    ck_assert_str_eq(identify("3", "x", ACTION_QUEUES_PURGE), "all admin -");
    ck_assert_str_eq(identify("3", NULL, ACTION_QUEUES_PURGE), "all admin -");
}

START_TEST(a_token_ends_at_its_time)
{
    line("over", "admin", "*", "2026-01-31T12:00:00Z", "1");
    line("nearly", "admin", "*", "2026-01-31T12:00:01Z", "2");
    take_lines();
    ck_assert_str_eq(identify("1", "p", ACTION_HOME_GET),
                     "UNAUTHORIZED: the token has expired");
    ck_assert_str_eq(identify("2", "p", ACTION_HOME_GET), "nearly admin -");
}

START_TEST(among_many_each_is_found)
{
    char text[32];

    buf_str(&f.out, "# many\n\n");
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(text, sizeof(text), "t%d", i);
        line(text, "admin", "*", "never", text);
    }
    take_lines();
    for (int i = 0; i < 3000; i++) {
        char expected[32];

        (void)snprintf(text, sizeof(text), "t%d", i);
        (void)snprintf(expected, sizeof(expected), "t%d admin -", i);
        ck_assert_str_eq(identify(text, "p", ACTION_HOME_GET), expected);
        arena_reset(&f.arena);
    }
    ck_assert_str_eq(identify("t3000", "p", ACTION_HOME_GET),
                     "UNAUTHORIZED: the token is unknown");
}

static void
expect_refused(size_t expected_line, const char *reason)
{
    const struct policy no_rules = {{0}};
    struct reason why;
    size_t bad_line = 0;

    ck_assert_int_eq(
        access_replace(access_under_test, buf_view(&f.out), &no_rules, &bad_line, &why),
        ST_BAD_VALUE);
    ck_assert_uint_eq(bad_line, expected_line);
    ck_assert_msg(strstr(why.text, reason) != NULL, "%s", why.text);
}

START_TEST(a_list_is_taken_as_a_whole_or_not_at_all)
{
    line("a", "worker", "p", "never", "1");
    take_lines();
    buf_reset(&f.out, SIZE_MAX);
    line("b", "worker", "p", "never", "2");
    buf_str(&f.out, "\nb worker p never x\n");
    expect_refused(3, "the digest of a token");
    buf_reset(&f.out, SIZE_MAX);
    line("b", "worker", "p", "never", "2");
    line("b", "worker", "p", "never", "3");
    expect_refused(2, "the name b is used twice");
    buf_reset(&f.out, SIZE_MAX);
    line("b", "worker", "p", "never", "2");
    line("c", "worker", "p", "never", "2");
    expect_refused(2, "the token of c is also on another line");
    ck_assert_str_eq(identify("1", "p", ACTION_CLAIMS_CREATE), "a worker -");
    ck_assert_str_eq(identify("2", "p", ACTION_CLAIMS_CREATE),
                     "UNAUTHORIZED: the token is unknown");
    buf_reset(&f.out, SIZE_MAX);
    line("b", "worker", "p", "never", "2");
    take_lines();
    ck_assert_str_eq(identify("1", "p", ACTION_CLAIMS_CREATE),
                     "UNAUTHORIZED: the token is unknown");
    ck_assert_str_eq(identify("2", "p", ACTION_CLAIMS_CREATE), "b worker -");
}

START_TEST(the_policy_comes_with_the_list)
{
    struct policy policy = policy_default;
    struct reason why;
    size_t bad_line;

    line("a", "reader", "p", "never", "1");
    ck_assert_int_eq(
        policy_read(&policy, bytes_str("{\"queues:purge\": \"role:reader\"}"), &why),
        ST_OK);
    ck_assert_int_eq(
        access_replace(access_under_test, buf_view(&f.out), &policy, &bad_line, &why),
        ST_OK);
    ck_assert_str_eq(identify("1", "p", ACTION_QUEUES_PURGE), "a reader -");
}

/* Every allocation fails once; then all is as before, the policy too. */
START_TEST(out_of_memory_changes_nothing)
{
    struct policy policy = policy_default;
    struct access *other;
    struct reason why;
    size_t bad_line;
    uint64_t nth = 0;

    mem_fail_nth(f.mem, 1);
    ck_assert_int_eq(access_new(f.mem, &other), ST_NO_MEMORY);
    mem_fail_nth(f.mem, 0);
    line("a", "worker", "p", "never", "1");
    take_lines();
    buf_reset(&f.out, SIZE_MAX);
    line("a", "worker", "p", "never", "1");
    line("b", "worker", "p", "never", "2");
    ck_assert_int_eq(
        policy_read(&policy, bytes_str("{\"claims:create\":\"role:admin\"}"), &why),
        ST_OK);
    for (enum status st = ST_NO_MEMORY; st != ST_OK; nth++) {
        mem_fail_nth(f.mem, nth + 1);
        st =
            access_replace(access_under_test, buf_view(&f.out), &policy, &bad_line, &why);
        mem_fail_nth(f.mem, 0);
        ck_assert(st == ST_OK || st == ST_NO_MEMORY);
        ck_assert_str_eq(identify(st == ST_OK ? "2" : "1", "p", ACTION_MESSAGES_GET),
                         st == ST_OK ? "b worker -" : "a worker -");
        if (st != ST_OK)
            ck_assert_str_eq(identify("1", "p", ACTION_CLAIMS_CREATE), "a worker -");
    }
    ck_assert_uint_gt(nth, 3);
}

static void
use_certificates(const char *list)
{
    struct token_list *certificates;
    struct reason why;
    size_t bad_line;

    ck_assert_int_eq(token_list_read(f.mem, bytes_str(list), certificate_line_read,
                                     &certificates, &bad_line, &why),
                     ST_OK);
    access_use_certificates(access_under_test, certificates);
}

START_TEST(a_certificate_lets_in_like_a_token)
{
    const struct certificate known = {true, BYTES_LIT("dns:a\nsubject:CN=a")};
    const struct certificate unknown = {true, BYTES_LIT("dns:b")};
    const struct certificate bad = {false, BYTES_LIT("dns:a")};

    line("t", "admin", "*", "never", "1");
    take_lines();
    ck_assert_str_eq(identify_with(&known, "", "p", ACTION_HOME_GET),
                     needs_token); /* it means nothing here */
    ck_assert_str_eq(identify_with(&known, "1", "p", ACTION_HOME_GET), "t admin -");
    use_certificates("c worker p dns:a\n");
    ck_assert_str_eq(identify_with(&known, "", "p", ACTION_CLAIMS_CREATE), "c worker -");
    ck_assert_str_eq(
        identify_with(&unknown, "", "p", ACTION_HOME_GET),
        "UNAUTHORIZED: no entry of the file of certificates matches this certificate");
    ck_assert_ptr_nonnull(strstr(identify_with(&bad, "", "p", ACTION_HOME_GET),
                                 "the certificate is not valid"));
    ck_assert_str_eq(identify("", "p", ACTION_HOME_GET),
                     "UNAUTHORIZED: a certificate or a token is required");
    use_certificates("d worker p dns:a\n");
    ck_assert_str_eq(identify_with(&known, "", "p", ACTION_HOME_GET), "d worker -");
}

START_TEST(two_credentials_at_a_time_are_one_too_many)
{
    const struct certificate known = {true, BYTES_LIT("dns:a")};
    const struct certificate unknown = {true, BYTES_LIT("dns:b")};

    line("t", "admin", "*", "never", "1");
    take_lines();
    use_certificates("c worker p dns:a\n");
    ck_assert_str_eq(
        identify_with(&known, "1", "p", ACTION_HOME_GET),
        "UNAUTHORIZED: the request has both a certificate and a token. Send only one");
    ck_assert_str_eq(
        identify_with(&known, "nonsense", "p", ACTION_HOME_GET),
        "UNAUTHORIZED: the request has both a certificate and a token. Send only one");
    /* A certificate without a row is no credential: the token gives the identity. */
    ck_assert_str_eq(identify_with(&unknown, "1", "p", ACTION_HOME_GET), "t admin -");
    ck_assert_str_eq(identify_with(&unknown, "2", "p", ACTION_HOME_GET),
                     "UNAUTHORIZED: the token is unknown");
}

START_TEST(a_caller_of_keystone_has_the_greatest_of_its_roles)
{
    static const struct {
        const char *token, *result;
    } rows[] = {
        {"reader@p", "ann reader p"},
        {"reader,member@p", "ann worker p"},
        {"admin,reader@p", "ann admin p"},
        {"stranger@p",
         "FORBIDDEN: none of the roles of the token is known to this server"},
        {"member@", "FORBIDDEN: the token is not for a project"},
        {"member@q", "FORBIDDEN: the token is not for the project \"p\""},
    };
    static struct fake_keystone fake;
    const struct keystone_config config = {.mem = f.mem,
                                           .wire = &fake.wire,
                                           .roles = fake_keystone_roles,
                                           .cache_ms = 60000,
                                           .cache_tokens = 16,
                                           .timeout_ms = 60000};
    struct keystone *keystone;

    fake_keystone_init(&fake);
    ck_assert_int_eq(keystone_new(&config, &keystone), ST_OK);
    access_use_keystone(access_under_test, keystone);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_str_eq(identify(rows[i].token, "p", ACTION_COUNT), rows[i].result);
    ck_assert_ptr_nonnull(strstr(identify("reader,member@p", "p", ACTION_QUEUES_PURGE),
                                 "for the role worker"));
    keystone_free(keystone);
    fake_keystone_fini(&fake);
}
