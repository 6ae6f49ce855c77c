/*
 * The heads of responses stay within RESPONSE_HEAD_MAX, on every route and with the
 * longest of everything that is repeated in them. (api_call() checks the bound of each
 * response.)
 */
#include "api/version.h"
#include "support/api_fixture.h"

/* The longest names there are. */
#define PROJECT_BYTES 256
#define QUEUE_BYTES   64

#define HEAD_TEST_KEY "0123456789abcdef0123456789abcdef\n"

struct longest {
    struct api_fixture f;
    const char *project; /* as a segment of a path */
    const char *queue;
    const char *message, *claim, *subscription; /* ids that exist */
    size_t most;                                /* the longest head so far */
    size_t routes, subscribers;
};

static const char *
repeated(struct longest *l, const char *text, size_t count)
{
    char *all = arena_alloc(&l->f.kept, count * strlen(text) + 1);

    ck_assert_ptr_nonnull(all);
    all[0] = '\0';
    for (size_t i = 0; i < count; i++)
        strcat(all, text);
    return all;
}

static void
send(struct longest *l, const char *method, const char *target, const char *body)
{
    const char *found = strstr(target, l->project);
    const bool in_path = found != NULL && found < target + strcspn(target, "?");
    size_t size;

    l->f.c.headers[API_HEADER_PROJECT_ID] = in_path ? NULL : API_CALL_PROJECT;
    (void)api_call(&l->f.c, method, target, body);
    ck_assert_msg(l->f.c.res.code != 500, "%s %s", method, target);
    size = response_head_size(&l->f.c.res);
    ck_assert_uint_le(size, RESPONSE_HEAD_MAX);
    if (size > l->most)
        l->most = size;
}

/* A list of messages, as v2 or v1 takes it. */
static const char *
posts(struct longest *l, size_t count, bool bare)
{
    const char *more = repeated(l, ",{\"body\":1,\"ttl\":600}", count - 1);

    return api_text(&l->f, "%s{\"body\":1,\"ttl\":600}%s]%s",
                    bare ? "[" : "{\"messages\":[", more, bare ? "" : "}");
}

static void
open_longest(struct longest *l, const char *encoded)
{
    struct api_limits limits = api_limits_default;

    memset(l, 0, sizeof(*l));
    limits.admin_mode = true;
    limits.max_messages_per_page = 10000;
    api_fixture_open_signing_with(&l->f, &limits, HEAD_TEST_KEY);
    l->project = repeated(l, encoded, PROJECT_BYTES);
    l->queue = repeated(l, "q", QUEUE_BYTES);
}

/* A body with which the route succeeds; NULL: it needs none. Ids are known after a post
 * and a claim. */
static const char *
body_for(struct longest *l, const struct route *r, size_t messages, bool v1)
{
    if (r->action == ACTION_MESSAGES_CREATE)
        return posts(l, messages, v1);
    if (strncmp(action_name(r->action), "claims:", 7) == 0)
        return "{\"ttl\":600,\"grace\":600}";
    if (r->action == ACTION_SUBSCRIPTION_CREATE)
        return "{\"subscriber\":\"http://example.org\"}";
    if (r->action == ACTION_SUBSCRIPTION_UPDATE)
        return "{\"ttl\":90}";
    if (r->action == ACTION_SUBSCRIPTION_CONFIRM)
        return "{\"confirmed\":true}";
    if (r->action == ACTION_QUEUES_SHARE)
        return "{}";
    if (r->method == METHOD_PUT)
        return "{\"color\":\"red\"}";
    if (r->method == METHOD_PATCH)
        return "[{\"op\":\"add\",\"path\":\"/metadata/color\",\"value\":1}]";
    return NULL;
}

static const char *
id_for(const struct longest *l, const char *tail)
{
    if (strncmp(tail, "/subscriptions", 14) == 0)
        return l->subscription;
    return strncmp(tail, "/claims", 7) == 0 ? l->claim : l->message;
}

