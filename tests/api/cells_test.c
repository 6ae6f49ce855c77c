/*
 * The access of each caller, cell by cell: path, method, project, credential (docs/api.md
 * 15). The tables of this file repeat the document. They do not use the tables of the
 * server, so that a mistake there is found: every_route_is_in_the_table only compares the
 * number of routes. A refused request must show nothing and change nothing.
 *
 *     1. places[] has the action that each path and method needs, disguises[] other
 *        spellings of these paths, and nowhere[] paths that do not exist.
 *     2. namings[] has the ways in which a request names its project.
 *     3. expected() gives the outcome of a cell by these tables, and try_cell() sends the
 *        request and compares.
 */
#include "api/version.h"
#include "support/api_fixture.h"
#include "support/role_words.h"

#include <stdio.h>
#include <string.h>

#define OWN          API_CALL_PROJECT
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ------------------------------------------------------------------ tables */

/* A policy, and what it means. */
static const char policy_text[] =
    "{\"queues:purge\": \"role:reader or role:worker\", \"messages:pop\": \"!\","
    "\"queues:delete\": \"role:producer\", \"metrics:get\": \"role:reader\","
    "\"health:get\": \"@\", \"messages:create\": \"role:operator\"}";

static const struct {
    const char *action, *roles;
} policy_roles[] = {
    {"queues:purge", " reader worker "},
    {"messages:pop", " "},
    {"queues:delete", " producer "},
    {"metrics:get", " reader "},
    {"health:get", " reader producer worker operator admin "},
    {"messages:create", " operator "},
};

/* Methods of the tables, and methods that no route has. */
static const char *const methods[] = {"GET",   "HEAD",   "POST",    "PUT",
                                      "PATCH", "DELETE", "OPTIONS", "UNKNOWN"};

enum { KNOWN = 6, METHODS = COUNT(methods) };

#define NO   NULL
#define OPEN "every caller"
/* In front of an action. ALL: the request is about all projects. ANY: it is if it
 * names no project, and needs state:dump, too. */
#define ALL "everywhere "
#define ANY "anywhere "

struct place {
    const char *path;
    const char *may[KNOWN]; /* the action; NO: there is no such method */
};

#define QUEUES(base)   base "/queues"
#define QUEUE(base)    base "/queues/q"
#define MESSAGES(base) base "/queues/q/messages"
#define CLAIMS(base)   base "/queues/q/claims"

#define SUBSCRIPTIONS "/v2/queues/q/subscriptions"
#define PROGRESS      "/claimd/queues/q/subscriptions"
#define TOPIC         "/v2/topics/none"

#define WORK(base)                                                                       \
    {MESSAGES(base),                                                                     \
     {"messages:get_all", NO, "messages:create", NO, NO, "messages:delete_all"}},        \
        {MESSAGES(base) "/none", {"messages:get", NO, NO, NO, NO, "messages:delete"}},   \
        {CLAIMS(base), {NO, NO, "claims:create"}},                                       \
        {CLAIMS(base) "/none",                                                           \
         {"claims:get", NO, NO, NO, "claims:update", "claims:delete"}},                  \
        {QUEUES(base), {"queues:get_all"}}, {QUEUE(base) "/stats", {"queues:stats"}},    \
    {                                                                                    \
        base "/",                                                                        \
        {                                                                                \
            "home:get"                                                                   \
        }                                                                                \
    }
#define POP(base)                                                                        \
    {                                                                                    \
        MESSAGES(base) "?pop=1",                                                         \
        {                                                                                \
            "messages:get_all", NO, "messages:create", NO, NO, "messages:pop"            \
        }                                                                                \
    }

