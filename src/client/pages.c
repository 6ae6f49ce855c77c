#include "client/pages.h"

#include "claimd/base/server_url.h"
#include "claimd/json/scan.h"

#include <stdio.h>

/* A path of the server without the prefix of the URL, which a proxy may have told the server. */
static const char *
skip_prefix(const struct client *c, const char *href)
{
    const struct bytes prefix =
        server_url_is_unix(c->web.url) ? bytes_str("") : server_url_prefix(c->web.url);

    if (prefix.len > 0 && strncmp(href, prefix.data, prefix.len) == 0 &&
        href[prefix.len] == '/')
        return href + prefix.len;
    return href;
}

const char *
page_next(const struct client *c, const json_t *document)
{
    const json_t *links = json_object_get(document, "links"), *link;
    size_t i;

    json_array_foreach(links, i, link)
    {
        const char *rel = json_string_value(json_object_get(link, "rel"));
        const char *href = json_string_value(json_object_get(link, "href"));

        if (rel != NULL && strcmp(rel, "next") == 0 && href != NULL && href[0] == '/')
            return skip_prefix(c, href);
    }
    return NULL;
}

/* Calls `each` for the items of a page. False: it wants no more. */
static bool
read_items(const struct client_response *response, const char *name, page_item_fn *each,
           void *ctx)
{
    const struct json_scan_value list = json_member(buf_view(&response->body), name);
    const json_t *items = json_object_get(response->document, name);
    struct json_scan_value text;
    struct json_scan scan;
    bool more = true;

    json_scan_begin(&scan, list.text);
    if (list.kind != SCAN_ARRAY || !json_scan_enter(&scan, SCAN_ARRAY))
        return false;
    for (size_t i = 0; more && json_scan_item(&scan) && json_scan_value(&scan, &text);
         i++)
        more = each(ctx, json_array_get(items, i), text.text);
    return more;
}

int
pages_try(struct client *c, const struct client_request *first, const char *name,
          page_item_fn *each, void *ctx, char error[CLIENT_ERROR_CAP])
{
    struct client_request request = *first;
    struct client_response response;
    int status = COMMAND_GOOD;
    bool more = true;
    struct buf path;

    buf_init(&path, c->mem);
    request.member = name;
    while (more && status == COMMAND_GOOD) {
        const char *next;

        status = client_send(c, &request, &response);
        if (status != COMMAND_GOOD)
            memcpy(error, response.error, CLIENT_ERROR_CAP);
        more = status == COMMAND_GOOD && read_items(&response, name, each, ctx);
        next = more ? page_next(c, response.document) : NULL;
        /* A page that does not move on would be read forever. */
        more = next != NULL && strcmp(next, request.path) != 0;
        if (more) {
            buf_reset(&path, SIZE_MAX);
            buf_str(&path, next);
            buf_byte(&path, '\0');
            request.path = path.data;
        }
        if (path.failed) {
            (void)snprintf(error, CLIENT_ERROR_CAP, "out of memory");
            status = COMMAND_FAILED;
        }
        client_response_free(&response);
    }
    buf_fini(&path);
    return status;
}

int
pages_read(struct client *c, const struct client_request *first, const char *name,
           page_item_fn *each, void *ctx)
{
    char error[CLIENT_ERROR_CAP];
    const int status = pages_try(c, first, name, each, ctx, error);

    return status == COMMAND_GOOD ? status : command_fails(status, "%s", error);
}
