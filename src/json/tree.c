#include "claimd/json/tree.h"

#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <stdio.h>

/*
 * jansson's parser ignores failed allocations, and then returns truncated texts. So the
 * scanner parses, and jansson only makes the values, with functions that report each
 * failure.
 */
struct builder {
    struct json_scan scan;
    size_t depth;
    json_t *open[SCAN_DEPTH_MAX]; /* borrowed: each contains the next one */
};

/* Makes a string of a checked text. Escapes are decoded in jansson's copy, which never
 * becomes longer. */
static json_t *
make_text(struct bytes inside)
{
    const bool escaped = memchr(inside.data, '\\', inside.len) != NULL;
    json_t *text = json_stringn_nocheck(inside.data, inside.len);
    size_t len = 0;
    char *copy;

    if (text == NULL || !escaped)
        return text;
    copy = (char *)(uintptr_t)json_string_value(text);
    while (inside.len > 0)
        len += utf8_write(json_string_next(&inside), copy + len);
    if (json_string_setn_nocheck(text, copy, len) == 0)
        return text;
    json_decref(text);
    return NULL;
}

static json_t *
make_scalar(const struct json_scan_value *value)
{
    switch (value->kind) {
    case SCAN_STRING:
        return make_text(json_scan_inside(value));
    case SCAN_INTEGER:
        return json_integer(json_scan_to_i64(value));
    case SCAN_REAL:
        return json_real(json_number_read(value->text));
    case SCAN_TRUE:
        return json_true();
    case SCAN_FALSE:
        return json_false();
    default:
        return json_null();
    }
}

/* Makes the value that begins here, and opens it if it is a container. NULL without
 * memory. */
static json_t *
begin_value(struct json_scan *s)
{
    struct json_scan_value value;

    if (json_scan_enter(s, SCAN_OBJECT))
        return json_object();
    if (json_scan_enter(s, SCAN_ARRAY))
        return json_array();
    (void)json_scan_value(s, &value); /* cannot fail: it was checked */
    return make_scalar(&value);
}

/* Adds a value to a container. Takes the reference, also on failure. */
static enum status
add_member(json_t *object, const struct json_scan_name *name, json_t *value)
{
    json_t *plain = name->escaped ? make_text(name->text) : NULL;
    struct bytes key = name->text;
    enum status st = ST_OK;

    if (plain != NULL)
        key = bytes_of(json_string_value(plain), json_string_length(plain));
    if (memchr(key.data, '\0', key.len) != NULL)
        st = ST_BAD_BODY; /* C strings cannot represent it */
    else if ((name->escaped && plain == NULL) ||
             json_object_setn_nocheck(object, key.data, key.len, value) != 0)
        st = ST_NO_MEMORY;
    json_decref(plain);
    json_decref(value);
    return st;
}

/* Fills a container and those in it, without recursion, for small stacks. */
static enum status
fill(struct builder *b, json_t *tree)
{
    b->open[b->depth++] = tree;
    while (b->depth > 0) {
        json_t *container = b->open[b->depth - 1], *value;
        struct json_scan_name name = {BYTES_NONE, false};
        enum status st = ST_OK;

        if (!(json_is_object(container) ? json_scan_member(&b->scan, &name)
                                        : json_scan_item(&b->scan))) {
            b->depth--;
            continue;
        }
        value = begin_value(&b->scan);
        if (value == NULL)
            return ST_NO_MEMORY;
        if (json_is_object(container))
            st = add_member(container, &name, value);
        else if (json_array_append_new(container, value) != 0)
            st = ST_NO_MEMORY;
        if (st != ST_OK)
            return st;
        if (json_is_object(value) || json_is_array(value))
            b->open[b->depth++] = value;
    }
    return ST_OK;
}

enum status
json_tree_read(struct bytes text, json_t **out)
{
    struct builder b;
    enum status st = json_scan_document(text);
    json_t *tree;

    if (st != ST_OK)
        return st;
    b.depth = 0;
    json_scan_begin(&b.scan, text);
    tree = begin_value(&b.scan);
    if (tree == NULL)
        return ST_NO_MEMORY;
    st = fill(&b, tree);
    if (st == ST_OK)
        *out = tree;
    else
        json_decref(tree);
    return st;
}

enum status
json_tree_refuse(struct bytes body, struct reason *why)
{
    if (!json_fault(body, why))
        return reason_give(why, ST_BAD_BODY,
                           "the name of a member must not hold a NUL character");
    return ST_BAD_BODY;
}

struct received
json_tree_received(const json_t *value)
{
    static const char *const kinds[] = {
        "an object", "an array", "",    "", "a number with a fraction",
        "true",      "false",    "null"};
    struct received out = {"missing"};

    if (json_is_string(value))
        (void)snprintf(
            out.text, sizeof(out.text), "\"%.*s\"", RECEIVED_MOST + 3,
            received(bytes_of(json_string_value(value), json_string_length(value))).text);
    else if (json_is_integer(value))
        (void)snprintf(out.text, sizeof(out.text), "%" JSON_INTEGER_FORMAT,
                       json_integer_value(value));
    else if (value != NULL)
        return received(bytes_str(kinds[json_typeof(value)]));
    return out;
}

static void
write_object(struct buf *out, const json_t *object)
{
    /* jansson's iterators need a pointer that is not const, but change nothing. */
    json_t *walked = (json_t *)(uintptr_t)object;

    buf_byte(out, '{');
    for (void *at = json_object_iter(walked); at != NULL;
         at = json_object_iter_next(walked, at)) {
        json_string_write(
            out, bytes_of(json_object_iter_key(at), json_object_iter_key_len(at)));
        buf_byte(out, ':');
        json_tree_write(out, json_object_iter_value(at));
        buf_byte(out, ',');
    }
    if (json_object_size(object) > 0 && !out->failed)
        out->len--; /* removes the last comma */
    buf_byte(out, '}');
}

void
json_tree_write(struct buf *out, const json_t *tree)
{
    switch (json_typeof(tree)) {
    case JSON_OBJECT:
        write_object(out, tree);
        break;
    case JSON_ARRAY:
        buf_byte(out, '[');
        for (size_t i = 0; i < json_array_size(tree); i++) {
            if (i > 0)
                buf_byte(out, ',');
            json_tree_write(out, json_array_get(tree, i));
        }
        buf_byte(out, ']');
        break;
    case JSON_STRING:
        json_string_write(out,
                          bytes_of(json_string_value(tree), json_string_length(tree)));
        break;
    case JSON_INTEGER:
        buf_i64(out, json_integer_value(tree));
        break;
    case JSON_REAL:
        json_number_write(out, json_real_value(tree));
        break;
    case JSON_TRUE:
        buf_str(out, "true");
        break;
    case JSON_FALSE:
        buf_str(out, "false");
        break;
    case JSON_NULL:
        buf_str(out, "null");
        break;
    }
}

const char *
json_tree_library_version(void)
{
    return jansson_version_str();
}