/* A row for each path, and for each parameter that makes another action of one. */
static const struct place places[] = {
    WORK("/v2"),
    POP("/v2"),
    {QUEUE("/v2"),
     {"queues:get", NO, NO, "queues:create", "queues:update", "queues:delete"}},
    {QUEUE("/v2") "/purge", {NO, NO, "queues:purge"}},
    {QUEUE("/v2") "/share", {NO, NO, "queues:share"}},
    {SUBSCRIPTIONS, {"subscription:get_all", NO, "subscription:create"}},
    {SUBSCRIPTIONS "/none",
     {"subscription:get", NO, NO, NO, "subscription:update", "subscription:delete"}},
    {SUBSCRIPTIONS "/none/confirm", {NO, NO, NO, "subscription:confirm"}},
    {"/v2/ping", {"ping:get", "ping:get"}},
    {"/v2/health", {"health:get"}},
    WORK("/v1.1"),
    POP("/v1.1"),
    {QUEUE("/v1.1"), {"queues:get", NO, NO, "queues:create", NO, "queues:delete"}},
    {"/v1.1/ping", {"ping:get", "ping:get"}},
    {"/v1.1/health", {"health:get"}},
    WORK("/v1"),
    {QUEUE("/v1"),
     {"queues:get", "queues:get", NO, "queues:create", NO, "queues:delete"}},
    {QUEUE("/v1") "/metadata", {"queues:get", NO, NO, "queues:update"}},
    {"/v1/health", {OPEN, OPEN}},
    {"/claimd/claims?queue=q", {NO, NO, "claims:create"}},
    {"/v2/topics", {"topics:get_all"}},
    {TOPIC, {"topics:get", NO, NO, "topics:create", "topics:update", "topics:delete"}},
    {TOPIC "/stats", {"topics:stats"}},
    {TOPIC "/purge", {NO, NO, "topics:purge"}},
    {TOPIC "/messages",
     {"messages:get_all", NO, "messages:create", NO, NO, "messages:delete_all"}},
    {TOPIC "/messages?pop=1",
     {"messages:get_all", NO, "messages:create", NO, NO, "messages:pop"}},
    {TOPIC "/messages/none", {"messages:get", NO, NO, NO, NO, "messages:delete"}},
    {TOPIC "/subscriptions", {"subscription:get_all", NO, "subscription:create"}},
    {TOPIC "/subscriptions/none",
     {"subscription:get", NO, NO, NO, "subscription:update", "subscription:delete"}},
    {TOPIC "/subscriptions/none/confirm", {NO, NO, NO, "subscription:confirm"}},
    {"/claimd/queues/q/claims/none/finish", {NO, NO, "claims:update"}},
    {"/claimd/queues/q/redrive", {NO, NO, "messages:redrive"}},
    {"/claimd/queues/q/pause", {"claims:get", NO, "queues:pause"}},
    {"/claimd/queues/q/raw", {NO, NO, "messages:create"}},
    {"/claimd/queues/q/raw/claims", {NO, NO, "claims:create"}},
    {"/claimd/schedules", {"schedules:get"}},
    {"/claimd/queues/q/schedules", {"schedules:get"}},
    {"/claimd/queues/q/schedules/none",
     {"schedules:get", NO, NO, "schedules:set", "schedules:set", "schedules:set"}},
    {"/claimd/topics/none/subscriptions", {"subscription:progress"}},
    {"/claimd/topics/none/subscriptions/none", {"subscription:progress"}},
    {"/claimd/queues", {ANY "queues:get_all"}},
    {"/claimd/alerts", {ANY "queues:get_all"}},
    {"/claimd/permissions", {ANY "home:get"}},
    {"/claimd/ui", {OPEN}},
    {"/claimd/ui/main.js", {OPEN}},
    {"/claimd/queues/q/claims", {"claims:get"}},
    {"/claimd/queues/q/history", {"queues:stats"}},
    {"/claimd/queues/q/messages", {"messages:get_all"}},
    {"/claimd/queues/q/messages/none", {"messages:get"}},
    {PROGRESS, {"subscription:progress"}},
    {PROGRESS "/none", {"subscription:progress"}},
    {"/", {OPEN}},
    {"/openapi.json", {OPEN, OPEN}},
    {"/livez", {OPEN, OPEN}},
    {"/readyz", {OPEN, OPEN}},
    {"/metrics", {ALL "metrics:get", ALL "metrics:get"}},
    {"/claimd/dump", {ALL "state:dump"}},
    {"/claimd/load", {NO, NO, ALL "state:load"}},
    {"/claimd/clock", {ALL "ci:use", NO, NO, ALL "ci:use"}},
    {"/claimd/clock/advance", {NO, NO, ALL "ci:use"}},
    {"/claimd/reset", {NO, NO, ALL "ci:use"}},
    {"/claimd/state", {ALL "ci:use", NO, NO, ALL "ci:use"}},
    {"/claimd/history", {ALL "ci:use"}},
    {"/claimd/expect", {ALL "ci:use"}},
    {"/claimd/leaks", {ALL "ci:use"}},
    {"/claimd/faults", {ALL "ci:use", NO, NO, ALL "ci:use", NO, ALL "ci:use"}},
};

/* Other spellings of these paths, which need the same actions. */
static const struct place disguises[] = {
    {"/v2/ping/", {"ping:get", "ping:get"}},
    {"/v2/%71ueues", {"queues:get_all"}},
    {"/v2/queues/%71/",
     {"queues:get", NO, NO, "queues:create", "queues:update", "queues:delete"}},
    {"/v2/queues/q/messages?ids=x&pop=1",
     {"messages:get_all", NO, "messages:create", NO, NO, "messages:pop"}},
    {"/v2/queues/q/messages?%70op=1",
     {"messages:get_all", NO, "messages:create", NO, NO, "messages:pop"}},
    {"/v2/queues/q/messages?ids=x",
     {"messages:get_all", NO, "messages:create", NO, NO, "messages:delete_all"}},
    {"/v1/queues/q/messages?pop=1",
     {"messages:get_all", NO, "messages:create", NO, NO, "messages:delete_all"}},
    {"/metrics?queue=q", {ALL "metrics:get", ALL "metrics:get"}},
};

/* Paths that exist for no caller. */
static const char *const nowhere[] = {
    "/v2",
    "/v3/queues",
    "/V2/queues",
    "//v2/queues",
    "/v2//queues",
    "/v2/queues/q/x",
    "/metrics/x",
    "/claimd",
    "/openapi.yaml",
    "/v2/pools",
    "/v1.1/topics",
    "/v2/topics/q/claims",
    "/v2/topics/q/share",
    "/v1.1/queues/q/subscriptions",
    "/v2/queues/q/subscriptions/none/x",
    "/v2/../metrics",
    "/v2/a/b/queues",
    "/v2%2Fqueues",
    "/identity", /* the last one: the stub has it */
};

