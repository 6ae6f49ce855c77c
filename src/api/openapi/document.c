#include "api/openapi/component.h"
#include "api/openapi/openapi.h"
#include "api/openapi/operation.h"
#include "api/quota.h"
#include "claimd/json/string.h"

/* A document that is being written. */
struct document {
    struct buf *out;
    const struct api_limits *limits;
    const struct context *ctx;
    struct policy policy;             /* in force; with access */
    struct api_project_limits quotas; /* in force */
    struct component_set shared;      /* what has been named so far */
    bool begun;                       /* there is a member before the next one */
};

/* ------------------------------------------------------------------ pieces */

static void
text(struct document *d, const char *template)
{
    components_add(&d->shared, template);
    template_write(d->out, template, d->limits);
}

/* Texts that are the same in JSON. (buf_printf() would take half of the time of all.) */
static void
member(struct document *d, const char *name, const char *value)
{
    buf_byte(d->out, '"');
    buf_str(d->out, name);
    buf_str(d->out, "\":\"");
    buf_str(d->out, value);
    buf_str(d->out, "\",");
}

static void
separate(struct document *d, bool *begun)
{
    if (*begun)
        buf_byte(d->out, ',');
    *begun = true;
}

/* What a route belongs to. */
struct place {
    const struct version *version;
    const struct route *row;
    const struct operation *operation;
};

/* Does it take no credentials at all? */
static bool
is_open(const struct document *d, const struct place *p)
{
    if ((p->row->flags & ROUTE_GUARDED) != 0)
        return d->ctx->access == NULL &&
               (d->ctx->auth == NULL || !auth_is_required(d->ctx->auth));
    return p->version->open || (p->row->flags & ROUTE_OPEN) != 0;
}

static bool
knows_tokens(const struct document *d)
{
    return d->ctx->access != NULL || d->ctx->auth != NULL;
}

/* ------------------------------------------------------------------ parameters */

static void
parameter(struct document *d, bool *begun, const char *template)
{
    if (template == NULL)
        return;
    separate(d, begun);
    text(d, template);
}

static void
names_of_headers(struct document *d, const struct place *p, bool *begun)
{
    bool all = p->version->headers_required;
    bool client = all || (p->row->flags & ROUTE_CLIENT) != 0;

    if (p->version->open)
        return;
    parameter(d, begun, client ? "<parameters/Client>" : "<parameters/ClientOptional>");
    parameter(d, begun,
              all && !knows_tokens(d) ? "<parameters/Project>"
                                      : "<parameters/ProjectOptional>");
}

static bool
is_of_topic(const struct route *row)
{
    return strstr(row->pattern, "{topic}") != NULL;
}

static void
parameters(struct document *d, const struct place *p)
{
    bool begun = false;

    buf_str(d->out, "\"parameters\":[");
    names_of_headers(d, p, &begun);
    if (strstr(p->row->pattern, "{queue}") != NULL)
        parameter(d, &begun, "<parameters/Queue>");
    if (is_of_topic(p->row))
        parameter(d, &begun, "<parameters/Topic>");
    if (strstr(p->row->pattern, "{id}") != NULL)
        parameter(d, &begun, "<parameters/Id>");
    parameter(d, &begun, p->operation->parameters);
    buf_byte(d->out, ']');
}

static void
body(struct document *d, const struct operation *o)
{
    if (o->body == NULL)
        return;
    buf_printf(d->out,
               ",\"requestBody\":{\"required\":%s,\"content\":{\"%s\":{\"schema\":",
               o->body_required ? "true" : "false",
               o->body_media != NULL ? o->body_media : "application/json");
    text(d, o->body);
    buf_str(d->out, "}}}");
}

/* ------------------------------------------------------------------ answers */

static void
answer(struct document *d, const struct place *p, const struct answer *a)
{
    bool located = (p->row->flags & (ROUTE_LOCATED | ROUTE_LOCATED_PATH)) != 0;

    buf_printf(d->out, "\"%d\":{", a->code);
    member(d, "description", a->what);
    text(d, "'headers':{'X-Request-ID':<headers/RequestId>");
    if (located)
        text(d, ",'Content-Location':<headers/ContentLocation>");
    if (a->headers != NULL)
        buf_byte(d->out, ',');
    text(d, a->headers);
    buf_byte(d->out, '}');
    if (a->schema != NULL) {
        buf_printf(d->out, ",\"content\":{\"%s\":{\"schema\":",
                   a->media != NULL ? a->media : "application/json");
        text(d, a->schema);
        buf_str(d->out, "}}");
    }
    buf_byte(d->out, '}');
}