/* The path of a pattern with the longest names, behind the project if one may stand
 * there. */
static const char *
path_for(struct longest *l, const struct version *v, const char *pattern)
{
    const char *tail = strstr(pattern, "/queues"), *id;
    const char *kind = tail != NULL ? "queues" : "topics";
    struct bytes base = v->base;

    if (tail == NULL)
        tail = strstr(pattern, "/topics");
    if (tail == NULL)
        return pattern;
    if (tail[strlen("/queues")] == '\0')
        return api_text(&l->f, "%.*s/%s%s", (int)base.len, base.data, l->project, tail);
    tail += strlen("/queues/{queue}"); /* as long as /topics/{topic} */
    id = strstr(tail, "/{id}");
    if (id == NULL)
        return api_text(&l->f, "%.*s/%s/%s/%s%s", (int)base.len, base.data, l->project,
                        kind, l->queue, tail);
    return api_text(&l->f, "%.*s/%s/%s/%s%.*s/%s%s", (int)base.len, base.data, l->project,
                    kind, l->queue, (int)(id - tail), tail, id_for(l, tail),
                    id + strlen("/{id}"));
}

static void
take(struct longest *l, const char *queue)
{
    send(l, "POST", api_text(&l->f, "%s/claims?limit=1", queue), NULL);
    ck_assert_int_eq(l->f.c.res.code, 201);
    l->claim =
        strrchr(api_text(&l->f, "%s", api_response_header(&l->f.c, "Location")), '/') + 1;
}

/* Posts and claims anew, so that whatever a route did before, there is something to
 * find. */
static void
provide(struct longest *l, bool topic)
{
    const char *queue = api_text(&l->f, "/v2/%s/%s/%s", l->project,
                                 topic ? "topics" : "queues", l->queue);

    send(l, "PUT", queue, NULL);
    send(l, "POST", api_text(&l->f, "%s/messages", queue), posts(l, 2, false));
    ck_assert_int_eq(l->f.c.res.code, 201);
    l->message = api_pick_id(&l->f, "resources.0");
    if (!topic)
        take(l, queue);
    send(
        l, "POST", api_text(&l->f, "%s/subscriptions", queue),
        api_text(&l->f, "{\"subscriber\":\"http://%zu.example.org\"}", l->subscribers++));
    ck_assert_int_eq(l->f.c.res.code, 201);
    l->subscription = api_pick(&l->f, "subscription_id");
}

static bool
by_ids(const struct route *r)
{
    return r->method == METHOD_DELETE && r->action != ACTION_MESSAGES_POP;
}

static const char *
parameter_of(const struct route *r)
{
    const char *mark = strchr(r->pattern, '?');

    return mark != NULL ? mark + 1 : by_ids(r) ? "ids" : "limit";
}

/* Every route, with queries and bodies that make its response's head as long as it
 * gets. */
static void
walk_route(struct longest *l, const struct version *v, const struct route *r)
{
    static const size_t counts[] = {1, 5, 6, 7, 39, 40, 600};
    static const size_t lengths[] = {0, 1, 60, 140, 900, 2000, 5000};
    bool v1 = v == &version_v1;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const char *path;

        provide(l, strstr(r->pattern, "/topics") != NULL);
        path = path_for(l, v, r->pattern);
        send(l, api_method_name(r->method),
             api_text(&l->f, "%.*s?%s=%s&x=%s", (int)strcspn(path, "?"), path,
                      parameter_of(r), by_ids(r) ? l->message : "1",
                      repeated(l, "\"", lengths[i])),
             body_for(l, r, counts[i], v1));
        ck_assert_msg(l->f.c.res.code <= 300, "%s %s: %d %s", api_method_name(r->method),
                      r->pattern, l->f.c.res.code, api_body(&l->f.c));
        send(l, "OPTIONS", path, NULL);
        send(l, "UNKNOWN", path, NULL);
    }
    l->routes++;
}