/* How a request names its project. */
static const struct naming {
    const char *header, *path; /* NULL: not there */
} namings[] = {
    {OWN, NULL},      {"another", NULL},   {NULL, NULL},      {"", NULL},
    {"*", NULL},      {NULL, OWN},         {NULL, "another"}, {"another", OWN},
    {OWN, "another"}, {OWN ",blue", NULL}, /* sent twice */
};

/* A credential, and the identity it stands for. */
struct credential {
    const char *token, *authorization, *certificate; /* NULL: not shown */
    bool bad_certificate;
    bool keystone;     /* it is for one project, whatever that is called */
    const char *roles; /* joined by commas; NULL: it stands for no caller */
    const char *projects;
};

enum outcome { ALLOWED, UNAUTHORIZED, FORBIDDEN, NO_PROJECT, TWO_PROJECTS, UNAVAILABLE };

struct walk {
    struct api_fixture f;
    bool has_usual_project; /* a request without a project has one */
    bool policy;            /* the policy is policy_text */
    bool metrics;           /* no token is needed for them */
    bool unavailable;       /* Keystone does not respond */
    size_t cells, seen[UNAVAILABLE + 1];
    struct store_totals before; /* since the last allowed request */
};

struct cell {
    const struct place *place;
    size_t method;
    const struct naming *naming;
    const struct credential *shown;
};

/* ------------------------------------------------------------------ expected outcomes */

static bool
has_word(const char *words, const char *word)
{
    char whole[64];

    (void)snprintf(whole, sizeof(whole), " %s ", word);
    return strstr(words, whole) != NULL;
}

static bool
role_may(const struct walk *w, const char *role, const char *action)
{
    for (size_t i = 0; w->policy && i < COUNT(policy_roles); i++)
        if (strcmp(policy_roles[i].action, action) == 0)
            return has_word(policy_roles[i].roles, role);
    for (size_t i = 0; i < ROLE_WORDS; i++)
        if (strcmp(role_words[i].role, role) == 0)
            return has_word(role_words[i].may, action);
    return false;
}

/* Does one of the words, joined by commas, do? */
static bool
any_of(const struct walk *w, const char *words, const char *action, const char *project)
{
    char copy[64], *rest = copy, *word;

    (void)snprintf(copy, sizeof(copy), "%s", words);
    while ((word = strsep(&rest, ",")) != NULL)
        if (action != NULL ? role_may(w, word, action) : strcmp(word, project) == 0)
            return true;
    return false;
}

static const char *
named_project(const struct naming *n)
{
    const char *name = n->path != NULL ? n->path : n->header;

    return name != NULL && name[0] != '\0' ? name : NULL;
}

static bool
names_two_projects(const struct naming *n)
{
    return n->path != NULL && n->header != NULL && strcmp(n->path, n->header) != 0;
}

static bool
is_everywhere(const struct credential *shown)
{
    return !shown->keystone && strcmp(shown->projects, "*") == 0;
}

/* Is it good for the project that is named, or for one without that? */
static enum outcome
judge_project(const struct credential *shown, const char *named)
{
    if (is_everywhere(shown))
        return ALLOWED;
    if (shown->keystone)
        return shown->projects[0] != '\0' &&
                       (named == NULL || strcmp(named, shown->projects) == 0)
                   ? ALLOWED
                   : FORBIDDEN;
    if (named != NULL)
        return any_of(NULL, shown->projects, NULL, named) ? ALLOWED : FORBIDDEN;
    return strchr(shown->projects, ',') != NULL ? NO_PROJECT : ALLOWED;
}

/* In version 1 a request without a project is for the one without a name, but one with an
 * invalid name is not. */
static bool
lacks_project(const struct walk *w, const struct cell *c)
{
    if (w->has_usual_project && c->naming->header == NULL)
        return false;
    return named_project(c->naming) == NULL &&
           (strncmp(c->place->path, "/v1/", 4) != 0 || c->naming->header != NULL);
}

static enum outcome
judge(const struct walk *w, const struct cell *c, const char *action)
{
    const char *named = named_project(c->naming);
    enum outcome o = judge_project(c->shown, named);
    const bool any = action != NULL && strncmp(action, ANY, strlen(ANY)) == 0;

    if (names_two_projects(c->naming))
        return TWO_PROJECTS;
    if (any)
        action += strlen(ANY);
    if (any && o == ALLOWED && is_everywhere(c->shown) && c->naming->header == NULL &&
        named == NULL)
        return any_of(w, c->shown->roles, action, NULL) &&
                       any_of(w, c->shown->roles, "state:dump", NULL)
                   ? ALLOWED
                   : FORBIDDEN;

    if (o == FORBIDDEN || c->shown->roles[0] == '\0')
        return FORBIDDEN;
    if (o == ALLOWED && action != NULL && !any_of(w, c->shown->roles, action, NULL))
        return FORBIDDEN;
    return is_everywhere(c->shown) && lacks_project(w, c) ? NO_PROJECT : o;
}

static bool
is_of_all(const struct place *place)
{
    for (size_t m = 0; m < KNOWN; m++)
        if (place->may[m] != NULL && strncmp(place->may[m], ALL, strlen(ALL)) == 0)
            return true;
    return false;
}

