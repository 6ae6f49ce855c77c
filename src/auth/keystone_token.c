/*
 * keystone_token: reads the document of Keystone about a token.
 *
 *     {"token": {"expires_at": "2026-01-31T13:00:00.000000Z", "user": {"id": ...},
 *                "project": {"id": ...}, "roles": [{"name": ...}, ...], ...}}
 *
 * Members that claimd reads must have the right type and must not be missing or duplicate. Others are ignored.
 * A token may have no project and no roles.
 *
 *   Cost     O(length), constant stack
 *   Memory   none
 *   Threads  any
 */
#include "auth/verdict.h"

#include "claimd/base/clock.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

/* Members that were read. */
enum {
    SEEN_TOKEN = 1,
    SEEN_EXPIRES = 2,
    SEEN_USER = 4,
    SEEN_PROJECT = 8,
    SEEN_ROLES = 16
};

struct token_reader {
    struct json_scan s;
    const struct role_map *roles;
    struct verdict *out;
    unsigned seen;
    const char *wrong; /* the first error; NULL: none */
};

static void
set_wrong(struct token_reader *r, const char *wrong)
{
    if (r->wrong == NULL)
        r->wrong = wrong;
}

/* Notes that a member was seen. */
static void
note_member(struct token_reader *r, unsigned what)
{
    if ((r->seen & what) != 0)
        set_wrong(r, "a member appears twice");
    r->seen |= what;
}

/* ------------------------------------------------------------------ values */

/* Reads an id with its escapes decoded: 1 to `most` bytes without control characters. Returns its length. */
static size_t
read_id(struct token_reader *r, struct bytes inside, char *out, size_t most)
{
    size_t len = 0;

    while (inside.len > 0) {
        char utf8[4];
        uint32_t c = json_string_next(&inside);
        unsigned n = utf8_write(c, utf8);

        if (c < 0x20 || c == 0x7f || len + n > most) {
            set_wrong(r, "an id is too long, or has control characters");
            return 0;
        }
        memcpy(out + len, utf8, n);
        len += n;
    }
    if (len == 0)
        set_wrong(r, "an id is empty");
    return len;
}

/* Reads the member `id` of an object. */
static size_t
read_object_id(struct token_reader *r, char *out, size_t most)
{
    struct json_scan_value value;
    struct json_scan_name name;
    size_t len = 0, ids = 0;

    if (!json_scan_enter(&r->s, SCAN_OBJECT)) {
        set_wrong(r, "user or project is not an object");
        (void)json_scan_value(&r->s, NULL);
        return 0;
    }
    while (json_scan_member(&r->s, &name)) {
        bool is_id = json_scan_name_is(&name, "id");

        if (!json_scan_value(&r->s, &value) || !is_id)
            continue;
        if (value.kind == SCAN_STRING && ids++ == 0)
            len = read_id(r, json_scan_inside(&value), out, most);
        else
            set_wrong(r, "an id is not a string, or it appears twice");
    }
    if (ids == 0)
        set_wrong(r, "user or project has no id");
    return len;
}

/* Reads "2026-01-31T13:00:00.000000Z". Ignores the fraction, so a token ends up to a second early. */
static void
read_expires(struct token_reader *r)
{
    enum { SECONDS_LEN = CLOCK_TEXT_CAP - 2 }; /* without its Z */
    char text[CLOCK_TEXT_CAP];
    struct json_scan_value value;
    struct bytes inside;
    size_t at = SECONDS_LEN;

    if (!json_scan_value(&r->s, &value))
        return;
    inside = value.kind == SCAN_STRING ? json_scan_inside(&value) : BYTES_NONE;
    if (inside.len > at && inside.data[at] == '.')
        for (at++; at < inside.len && inside.data[at] >= '0' && inside.data[at] <= '9';)
            at++;
    if (at + 1 != inside.len || inside.data[at] != 'Z') {
        set_wrong(r, "expires_at is not a time");
        return;
    }
    memcpy(text, inside.data, SECONDS_LEN);
    text[SECONDS_LEN] = 'Z';
    if (!token_time_read(bytes_of(text, SECONDS_LEN + 1), &r->out->expires_ms))
        set_wrong(r, "expires_at is not a time");
}

static void
read_role(struct token_reader *r)
{
    struct json_scan_value value;
    struct json_scan_name name;
    size_t names = 0;

    if (!json_scan_enter(&r->s, SCAN_OBJECT)) {
        set_wrong(r, "a role is not an object");
        (void)json_scan_value(&r->s, NULL);
        return;
    }
    while (json_scan_member(&r->s, &name)) {
        bool is_name = json_scan_name_is(&name, "name");

        if (!json_scan_value(&r->s, &value) || !is_name)
            continue;
        if (value.kind == SCAN_STRING && names++ == 0)
            r->out->roles |= role_map_find(r->roles, json_scan_inside(&value));
        else
            set_wrong(r, "the name of a role is not a string, or it appears twice");
    }
    if (names == 0)
        set_wrong(r, "a role has no name");
}

/* ------------------------------------------------------------------ the document */

static void
read_member(struct token_reader *r, const struct json_scan_name *name)
{
    struct verdict *out = r->out;

    if (json_scan_name_is(name, "expires_at")) {
        note_member(r, SEEN_EXPIRES);
        read_expires(r);
    } else if (json_scan_name_is(name, "user")) {
        note_member(r, SEEN_USER);
        out->name_len = read_object_id(r, out->name, sizeof(out->name));
    } else if (json_scan_name_is(name, "project")) {
        note_member(r, SEEN_PROJECT);
        out->project_len = read_object_id(r, out->project, sizeof(out->project));
    } else if (json_scan_name_is(name, "roles")) {
        note_member(r, SEEN_ROLES);
        if (!json_scan_enter(&r->s, SCAN_ARRAY)) {
            set_wrong(r, "roles is not an array");
            (void)json_scan_value(&r->s, NULL);
        } else {
            while (json_scan_item(&r->s))
                read_role(r);
        }
    } else {
        (void)json_scan_value(&r->s, NULL);
    }
}

static void
read_document(struct token_reader *r)
{
    struct json_scan_name name;

    if (!json_scan_enter(&r->s, SCAN_OBJECT))
        return;
    while (json_scan_member(&r->s, &name)) {
        if (!json_scan_name_is(&name, "token") || json_scan_peek(&r->s) != SCAN_OBJECT) {
            (void)json_scan_value(&r->s, NULL);
            continue;
        }
        note_member(r, SEEN_TOKEN);
        (void)json_scan_enter(&r->s, SCAN_OBJECT);
        while (json_scan_member(&r->s, &name))
            read_member(r, &name);
    }
}

enum status
keystone_token_read(struct bytes text, const struct role_map *roles, struct verdict *out,
                    struct reason *why)
{
    const unsigned needed = SEEN_TOKEN | SEEN_EXPIRES | SEEN_USER;
    struct token_reader r = {.roles = roles, .out = out};

    out->roles = 0;
    out->project_len = 0;
    json_scan_begin(&r.s, text);
    read_document(&r);
    if (json_scan_end(&r.s) != ST_OK)
        return reason_give(why, ST_BAD_BODY, "it is not a JSON object");
    if ((r.seen & needed) != needed)
        set_wrong(&r, "a token, its expires_at or its user is missing");
    if (r.wrong != NULL)
        return reason_give(why, ST_BAD_BODY, "%s", r.wrong);
    return ST_OK;
}
