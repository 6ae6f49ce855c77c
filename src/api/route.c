#include "api/route.h"
#include "api/wire/query.h"

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

/* The path of a pattern. *parameter: the name behind its question mark; NULL: none. */
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

/* Adds a name to the list of an Allow header, which has space for all methods. */
static void
allow_add(char *list, const char *name)
{
    if (list[0] != '\0')
        strcat(list, ", ");
    strcat(list, name);
}

enum status
resources_build(struct mem *mem, const struct route *rows, struct route_resources *out)
{
    /* In alphabetical order, as Zaqar does. */
    static const enum method order[] = {METHOD_DELETE, METHOD_GET,  METHOD_HEAD,
                                        METHOD_PATCH,  METHOD_POST, METHOD_PUT};
    struct resource *all, *last = NULL;
    size_t rows_count = 0;

    while (rows[rows_count].pattern != NULL)
        rows_count++;
    all = mem_calloc(mem, rows_count, sizeof(*all));
    if (all == NULL)
        return ST_NO_MEMORY;
    *out = (struct route_resources){.all = all};
    for (const struct route *row = rows; row < rows + rows_count; row++) {
        const char *parameter;
        struct bytes path = pattern_split(row->pattern, &parameter);

        if (last == NULL || !bytes_equal_str(path, last->pattern)) {
            ENSURE(parameter == NULL);
            last = &all[out->count++];
            resource_init(last, row->pattern);
        }
        if (parameter != NULL)
            last->variants[row->method] = row;
        else
            last->routes[row->method] = row;
    }
    for (struct resource *r = all; r < all + out->count; r++) {
        for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
            if (r->routes[order[i]] != NULL &&
                (r->routes[order[i]]->flags & ROUTE_HTML_ONLY) == 0)
                allow_add(r->allow, api_method_name(order[i]));
        strcpy(r->allow_all, r->allow);
        allow_add(r->allow_all, api_method_name(METHOD_OPTIONS));
    }
    return ST_OK;
}

void
resources_free(struct mem *mem, struct route_resources *resources)
{
    mem_free(mem, resources->all);
    *resources = (struct route_resources){.all = NULL};
}

/* ------------------------------------------------------------------ paths */

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
        struct bytes segment = encoded ? query_decode(raw, false, arena) : raw;

        if (out->depth == PATH_DEPTH_MAX)
            return ST_NO_PATH;
        if (encoded && !bytes_present(segment))
            return ST_NO_MEMORY;
        if (encoded && segment.len > 0 && memchr(segment.data, '/', segment.len) != NULL)
            return ST_NO_PATH;
        out->raw[out->depth] = raw;
        out->segments[out->depth++] = segment;
    }
    return ST_OK;
}

static bool
resource_matches(const struct resource *r, const struct path *path)
{
    if (r->depth != path->depth)
        return false;
    /* The last word first, because most resources begin with the same words. */
    for (size_t i = r->depth; i-- > 0;)
        if (bytes_present(r->words[i]) && !bytes_equal(r->words[i], path->segments[i]))
            return false;
    return true;
}

const struct resource *
resource_find(const struct route_resources *resources, const struct path *path)
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
path_cut_project(struct path *path, struct bytes *raw, struct bytes *project)
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