/* Whom a refusal may hit, besides those whose operation names it. */
enum whom {
    EVERYBODY,
    WHO_SENDS,
    WHO_GETS_JSON,
    WHO_NEEDS_A_TOKEN,
    WHO_HAS_A_PROJECT,
    WHO_IS_LIMITED,
    NOBODY
};

static const struct refusal {
    int code;
    enum whom whom;
    const char *response;
} refusals[] = {
    {400, EVERYBODY, "'400':<responses/Error>"},
    {401, WHO_NEEDS_A_TOKEN, "'401':<responses/Unauthorized>"},
    {403, WHO_HAS_A_PROJECT, "'403':<responses/Forbidden>"},
    {404, EVERYBODY, "'404':<responses/NoPath>"},
    {406, WHO_GETS_JSON, "'406':<responses/NotAcceptable>"},
    {408, EVERYBODY, "'408':<responses/Late>"},
    {409, NOBODY, "'409':<responses/Error>"},
    {413, WHO_SENDS, "'413':<responses/TooLarge>"},
    {414, EVERYBODY, "'414':<responses/TooLong>"},
    {415, NOBODY, "'415':<responses/Error>"},
    {429, WHO_IS_LIMITED, "'429':<responses/Enough>"},
    {431, EVERYBODY, "'431':<responses/TooLong>"},
    {503, EVERYBODY, "'503':<responses/Busy>"},
};

/* The row that a parameter makes of this one, NULL if there is none. */
static const struct route *
variant_of(const struct route *row)
{
    const struct route *next = row + 1;
    size_t len = strlen(row->pattern);

    if (next->pattern == NULL || next->method != row->method ||
        strncmp(next->pattern, row->pattern, len) != 0 || next->pattern[len] != '?')
        return NULL;
    return next;
}

/* Is there a limit of what an action takes of a project's share? */
static bool
is_rationed(const struct document *d, const struct place *p, enum action action)
{
    const struct api_project_limits *most = &d->quotas;

    switch ((int)action) {
    case ACTION_QUEUES_CREATE:
    case ACTION_TOPICS_CREATE:
    case ACTION_SUBSCRIPTION_CREATE:
        return most->queues > 0;
    case ACTION_MESSAGES_CREATE:
        return most->messages > 0 || most->bytes > 0 ||
               (most->queues > 0 && p->version->posts_make_queue);
    case ACTION_CLAIMS_CREATE:
    case ACTION_MESSAGES_POP:
        return most->waiters > 0 && d->limits->max_wait > 0;
    default:
        return false;
    }
}

/* May it be refused because its project has what it may have? */
static bool
is_limited(const struct document *d, const struct place *p)
{
    const struct route *variant = variant_of(p->row);

    if (p->version->open)
        return false; /* it is of no project */
    return d->quotas.requests_per_second > 0 || d->quotas.connections > 0 ||
           is_rationed(d, p, p->row->action) ||
           (variant != NULL && is_rationed(d, p, variant->action));
}

static bool
can_happen(const struct document *d, const struct place *p, const struct refusal *r)
{
    enum method m = p->row->method;

    for (size_t i = 0; i < REFUSALS_MAX; i++)
        if (p->operation->refuses[i] == r->code)
            return true;
    switch (r->whom) {
    case EVERYBODY:
        return true;
    case WHO_SENDS:
        return m != METHOD_GET && m != METHOD_HEAD;
    case WHO_GETS_JSON:
        return (p->row->flags & ROUTE_OWN_FORM) == 0;
    case WHO_HAS_A_PROJECT: /* or a token, for all of them */
        return !is_open(d, p);
    case WHO_NEEDS_A_TOKEN:
        return knows_tokens(d) && !is_open(d, p);
    case WHO_IS_LIMITED:
        return is_limited(d, p);
    case NOBODY:
        break;
    }
    return false;
}