static void
walk_version(struct longest *l, const struct version *v)
{
    for (const struct route *r = v->routes; r->pattern != NULL; r++)
        walk_route(l, v, r);
}

START_TEST(no_route_responds_with_a_longer_head_than_promised)
{
    static const char *const segments[] = {"p", "\"", "%22"};
    static const struct version *const versions[] = {&version_v2, &version_v1_1,
                                                     &version_v1};

    for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
        struct longest l;

        open_longest(&l, segments[i]);
        l.f.c.headers[API_HEADER_CONTENT_TYPE] =
            "application/openstack-messaging-v2.0-json-patch";
        for (size_t k = 0; k < 3; k++)
            walk_version(&l, versions[k]);
        ck_assert_uint_gt(l.routes, 50);
        ck_assert_uint_gt(l.most, 800); /* the names were long indeed */
        api_fixture_close(&l.f);
    }
}

START_TEST(a_content_location_that_would_be_too_long_is_left_out)
{
    struct longest l;
    const char *page = "/v1/queues/q/messages?a=";

    open_longest(&l, "p");
    ck_api(&l.f, "PUT", "/v1/queues/q", NULL, 201, NULL);
    ck_api(&l.f, "POST", "/v1/queues/q/messages", posts(&l, 1, true), 201, NULL);
    ck_api(&l.f, "GET", api_text(&l.f, "%s%s&echo=true", page, repeated(&l, "\"", 4500)),
           NULL, 200, NULL);
    ck_assert_ptr_null(api_response_header(&l.f.c, "Content-Location"));

    /* 24 bytes before, 330 quotes become 990, 10 behind: 1024. */
    ck_api(&l.f, "GET", api_text(&l.f, "%s%s&echo=true", page, repeated(&l, "\"", 330)),
           NULL, 200, NULL);
    ck_assert_uint_eq(strlen(api_response_header(&l.f.c, "Content-Location")), 1024);
    ck_api(&l.f, "GET", api_text(&l.f, "%s%s&&echo=true", page, repeated(&l, "\"", 330)),
           NULL, 200, NULL);
    ck_assert_ptr_null(api_response_header(&l.f.c, "Content-Location"));
    api_fixture_close(&l.f);
}

START_TEST(a_token_fits_the_head_of_a_login)
{
    struct longest l;
    const char *project,
        *login =
            "{\"auth\":{\"identity\":{\"methods\":[\"password\"],\"password\":{\"user\":{"
            "\"name\":\"%s\",\"password\":\"x\"}}},\"scope\":{\"project\":{\"name\":\"%"
            "s\"}}}}";

    memset(&l, 0, sizeof(l));
    api_fixture_open_identity(&l.f, NULL);
    l.f.c.headers[API_HEADER_HOST] = "queues.test";
    project = repeated(&l, "p", 256);
    ck_api(&l.f, "POST", "/identity/v3/auth/tokens",
           api_text(&l.f, login, repeated(&l, "u", 200), project), 201, NULL);
    ck_assert_uint_eq(strlen(api_response_header(&l.f.c, "X-Subject-Token")), 954);
    l.f.c.headers[API_HEADER_SUBJECT_TOKEN] =
        api_text(&l.f, "%s", api_response_header(&l.f.c, "X-Subject-Token"));
    ck_api(&l.f, "GET", "/identity/v3/auth/tokens", NULL, 200, NULL);
    ck_api(&l.f, "POST", "/identity/v3/auth/tokens",
           api_text(&l.f, login, repeated(&l, "u", 201), project), 400,
           "Invalid API request");
    ck_api(&l.f, "POST", "/identity/v3/auth/tokens",
           api_text(&l.f, login, repeated(&l, "u", 5000), project), 400,
           "Invalid API request");
    api_fixture_close(&l.f);
}
