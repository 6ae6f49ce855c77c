#include "claimd/json/scan.h"

#include "claimd/json/string.h"

/* One bit per container around the current place in a value: is it an object? */
struct nesting {
    uint64_t objects[SCAN_DEPTH_MAX / 64];
    unsigned depth;
};

static bool
scan_fail(struct json_scan *s)
{
    s->bad = true;
    s->fault = s->at;
    s->at = s->end;
    return false;
}

/* Notes what was expected at the current place. Returns false. */
static bool
note_wanted(struct json_scan *s, enum json_scan_wanted what)
{
    s->wanted = what;
    return false;
}

static void
skip_space(struct json_scan *s)
{
    while (s->at < s->end &&
           (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

/* Passes this character, and spaces before it, if it comes next. */
static bool
pass_char(struct json_scan *s, unsigned char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

void
json_scan_begin(struct json_scan *s, struct bytes text)
{
    const char *data = text.data == NULL ? "" : text.data;

    s->at = s->fault = (const unsigned char *)data;
    s->end = s->at + text.len;
    s->wanted = SCAN_WANTS_VALUE;
    s->depth = 0;
    s->first = false;
    s->bad = false;
}

enum json_scan_kind
json_scan_peek(struct json_scan *s)
{
    skip_space(s);
    if (s->at == s->end)
        return SCAN_NONE;
    switch (*s->at) {
    case '{':
        return SCAN_OBJECT;
    case '[':
        return SCAN_ARRAY;
    case '"':
        return SCAN_STRING;
    case 't':
        return SCAN_TRUE;
    case 'f':
        return SCAN_FALSE;
    case 'n':
        return SCAN_NULL;
    default:
        return *s->at == '-' || (*s->at >= '0' && *s->at <= '9') ? SCAN_INTEGER
                                                                 : SCAN_NONE;
    }
}

static bool
pass_word(struct json_scan *s, const char *word, size_t len)
{
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
        return false;
    s->at += len;
    return true;
}

static bool
pass_string(struct json_scan *s, bool *escaped)
{
    const unsigned char *behind = json_string_pass(s->at + 1, s->end, escaped);

    if (behind == NULL)
        return false;
    s->at = behind;
    return true;
}

/* Passes a value that is no container; corrects *kind for numbers. */
static bool
pass_scalar(struct json_scan *s, enum json_scan_kind *kind)
{
    const unsigned char *behind;
    bool escaped, integer;

    switch (*kind) {
    case SCAN_STRING:
        return pass_string(s, &escaped);
    case SCAN_INTEGER:
        behind = json_number_pass(s->at, s->end, &integer);
        if (behind == NULL)
            return false;
        s->at = behind;
        *kind = integer ? SCAN_INTEGER : SCAN_REAL;
        return true;
    case SCAN_TRUE:
        return pass_word(s, "true", 4);
    case SCAN_FALSE:
        return pass_word(s, "false", 5);
    case SCAN_NULL:
        return pass_word(s, "null", 4);
    default:
        return false;
    }
}

/* Passes the name of a member and its colon. */
static bool
pass_name(struct json_scan *s)
{
    bool escaped;

    skip_space(s);
    if (s->at == s->end || *s->at != '"' || !pass_string(s, &escaped))
        return note_wanted(s, SCAN_WANTS_NAME);
    return pass_char(s, ':') || note_wanted(s, SCAN_WANTS_COLON);
}

/* Called behind a value (or behind the opening bracket of a container, `opened`). Leaves
 * all containers that end here, and stops before the next value, or at depth 0. */
static bool
pass_to_next(struct json_scan *s, struct nesting *n, bool opened)
{
    while (n->depth > 0) {
        bool object = n->objects[(n->depth - 1) / 64] >> ((n->depth - 1) % 64) & 1;

        if (pass_char(s, object ? '}' : ']')) {
            n->depth--;
            opened = false;
            continue;
        }
        if (!opened && !pass_char(s, ','))
            return note_wanted(s, object ? SCAN_WANTS_COMMA_OR_BRACE
                                         : SCAN_WANTS_COMMA_OR_BRACKET);
        return !object || pass_name(s);
    }
    return true;
}

/* Passes the rest of a container, without recursion. */
static bool
pass_container(struct json_scan *s)
{
    struct nesting n;

    n.depth = 0;
    memset(n.objects, 0, sizeof(n.objects));
    do {
        enum json_scan_kind kind = json_scan_peek(s);
        bool opens = kind == SCAN_OBJECT || kind == SCAN_ARRAY;

        /* A scalar counts as a level, as in jansson. */
        if (s->depth + n.depth >= SCAN_DEPTH_MAX)
            return note_wanted(s, SCAN_WANTS_LEVELS);
        if (opens) {
            uint64_t bit = 1ULL << (n.depth % 64), *word = &n.objects[n.depth / 64];

            *word = kind == SCAN_OBJECT ? *word | bit : *word & ~bit;
            n.depth++;
            s->at++;
        } else if (!pass_scalar(s, &kind)) {
            return note_wanted(s, SCAN_WANTS_VALUE);
        }
        if (!pass_to_next(s, &n, opens))
            return false;
    } while (n.depth > 0);
    return true;
}

bool
json_scan_value(struct json_scan *s, struct json_scan_value *out)
{
    enum json_scan_kind kind = json_scan_peek(s);
    const unsigned char *start = s->at;
    bool passed;

    if (kind == SCAN_OBJECT || kind == SCAN_ARRAY)
        passed = pass_container(s);
    else if (s->depth >= SCAN_DEPTH_MAX)
        passed = note_wanted(s, SCAN_WANTS_LEVELS);
    else
        passed = pass_scalar(s, &kind) || note_wanted(s, SCAN_WANTS_VALUE);
    if (!passed)
        return scan_fail(s);
    if (out != NULL) {
        out->kind = kind;
        out->text = bytes_of((const char *)start, (size_t)(s->at - start));
    }
    return true;
}

bool
json_scan_enter(struct json_scan *s, enum json_scan_kind kind)
{
    if (json_scan_peek(s) != kind)
        return false;
    if (s->depth >= SCAN_DEPTH_MAX)
        return scan_fail(s);
    s->at++;
    s->depth++;
    s->first = true;
    return true;
}

/* Called behind the opening bracket or an item. Passes the comma before the next item.
 * False: the container ended and was left, or a fault. */
static bool
pass_comma(struct json_scan *s, unsigned char closing)
{
    bool first = s->first;

    s->first = false;
    if (s->bad)
        return false;
    if (pass_char(s, closing)) {
        s->depth--;
        return false;
    }
    return first || pass_char(s, ',') || scan_fail(s);
}

bool
json_scan_member(struct json_scan *s, struct json_scan_name *name)
{
    const unsigned char *start;

    if (!pass_comma(s, '}'))
        return false;
    skip_space(s);
    start = s->at + 1;
    name->escaped = false;
    if (s->at == s->end || *s->at != '"' || !pass_string(s, &name->escaped))
        return scan_fail(s);
    name->text = bytes_of((const char *)start, (size_t)(s->at - start - 1));
    return pass_char(s, ':') || scan_fail(s);
}

bool
json_scan_item(struct json_scan *s)
{
    return pass_comma(s, ']');
}

enum status
json_scan_end(struct json_scan *s)
{
    skip_space(s);
    return s->bad || s->depth > 0 || s->at != s->end ? ST_BAD_BODY : ST_OK;
}

enum status
json_scan_document(struct bytes text)
{
    struct json_scan s;
    struct json_scan_value top;

    json_scan_begin(&s, text);
    if (!json_scan_value(&s, &top) || (top.kind != SCAN_OBJECT && top.kind != SCAN_ARRAY))
        return ST_BAD_BODY;
    return json_scan_end(&s);
}

bool
json_scan_name_is(const struct json_scan_name *name, const char *plain)
{
    if (!name->escaped)
        return bytes_equal_str(name->text, plain);
    return json_string_equals(name->text, bytes_str(plain));
}

struct bytes
json_scan_inside(const struct json_scan_value *value)
{
    return bytes_of(value->text.data + 1, value->text.len - 2);
}

int64_t
json_scan_to_i64(const struct json_scan_value *value)
{
    int64_t number = 0;

    (void)bytes_to_i64(value->text, &number); /* json_number_pass() has checked it */
    return number;
}

enum status
json_members_read(struct bytes object, const char *const *names, size_t count,
                  struct json_scan_value *values, struct json_names *seen)
{
    struct json_names all = {.count = 0};
    struct json_scan_name name;
    struct json_scan s;

    for (size_t i = 0; i < count; i++)
        values[i] = (struct json_scan_value){.kind = SCAN_NONE};
    json_scan_begin(&s, object);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return ST_BAD_BODY;
    while (json_scan_member(&s, &name)) {
        size_t i = 0;

        while (i < count && !json_scan_name_is(&name, names[i]))
            i++;
        if (i == count && !bytes_present(all.unknown))
            all.unknown = name.text;
        else if (i < count && values[i].kind != SCAN_NONE)
            all.twice = names[i];
        all.count++;
        (void)json_scan_value(&s, i < count ? &values[i] : NULL); /* json_scan_end() */
    }
    if (seen != NULL)
        *seen = all;
    return json_scan_end(&s);
}

struct json_scan_value
json_member(struct bytes object, const char *name)
{
    struct json_scan_value value;

    (void)json_members_read(object, &name, 1, &value, NULL);
    return value;
}
