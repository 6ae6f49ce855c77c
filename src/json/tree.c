#include "claimd/json/tree.h"

#include "claimd/json/fault.h"
#include "claimd/json/number.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

enum status
json_tree_read(struct bytes text, json_t **out)
{
    json_error_t error;
    enum status st = json_scan_document(text);
    json_t *tree;

    if (st != ST_OK)
        return st;
    tree = json_loadb(text.data, text.len, JSON_ALLOW_NUL, &error);
    if (tree ==
        NULL) /* the scanner has taken it: a name jansson cannot keep, or memory */
        return json_error_code(&error) == json_error_null_byte_in_key ? ST_BAD_BODY
                                                                      : ST_NO_MEMORY;
    *out = tree;
    return ST_OK;
}

enum status
json_tree_refuse(struct bytes body, struct reason *why)
{
    if (!json_fault(body, why))
        return reason_give(why, ST_BAD_BODY,
                           "the name of a member must not hold a NUL character");
    return ST_BAD_BODY;
}

static void
write_array(struct buf *out, const json_t *array)
{
    buf_byte(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            buf_byte(out, ',');
        json_tree_write(out, json_array_get(array, i));
    }
    buf_byte(out, ']');
}

static void
write_object(struct buf *out, const json_t *object)
{
    /* jansson's iterators take a pointer that is not const, but change nothing. */
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
        out->len--; /* the last comma */
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
        write_array(out, tree);
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
