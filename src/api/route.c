#include "api/route.h"

#include "api/wire/query.h"
#include "claimd/base/invariant.h"

static const char *const method_names[] = {
    [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",   [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT",         [METHOD_PATCH] = "PATCH", [METHOD_DELETE] = "DELETE",
    [METHOD_OPTIONS] = "OPTIONS",
};

const char *
api_method_name(enum method method)
{
    return method < METHOD_OTHER ? method_names[method] : "other";
}

enum method
api_method(struct bytes name)
{
    for (size_t i = 0; i < sizeof(method_names) / sizeof(method_names[0]); i++)
        if (bytes_equal_str(name, method_names[i]))
            return (enum method)i;
    return METHOD_OTHER;
}

/* ------------------------------------------------------------------ resources */

/* The path of a pattern; *parameter is the name of the one it needs, NULL if none. */
static struct bytes
pattern_split(const char *pattern, const char **parameter)
{
    size_t len = strcspn(pattern, "?");

    *parameter = pattern[len] == '?' ? pattern + len + 1 : NULL;
    return bytes_of(pattern, len);
}

static void
resource_init(struct resource *r, const char *pattern)
{
    struct bytes rest = bytes_str(pattern + 1);

    r->pattern = pattern;
    while (bytes_present(rest)) {
        struct bytes word = bytes_cut(&rest, '/');

        r->words[r->depth++] = word.len > 0 && word.data[0] == '{' ? BYTES_NONE : word;
    }
}

/* Adds a name to a list in an Allow header; the list has room for all methods. */
static void
allow_add(char *list, const char *name)
{
    if (list[0] != '\0')
        strcat(list, ", ");
    strcat(list, name);
}

static void
resource_name_methods(struct resource *r)
{
    /* In alphabetical order, as the original does it. */
    static const enum method order[] = {METHOD_DELETE, METHOD_GET,  METHOD_HEAD,
                                        METHOD_PATCH,  METHOD_POST, METHOD_PUT};

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (r->routes[order[i]] != NULL)
            allow_add(r->allow, method_names[order[i]]);
    strcpy(r->allow_all, r->allow);
    allow_add(r->allow_all, method_names[METHOD_OPTIONS]);
}

static void
resource_add(struct resource *r, const struct route *row)
{
    const char *parameter;

    (void)pattern_split(row->pattern, &parameter);
    if (parameter != NULL)
        r->variants[row->method] = row;
    else
        r->routes[row->method] = row;
}

enum status
resources_build(struct mem *mem, const struct route *rows, struct resources *out)
{
    struct resource *all, *last = NULL;
    size_t rows_count = 0;

    while (rows[rows_count].pattern != NULL)
        rows_count++;
    all = mem_calloc(mem, rows_count, sizeof(*all));
    if (all == NULL)
        return ST_NO_MEMORY;
    *out = (struct resources){.all = all};
    for (const struct route *row = rows; row < rows + rows_count; row++) {
        const char *parameter;
        struct bytes path = pattern_split(row->pattern, &parameter);

        if (last == NULL || !bytes_equal_str(path, last->pattern)) {
            ENSURE(parameter == NULL);
            last = &all[out->count++];
            resource_init(last, row->pattern);
        }
        resource_add(last, row);
    }
    for (size_t i = 0; i < out->count; i++)
        resource_name_methods(&all[i]);
    return ST_OK;
}

void
resources_free(struct mem *mem, struct resources *resources)
{
    mem_free(mem, resources->all);
    *resources = (struct resources){.all = NULL};
}

/* ------------------------------------------------------------------ paths */

static enum status
decode_segment(struct arena *arena, struct bytes raw, struct bytes *out)
{
    *out = query_decode(raw, false, arena);
    if (!bytes_present(*out))
        return ST_NO_MEMORY;
    return out->len > 0 && memchr(out->data, '/', out->len) != NULL ? ST_NO_PATH : ST_OK;
}

enum status
path_split(struct arena *arena, struct bytes text, struct path *out)
{
    bool encoded = text.len > 0 && memchr(text.data, '%', text.len) != NULL;
    struct bytes rest;

    if (text.len == 0 || text.data[0] != '/')
        return ST_NO_PATH;
    out->depth = 0;
    rest = bytes_of(text.data + 1, text.len - 1);
    while (bytes_present(rest)) {
        struct bytes raw = bytes_cut(&rest, '/');
        enum status st = ST_OK;

        if (out->depth == PATH_DEPTH_MAX)
            return ST_NO_PATH;
        out->raw[out->depth] = out->segments[out->depth] = raw;
        if (encoded)
            st = decode_segment(arena, raw, &out->segments[out->depth]);
        if (st != ST_OK)
            return st;
        out->depth++;
    }
    return ST_OK;
}

static bool
resource_matches(const struct resource *r, const struct path *path)
{
    if (r->depth != path->depth)
        return false;
    for (size_t i = 0; i < r->depth; i++)
        if (bytes_present(r->words[i]) && !bytes_equal(r->words[i], path->segments[i]))
            return false;
    return true;
}

const struct resource *
resource_find(const struct resources *resources, const struct path *path)
{
    for (size_t i = 0; i < resources->count; i++)
        if (resource_matches(&resources->all[i], path))
            return &resources->all[i];
    return NULL;
}

const struct route *
resource_route(const struct resource *r, enum method method, const struct query *query)
{
    const struct route *variant = r->variants[method];
    const char *parameter;

    if (variant == NULL)
        return r->routes[method];
    (void)pattern_split(variant->pattern, &parameter);
    return bytes_present(query_get(query, parameter)) ? variant : r->routes[method];
}

static bool
is_collection(struct bytes segment)
{
    return bytes_equal_str(segment, "queues") || bytes_equal_str(segment, "topics");
}

bool
path_drop_slash(struct path *path)
{
    size_t last = path->depth - 1;

    if (path->depth < 3 || path->segments[last].len > 0 ||
        path->segments[last - 1].len == 0)
        return false;
    if (path->depth == 3 && is_collection(path->segments[1]))
        return false;
    path->depth--;
    return true;
}

bool
path_take_project(struct path *path, struct bytes *raw, struct bytes *project)
{
    if (path->depth < 3 || path->segments[1].len == 0 ||
        is_collection(path->segments[1]) || !is_collection(path->segments[2]))
        return false;
    *raw = path->raw[1];
    *project = path->segments[1];
    path->depth--;
    for (size_t i = 1; i < path->depth; i++)
        path->segments[i] = path->segments[i + 1];
    return true;
}