static void
answers(struct document *d, const struct place *p)
{
    bool begun = false;

    buf_str(d->out, ",\"responses\":{");
    for (size_t i = 0; i < ANSWERS_MAX && p->operation->answers[i].code != 0; i++) {
        separate(d, &begun);
        answer(d, p, &p->operation->answers[i]);
    }
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (!can_happen(d, p, &refusals[i]))
            continue;
        separate(d, &begun);
        text(d, refusals[i].response);
    }
    buf_byte(d->out, '}');
}

/* ------------------------------------------------------------------ credentials */

/* Of the whole document. */
static void
security(struct document *d)
{
    if (d->ctx->access != NULL)
        buf_str(d->out, "\"security\":[{\"token\":[]},{\"bearer\":[]}],");
    else if (d->ctx->auth != NULL)
        buf_printf(d->out, "\"security\":[%s{\"token\":[]}],",
                   auth_is_required(d->ctx->auth) ? "" : "{},");
    else
        buf_str(d->out, "\"security\":[],");
    if (knows_tokens(d))
        components_add(&d->shared, "<securitySchemes/token>");
    if (d->ctx->access != NULL)
        components_add(&d->shared, "<securitySchemes/bearer>");
}

/* What a caller has to be allowed: {"messages:pop":["worker","admin"]}. */
static void
action(struct document *d, const struct route *row, bool *begun)
{
    bool some = false;

    separate(d, begun);
    buf_printf(d->out, "\"%s\":[", action_name(row->action));
    for (int role = 0; role < ROLE_COUNT; role++) {
        if (!policy_allows(&d->policy, (enum role)role, row->action))
            continue;
        separate(d, &some);
        buf_printf(d->out, "\"%s\"", role_name((enum role)role));
    }
    buf_byte(d->out, ']');
}

/* The row, and the one that a parameter makes of it. */
static void
who_may(struct document *d, const struct place *p)
{
    const struct route *variant = variant_of(p->row);
    bool begun = false;

    if (is_open(d, p)) {
        if (p->operation->needs_token)
            buf_str(d->out, ",\"security\":[{\"token\":[]}]");
        else
            buf_str(d->out, ",\"security\":[]");
        return;
    }
    if (d->ctx->access == NULL)
        return;
    buf_str(d->out, ",\"x-roles\":{");
    action(d, p->row, &begun);
    if (variant != NULL)
        action(d, variant, &begun);
    buf_byte(d->out, '}');
}

/* ------------------------------------------------------------------ operations */

/* "V1_1" for "v1.1". */
static void
version_word(struct document *d, struct bytes name)
{
    struct bytes rest = bytes_of(name.data + 1, name.len - 1);

    buf_byte(d->out, 'V');
    buf_bytes(d->out, bytes_cut(&rest, '.'));
    if (!bytes_present(rest))
        return;
    buf_byte(d->out, '_');
    buf_bytes(d->out, rest);
}

/* The current version's names are plain: listQueues, and listQueuesV1_1 of another. */
static void
operation_id(struct document *d, const struct place *p)
{
    buf_printf(d->out, "\"operationId\":\"%s%s", p->operation->name,
               p->row->method == METHOD_HEAD ? "Briefly" : "");
    if (is_of_topic(p->row) && strcmp(p->operation->tag, "topics") != 0)
        buf_str(d->out, "OfTopic"); /* what it shares with queues */
    if (p->version->home != 0 && p->version != &version_v2)
        version_word(d, p->version->name);
    buf_str(d->out, "\",");
}

static const char *
method_word(enum method method)
{
    static const char *const words[METHOD_COUNT] = {
        [METHOD_GET] = "get", [METHOD_HEAD] = "head",   [METHOD_POST] = "post",
        [METHOD_PUT] = "put", [METHOD_PATCH] = "patch", [METHOD_DELETE] = "delete",
    };

    return words[method];
}

static void
operation(struct document *d, const struct place *p)
{
    buf_printf(d->out, "\"%s\":{", method_word(p->row->method));
    operation_id(d, p);
    buf_printf(d->out, "\"tags\":[\"%s\"],", p->operation->tag);
    member(d, "summary", p->operation->summary);
    parameters(d, p);
    body(d, p->operation);
    answers(d, p);
    who_may(d, p);
    buf_byte(d->out, '}');
}

