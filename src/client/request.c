/*
 * The requests of commands, one after the other: adds the headers, sends a request
 * through claimd/web/web_client.h, and decides whether the response is the expected
 * document of a claimd. Also lists, page by page.
 *
 * client.h declares them. connection.c has the settings.
 */
#include "client/client.h"

#include "client/ask.h"

#include "claimd/base/server_url.h"
#include "claimd/json/scan.h"
#include "claimd/json/tree.h"
#include "client/text.h"

#include <stdio.h>
#include <strings.h>

/* Larger than any response of claimd. */
enum { RESPONSE_MOST = 64 << 20 };

bool
client_header_value(struct bytes line, const char *name, char *out, size_t cap)
{
    struct bytes rest = line, value;

    if (!bytes_equal_nocase(bytes_cut(&rest, ':'), bytes_str(name)) ||
        !bytes_present(rest))
        return false;
    value = bytes_trim(rest);
    if (value.len >= cap)
        return false;
    memcpy(out, value.data, value.len);
    out[value.len] = '\0';
    return true;
}

static size_t
read_header(char *data, size_t size, size_t count, void *arg)
{
    struct client_response *r = arg;
    const struct bytes line = bytes_of(data, size * count);
    char text[64];

    if (client_header_value(line, "Claim-Number", r->claim_number,
                            sizeof(r->claim_number)) ||
        client_header_value(line, "Location", r->location, sizeof(r->location)))
        return line.len;
    if (r->warning_count < CLIENT_WARNINGS &&
        client_header_value(line, "Claimd-Warning", r->warnings[r->warning_count],
                            CLIENT_WARNING_CAP))
        r->warning_count++;
    else if (client_header_value(line, "Idempotent-Replay", text, sizeof(text)))
        r->replayed = strcasecmp(text, "true") == 0;
    else if (client_header_value(line, "Preference-Applied", text, sizeof(text)))
        r->waited |= strstr(text, "wait=") != NULL;
    else if (client_header_value(line, "Claimd-Paused", text, sizeof(text)))
        r->paused = true;
    else if (client_header_value(line, "Retry-After", text, sizeof(text)) &&
             !bytes_to_i64(bytes_str(text), &r->retry_after_s))
        r->retry_after_s = -1;
    return line.len;
}

/* ------------------------------------------------------------------ errors */

static int __attribute__((format(printf, 3, 4)))
response_fails(struct client_response *response, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(response->error, sizeof(response->error), format, args);
    va_end(args);
    return status;
}

/* The text of an error document, or of a status without one. */
static int
refused(const struct client *c, struct client_response *response)
{
    const char *title = json_string_value(json_object_get(response->document, "title"));
    const char *text =
        json_string_value(json_object_get(response->document, "description"));

    if (title == NULL && text == NULL)
        return response_fails(
            response, COMMAND_FAILED, "%s responds with status %ld%s", c->web.url,
            response->status,
            response->status == 406 || response->status < 400 ? "" : ". Is it a claimd?");
    return response_fails(response, COMMAND_FAILED, "%s%s%s (status %ld)",
                          title == NULL ? "" : title,
                          title == NULL || text == NULL ? "" : ": ",
                          text == NULL ? "" : text, response->status);
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

/* Reads the document of a response. Returns an exit status. */
static int
read_document(const struct client *c, const struct client_request *q,
              struct client_response *response)
{
    const struct bytes body = bytes_trim(buf_view(&response->body));
    enum status st = ST_OK;

    if (body.len > 0 && !(q->text && response->status == 200))
        st = json_tree_read(body, &response->document);
    if (st == ST_NO_MEMORY)
        return response_fails(response, COMMAND_FAILED, "out of memory");
    if (response->status < 200 || response->status > 299)
        return refused(c, response);
    if (st != ST_OK)
        return response_fails(response, COMMAND_UNAVAILABLE,
                              "the response of %s is no JSON document. Is it a claimd?",
                              c->web.url);
    if (!is_expected(q, response))
        return response_fails(
            response, COMMAND_UNAVAILABLE,
            "the response of %s is not the expected one. Is it a claimd?", c->web.url);
    return COMMAND_GOOD;
}

/* ------------------------------------------------------------------ sending */

static bool
add_headers(const struct client *c, const struct client_request *q,
            struct curl_slist **list)
{
    struct client named = *c;

    if (q->project != NULL)
        named.project = q->project;
    return client_add_headers(&named, list) &&
           (!bytes_present(q->body) ||
            client_add_header(list, "Content-Type: %s",
                              q->type == NULL ? "application/json" : q->type)) &&
           (q->key == NULL || client_add_header(list, "Idempotency-Key: %s", q->key)) &&
           (q->wait_s <= 0 ||
            client_add_header(list, "Prefer: wait=%lld", (long long)q->wait_s)) &&
           (!q->details || client_add_header(list, "Prefer: details"));
}

/* Writes the whole path, with a NUL. */
static void
write_path(struct buf *out, const struct client_request *q)
{
    buf_str(out, q->path);
    if (q->queue != NULL) {
        buf_str(out, "/queues/");
        client_add_encoded(out, q->queue);
        buf_str(out, q->below == NULL ? "" : q->below);
        client_add_encoded(out, q->item == NULL ? "" : q->item);
        buf_str(out, q->behind == NULL ? "" : q->behind);
    }
    buf_byte(out, '\0');
}

int
client_send(struct client *c, const struct client_request *q,
            struct client_response *response)
{
    struct web_request request = {.method = q->method,
                                  .body = q->body,
                                  .timeout_ms = c->timeout_ms + q->wait_s * 1000,
                                  .response_most = RESPONSE_MOST,
                                  .on_header = read_header,
                                  .ctx = response};
    struct curl_slist *headers = NULL;
    struct web_response web;
    bool prepared, good;
    struct buf path;

    *response = (struct client_response){.retry_after_s = -1};
    buf_init(&response->body, c->mem);
    buf_init(&path, c->mem);
    write_path(&path, q);
    prepared = add_headers(c, q, &headers) && !path.failed;
    request.path = path.data;
    request.headers = headers;
    good = prepared && web_client_send(&c->web, &request, &web);
    curl_slist_free_all(headers);
    buf_fini(&path);
    if (!prepared)
        return response_fails(response, COMMAND_FAILED, "out of memory");
    response->body = web.body;
    response->status = web.status;
    if (!good)
        return response_fails(response,
                              web.code == CURLE_OUT_OF_MEMORY ? COMMAND_FAILED
                                                              : COMMAND_UNAVAILABLE,
                              "%s", web.error);
    for (size_t i = 0; i < response->warning_count && !c->quiet; i++)
        command_warns(response->warnings[i]);
    return read_document(c, q, response);
}

int
client_call(struct client *c, const struct client_request *q,
            struct client_response *response)
{
    const int status = client_send(c, q, response);

    if (status == COMMAND_GOOD)
        return status;
    progress_end(); /* the error takes the place of the bar */
    return command_fails(status, "%s", response->error);
}

int
client_check_queue(struct client *c, const char *queue)
{
    const struct client_request request = {.path = "/claimd",
                                           .queue = queue,
                                           .below = "/claims?limit=1",
                                           .member = "claims"};
    struct client_response response;
    int status = COMMAND_GOOD;

    (void)client_send(c, &request, &response);
    if (response.status == 404)
        status = command_fails(COMMAND_FAILED, "%s", response.error);
    client_response_free(&response);
    return status;
}

void
client_response_free(struct client_response *response)
{
    json_decref(response->document);
    buf_fini(&response->body);
    *response = (struct client_response){.retry_after_s = -1};
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
            request.queue = NULL;
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
