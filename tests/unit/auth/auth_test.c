/* The identity stub (claimd/auth/auth.h): its list of users, and its tokens. */
#include "claimd/auth/auth.h"
#include "support/arena_fixture.h"

#include <stdio.h>

static const int64_t noon_ms = INT64_C(1769860800000);

static struct auth *
open_auth(uint64_t key, const char *users)
{
    const struct auth_config config = {.mem = f.mem,
                                       .key = {key, key},
                                       .token_life_s = 60,
                                       .region = "DFW",
                                       .users = bytes_str(users)};
    struct auth *auth;
    size_t bad_line;

    ck_assert_int_eq(auth_new(&config, &auth, &bad_line), ST_OK);
    return auth;
}

/* Logs in. Returns the project, or "refused". password NULL: with a token. wanted: the
 * project in the request; NULL or "": none. */
static const char *
admit(const struct auth *auth, const char *user, const char *password, const char *wanted)
{
    struct bytes project;
    static char text[64];

    if (auth_admit(auth, bytes_str(user), bytes_str(password), bytes_str(wanted),
                   &project) != ST_OK)
        return "refused";
    (void)snprintf(text, sizeof(text), "%.*s", (int)project.len, project.data);
    return text;
}

ARENA_CASE("auth");

#define AUTH_TEST_WITH(id, make) MADE_TEST(id, struct auth, auth, make, auth_free(auth))
#define AUTH_TEST(id)            AUTH_TEST_WITH(id, open_auth(1, NULL))

AUTH_TEST(without_a_list_everything_is_allowed)
{
    ck_assert(!auth_is_required(auth));
    ck_assert_str_eq(admit(auth, "ann", "any", "blue"), "blue");
    ck_assert_str_eq(admit(auth, "ann", "any", NULL), "ann");
    ck_assert_str_eq(admit(auth, "ann", "any", ""), "ann");
    ck_assert_str_eq(admit(auth, "", "any", "blue"), "refused");
}

AUTH_TEST_WITH(a_list_grants_roles_per_project, open_auth(1, "# a comment\r\n"
                                                             "\n"
                                                             "ann:secret:blue\n"
                                                             "ann:secret:green\r\n"
                                                             "bob:hush"))
{
    ck_assert(auth_is_required(auth));
    ck_assert_str_eq(admit(auth, "ann", "secret", NULL), "blue");
    ck_assert_str_eq(admit(auth, "ann", "secret", "green"), "green");
    ck_assert_str_eq(admit(auth, "ann", "secret", "red"), "refused");
    ck_assert_str_eq(admit(auth, "ann", "hush", "blue"), "refused");
    ck_assert_str_eq(admit(auth, "ann", "", "blue"), "refused");
    ck_assert_str_eq(admit(auth, "bob", "hush", "red"), "red");
    ck_assert_str_eq(admit(auth, "bob", "hush", NULL), "bob");
    ck_assert_str_eq(admit(auth, "bob", NULL, "green"), "green");
    ck_assert_str_eq(admit(auth, "eve", NULL, NULL), "refused");
}

AUTH_TEST_WITH(an_empty_list_denies_everything, open_auth(1, ""))
{
    ck_assert(auth_is_required(auth));
    ck_assert_str_eq(admit(auth, "ann", "any", NULL), "refused");
}

START_TEST(an_invalid_line_is_named)
{
    static const char *const lists[] = {"a:b\nnopassword", "a:b\n:b",
                                        "a:b\na:", "a:b\na:b:"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const struct auth_config config = {
            .mem = f.mem, .region = "DFW", .users = bytes_str(lists[i])};
        struct auth *auth;
        size_t bad_line = 0;

        ck_assert_int_eq(auth_new(&config, &auth, &bad_line), ST_BAD_VALUE);
        ck_assert_uint_eq(bad_line, 2);
    }
}

/* A token of "ann" in "a/b" that ends at noon and a minute. */
static struct bytes
make_token(const struct auth *auth)
{
    struct auth_caller ann = {bytes_str("ann"), bytes_str("a/b"), AUTH_NEVER};
    struct bytes token;

    ck_assert_int_eq(auth_token_write(auth, noon_ms, &ann, &f.arena, &token), ST_OK);
    ck_assert_int_eq(ann.expires_ms, noon_ms + 60000);
    ck_assert_uint_eq(strlen(token.data), token.len);
    return token;
}

AUTH_TEST(a_token_gives_user_and_project_until_it_expires)
{
    struct auth_caller caller;
    struct bytes token;

    token = make_token(auth);
    ck_assert_int_eq(auth_token_read(auth, noon_ms + 59999, token, &f.arena, &caller),
                     ST_OK);
    ck_assert(bytes_equal_str(caller.user, "ann"));
    ck_assert(bytes_equal_str(caller.project, "a/b"));
    ck_assert_int_eq(caller.expires_ms, noon_ms + 60000);
    ck_assert_int_eq(auth_token_read(auth, noon_ms + 60000, token, &f.arena, &caller),
                     ST_UNAUTHORIZED);
}

AUTH_TEST(a_token_got_with_a_token_expires_with_it)
{
    int64_t now_ms = noon_ms;
    struct auth_caller caller;
    struct bytes token = make_token(auth);

    for (int i = 0; i < 3; i++) { /* each for the one before */
        now_ms += 10000;
        ck_assert_int_eq(auth_token_read(auth, now_ms, token, &f.arena, &caller), ST_OK);
        ck_assert_int_eq(auth_token_write(auth, now_ms, &caller, &f.arena, &token),
                         ST_OK);
        ck_assert_int_eq(caller.expires_ms, noon_ms + 60000);
    }
    ck_assert_int_eq(auth_token_read(auth, noon_ms + 59999, token, &f.arena, &caller),
                     ST_OK);
    ck_assert_int_eq(auth_token_read(auth, noon_ms + 60000, token, &f.arena, &caller),
                     ST_UNAUTHORIZED);
}

AUTH_TEST_WITH(passwords_and_projects_of_users_are_compared_with_their_case,
               open_auth(1, "ann:Secret:Blue"))
{
    ck_assert_str_eq(admit(auth, "ann", "Secret", "Blue"), "Blue");
    ck_assert_str_eq(admit(auth, "ann", "secret", "Blue"), "refused");
    ck_assert_str_eq(admit(auth, "ann", "SECRET", NULL), "refused");
    ck_assert_str_eq(admit(auth, "ann", "Secret", "blue"), "refused");
    ck_assert_str_eq(admit(auth, "Ann", "Secret", "Blue"), "refused");
}

AUTH_TEST(a_changed_token_is_refused)
{
    struct auth *other = open_auth(2, NULL);
    struct auth_caller caller;
    struct bytes token;

    token = make_token(auth);
    for (size_t i = 0; i < token.len; i++) {
        struct bytes touched = arena_copy(&f.arena, token);
        struct bytes cut = bytes_of(token.data, i);

        ((char *)(uintptr_t)touched.data)[i] ^= 1;
        ck_assert_int_eq(auth_token_read(auth, noon_ms, touched, &f.arena, &caller),
                         ST_UNAUTHORIZED);
        ck_assert_int_eq(auth_token_read(auth, noon_ms, cut, &f.arena, &caller),
                         ST_UNAUTHORIZED);
    }
    ck_assert_int_eq(auth_token_read(other, noon_ms, token, &f.arena, &caller),
                     ST_UNAUTHORIZED);
    ck_assert_int_eq(auth_token_read(auth, noon_ms, BYTES_NONE, &f.arena, &caller),
                     ST_UNAUTHORIZED);
    auth_free(other);
}