static bool
is_of_a_project(const struct place *place)
{
    return (strncmp(place->path, "/v", 2) == 0 ||
            strncmp(place->path, "/claimd/", 8) == 0) &&
           strncmp(place->path, "/claimd/ui", 10) != 0 && !is_of_all(place);
}

static enum outcome
expected(const struct walk *w, const struct cell *c)
{
    const char *action = c->method < KNOWN ? c->place->may[c->method] : NULL;
    bool project = is_of_a_project(c->place);

    if (action == NULL &&
        is_of_all(c->place)) /* OPTIONS, and methods that do not exist */
        action = ALL;
    if (action == NULL ? !project : strcmp(action, OPEN) == 0) /* public */
        return project && lacks_project(w, c) ? NO_PROJECT : ALLOWED;
    if (w->metrics && action != NULL && strncmp(action, ALL, strlen(ALL)) == 0)
        return ALLOWED;
    if (w->unavailable && c->shown->token != NULL)
        return UNAVAILABLE;
    if (c->shown->roles == NULL)
        return UNAUTHORIZED;
    if (action != NULL && strncmp(action, ALL, strlen(ALL)) == 0)
        return is_everywhere(c->shown) && c->shown->roles[0] != '\0' &&
                       (action[strlen(ALL)] == '\0' ||
                        any_of(w, c->shown->roles, action + strlen(ALL), NULL))
                   ? ALLOWED
                   : FORBIDDEN;
    return judge(w, c, action);
}

/* ------------------------------------------------------------------ a cell */

static const char *
body_for(const char *path)
{
    if (strstr(path, "/messages") == NULL)
        return "{\"ttl\":60,\"grace\":60}";
    return strncmp(path, "/v1/", 4) == 0 ? "[{\"ttl\":60,\"body\":1}]"
                                         : "{\"messages\":[{\"body\":1}]}";
}

/* The path with a project in it, NULL if it has no space for one. */
static const char *
path_of(struct walk *w, const struct cell *c)
{
    const char *rest = strchr(c->place->path + 1, '/');

    if (c->naming->path == NULL)
        return c->place->path;
    if (rest == NULL ||
        (strncmp(rest, "/queues", 7) != 0 && strncmp(rest, "/topics", 7) != 0))
        return NULL;
    return api_text(&w->f, "%.*s/%s%s", (int)(rest - c->place->path), c->place->path,
                    c->naming->path, rest);
}

static struct store_totals
totals(struct walk *w)
{
    struct store_op op = {.now_ms = w->f.c.now_ms};
    struct store_totals t;

    ck_assert_int_eq(store_totals(w->f.store, &op, &t), ST_OK);
    return t;
}

/* Since the last allowed request. */
static void
ck_unchanged(struct walk *w)
{
    struct store_totals now = totals(w);

    ck_assert(memcmp(&w->before, &now, sizeof(now)) == 0);
}

static bool
begins_with(struct walk *w, const char *title)
{
    const char *text = api_body(&w->f.c);
    const char *whole = "{\"title\":\"";

    return strncmp(text, whole, strlen(whole)) == 0 &&
           strncmp(text + strlen(whole), title, strlen(title)) == 0;
}

static bool
requires_a_project(struct walk *w)
{
    return begins_with(w, "Project-Id ") || begins_with(w, "Empty project ");
}

/* Is the response that of the outcome? */
static bool
has_outcome(struct walk *w, const struct cell *c, enum outcome o)
{
    int code = w->f.c.res.code;
    bool there = c->method < KNOWN && c->place->may[c->method] != NULL;

    switch (o) {
    case UNAUTHORIZED:
        return code == 401 && begins_with(w, "Unauthorized\"") &&
               api_response_header(&w->f.c, "WWW-Authenticate") != NULL;
    case FORBIDDEN:
        return code == 403 && begins_with(w, "Not authorized\"");
    case NO_PROJECT:
        return code == 400 && requires_a_project(w);
    case TWO_PROJECTS:
        return code == 400 && begins_with(w, "Invalid project identification\"");
    case UNAVAILABLE:
        return code == 503 && api_response_header(&w->f.c, "Retry-After") != NULL;
    case ALLOWED:
        break;
    }
    if (!there)
        return code == (strcmp(methods[c->method], "OPTIONS") == 0 ? 200 : 405);
    return w->f.c.res.route != NULL && code != 401 && code != 403 && code != 405 &&
           code < 500 && !requires_a_project(w);
}

static void
show(struct walk *w, const struct cell *c, struct certificate *certificate)
{
    *certificate = (struct certificate){!c->shown->bad_certificate,
                                        bytes_str(c->shown->certificate)};
    w->f.c.headers[API_HEADER_AUTH_TOKEN] = c->shown->token;
    w->f.c.headers[API_HEADER_AUTHORIZATION] = c->shown->authorization;
    w->f.c.headers[API_HEADER_PROJECT_ID] = c->naming->header;
    w->f.c.certificate = c->shown->certificate != NULL ? certificate : NULL;
}

/* The stub's fixture is without admin_mode. */
static bool
is_there(const struct walk *w, const char *path)
{
    return w->f.auth == NULL ||
           (strcmp(path, "/v2/health") != 0 && strcmp(path, "/v1.1/health") != 0);
}

