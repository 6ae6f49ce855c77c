/*
 * The requests of commands, one after the other: adds the headers, sends a request
 * through claimd/web/web_client.h, and decides whether the response is the expected
 * document of a claimd. Also lists, page by page.
 *
 * client.h declares them. connection.c has the settings.
 */
#include "client/client.h"

#include "client/ask.h"

#include "claimd/base/invariant.h"
#include "claimd/base/server_url.h"
#include "claimd/json/scan.h"
#include "claimd/json/tree.h"

#include <stdio.h>

/* Larger than any response of claimd. */
enum { RESPONSE_MOST = 64 << 20 };

bool
client_header(CURL *handle, const char *name, char *out, size_t cap)
{
    struct curl_header *header;

    out[0] = '\0';
    if (curl_easy_header(handle, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK ||
        strlen(header->value) >= cap)
        return false;
    memcpy(out, header->value, strlen(header->value) + 1);
    return true;
}

static void
read_headers(CURL *handle, struct client_response *r)
{
    char text[64];

    (void)client_header(handle, "Location", r->location, sizeof(r->location));
    (void)client_header(handle, "Claim-Number", r->claim_number, sizeof(r->claim_number));
    r->waited = client_header(handle, "Preference-Applied", text, sizeof(text)) &&
                strstr(text, "wait=") != NULL;
    r->paused = client_header(handle, "Claimd-Paused", text, sizeof(text));
    r->existing = client_header(handle, "Claimd-Unique", text, sizeof(text));
}

void
client_print_warnings(const struct client *c)
{
    struct curl_header *header;

    for (size_t i = 0; curl_easy_header(c->web.handle, "Claimd-Warning", i, CURLH_HEADER,
                                        -1, &header) == CURLHE_OK;
         i++)
        command_warns(header->value);
}

/* ------------------------------------------------------------------ errors */

static int __attribute__((format(printf, 3, 4)))
request_fails(struct client *c, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(c->response.error, sizeof(c->response.error), format, args);
    va_end(args);
    return status;
}

/* The text of an error document, or of a status without one. */
static int
request_refused(struct client *c)
{
    const json_t *document = c->response.document;
    const char *title = json_string_value(json_object_get(document, "title"));
    const char *text = json_string_value(json_object_get(document, "description"));
    const long status = c->response.status;

    if (title == NULL && text == NULL)
        return request_fails(c, COMMAND_FAILED, "%s responds with status %ld%s",
                             c->web.url, status,
                             status == 406 || status < 400 ? "" : ". Is it a claimd?");
    return request_fails(
        c, COMMAND_FAILED, "%s%s%s (status %ld)", title == NULL ? "" : title,
        title == NULL || text == NULL ? "" : ": ", text == NULL ? "" : text, status);
}

/*
 * True if a success has the document that the request expects. Any other server may
 * respond with 200.
 */
static bool
is_expected(const struct client_request *q, const struct client_response *response)
{
    if (q->text)
        return response->status == 200;
    if (response->status == 204)
        return q->member == NULL || q->may_be_empty;
    if (response->status == 201 && q->member == NULL)
        return response->location[0] != '\0';
    return q->member != NULL && json_object_get(response->document, q->member) != NULL;
}

/* Reads the document of the response. Returns an exit status. */
static int
read_document(struct client *c, const struct client_request *q)
{
    struct client_response *response = &c->response;
    const struct bytes body = bytes_trim(buf_view(&response->body));
    enum status st = ST_OK;

    if (body.len > 0 && !(q->text && response->status == 200))
        st = json_tree_read(body, &response->document);
    if (st == ST_NO_MEMORY)
        return request_fails(c, COMMAND_FAILED, "out of memory");
    if (response->status < 200 || response->status > 299)
        return request_refused(c);
    if (st != ST_OK)
        return request_fails(c, COMMAND_UNAVAILABLE,
                             "the response of %s is no JSON document. Is it a claimd?",
                             c->web.url);
    if (!is_expected(q, response))
        return request_fails(
            c, COMMAND_UNAVAILABLE,
            "the response of %s is not the expected one. Is it a claimd?", c->web.url);
    return COMMAND_GOOD;
}

/* ------------------------------------------------------------------ sending */

static bool
add_headers(const struct client *c, const struct client_request *q,
            struct curl_slist **list)
{
    return client_add_headers(c, q->project != NULL ? q->project : c->project, list) &&
           (!bytes_present(q->body) ||
            client_add_header(list, "Content-Type: %s",
                              q->type == NULL ? "application/json" : q->type)) &&
           (q->key == NULL || client_add_header(list, "Idempotency-Key: %s", q->key)) &&
           (q->unique == NULL ||
            client_add_header(list, "Claimd-Unique: %s", q->unique)) &&
           (q->wait_s <= 0 ||
            client_add_header(list, "Prefer: wait=%lld", (long long)q->wait_s)) &&
           (!q->details || client_add_header(list, "Prefer: details"));
}

static void
add_encoded(struct buf *out, const char *text)
{
    char *encoded = curl_easy_escape(NULL, text, 0);

    if (encoded != NULL)
        buf_str(out, encoded);
    else
        out->failed = true;
    curl_free(encoded);
}

/* Writes the whole path with its query, and a NUL. */
static void
write_path(struct buf *out, const struct client_request *q)
{
    const char *rest = q->path, *mark = "?";

    for (size_t i = 0; i < 2 && q->parts[i] != NULL; i++) {
        const char *place = strstr(rest, "%s");

        ENSURE(place != NULL);
        buf_add(out, rest, (size_t)(place - rest));
        add_encoded(out, q->parts[i]);
        rest = place + 2;
    }
    buf_str(out, rest);
    for (size_t i = 0; i < sizeof(q->query) / sizeof(q->query[0]); i++) {
        if (q->query[i].value == NULL)
            continue;
        buf_printf(out, "%s%s=", mark, q->query[i].name);
        add_encoded(out, q->query[i].value);
        mark = "&";
    }
    buf_byte(out, '\0');
}

struct buf *
client_body(struct client *c)
{
    buf_reset(&c->body, SIZE_MAX);
    return &c->body;
}

int
client_send(struct client *c, const struct client_request *q)
{
    struct client_response *response = &c->response;
    struct web_request request = {.method = q->method,
                                  .body = q->body,
                                  .timeout_ms = c->timeout_ms + q->wait_s * 1000,
                                  .response_most = RESPONSE_MOST};
    struct curl_slist *headers = NULL;
    struct web_response web;
    bool prepared, good;

    buf_reset(&c->path, SIZE_MAX);
    write_path(&c->path, q);
    prepared = add_headers(c, q, &headers) && !c->path.failed &&
               (!bytes_present(q->body) || !c->body.failed);
    client_drop_response(c);
    request.path = c->path.data;
    request.headers = headers;
    good = prepared && web_client_send(&c->web, &request, &web);
    curl_slist_free_all(headers);
    if (!prepared)
        return request_fails(c, COMMAND_FAILED, "out of memory");
    response->body = web.body;
    response->status = web.status;
    if (!good)
        return request_fails(
            c, web.code == CURLE_OUT_OF_MEMORY ? COMMAND_FAILED : COMMAND_UNAVAILABLE,
            "%s", web.error);
    read_headers(c->web.handle, response);
    if (!c->quiet)
        client_print_warnings(c);
    return read_document(c, q);
}

/* ------------------------------------------------------------- misspelled queues */

/* The search for the name of a queue. */
struct queue_search {
    struct nearest near;
    char found[NEAREST_HINT_CAP];
    size_t names;
    bool exists; /* the queue with exactly this name */
};

static bool
search_queue(void *ctx, const json_t *item, struct bytes text)
{
    enum { NAMES_MOST = 1000 };
    struct queue_search *s = ctx;
    const char *name = json_string_value(json_object_get(item, "name"));

    (void)text;
    if (name == NULL)
        return true;
    s->exists = bytes_equal_str(s->near.name, name);
    nearest_offer(&s->near, name);
    if (s->near.found == name) {
        (void)snprintf(s->found, sizeof(s->found), "%s", name);
        s->near.found = s->found;
    }
    return !s->exists && ++s->names < NAMES_MOST;
}

struct nearest_hint
client_queue_hint(struct client *c, const char *queue)
{
    const struct client_request request = {.path = "/claimd/queues?limit=1000&sort=name"};
    struct queue_search s = {.near = nearest_begin(bytes_str(queue))};
    const struct client_response before = c->response;
    const char *names[] = {s.found};
    const bool quiet = c->quiet;

    c->response = (struct client_response){.status = 0};
    buf_init(&c->response.body, c->mem);
    c->quiet = true;
    (void)client_read_pages(c, &request, "queues", search_queue, &s);
    client_drop_response(c);
    c->quiet = quiet;
    c->response = before;
    return nearest_hint(bytes_str(queue), names,
                        s.near.found != NULL && !s.exists ? 1 : 0);
}

int
client_fails(struct client *c, const char *queue, int status)
{
    struct nearest_hint hint = {.text = ""};

    if (queue != NULL && c->response.status == 404)
        hint = client_queue_hint(c, queue);
    progress_end(); /* the error takes the place of the bar */
    return command_fails(status, "%s%s", c->response.error, hint.text);
}

int
client_call(struct client *c, const struct client_request *q)
{
    static const char *const paths[] = {"/v2/queues/%s", "/claimd/queues/%s"};
    const int status = client_send(c, q);
    const char *queue = NULL;

    if (status == COMMAND_GOOD)
        return status;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (strncmp(q->path, paths[i], strlen(paths[i])) == 0)
            queue = q->parts[0];
    return client_fails(c, queue, status);
}

int
client_check_queue(struct client *c, const char *queue)
{
    const struct client_request request = {
        .path = "/claimd/queues/%s/claims?limit=1", .parts = {queue}, .member = "claims"};

    (void)client_send(c, &request);
    return c->response.status == 404 ? client_fails(c, queue, COMMAND_FAILED)
                                     : COMMAND_GOOD;
}

/* ------------------------------------------------------------------ page by page */

/*
 * A path of the server without the prefix of the URL, which a proxy may have told the
 * server.
 */
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
client_next_page(const struct client *c)
{
    const json_t *links = json_object_get(c->response.document, "links"), *link;
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
client_read_pages(struct client *c, const struct client_request *first, const char *name,
                  page_item_fn *each, void *ctx)
{
    struct client_request request = *first;
    int status;

    request.member = name;
    for (;;) {
        status = client_send(c, &request);
        if (status != COMMAND_GOOD || !read_items(&c->response, name, each, ctx))
            return status;
        request.path = client_next_page(c); /* with its query */
        memset(request.parts, 0, sizeof(request.parts));
        memset(request.query, 0, sizeof(request.query));
        /* A page that does not move on would be read forever. */
        if (request.path == NULL || strcmp(request.path, c->path.data) == 0)
            return status;
    }
}
