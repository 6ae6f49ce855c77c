#include "api/patch.h"

#include "api/json_tree.h"

enum patch_op { OP_ADD, OP_REPLACE, OP_REMOVE };

struct patch_rule {
    enum patch_op op;
    struct bytes name; /* of the member, from the arena */
    json_t *value;     /* borrowed from the document; NULL for OP_REMOVE */
};

/* ------------------------------------------------------------------ reading */

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

/* Undoes ~0 and ~1 of a part of a JSON pointer. ST_BAD_BODY: any other escape, a NUL. */
static enum status
unescape(struct bytes part, struct arena *arena, struct bytes *out)
{
    char *copy = arena_alloc(arena, part.len);
    size_t len = 0;

    if (copy == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < part.len; i++) {
        char c = part.data[i];

        if (c == '~') {
            if (++i == part.len || (part.data[i] != '0' && part.data[i] != '1'))
                return ST_BAD_BODY;
            c = part.data[i] == '0' ? '~' : '/';
        }
        if (c == '\0') /* jansson could not keep it in a name */
            return ST_BAD_BODY;
        copy[len++] = c;
    }
    *out = bytes_of(copy, len);
    return ST_OK;
}

/* Takes a JSON pointer of exactly two parts apart. */
static enum status
read_path(const json_t *operation, struct arena *arena, struct bytes *root,
          struct bytes *name)
{
    const json_t *path = json_object_get(operation, "path");
    struct bytes rest, first, second;
    enum status st;

    if (!json_is_string(path))
        return ST_BAD_BODY;
    rest = bytes_of(json_string_value(path), json_string_length(path));
    if (bytes_cut(&rest, '/').len != 0 || !bytes_present(rest))
        return ST_BAD_BODY;
    first = bytes_cut(&rest, '/');
    if (!bytes_present(rest))
        return ST_BAD_BODY;
    second = bytes_cut(&rest, '/');
    if (bytes_present(rest) || first.len == 0 || second.len == 0)
        return ST_BAD_BODY;
    st = unescape(first, arena, root);
    return st == ST_OK ? unescape(second, arena, name) : st;
}

static enum status
read_rule(const json_t *operation, struct arena *arena, struct patch_rule *out)
{
    static const struct bytes metadata = BYTES_LIT("metadata");
    struct bytes root;
    enum status st;

    if (!json_is_object(operation) || !read_op(operation, &out->op))
        return ST_BAD_BODY;
    st = read_path(operation, arena, &root, &out->name);
    if (st != ST_OK)
        return st;
    out->value = NULL;
    if (out->op == OP_REMOVE)
        return ST_OK;
    out->value = json_object_get(operation, "value");
    return bytes_equal_nocase(root, metadata) && out->value != NULL ? ST_OK : ST_BAD_BODY;
}

static enum status
read_rules(struct patch *patch, struct arena *arena)
{
    size_t count = json_array_size(patch->document);

    if (!json_is_array(patch->document))
        return ST_BAD_BODY;
    if (count == 0)
        return ST_OK;
    patch->rules = arena_array(arena, count, sizeof(*patch->rules));
    if (patch->rules == NULL)
        return ST_NO_MEMORY;
    for (; patch->count < count; patch->count++) {
        enum status st = read_rule(json_array_get(patch->document, patch->count), arena,
                                   &patch->rules[patch->count]);

        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

enum status
patch_read(struct bytes body, const struct api_limits *limits, struct arena *arena,
           struct patch *out)
{
    enum status st;

    *out = (struct patch)PATCH_INIT;
    if (body.len > (size_t)limits->max_queue_metadata)
        return ST_BAD_BODY;
    st = json_tree_read(body, &out->document);
    return st == ST_OK ? read_rules(out, arena) : st;
}

void
patch_fini(struct patch *patch)
{
    json_decref(patch->document);
    *patch = (struct patch)PATCH_INIT;
}

/* ------------------------------------------------------------------ applying */

static enum status
apply_rule(json_t *document, const struct patch_rule *rule)
{
    bool exists = json_object_getn(document, rule->name.data, rule->name.len) != NULL;

    if (rule->op != OP_ADD && !exists && !metadata_reserved(rule->name))
        return ST_CONFLICT;
    if (rule->op == OP_REMOVE) {
        if (exists)
            (void)json_object_deln(document, rule->name.data, rule->name.len);
        return ST_OK;
    }
    return json_object_setn(document, rule->name.data, rule->name.len, rule->value) == 0
               ? ST_OK
               : ST_NO_MEMORY;
}

/*
 * The limit holds for one request; without one for the sum a queue's metadata could grow
 * for ever. What is too large already may still be made smaller.
 */
static bool
outgrown(const struct store_metadata *made, const struct store_metadata *old,
         const struct api_limits *limits)
{
    return made->json.len > (size_t)limits->max_queue_metadata &&
           made->json.len > old->json.len;
}

static enum status
check_and_store(const json_t *document, const struct store_metadata *old,
                const struct api_limits *limits, struct arena *arena,
                struct store_metadata *out)
{
    struct store_metadata made;
    enum status st;

    if (metadata_check(document, limits) != ST_OK)
        return ST_BAD_BODY;
    st = metadata_store(document, arena, &made);
    if (st == ST_OK && outgrown(&made, old, limits))
        st = ST_BAD_BODY;
    if (st == ST_OK)
        *out = made;
    return st;
}

enum status
patch_apply(const struct patch *patch, const struct store_metadata *old,
            const struct api_limits *limits, struct arena *arena,
            struct store_metadata *out)
{
    json_t *document = NULL;
    enum status st = metadata_tree(old, &document);

    for (size_t i = 0; i < patch->count && st == ST_OK; i++)
        st = apply_rule(document, &patch->rules[i]);
    if (st == ST_OK)
        st = check_and_store(document, old, limits, arena, out);
    json_decref(document);
    return st;
}