static void
try_cell(struct walk *w, const struct cell *c)
{
    struct certificate certificate;
    enum outcome o = expected(w, c);
    const char *path = path_of(w, c);

    if (path == NULL || !is_there(w, c->place->path))
        return;
    show(w, c, &certificate);
    (void)api_call(&w->f.c, methods[c->method], path, body_for(path));
    ck_assert_msg(
        has_outcome(w, c, o),
        "%s %s, project %s, by %s %s (token %s, %s, certificate %s): %d %.200s, not %d",
        methods[c->method], path, c->naming->header, c->shown->roles, c->shown->projects,
        c->shown->token, c->shown->authorization, c->shown->certificate, w->f.c.res.code,
        api_body(&w->f.c), (int)o);
    if (o == ALLOWED)
        w->before = totals(w);
    else
        ck_unchanged(w);
    w->cells++;
    w->seen[o]++;
}

/* A route without a project ignores how the request names one. */
static size_t
namings_for(const struct place *place)
{
    return is_of_a_project(place) ? COUNT(namings) : 3;
}

static void
try_places(struct walk *w, const struct place *all, size_t count,
           const struct credential *shown)
{
    for (size_t i = 0; i < count; i++)
        for (size_t m = 0; m < METHODS; m++)
            for (size_t n = 0; n < namings_for(&all[i]); n++)
                try_cell(w, &(const struct cell){&all[i], m, &namings[n], shown});
}

static void
try_everywhere(struct walk *w, const struct credential *shown)
{
    const struct place unknown = {.path = "/v2/unknown"};
    struct cell c = {&unknown, 0, &namings[0], shown};
    struct certificate certificate;

    try_places(w, places, COUNT(places), shown);
    try_places(w, disguises, COUNT(disguises), shown);
    show(w, &c, &certificate);
    for (size_t i = 0; i < COUNT(nowhere) - (w->f.auth != NULL); i++)
        ck_assert_msg(api_call(&w->f.c, "GET", nowhere[i], NULL) == 404, "%s: %d",
                      nowhere[i], w->f.c.res.code);
}

/* ------------------------------------------------------------------ credentials */

static const char *const shares[] = {OWN, "blue", OWN ",blue", "*"};

enum { SHARES = COUNT(shares), CARRIERS = 4 };

/* "worker-2": of that role, for the third share. */
static const char *
name_of(struct walk *w, size_t role, size_t share)
{
    return api_text(&w->f, "%s-%zu", role_words[role].role, share);
}

/* A line for each role and share, in front of their last field. */
static const char *
line_of(struct walk *w, size_t role, size_t share, const char *rest)
{
    return api_text(&w->f, "%s %s %s %s", name_of(w, role, share), role_words[role].role,
                    shares[share], rest);
}

/* Tokens are spelt like their names. Of those that were, one is taken out again. */
static void
give_tokens(struct walk *w)
{
    const char *lines[ROLE_WORDS * SHARES + 2];
    struct policy policy = policy_default;
    struct reason why;
    size_t count = 0;

    if (w->policy)
        ck_assert_int_eq(policy_read(&policy, bytes_str(policy_text), &why), ST_OK);
    for (size_t role = 0; role < ROLE_WORDS; role++)
        for (size_t share = 0; share < SHARES; share++)
            lines[count++] = line_of(w, role, share, "never");
    lines[count++] = "over admin * 2026-01-31T12:00:00Z";
    lines[count] = "revoked admin * never";
    api_allow_by(&w->f, lines, count + 1, &policy);
    w->f.c.headers[API_HEADER_AUTH_TOKEN] = "revoked";
    ck_assert_int_eq(api_call(&w->f.c, "GET", "/v2/queues", NULL), 200);
    api_allow_by(&w->f, lines, count, &policy);
}

/* And certificates for hosts that are called like that. */
static void
give_certificates(struct walk *w)
{
    struct token_list *list;
    struct reason why;
    struct buf text;
    size_t bad_line;

    buf_init(&text, w->f.mem);
    for (size_t role = 0; role < ROLE_WORDS; role++)
        for (size_t share = 0; share < SHARES; share++)
            buf_printf(&text, "%s\n",
                       line_of(w, role, share,
                               api_text(&w->f, "dns:%s", name_of(w, role, share))));
    ck_assert_int_eq(token_list_read(w->f.mem, buf_view(&text), certificate_line_read,
                                     &list, &bad_line, &why),
                     ST_OK);
    access_use_certificates(w->f.access, list);
    buf_fini(&text);
}

static void
open_walk(struct walk *w, bool policy)
{
    *w = (struct walk){.policy = policy};
    api_fixture_open_access(&w->f);
    give_tokens(w);
    give_certificates(w);
    w->f.c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
}

/* The same role and share in all ways in which it can be shown. */
static struct credential
carried(struct walk *w, size_t role, size_t share, size_t carrier)
{
    const char *name = name_of(w, role, share);
    struct credential shown = {.roles = role_words[role].role, .projects = shares[share]};

    if (carrier == 0 || carrier == 2)
        shown.token = name;
    if (carrier == 1 || carrier == 2)
        shown.authorization =
            api_text(&w->f, "%s %s", share % 2 == 0 ? "Bearer" : "bearer", name);
    if (carrier == 3)
        shown.certificate = api_text(&w->f, "email:x\ndns:%s", name);
    return shown;
}

