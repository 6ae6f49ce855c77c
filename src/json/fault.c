/*
 * fault: says in words why a body is not JSON, with line and column. Declared in
 * claimd/json/scan.h. The scanner only notes the first fault, because most texts have
 * none. So json_fault() scans the text again and finds the words for that place.
 * string.c and number.c explain the faults inside of strings and numbers. Read scan.c
 * next.
 */
#include "claimd/json/scan.h"

#include "claimd/json/string.h"

#include <stdio.h>

/* A fault: its place, and what is wrong there or was expected. */
struct json_fault {
    const unsigned char *at;
    const char *wrong; /* NULL: `expected` is missing */
    const char *expected;
};

static void
fault_in_string(struct json_fault *f, const unsigned char *end)
{
    const char *why;
    const unsigned char *at = json_string_fault(f->at + 1, end, &why);

    if (at == NULL) /* the string is valid, but misplaced */
        return;
    f->at = at;
    f->wrong = why;
}

/* Describes a text that is no value. */
static void
fault_in_value(struct json_fault *f, const struct json_scan *s, struct bytes text)
{
    f->expected = "a value";
    if (f->at == s->end)
        return;
    if (*f->at == '"')
        fault_in_string(f, s->end);
    else if (*f->at == '-' || (*f->at >= '0' && *f->at <= '9'))
        f->wrong = json_number_fault(f->at, s->end);
    else if (f->at == (const unsigned char *)text.data && text.len >= 3 &&
             memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        f->wrong = "a byte order mark is not allowed";
}

static void
fault_find(struct json_fault *f, const struct json_scan *s, struct bytes text)
{
    *f = (struct json_fault){.at = s->fault};
    switch (s->wanted) {
    case SCAN_WANTS_VALUE:
        fault_in_value(f, s, text);
        break;
    case SCAN_WANTS_NAME:
        f->expected = "the name of a member";
        if (f->at < s->end && *f->at == '"')
            fault_in_string(f, s->end);
        break;
    case SCAN_WANTS_COLON:
        f->expected = "a colon";
        break;
    case SCAN_WANTS_COMMA_OR_BRACE:
        f->expected = "a comma or }";
        break;
    case SCAN_WANTS_COMMA_OR_BRACKET:
        f->expected = "a comma or ]";
        break;
    case SCAN_WANTS_LEVELS:
        f->wrong = "the nesting is too deep";
        break;
    }
}

/* The line and column of a byte. The text before it was checked, so it is UTF-8. */
static void
find_place(struct bytes text, const unsigned char *at, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (const unsigned char *c = (const unsigned char *)text.data; c < at; c++) {
        if (*c == '\n') {
            ++*line;
            *column = 1;
        } else {
            *column += (*c & 0xc0) != 0x80; /* continuation bytes do not count */
        }
    }
}

static void
fault_describe(const struct json_fault *f, struct bytes text, const unsigned char *end,
               struct reason *out)
{
    size_t line, column;
    char found[32] = "";

    find_place(text, f->at, &line, &column);
    if (f->wrong == NULL && f->at == end)
        (void)snprintf(found, sizeof(found), "at the end of the text");
    else if (f->wrong == NULL && *f->at >= 0x20 && *f->at < 0x7f)
        (void)snprintf(found, sizeof(found), "instead of '%c'", *f->at);
    else if (f->wrong == NULL)
        (void)snprintf(found, sizeof(found), "instead of the byte 0x%02x", *f->at);
    (void)reason_give(out, ST_BAD_BODY,
                      "the body is not JSON: line %zu, column %zu: %s%s%s", line, column,
                      f->wrong != NULL ? f->wrong : f->expected,
                      f->wrong != NULL ? "" : " is expected ", found);
}

bool
json_fault(struct bytes body, struct reason *out)
{
    struct json_scan s;
    struct json_scan_value top;
    struct json_fault f;

    if (body.len == 0) {
        (void)reason_give(out, ST_BAD_BODY, "a body is required");
        return true;
    }
    json_scan_begin(&s, body);
    if (!json_scan_value(&s, &top)) {
        fault_find(&f, &s, body);
    } else if (top.kind != SCAN_OBJECT && top.kind != SCAN_ARRAY) {
        (void)reason_give(out, ST_BAD_BODY, "the body must be an object or an array");
        return true;
    } else if (json_scan_end(&s) != ST_OK) {
        f = (struct json_fault){.at = s.at, .expected = "the end of the text"};
    } else {
        return false;
    }
    fault_describe(&f, body, s.end, out);
    return true;
}

struct received
json_received(const struct json_scan_value *value)
{
    static const char *const kinds[] = {"missing", "an object", "an array", "a string"};

    return received(value->kind <= SCAN_STRING ? bytes_str(kinds[value->kind])
                                               : value->text);
}
