/*
 * Which documents of Keystone identify a user (docs/api.md 15.6). Any other document,
 * such as one with a member that is missing, repeated or of another type, must deny
 * access. The reader is src/auth/keystone_token.c.
 */
#include "auth/verdict.h"
#include "support/arena_fixture.h"
#include "support/fake_keystone.h"

#include <stdio.h>

#define USER    "\"user\":{\"id\":\"ann\",\"name\":\"Ann\",\"domain\":{\"id\":\"default\"}}"
#define EXPIRES "\"expires_at\":\"2026-01-31T13:00:00.000000Z\""
#define PROJECT "\"project\":{\"domain\":{\"id\":\"d\"},\"id\":\"p\",\"name\":\"x\"}"
#define ROLES   "\"roles\":[{\"id\":\"1\",\"name\":\"member\"},{\"name\":\"other\"}]"

/* The owner of the token by a document, or the reason why it is invalid. */
static const char *
reading(const char *document)
{
    static char text[REASON_CAP + 1];
    struct verdict *v = verdict_new(f.mem);
    struct reason why;

    ck_assert_ptr_nonnull(v);
    reason_init(&why);
    if (keystone_token_read(bytes_str(document), &fake_keystone_roles, v, &why) == ST_OK)
        (void)snprintf(text, sizeof(text), "%.*s %.*s %x %lld", (int)v->name_len, v->name,
                       (int)v->project_len, v->project, v->roles,
                       (long long)(v->expires_ms / 1000));
    else
        (void)snprintf(text, sizeof(text), "%s", why.text);
    verdict_unpin(v);
    return text;
}

#define TOKEN(...) "{\"token\":{" __VA_ARGS__ "}}"

ARENA_CASE("documents");

START_TEST(a_document_gives_the_owner_of_a_token)
{
    ck_assert_str_eq(reading(TOKEN(EXPIRES "," USER "," PROJECT "," ROLES)),
                     "ann p 6 1769864400");
    ck_assert_str_eq(
        reading("{\"x\":[{}], \"token\":{\"catalog\":[{\"id\":1}],\"methods\":[]," ROLES
                "," PROJECT ",\"is_domain\":false," USER "," EXPIRES "}, \"y\":null}"),
        "ann p 6 1769864400");
}

START_TEST(a_token_may_be_without_project_and_roles)
{
    ck_assert_str_eq(reading(TOKEN(EXPIRES "," USER)), "ann  0 1769864400");
    ck_assert_str_eq(reading(TOKEN(EXPIRES "," USER "," PROJECT ",\"roles\":[]")),
                     "ann p 0 1769864400");
}

START_TEST(times_may_have_a_fraction_or_none)
{
#define ENDS(text) TOKEN("\"expires_at\":\"" text "\"," USER)
    static const char *const bad[] = {
        ENDS(""),
        ENDS("2026-01-31T13:00:00"),
        ENDS("2026-01-31T13:00:00.0"),
        ENDS("2026-01-31T13:00:00+00:00"),
        ENDS("2026-02-30T13:00:00Z"),
        ENDS("2026-01-31T13:00:00.0Zx"),
        ENDS("2026-01-31 13:00:00Z"),
        ENDS("99999-01-31T13:00:00Z"),
        ENDS("never"),
        TOKEN("\"expires_at\":1769864400," USER),
        TOKEN("\"expires_at\":null," USER),
    };

    ck_assert_str_eq(reading(ENDS("2026-01-31T13:00:00Z")), "ann  0 1769864400");
    ck_assert_str_eq(reading(ENDS("2026-01-31T13:00:00.999999999Z")),
                     "ann  0 1769864400");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(strcmp(reading(bad[i]), "expires_at is not a time") == 0, "%s: %s",
                      bad[i], reading(bad[i]));
}

START_TEST(required_members_must_exist)
{
    static const char missing[] = "a token, its expires_at or its user is missing";

    ck_assert_str_eq(reading(""), missing);
    ck_assert_str_eq(reading("{}"), missing);
    ck_assert_str_eq(reading("{\"token\":{}}"), missing);
    ck_assert_str_eq(reading("{\"token\":[]}"), missing);
    ck_assert_str_eq(reading("{" EXPIRES "," USER "}"), missing);
    ck_assert_str_eq(reading(TOKEN(EXPIRES)), missing);
    ck_assert_str_eq(reading(TOKEN(USER)), missing);
    ck_assert_str_eq(reading(TOKEN(EXPIRES ",\"user\":{\"name\":\"x\"}")),
                     "user or project has no id");
}