static const char long_token[] =
#define LONG "0123456789012345678901234567890123456789012345678901234567890123"
    LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG;

/* Wrong credentials, each as good as none. */
static const struct credential invalid[] = {
    {.token = NULL},
    {.token = ""},
    {.token = " "},
    {.token = "unknown"},
    {.token = "admin"},
    {.token = "admin-"},
    {.token = "ADMIN-3"},
    {.token = "admin-3x"},
    {.token = "admin-3\nadmin-3"},
    {.token = "admin-3,admin-3"}, /* sent twice */
    {.token = "\x80\xff"},
    {.token = "*"},
    {.token = long_token},
    {.token = "over"},
    {.token = "revoked"},
    {.token = "Bearer admin-3"},
    {.authorization = ""},
    {.authorization = "Bearer"},
    {.authorization = "Bearer "},
    {.authorization = "admin-3"},
    {.authorization = "Beareradmin-3"},
    {.authorization = "Basic YWRtaW4tMzp4"},
    {.authorization = "Token admin-3"},
    {.authorization = "Bearer over"},
    {.authorization = "Bearer revoked"},
    {.authorization = "Bearer admin-3,Bearer admin-3"},
    {.authorization = "Bearer admin-3 admin-3"},
    {.token = "unknown", .authorization = "Bearer admin-3"},
    {.certificate = ""},
    {.certificate = "dns:unknown"},
    {.certificate = "dns:admin-3x"},
    {.certificate = "email:admin-3"},
    {.certificate = "subject:CN=admin-3"},
    {.certificate = "dns:*"},
    {.certificate = "dns:admin-3", .bad_certificate = true},
    {.certificate = "dns:admin-3", .token = "admin-3"},
    {.certificate = "dns:admin-3", .token = "unknown"},
    {.certificate = "dns:admin-3", .authorization = "Bearer admin-3"},
    {.certificate = "dns:admin-3", .bad_certificate = true, .token = "unknown"},
    {.certificate = "dns:unknown", .token = "over"},
};

static void
check_walk(struct walk *w, size_t cells, bool in)
{
    ck_assert_uint_gt(w->cells, cells);
    ck_assert_uint_gt(w->seen[ALLOWED], 100);
    ck_assert((w->seen[FORBIDDEN] > 100) == in);
    api_fixture_close(&w->f);
}

/* ------------------------------------------------------------------ the walks */

TEST_CASE("tokens and certificates");

START_TEST(every_route_is_in_the_table)
{
    static const struct version *const versions[] = {
        &version_v2,       &version_v1_1,    &version_v1,   &version_claimd,
        &version_operator, &version_testapi, &version_root, &version_ui};
    size_t routes = 0, listed = 0;

    /* The root is always served; the sixth of those that may be is the identity stub. */
    ck_assert_uint_eq(VERSIONS_MAX, COUNT(versions));
    for (size_t i = 0; i < COUNT(versions); i++)
        for (const struct route *r = versions[i]->routes; r->pattern != NULL; r++) {
            ck_assert_int_lt(r->method, KNOWN);
            routes += (r->flags & ROUTE_HTML_ONLY) == 0; /* ui_test has the other ones */
        }
    for (size_t i = 0; i < COUNT(places); i++)
        for (size_t m = 0; m < KNOWN; m++)
            listed += places[i].may[m] != NULL &&
                      (strchr(places[i].path, '?') == NULL ||
                       strcmp(methods[m], "DELETE") == 0 || places[i].path[1] == 'c');
    ck_assert_uint_eq(listed, routes);
}

LOOP_TEST(an_invalid_credential_denies_access, COUNT(invalid))
{
    struct walk w;

    open_walk(&w, false);
    try_everywhere(&w, &invalid[_i]);
    ck_assert_uint_gt(w.seen[UNAUTHORIZED], 2000);
    check_walk(&w, 2000, false);
}

LOOP_TEST(each_credential_allows_the_requests_of_its_role_and_projects, SHARES *CARRIERS)
{
    struct walk w;

    open_walk(&w, false);
    for (size_t role = 0; role < ROLE_WORDS; role++) {
        struct credential shown =
            carried(&w, role, (size_t)_i / CARRIERS, (size_t)_i % CARRIERS);

        try_everywhere(&w, &shown);
    }
    check_walk(&w, 10000, true);
}

LOOP_TEST(a_policy_changes_the_roles_of_tokens_and_certificates, 4)
{
    struct walk w;

    open_walk(&w, true);
    for (size_t role = 0; role < ROLE_WORDS; role++) {
        struct credential shown =
            carried(&w, role, _i / 2 == 0 ? 0 : SHARES - 1, _i % 2 == 0 ? 0 : 3);

        try_everywhere(&w, &shown);
    }
    check_walk(&w, 10000, true);
}

START_TEST(a_token_counts_alone_beside_an_unlisted_certificate)
{
    static const struct credential shown[] = {
        {.token = "worker-0",
         .certificate = "dns:unknown",
         .roles = "worker",
         .projects = OWN},
        {.token = "worker-0",
         .certificate = "dns:admin-3",
         .bad_certificate = true,
         .roles = "worker",
         .projects = OWN},
        {.token = "worker-0",
         .authorization = "Basic YWRtaW4tMzp4", /* of a proxy */
         .roles = "worker",
         .projects = OWN},
        {.authorization = "Bearer reader-3",
         .certificate = "",
         .roles = "reader",
         .projects = "*"},
    };
    struct walk w;

    open_walk(&w, false);
    for (size_t i = 0; i < COUNT(shown); i++)
        try_everywhere(&w, &shown[i]);
    check_walk(&w, 5000, true);
}

