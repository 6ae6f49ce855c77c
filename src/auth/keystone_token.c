/*
 * keystone_token: reads the document of Keystone about a token.
 *
 *     {"token": {"expires_at": "2026-01-31T13:00:00.000000Z", "user": {"id": ...},
 *                "project": {"id": ...}, "roles": [{"name": ...}, ...], ...}}
 *
 * Members that claimd reads must have the right type and must not be missing or
 * duplicate. Others are ignored. A token may have no project and no roles.
 *
 *   Cost     O(length), constant stack
 *   Memory   none
 *   Threads  any
 */
#include "auth/verdict.h"

#include "claimd/base/clock.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

enum { EXPIRES, USER, PROJECT, ROLES, MEMBERS };

static const char *const names[MEMBERS] = {"expires_at", "user", "project", "roles"};

/* ------------------------------------------------------------------ values */

/* The errors of an object that must have a member with a string. */
struct object_errors {
    const char *no_object, *no_member, *no_string;
};

/* Finds the text of a member. Absent, and *wrong has the error, if it is not one
 * string. */
static struct bytes
find_text(const struct json_scan_value *object, const char *name,
          const struct object_errors *errors, const char **wrong)
{
    struct json_scan_value value = {.kind = SCAN_NONE};
    struct json_names seen;

    *wrong = errors->no_object;
    if (object->kind != SCAN_OBJECT)
        return BYTES_NONE;
    (void)json_members_read(object->text, &name, 1, &value, &seen); /* it was checked */
    *wrong = value.kind == SCAN_NONE                           ? errors->no_member
             : value.kind != SCAN_STRING || seen.twice != NULL ? errors->no_string
                                                               : NULL;
    return *wrong == NULL ? json_scan_inside(&value) : BYTES_NONE;
}

/* Reads the id of a user or project, with its escapes decoded: 1 to `most` bytes without
 * control characters. Returns the error, or NULL. */
static const char *
read_id(const struct json_scan_value *object, char *out, size_t most, size_t *len)
{
    static const struct object_errors errors = {
        "user or project is not an object", "user or project has no id",
        "an id is not a string, or it appears twice"};
    const char *wrong;
    struct bytes inside = find_text(object, "id", &errors, &wrong);

    *len = 0;
    while (inside.len > 0) {
        char utf8[4];
        uint32_t c = json_string_next(&inside);
        unsigned n = utf8_write(c, utf8);

        if (c < 0x20 || c == 0x7f || *len + n > most)
            return "an id is too long, or has control characters";
        memcpy(out + *len, utf8, n);
        *len += n;
    }
    return wrong == NULL && *len == 0 ? "an id is empty" : wrong;
}

/* Reads "2026-01-31T13:00:00.000000Z". Ignores the fraction, so a token ends up to a
 * second early. */
static const char *
read_expires(const struct json_scan_value *value, int64_t *out_ms)
{
    enum { SECONDS_LEN = CLOCK_TEXT_CAP - 2 }; /* without its Z */
    struct bytes inside =
        value->kind == SCAN_STRING ? json_scan_inside(value) : BYTES_NONE;
    char text[CLOCK_TEXT_CAP];
    size_t at = SECONDS_LEN;

    if (inside.len > at && inside.data[at] == '.')
        for (at++; at < inside.len && inside.data[at] >= '0' && inside.data[at] <= '9';)
            at++;
    if (at + 1 != inside.len || inside.data[at] != 'Z')
        return "expires_at is not a time";
    memcpy(text, inside.data, SECONDS_LEN);
    text[SECONDS_LEN] = 'Z';
    return token_time_read(bytes_of(text, SECONDS_LEN + 1), out_ms)
               ? NULL
               : "expires_at is not a time";
}

static const char *
read_roles(const struct json_scan_value *list, const struct role_map *roles,
           struct verdict *out)
{
    static const struct object_errors errors = {
        "a role is not an object", "a role has no name",
        "the name of a role is not a string, or it appears twice"};
    struct json_scan_value role;
    const char *wrong = NULL;
    struct json_scan s;

    json_scan_begin(&s, list->text);
    if (!json_scan_enter(&s, SCAN_ARRAY))
        return "roles is not an array";
    while (wrong == NULL && json_scan_item(&s) && json_scan_value(&s, &role)) {
        struct bytes name = find_text(&role, "name", &errors, &wrong);

        if (wrong == NULL)
            out->roles |= role_map_find(roles, name);
    }
    return wrong;
}

/* ------------------------------------------------------------------ the document */

/* Reads the object `token`. Returns the error, or NULL. */
static const char *
read_token(struct bytes token, const struct role_map *roles, struct verdict *out)
{
    struct json_scan_value values[MEMBERS];
    struct json_names seen;
    const char *wrong;

    (void)json_members_read(token, names, MEMBERS, values, &seen); /* it was checked */
    if (seen.twice != NULL)
        return "a member appears twice";
    if (values[EXPIRES].kind == SCAN_NONE || values[USER].kind == SCAN_NONE)
        return "a token, its expires_at or its user is missing";
    wrong = read_expires(&values[EXPIRES], &out->expires_ms);
    if (wrong == NULL)
        wrong = read_id(&values[USER], out->name, sizeof(out->name), &out->name_len);
    if (wrong == NULL && values[PROJECT].kind != SCAN_NONE)
        wrong = read_id(&values[PROJECT], out->project, sizeof(out->project),
                        &out->project_len);
    if (wrong == NULL && values[ROLES].kind != SCAN_NONE)
        wrong = read_roles(&values[ROLES], roles, out);
    return wrong;
}

enum status
keystone_token_read(struct bytes text, const struct role_map *roles, struct verdict *out,
                    struct reason *why)
{
    static const char *const token_name = "token";
    struct json_scan_value token = {.kind = SCAN_NONE};
    struct json_names seen = {.twice = NULL};
    const char *wrong = "a token, its expires_at or its user is missing";

    out->roles = 0;
    out->project_len = 0;
    if (text.len > 0 && json_members_read(text, &token_name, 1, &token, &seen) != ST_OK)
        return reason_give(why, ST_BAD_BODY, "it is not a JSON object");
    if (seen.twice != NULL)
        wrong = "a member appears twice";
    else if (token.kind == SCAN_OBJECT)
        wrong = read_token(token.text, roles, out);
    return wrong == NULL ? ST_OK : reason_give(why, ST_BAD_BODY, "%s", wrong);
}
