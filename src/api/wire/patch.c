#include "api/wire/patch.h"
#include "claimd/json/tree.h"

enum patch_op { OP_ADD, OP_REPLACE, OP_REMOVE };

struct patch_rule {
    enum patch_op op;
    struct bytes name; /* of the member, from the arena */
    json_t *value;     /* borrowed from the document; NULL for OP_REMOVE */
};

static bool
read_op(const json_t *operation, enum patch_op *out)
{
    static const char *const names[] = {"add", "replace", "remove"};
    const char *text = json_string_value(json_object_get(operation, "op"));

    for (enum patch_op i = OP_ADD; text != NULL && i <= OP_REMOVE; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

struct patch_reader {
    struct arena *arena; /* borrowed */
    struct reason *why;  /* borrowed */
    size_t index;        /* of the present operation */
};

static enum status
refuse_operation(const struct patch_reader *r, const char *what)
{
    return reason_give(r->why, ST_BAD_BODY, "[%zu]%s", r->index, what);
}

static enum status
refuse_operation_value(const struct patch_reader *r, const char *member,
                       const json_t *value, const char *allowed)
{
    return reason_give(r->why, ST_BAD_BODY, "[%zu]%s is %s. It must be %s", r->index,
                       member, json_tree_received(value).text, allowed);
}

/* Decodes ~0 and ~1 in a part of a JSON pointer. ST_BAD_BODY: another escape, or a
 * NUL. */
static enum status
unescape_pointer(const struct patch_reader *r, struct bytes part, struct bytes *out)
{
    char *copy = arena_alloc(r->arena, part.len);
    size_t len = 0;

    if (copy == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < part.len; i++) {
        char c = part.data[i];

        if (c == '~') {
            if (++i == part.len || (part.data[i] != '0' && part.data[i] != '1'))
                return refuse_operation(
                    r, ".path has an invalid escape. Only ~0 and ~1 are allowed");
            c = part.data[i] == '0' ? '~' : '/';
        }
        if (c == '\0') /* jansson allows none in a name */
            return refuse_operation(r, ".path must not hold a NUL character");
        copy[len++] = c;
    }
    *out = bytes_of(copy, len);
    return ST_OK;
}

/* Splits a JSON pointer of two parts. False for any other text. */
static bool
split_path(struct bytes path, struct bytes *first, struct bytes *second)
{
    if (bytes_cut(&path, '/').len != 0 || !bytes_present(path))
        return false;
    *first = bytes_cut(&path, '/');
    if (!bytes_present(path))
        return false;
    *second = bytes_cut(&path, '/');
    return !bytes_present(path) && first->len > 0 && second->len > 0;
}

static enum status
read_path(const struct patch_reader *r, const json_t *operation, struct bytes *root,
          struct bytes *name)
{
    const json_t *path = json_object_get(operation, "path");
    struct bytes first, second;
    enum status st;

    if (!json_is_string(path) ||
        !split_path(bytes_of(json_string_value(path), json_string_length(path)), &first,
                    &second))
        return refuse_operation_value(
            r, ".path", path, "a JSON pointer of two parts, such as /metadata/NAME");
    st = unescape_pointer(r, first, root);
    return st == ST_OK ? unescape_pointer(r, second, name) : st;
}

static enum status
read_rule(const struct patch_reader *r, const json_t *operation, struct patch_rule *out)
{
    static const struct bytes metadata = BYTES_LIT("metadata");
    struct bytes root;
    enum status st;

    if (!json_is_object(operation))
        return refuse_operation(r, " must be an object with op, path and value");
    if (!read_op(operation, &out->op))
        return refuse_operation_value(r, ".op", json_object_get(operation, "op"),
                                      "add, replace or remove");
    st = read_path(r, operation, &root, &out->name);
    if (st != ST_OK)
        return st;
    out->value = NULL;
    if (out->op == OP_REMOVE)
        return ST_OK;
    out->value = json_object_get(operation, "value");
    if (!bytes_equal_nocase(root, metadata))
        return refuse_operation(r, ".path must begin with /metadata/");
    return out->value != NULL ? ST_OK : refuse_operation(r, ".value is required");
}

static enum status
read_rules(struct patch *patch, struct patch_reader *r)
{
    size_t count = json_array_size(patch->document);

    if (!json_is_array(patch->document))
        return reason_give(r->why, ST_BAD_BODY,
                           "the body must be an array of operations");
    if (count == 0)
        return ST_OK;
    patch->rules = arena_array(r->arena, count, sizeof(*patch->rules));
    if (patch->rules == NULL)
        return ST_NO_MEMORY;
    for (; patch->count < count; patch->count++) {
        enum status st;

        r->index = patch->count;
        st = read_rule(r, json_array_get(patch->document, patch->count),
                       &patch->rules[patch->count]);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

enum status
patch_read(struct bytes body, const struct api_limits *limits, struct arena *arena,
           struct patch *out, struct reason *why)
{
    struct patch_reader r = {.arena = arena, .why = why};
    enum status st;

    *out = (struct patch){.document = NULL};
    if (body.len > (size_t)limits->max_queue_metadata)
        return reason_give(
            why, ST_BAD_BODY,
            "the body is %zu bytes long. The maximum is %lld bytes (max_queue_metadata)",
            body.len, (long long)limits->max_queue_metadata);
    st = json_tree_read(body, &out->document);
    if (st != ST_OK)
        return st == ST_BAD_BODY ? json_tree_refuse(body, why) : st;
    return read_rules(out, &r);
}

void
patch_fini(struct patch *patch)
{
    json_decref(patch->document);
    *patch = (struct patch){.document = NULL};
}

static enum status
apply_rule(json_t *document, const struct patch *patch, size_t index, struct reason *why)
{
    const struct patch_rule *rule = &patch->rules[index];
    bool exists = json_object_getn(document, rule->name.data, rule->name.len) != NULL;

    if (rule->op != OP_ADD && !exists && !metadata_is_reserved(rule->name))
        return reason_give(why, ST_CONFLICT, "[%zu].path: the member %s does not exist",
                           index, received(rule->name).text);
    if (rule->op == OP_REMOVE) {
        if (exists)
            (void)json_object_deln(document, rule->name.data, rule->name.len);
        return ST_OK;
    }
    return json_object_setn(document, rule->name.data, rule->name.len, rule->value) == 0
               ? ST_OK
               : ST_NO_MEMORY;
}

enum status
patch_apply(const struct patch *patch, const struct store_metadata *old,
            const struct api_limits *limits, struct arena *arena,
            struct store_metadata *out, struct reason *why)
{
    json_t *document = NULL;
    enum status st = metadata_tree(old, &document);

    for (size_t i = 0; i < patch->count && st == ST_OK; i++)
        st = apply_rule(document, patch, i, why);
    if (st == ST_OK)
        st = metadata_change(document, old, limits, arena, out, why);
    json_decref(document);
    return st;
}