/* ------------------------------------------------------------------ Keystone */

TEST_CASE("keystone");

static void
open_keystone(struct walk *w)
{
    static const char table[] = "reader=reader,producer=producer,worker=worker,"
                                "operator=operator,admin=admin";
    struct role_map map;
    struct reason why;

    *w = (struct walk){.policy = false};
    ck_assert_int_eq(role_map_read(&map, bytes_str(table), &why), ST_OK);
    api_fixture_open_keystone(&w->f, &map);
    give_certificates(w);
    w->f.c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
}

#define KNOWN_AS(roles, project)                                                         \
    {                                                                                    \
        roles "@" project, NULL, NULL, false, true, roles, project                       \
    }

/* Of roles that mean nothing here the text is left out. */
static const struct credential known[] = {
    KNOWN_AS("reader", OWN),
    KNOWN_AS("producer", OWN),
    KNOWN_AS("worker", OWN),
    KNOWN_AS("operator", OWN),
    KNOWN_AS("admin", OWN),
    KNOWN_AS("worker,producer", OWN),
    KNOWN_AS("admin", "another"),
    KNOWN_AS("admin", "*"), /* a project that is called so */
    KNOWN_AS("admin", OWN ",blue"),
    KNOWN_AS("admin", ""),
    KNOWN_AS("", OWN),
    {"boss,Admin@" OWN, NULL, NULL, false, true, "", OWN},
    {NULL, "Bearer worker@" OWN, NULL, false, true, "worker", OWN},
    {"worker@" OWN, "bearer worker@" OWN, NULL, false, true, "worker", OWN},
    {"reader@" OWN, NULL, "dns:unknown", false, true, "reader", OWN},
    {"reader@" OWN, NULL, "dns:admin-3", true, true, "reader", OWN},
    {NULL, NULL, "dns:operator-3", false, false, "operator", "*"},
};

static const struct credential unknown[] = {
    {.token = NULL},
    {.token = ""},
    {.token = "unknown"},
    {.token = "admin-3"},
    {.token = "admin @" OWN},
    {.token = "admin@" OWN "\xff"},
    {.authorization = "Basic admin@" OWN},
    {.authorization = "Bearer admin"},
    {.token = "admin@" OWN, .certificate = "dns:admin-3"},
    {.token = "unknown", .certificate = "dns:admin-3"},
    {.certificate = "dns:unknown"},
    {.certificate = "dns:admin-3", .bad_certificate = true},
};

LOOP_TEST(each_role_of_keystone_allows_its_requests, COUNT(known))
{
    struct walk w;

    open_keystone(&w);
    try_everywhere(&w, &known[_i]);
    check_walk(&w, 2000, true);
}

LOOP_TEST(a_token_unknown_to_keystone_denies_access, COUNT(unknown))
{
    struct walk w;

    open_keystone(&w);
    try_everywhere(&w, &unknown[_i]);
    check_walk(&w, 2000, false);
}

START_TEST(an_expired_token_of_keystone_denies_access)
{
    const struct credential shown = {.token = "admin@" OWN};
    struct walk w;

    open_keystone(&w);
    w.f.c.headers[API_HEADER_AUTH_TOKEN] = shown.token;
    ck_assert_int_eq(api_call(&w.f.c, "GET", "/v2/queues", NULL), 200);
    clock_advance(&w.f.real, FAKE_KEYSTONE_END_MS - API_FIXTURE_START_MS);
    try_everywhere(&w, &shown);
    ck_assert_uint_gt(w.seen[UNAUTHORIZED], 2000);
    check_walk(&w, 2000, false);
}

START_TEST(while_keystone_is_down_only_certificates_are_accepted)
{
    static const struct credential shown[] = {
        {.token = "admin@" OWN},
        {.certificate = "dns:worker-0", .roles = "worker", .projects = OWN},
    };
    struct walk w;

    open_keystone(&w);
    w.f.fake.status = ST_UNAVAILABLE;
    w.unavailable = true;
    for (size_t i = 0; i < COUNT(shown); i++)
        try_everywhere(&w, &shown[i]);
    ck_assert_uint_gt(w.seen[UNAVAILABLE], 2000);
    check_walk(&w, 5000, true);
}

/* ------------------------------------------------------------------ without either */

TEST_CASE("without tokens");

/* Every caller, with any token. */
static const struct credential without_tokens[] = {
    {.roles = "admin", .projects = "*"},
    {.token = "nonsense", .roles = "admin", .projects = "*"},
    {.authorization = "Basic eDp4", .roles = "admin", .projects = "*"},
    {.certificate = "dns:x", .bad_certificate = true, .roles = "admin", .projects = "*"},
};

LOOP_TEST(without_tokens_everything_is_allowed, COUNT(without_tokens))
{
    struct api_limits limits = api_limits_default;
    struct walk w = {.has_usual_project = true};

    limits.admin_mode = true;
    limits.ui = true;
    api_fixture_open_testapi(&w.f, &limits);
    w.f.c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    try_everywhere(&w, &without_tokens[_i]);
    check_walk(&w, 2000, false);
}

