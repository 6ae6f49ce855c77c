/*
 * The documents of openapi/: GET /openapi.json, the description of this server
 * (docs/api.md 6.6); "/", the list of versions (6.1); the home document of each version
 * (6.2); and the documents of the identity stub (identity.c).
 *
 * The build embeds a file without its indentation. A request copies the file without the
 * parts that are disabled, and fills in the values in force:
 *
 *     "NAME $if WORDS": VALUE    a member that exists if all conditions hold ("!word": if
 *                                not)
 *     {"$if": "WORDS", ...}      the same for an object in a list
 *     "${max_wait}"              the number of this limit
 *     "${user}"                  a text of the request
 *     "at most ${max_wait}"      the same inside of a text, where a text has to need no
 *                                escapes
 *     "${roles messages:pop}"    the list of the roles with this permission
 *     "$part NAME": VALUE        an object or a list that later ones use. It is not
 *                                copied here
 *     "$use": "NAME NAME"        the members of these parts
 *     {"$use": "NAME"}           for an object in a list: the items of this part
 *     "$like": "NAME"            at the end of an operation: all other members of the
 *                                operation NAME, which has no "$like" itself
 *
 *   Cost     each request writes its document, 140 KB of OpenAPI in less than a
 *            millisecond
 *   Memory   none between requests
 */
#include "api/context.h"
#include "api/handlers/handlers.h"
#include "api/quota.h"
#include "api/response.h"
#include "claimd/base/invariant.h"
#include "claimd/json/string.h"

#include <home_json.h> /* scripts/cmake/openapi.cmake makes these three */
#include <openapi_json.h>
#include <versions_json.h>

#include <stddef.h>

enum { NAMED_MOST = 200 };

/* A document that is being written. */
struct document {
    struct buf *out;
    const char *at; /* the text still to copy; it ends with a NUL */
    const struct context *ctx;
    const struct document_word *words; /* ends with one without a name */
    struct policy policy;              /* in force; with access */
    /* The parts and the operations so far. */
    struct {
        struct bytes name;
        const char *inside; /* behind its bracket */
    } named[NAMED_MOST];
    size_t named_count; /* the last one may be the operation that is being written */
};

static const struct {
    const char *name;
    size_t offset;
} numbers[] = {
#define NUMBER(name, value) {#name, offsetof(struct api_limits, name)},
    API_LIMIT_LIST(NUMBER)
#undef NUMBER
};

static int64_t
find_number(struct bytes name, const struct api_limits *l)
{
    const size_t count = sizeof(numbers) / sizeof(numbers[0]);
    size_t i = 0;

    if (bytes_equal_str(name, "default_queues_page"))
        return limits_page(l, l->max_queues_per_page);
    if (bytes_equal_str(name, "default_messages_page"))
        return limits_page(l, l->max_messages_per_page);
    if (bytes_equal_str(name, "default_subscriptions_page"))
        return limits_page(l, l->max_subscriptions_per_page);
    if (bytes_equal_str(name, "default_claim_page"))
        return limits_page(l, l->max_messages_per_claim_or_pop);
    while (i < count && !bytes_equal_str(name, numbers[i].name))
        i++;
    ENSURE(i < count);
    return *(const int64_t *)((const char *)l + numbers[i].offset);
}

/* NULL: there is no such word. */
static const struct document_word *
find_word(const struct document *d, struct bytes name)
{
    const struct document_word *w = d->words;

    while (w->name != NULL && !bytes_equal_str(name, w->name))
        w++;
    return w->name == NULL ? NULL : w;
}