START_TEST(nothing_that_counts_is_there_twice)
{
    static const char twice[] = "a member appears twice";

    ck_assert_str_eq(reading(TOKEN(EXPIRES "," USER "," EXPIRES)), twice);
    ck_assert_str_eq(reading(TOKEN(EXPIRES "," USER "," USER)), twice);
    ck_assert_str_eq(reading(TOKEN(EXPIRES "," USER "," PROJECT "," PROJECT)), twice);
    ck_assert_str_eq(reading(TOKEN(EXPIRES "," USER "," ROLES "," ROLES)), twice);
    ck_assert_str_eq(reading("{\"token\":{" EXPIRES "," USER "},\"token\":{\"x\":1}}"),
                     twice);
    ck_assert_str_eq(reading(TOKEN(EXPIRES ",\"user\":{\"id\":\"a\",\"id\":\"b\"}")),
                     "an id is not a string, or it appears twice");
    ck_assert_str_eq(
        reading(
            TOKEN(EXPIRES "," USER ",\"roles\":[{\"name\":\"x\",\"name\":\"admin\"}]")),
        "the name of a role is not a string, or it appears twice");
}

START_TEST(members_of_another_type_are_refused)
{
    static const char *const rows[][2] = {
        {TOKEN(EXPIRES ",\"user\":\"ann\""), "user or project is not an object"},
        {TOKEN(EXPIRES ",\"user\":{\"id\":7}"),
         "an id is not a string, or it appears twice"},
        {TOKEN(EXPIRES "," USER ",\"project\":\"p\""),
         "user or project is not an object"},
        {TOKEN(EXPIRES "," USER ",\"project\":null"), "user or project is not an object"},
        {TOKEN(EXPIRES "," USER ",\"project\":{\"id\":\"\"}"), "an id is empty"},
        {TOKEN(EXPIRES "," USER ",\"project\":{\"id\":\"a\\nb\"}"),
         "an id is too long, or has control characters"},
        {TOKEN(EXPIRES "," USER ",\"roles\":\"admin\""), "roles is not an array"},
        {TOKEN(EXPIRES "," USER ",\"roles\":{\"name\":\"admin\"}"),
         "roles is not an array"},
        {TOKEN(EXPIRES "," USER ",\"roles\":[\"admin\"]"), "a role is not an object"},
        {TOKEN(EXPIRES "," USER ",\"roles\":[{\"id\":\"admin\"}]"), "a role has no name"},
        {TOKEN(EXPIRES "," USER ",\"roles\":[{\"name\":[\"admin\"]}]"),
         "the name of a role is not a string, or it appears twice"},
        {"<html>", "it is not a JSON object"},
        {TOKEN(EXPIRES "," USER) "x", "it is not a JSON object"},
        {"{\"token\":{" EXPIRES "," USER, "it is not a JSON object"},
        {"[]", "it is not a JSON object"},
        {"\"token\"", "it is not a JSON object"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(strcmp(reading(rows[i][0]), rows[i][1]) == 0, "%s: %s", rows[i][0],
                      reading(rows[i][0]));
}

/* A document with a project whose id is a letter repeated. */
static const char *
project_of(size_t len)
{
    buf_reset(&f.out, SIZE_MAX);
    buf_str(&f.out, "{\"token\":{" EXPIRES "," USER ",\"project\":{\"id\":\"");
    for (size_t i = 0; i < len; i++)
        buf_byte(&f.out, 'p');
    buf_str(&f.out, "\"}}}");
    buf_byte(&f.out, '\0');
    return reading(f.out.data);
}

START_TEST(ids_have_an_end)
{
    ck_assert_msg(strstr(project_of(VERDICT_PROJECT_MAX), " 0 1769864400") != NULL,
                  "a project of %d", VERDICT_PROJECT_MAX);
    ck_assert_str_eq(project_of(VERDICT_PROJECT_MAX + 1),
                     "an id is too long, or has control characters");
}

START_TEST(depth_costs_nothing)
{
    buf_str(&f.out, "{\"token\":{" EXPIRES "," USER ",\"x\":");
    for (int i = 0; i < 1000000; i++)
        buf_byte(&f.out, '[');
    buf_byte(&f.out, '\0');
    ck_assert_str_eq(reading(f.out.data), "it is not a JSON object");
}