/* A page of another origin must not read or change anything. */
START_TEST(without_tokens_pages_of_other_sites_are_denied)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;

    limits.admin_mode = true;
    limits.ui = true;
    api_fixture_open_testapi(&f, &limits);
    f.c.headers[API_HEADER_ORIGIN] = "http://elsewhere.example";
    for (size_t i = 0; i < COUNT(places); i++)
        for (size_t m = 0; m < METHODS; m++) {
            const char *action = m < KNOWN ? places[i].may[m] : NULL;
            bool guarded = is_of_a_project(&places[i]) || is_of_all(&places[i]);
            bool open = action == NULL || strcmp(action, OPEN) == 0;

            (void)api_call(&f.c, methods[m], places[i].path, "{}");
            ck_assert_msg((f.c.res.code == 403) == (!open || (guarded && action == NULL)),
                          "%s %s: %d", methods[m], places[i].path, f.c.res.code);
        }
    api_fixture_close(&f);
}

/* ------------------------------------------------------------------ the identity stub */

TEST_CASE("identity stub");

/* Logs ann in for a project; her token. */
static const char *
log_in(struct walk *w, const char *project)
{
    const char *format = "{\"auth\":{\"tenantName\":\"%s\",\"passwordCredentials\":{"
                         "\"username\":\"ann\",\"password\":\"secret\"}}}";

    ck_assert_int_eq(api_call(&w->f.c, "POST", "/identity/v2.0/tokens",
                              api_text(&w->f, format, project)),
                     200);
    return api_text(&w->f, "%s", api_pick(&w->f, "access.token.id"));
}

static void
open_stub(struct walk *w, const char *users)
{
    *w = (struct walk){.metrics = users == NULL};
    api_fixture_open_identity(&w->f, users);
    w->f.c.headers[API_HEADER_HOST] = "queues.test";
}

static void
expect_patches(struct walk *w)
{
    w->f.c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
}

/* With a list of users, and without one. */
LOOP_TEST(the_tokens_of_the_stub_are_for_their_project, 2)
{
    struct credential shown = {.keystone = true, .roles = "admin", .projects = OWN};
    struct walk w;

    open_stub(&w, _i == 0 ? "ann:secret\n" : NULL);
    shown.token = log_in(&w, OWN);
    expect_patches(&w);
    try_everywhere(&w, &shown);
    check_walk(&w, 2000, true);
}

LOOP_TEST(wrong_tokens_of_the_stub_deny_access, 2)
{
    struct credential shown[] = {{.token = "nonsense"}, {.token = "*"}, {.token = " "}};
    struct walk w;

    open_stub(&w, _i == 0 ? "ann:secret\n" : NULL);
    shown[1].token = api_text(&w.f, "%sx", log_in(&w, OWN));
    shown[2].token = log_in(&w, OWN);
    clock_advance(&w.f.real, 3600000); /* it has ended */
    expect_patches(&w);
    for (size_t i = 0; i < COUNT(shown); i++)
        try_everywhere(&w, &shown[i]);
    ck_assert_uint_gt(w.seen[UNAUTHORIZED], 5000);
    check_walk(&w, 5000, false);
}

START_TEST(with_a_list_of_users_a_request_needs_a_token)
{
    static const struct credential shown[] = {
        {.token = NULL}, {.token = ""}, {.authorization = "Bearer x"}};
    struct walk w;

    open_stub(&w, "ann:secret\n");
    expect_patches(&w);
    for (size_t i = 0; i < COUNT(shown); i++)
        try_everywhere(&w, &shown[i]);
    ck_assert_uint_gt(w.seen[UNAUTHORIZED], 5000);
    check_walk(&w, 5000, false);
}

START_TEST(without_a_list_of_users_a_request_needs_no_token)
{
    struct walk w;

    open_stub(&w, NULL);
    w.has_usual_project = true;
    expect_patches(&w);
    try_everywhere(&w, &without_tokens[0]);
    check_walk(&w, 2000, false);
}

/* ---------------------------------------------------------- the listener for metrics */

TEST_CASE("metrics");

START_TEST(the_metrics_listener_serves_health_and_metrics_only)
{
    static const struct credential shown[] = {{.token = NULL}, {.token = "admin-3"}};
    struct certificate certificate;
    struct walk w;

    open_walk(&w, false);
    for (size_t i = 0; i < COUNT(shown); i++) {
        show(&w, &(const struct cell){NULL, 0, &namings[0], &shown[i]}, &certificate);
        w.f.c.listener = API_LISTENER_METRICS;
        for (size_t p = 0; p < COUNT(places); p++)
            for (size_t m = 0; m < METHODS; m++) {
                bool there = has_word(" /metrics /livez /readyz ", places[p].path);
                bool method = m < KNOWN && places[p].may[m] != NULL;
                int code = api_call(&w.f.c, methods[m], places[p].path, NULL);

                ck_assert_int_eq(code / 100 == 2 || code == 405, there);
                ck_assert_int_eq(code == 404, !there);
                ck_assert(!there || strcmp(methods[m], "OPTIONS") == 0 ||
                          (code == 405) == !method);
            }
    }
    api_fixture_close(&w.f);
}
