#include "sim/json_read.h"

static void
skip_space(struct json_read *r)
{
    while (r->at < r->end && strchr(" \t\r\n", *r->at) != NULL)
        r->at++;
}

static bool
take(struct json_read *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static void
skip_text(struct json_read *r)
{
    r->at++;
    while (r->at < r->end && *r->at != '"')
        r->at += *r->at == '\\' ? 2 : 1;
    r->bad = r->bad || r->at >= r->end;
    r->at++;
}

/* A number or a word: everything up to what can stand behind it. */
static void
skip_word(struct json_read *r)
{
    const char *start = r->at;

    while (r->at < r->end && strchr(",]} \t\r\n", *r->at) == NULL)
        r->at++;
    r->bad = r->bad || r->at == start;
}

static struct bytes
take_value(struct json_read *r)
{
    const char *start;
    int depth = 0;

    skip_space(r);
    start = r->at;
    do {
        skip_space(r);
        if (r->at >= r->end) {
            r->bad = true;
            return BYTES_NONE;
        }
        if (*r->at == '"') {
            skip_text(r);
        } else if (strchr("{[", *r->at) != NULL) {
            depth++;
            r->at++;
        } else if (strchr("}]", *r->at) != NULL) {
            depth--;
            r->at++;
        } else if (depth > 0 && strchr(",:", *r->at) != NULL) {
            r->at++;
        } else {
            skip_word(r);
        }
    } while (depth > 0 && !r->bad);
    return bytes_of(start, (size_t)(r->at - start));
}

struct json_read
json_read_begin(struct bytes text, char open)
{
    struct json_read r = {.close = open == '{' ? '}' : ']'};

    if (text.data == NULL) {
        r.bad = true;
        return r;
    }
    r.at = text.data;
    r.end = text.data + text.len;
    r.bad = !take(&r, open);
    return r;
}

/* True if another one follows. */
static bool
go_on(struct json_read *r)
{
    if (r->bad || r->close == '\0')
        return false;
    if (take(r, r->close)) {
        r->close = '\0';
        return false;
    }
    if (r->begun && !take(r, ','))
        r->bad = true;
    r->begun = true;
    return !r->bad;
}

bool
json_read_item(struct json_read *r, struct bytes *value)
{
    if (!go_on(r))
        return false;
    *value = take_value(r);
    return !r->bad;
}

bool
json_read_member(struct json_read *r, struct bytes *name, struct bytes *value)
{
    if (!go_on(r))
        return false;
    if (!json_read_text(take_value(r), name) || !take(r, ':')) {
        r->bad = true;
        return false;
    }
    *value = take_value(r);
    return !r->bad;
}

bool
json_read_done(const struct json_read *r)
{
    return !r->bad && r->close == '\0' && r->at == r->end;
}

bool
json_read_text(struct bytes value, struct bytes *out)
{
    if (value.len < 2 || value.data[0] != '"' || value.data[value.len - 1] != '"')
        return false;
    *out = bytes_of(value.data + 1, value.len - 2);
    return true;
}

bool
json_read_i64(struct bytes value, int64_t *out)
{
    return bytes_to_i64(value, out);
}