/* ------------------------------------------------------------------ paths */

/* True for a row with the path of the one before it. */
static bool
is_same_path(const struct route *rows, const struct route *row)
{
    return row > rows && strcmp(row->pattern, row[-1].pattern) == 0;
}

/* A slash behind a whole path means nothing. */
static bool
is_twin(const struct route *rows, const struct route *row)
{
    size_t len = row > rows ? strlen(row[-1].pattern) : 0;

    return len > 0 && strncmp(row->pattern, row[-1].pattern, len) == 0 &&
           strcmp(row->pattern + len, "/") == 0;
}

static bool
is_shown(const struct document *d, const struct route *rows, const struct route *row)
{
    return ((row->flags & ROUTE_ADMIN) == 0 || d->limits->admin_mode) &&
           strchr(row->pattern, '?') == NULL && !is_twin(rows, row);
}

static void
paths_of(struct document *d, const struct version *v)
{
    const struct route *rows = v->routes;
    bool open = false;

    for (const struct route *row = rows; row->pattern != NULL; row++) {
        const struct place place = {v, row, row->about};

        if (!is_shown(d, rows, row))
            continue;
        if (is_same_path(rows, row)) {
            buf_byte(d->out, ',');
        } else {
            buf_printf(d->out, "%s%s\"%s\":{", open ? "}" : "", d->begun ? "," : "",
                       row->pattern);
            open = d->begun = true;
        }
        operation(d, &place);
    }
    if (open)
        buf_byte(d->out, '}');
}

static void
paths(struct document *d)
{
    const struct version *served[VERSIONS_MAX];
    size_t count =
        versions_served(d->limits, d->ctx->auth != NULL, d->ctx->testapi != NULL, served);

    buf_str(d->out, "\"paths\":{");
    paths_of(d, &version_root);
    for (size_t i = 0; i < count; i++)
        paths_of(d, served[i]);
    buf_str(d->out, "},");
}

/* ------------------------------------------------------------------ the whole */

static const char head[] =
    "{'openapi':'3.1.0','info':{'title':'claimd','version':'2','description':'A queue "
    "server with claims and the OpenStack Zaqar messaging API. For a method that a path "
    "does not support, the response is 405 with the header Allow. OPTIONS returns the "
    "same header. For an unknown path, the response is 404. A slash at the end of a path "
    "is ignored. The project can also be part of the path, after the version: "
    "/v2/acme/queues means /v2/queues with X-Project-ID: acme. The limits in this "
    "document are those in force.','contact':{'name':'claimd, docs/api.md'},"
    "'license':{'name':'Apache 2.0','identifier':'Apache-2.0'}},"
    "'servers':[{'url':'/','description':'the server that returned this document'}],";

static const char tags[] =
    "'tags':[{'name':'service','description':'The server itself'},"
    "{'name':'queues','description':'Queues and their metadata'},"
    "{'name':'messages','description':'Post, list, get, delete, pop'},"
    "{'name':'claims','description':'Leases of messages'},"
    "{'name':'subscriptions','description':'Notifications of posted messages'},"
    "{'name':'topics','description':'Queues for subscribers only, without claims'}";

static const char stub_tag[] =
    ",{'name':'identity','description':'Keystone logins, for development and CI'}";

enum status
handle_openapi(struct context *ctx)
{
    struct document d = {.out = &ctx->res->body, .limits = ctx->limits, .ctx = ctx};

    if (ctx->access != NULL)
        access_policy(ctx->access, &d.policy);
    quotas_get(ctx->quotas, &d.quotas);
    text(&d, head);
    security(&d);
    text(&d, tags);
    text(&d, ctx->auth != NULL ? stub_tag : NULL);
    buf_str(d.out, "],");
    paths(&d);
    buf_str(d.out, "\"components\":");
    components_write(d.out, &d.shared, d.limits);
    buf_byte(d.out, '}');
    answer_header(ctx, "Cache-Control", "max-age=60");
    return answer_json(ctx, 200);
}