/* True if all of these conditions hold. */
static bool
conditions_hold(const struct document *d, struct bytes words)
{
    while (bytes_present(words)) {
        struct bytes word = bytes_cut(&words, ' ');
        const bool wanted = word.data[0] != '!';
        const struct document_word *w;

        if (!wanted)
            word = bytes_of(word.data + 1, word.len - 1);
        w = find_word(d, word);
        ENSURE(w != NULL);
        if (w->holds != wanted)
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ copying */

/* The text up to the quotation mark that ends a string. */
static struct bytes
string_at(const char *text)
{
    size_t len = 0;

    while (text[len] != '"')
        len += text[len] == '\\' ? 2 : 1;
    return bytes_of(text, len);
}

static void
skip_value(struct document *d)
{
    size_t depth = 0;

    d->at += strspn(d->at, ": ");
    do {
        const char c = *d->at++;

        if (c == '"')
            d->at += string_at(d->at).len + 1;
        else if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
    } while (depth > 0);
}

static void
write_roles(struct document *d, struct bytes name)
{
    const enum action action = action_find(name);

    ENSURE(action != ACTION_COUNT);
    buf_byte(d->out, '[');
    for (int role = 0; role < ROLE_COUNT; role++) {
        if (!policy_allows(&d->policy, (enum role)role, action))
            continue;
        json_write_comma(d->out);
        buf_printf(d->out, "\"%s\"", role_name((enum role)role));
    }
    buf_byte(d->out, ']');
}

/* Writes the value of a placeholder. whole: it is the whole text, so a text gets
 * quotation marks. */
static void
write_value(struct document *d, struct bytes name, bool whole)
{
    struct bytes what = bytes_cut(&name, ' ');
    const struct document_word *w = find_word(d, what);

    if (bytes_equal_str(what, "roles"))
        write_roles(d, name);
    else if (w == NULL)
        buf_i64(d->out, find_number(what, d->ctx->limits));
    else if (whole)
        json_string_write(d->out, w->text);
    else
        buf_bytes(d->out, w->text);
}

/* Copies a text, and replaces its placeholders. */
static void
write_text(struct document *d, struct bytes text)
{
    const char *end = text.data + text.len, *mark;

    while ((mark = memmem(text.data, (size_t)(end - text.data), "${", 2)) != NULL) {
        struct bytes name = bytes_of(mark + 2, strcspn(mark + 2, "}"));

        buf_add(d->out, text.data, (size_t)(mark - text.data));
        write_value(d, name, false);
        text.data = name.data + name.len + 1;
    }
    buf_add(d->out, text.data, (size_t)(end - text.data));
}

/* ------------------------------------------------------------------ parts, operations */

static void
note_named(struct document *d, struct bytes name, const char *inside)
{
    ENSURE(d->named_count < NAMED_MOST);
    d->named[d->named_count].name = name;
    d->named[d->named_count++].inside = inside;
}

static const char *
find_named(const struct document *d, struct bytes name)
{
    size_t i = 0;

    while (i < d->named_count && !bytes_equal(name, d->named[i].name))
        i++;
    ENSURE(i < d->named_count);
    return d->named[i].inside;
}

static void copy_until(struct document *d, const char *end);

/* Copies the members or the items of a part. */
static void
copy_part(struct document *d, struct bytes name)
{
    const char *outer = d->at, *inside = find_named(d, name), *end;

    d->at = inside - 1;
    skip_value(d);
    end = d->at - 1;
    d->at = inside;
    copy_until(d, end);
    d->at = outer;
}

/* True if an operation has this member in front of "$like". */
static bool
has_member(struct document *d, const char *inside, struct bytes member)
{
    const char *outer = d->at;
    bool found = false;

    d->at = inside;
    while (!found && !bytes_equal_str(string_at(d->at + 1), "$like")) {
        found = bytes_equal(string_at(d->at + 1), member);
        skip_value(d); /* the name */
        skip_value(d);
        d->at += strspn(d->at, ", ");
    }
    d->at = outer;
    return found;
}

/* Copies the members of another operation that the present one lacks. */
static void
copy_like(struct document *d, struct bytes name)
{
    const char *outer = d->at, *own = d->named[d->named_count - 1].inside;

    d->at = find_named(d, name);
    while (*d->at != '}') {
        const char *start = d->at, *end;

        ENSURE(!bytes_equal_str(string_at(start + 1), "$like"));
        skip_value(d); /* the name */
        skip_value(d);
        end = d->at;
        if (!has_member(d, own, string_at(start + 1))) {
            d->at = start;
            copy_until(d, end);
        }
        d->at = end + strspn(end, ", ");
    }
    d->at = outer;
}

/* Follows a mark, with its value. False for any other name of a member. */
static bool
follow_mark(struct document *d, struct bytes name)
{
    static const char part[] = "$part ";
    const char *value = d->at + strspn(d->at, ": ");
    const bool uses = bytes_equal_str(name, "$use");

    if (uses || bytes_equal_str(name, "$like")) {
        struct bytes names = string_at(value + 1);

        skip_value(d);
        while (bytes_present(names))
            (uses ? copy_part : copy_like)(d, bytes_cut(&names, ' '));
        return true;
    }
    if (name.len > sizeof(part) && memcmp(name.data, part, sizeof(part) - 1) == 0) {
        (void)bytes_cut(&name, ' ');
        note_named(d, name, value + 1);
        skip_value(d);
        return true;
    }
    if (bytes_equal_str(name, "operationId"))
        note_named(d, string_at(value + 1), name.data - 1);
    return false;
}

static void
copy_string(struct document *d)
{
    static const char condition[] = " $if ";
    struct bytes text = string_at(d->at + 1);
    const char *mark = memmem(text.data, text.len, condition, sizeof(condition) - 1);

    d->at = text.data + text.len + 1;
    if (follow_mark(d, text))
        return;
    if (mark != NULL) {
        const char *words = mark + sizeof(condition) - 1;

        if (!conditions_hold(d,
                             bytes_of(words, text.len - (size_t)(words - text.data)))) {
            skip_value(d);
            return;
        }
        text.len = (size_t)(mark - text.data);
    }
    json_write_comma(d->out);
    if (text.len > 2 && memcmp(text.data, "${", 2) == 0 &&
        memchr(text.data, '}', text.len) == text.data + text.len - 1) {
        write_value(d, bytes_of(text.data + 2, text.len - 3), true);
    } else {
        buf_byte(d->out, '"');
        write_text(d, text);
        buf_byte(d->out, '"');
    }
}

/* Copies the bracket of an object, or skips the object for its condition. Replaces an
 * object that stands for the items of a part. */
static void
copy_object(struct document *d)
{
    static const char condition[] = "{\"$if\": \"", use[] = "{\"$use\": \"";

    if (strncmp(d->at, use, sizeof(use) - 1) == 0) {
        struct bytes names = string_at(d->at + sizeof(use) - 1);
        const struct bytes name = bytes_cut(&names, ' ');

        if (*(find_named(d, name) - 1) == '[') {
            skip_value(d);
            copy_part(d, name);
            return;
        }
    }

    if (strncmp(d->at, condition, sizeof(condition) - 1) == 0) {
        struct bytes words = string_at(d->at + sizeof(condition) - 1);

        if (!conditions_hold(d, words)) {
            skip_value(d);
            return;
        }
        d->at = words.data + words.len;
    }
    d->at++;
    json_write_comma(d->out);
    buf_byte(d->out, '{');
}

static void
copy_until(struct document *d, const char *end)
{
    while (d->at < end) {
        size_t len;

        switch (*d->at) {
        case '"':
            copy_string(d);
            break;
        case '{':
            copy_object(d);
            break;
        case ' ':
        case ',': /* json_write_comma() writes commas, because parts may be left out */
            d->at++;
            break;
        case ':':
        case '}':
        case ']':
            buf_byte(d->out, *d->at++);
            break;
        case '[':
            json_write_comma(d->out);
            buf_byte(d->out, *d->at++);
            break;
        default: /* a number, or true, false or null */
            len = strcspn(d->at, " ,]}");
            json_write_comma(d->out);
            buf_add(d->out, d->at, len);
            d->at += len;
        }
    }
}

void
document_write(struct context *ctx, const char *file, const struct document_word *words)
{
    struct document d = {.out = &ctx->res->body, .at = file, .ctx = ctx, .words = words};

    if (ctx->config->access != NULL)
        access_policy(ctx->config->access, &d.policy);
    copy_until(&d, file + strlen(file));
}

/* ------------------------------------------------------------------ requests */

/* GET, HEAD /openapi.json */
enum status
handle_openapi(struct context *ctx)
{
    const struct api_limits *limits = ctx->limits;
    const bool access = ctx->config->access != NULL, identity = ctx->config->auth != NULL,
               tokens = access || identity,
               required = access || (identity && auth_is_required(ctx->config->auth));
    struct api_project_limits most;

    quotas_get(ctx->api->quotas, &most);
    {
        const bool any = most.requests_per_second > 0 || most.connections > 0,
                   queues = any || most.queues > 0,
                   posts = any || most.messages > 0 || most.bytes > 0,
                   waiters = any || (most.waiters > 0 && limits->max_wait > 0);
        const struct document_word words[] = {
            {"v1", .holds = limits->enable_v1},
            {"v1_1", .holds = limits->enable_v1_1},
            {"ci", .holds = ctx->config->testapi != NULL},
            {"admin", .holds = limits->admin_mode},
            {"ui", .holds = limits->ui},
            {"strict", .holds = limits->client_id_strict},
            {"access", .holds = access},
            {"certificates",
             .holds = access && access_has_certificates(ctx->config->access)},
            {"identity", .holds = identity},
            {"tokens", .holds = tokens},
            {"guarded", .holds = required}, /* requests about all projects need a token */
            {"optional_token", .holds = identity && !required},
            {"optional_project", .holds = tokens || limits->enable_v1},
            {"keys", .holds = limits->idempotency_window > 0},
            {"limited", .holds = any},
            {"limited_queues", .holds = queues},
            {"limited_posts", .holds = posts},
            {"limited_posts_queues",
             .holds = posts || queues}, /* a post may make a queue */
            {"limited_waiters", .holds = waiters},
            {"limits", .holds = queues || posts || waiters},
            {.name = NULL},
        };

        document_write(ctx, openapi_json, words);
    }
    response_add_header(ctx, "Cache-Control", "max-age=60");
    return response_json(ctx, 200);
}

/*
 * The page at "/" for browsers. It has no scripts and no styles, and its links are
 * relative, so that it works behind a path prefix.
 */
static enum status
write_start_page(struct context *ctx)
{
    static const char policy[] = "default-src 'none';"
                                 "img-src data:;"
                                 "base-uri 'none';"
                                 "form-action 'none';"
                                 "frame-ancestors 'none'";
    struct buf *out = &ctx->res->body;

    buf_str(out, "<!doctype html>\n"
                 "<html lang=\"en\">\n"
                 "<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width\">\n"
                 "<meta name=\"color-scheme\" content=\"light dark\">\n"
                 "<link rel=\"icon\" href=\"data:,\">\n"
                 "<title>claimd</title>\n"
                 "<main>\n"
                 "<h1>claimd</h1>\n"
                 "<p>This is claimd, a server for job queues over HTTP, with the API of "
                 "OpenStack Zaqar.</p>\n"
                 "<ul>\n");
    buf_str(out, ctx->limits->ui
                     ? "<li><a href=\"claimd/ui/\">Page for operators</a>: queues, "
                       "claims, messages, alerts</li>\n"
                     : "<li>The page for operators is off. To turn it on, start claimd "
                       "with the option <code>--ui</code>.</li>\n");
    buf_str(out,
            "<li><a href=\"openapi.json\">Description of the API</a> (OpenAPI)</li>\n"
            "<li>Documents: the package has them in "
            "<code>/usr/share/doc/claimd/docs</code>, the source in "
            "<code>docs</code>. Commands: <code>claimd --help</code></li>\n"
            "</ul>\n"
            "</main>\n");
    response_add_header(ctx, "Content-Security-Policy", policy);
    response_add_header(ctx, "Referrer-Policy", "no-referrer");
    response_add_header(ctx, "Vary", "Accept");
    return response_typed(ctx, 200, "text/html; charset=utf-8");
}

/* GET / and, for browsers, HEAD / */
enum status
handle_versions(struct context *ctx)
{
    const struct document_word words[] = {
        {"v1", .holds = ctx->limits->enable_v1},
        {"v1_1", .holds = ctx->limits->enable_v1_1},
        {"base", .text = ctx->base},
        {.name = NULL},
    };

    if (request_asks_for_page(ctx->req))
        return write_start_page(ctx);
    document_write(ctx, versions_json, words);
    return response_json(ctx, 300);
}

/* GET /VERSION/ */
enum status
handle_home(struct context *ctx)
{
    const struct document_word words[] = {
        {"v1", .holds = ctx->version == &version_v1},
        {"v1_1", .holds = ctx->version == &version_v1_1},
        {"v2", .holds = ctx->version == &version_v2},
        {"base", .text = ctx->base},
        {.name = NULL},
    };

    document_write(ctx, home_json, words);
    (void)response_typed(ctx, 200, "application/json-home");
    response_add_header(ctx, "Cache-Control", "max-age=86400");
    if (ctx->prefix.len > 0)
        response_add_header(ctx, "Vary", "X-Forwarded-Prefix");
    return ST_OK;
}
