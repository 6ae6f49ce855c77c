/*
 * A project in the path, for every resource of every version: whatever a response leads
 * to begins as the request did, and can be followed without any header naming a project.
 * Behind a proxy that cuts a prefix off the path, it begins with that prefix.
 */
#include "api/wire/query.h" /* URI_PREFIX_MAX */
#include "support/api_fixture.h"

struct walk {
    struct api_fixture f;
    const char *prefix; /* "/v1/acme" */
    const char *cut;    /* by a proxy, in front of it: "/mq", or "" */
    size_t followed;
};

/* A caller whose headers name no project. */
static void
walk_open(struct walk *w, const char *prefix)
{
    *w = (struct walk){.prefix = prefix, .cut = ""};
    api_fixture_open(&w->f);
    w->f.c.headers[API_HEADER_PROJECT_ID] = NULL;
}

/* The same behind a trusted proxy. */
static void
walk_open_behind(struct walk *w, const char *prefix, const char *header, const char *cut)
{
    walk_open(w, prefix);
    w->cut = cut;
    w->f.c.from_proxy = true;
    w->f.c.headers[API_HEADER_FORWARDED_PREFIX] = header;
}

static void
walk_close(struct walk *w)
{
    ck_assert_uint_gt(w->followed, 0);
    api_fixture_close(&w->f);
}

#define WALK_TEST(id, open) FIXTURE_TEST_AS(id, struct walk, w, open, walk_close(w))

static void
follow(struct walk *w, const char *link)
{
    const char *begin = api_text(&w->f, "%s%s", w->cut, w->prefix);

    ck_assert_msg(strncmp(link, begin, strlen(begin)) == 0, "%s leads out of %s", link,
                  begin);
    ck_assert_int_lt(api_call(&w->f.c, "GET", link + strlen(w->cut), NULL), 300);
    w->followed++;
}

/* Follows every link in a text in which they all begin with "/v", or with the prefix of
 * the proxy and that. */
static void
follow_all(struct walk *w, const char *text)
{
    const char *mark = api_text(&w->f, "\"%s/v", w->cut);

    for (const char *at = strstr(text, mark); at != NULL; at = strstr(at + 1, mark)) {
        const char *end = strchr(at + 1, '"');

        ck_assert_ptr_nonnull(end);
        follow(w, api_text(&w->f, "%.*s", (int)(end - at - 1), at + 1));
    }
}

/* Does one request below the prefix and follows what it leads to; returns its body. */
static const char *
step(struct walk *w, const char *method, const char *tail, const char *body, int code)
{
    static const char *const headers[] = {"Location", "Content-Location"};
    const char *links[2], *response;

    ck_api(&w->f, method, api_text(&w->f, "%s%s", w->prefix, tail), body, code, NULL);
    for (size_t i = 0; i < 2; i++) {
        const char *link = api_response_header(&w->f.c, headers[i]);

        links[i] = link == NULL ? NULL : api_text(&w->f, "%s", link);
    }
    response = api_text(&w->f, "%s", api_body(&w->f.c));
    for (size_t i = 0; i < 2; i++)
        if (links[i] != NULL)
            follow(w, links[i]);
    follow_all(w, response);
    return response;
}

/* The id behind the last slash of the first link of this kind, without its query. */
static const char *
id_in(struct walk *w, const char *text, const char *kind)
{
    const char *at = strstr(text, kind);

    ck_assert_ptr_nonnull(at);
    return api_text(&w->f, "%.24s", at + strlen(kind));
}

/* Resources that all three versions have, in the form of each. */
static void
walk_messages_and_claims(struct walk *w, const char *messages, const char *terms)
{
    const char *response, *id, *claim;

    response = step(w, "POST", "/queues/q/messages", messages, 201);
    id = id_in(w, response, "/messages/");
    step(w, "GET", "/queues/q/messages?limit=1&echo=true", NULL, 200);
    step(w, "GET", api_text(&w->f, "/queues/q/messages?ids=%s", id), NULL, 200);
    step(w, "GET", api_text(&w->f, "/queues/q/messages/%s", id), NULL, 200);
    step(w, "GET", "/queues/q/stats", NULL, 200);
    response = step(w, "POST", "/queues/q/claims", terms, 201);
    claim = id_in(w, response, "?claim_id=");
    step(w, "GET", "/queues/q/stats", NULL, 200);
    step(w, "GET", api_text(&w->f, "/queues/q/claims/%s", claim), NULL, 200);
    step(w, "PATCH", api_text(&w->f, "/queues/q/claims/%s", claim), terms, 204);
    step(w, "DELETE", api_text(&w->f, "/queues/q/messages/%s?claim_id=%s", id, claim),
         NULL, 204);
    step(w, "DELETE", api_text(&w->f, "/queues/q/claims/%s", claim), NULL, 204);
    step(w, "DELETE", api_text(&w->f, "/queues/q/messages?ids=%s", id), NULL, 204);
    step(w, "GET", "/queues?limit=1&detailed=true", NULL, 200);
}

#define TERMS "{\"ttl\":60,\"grace\":60}"
#define POSTS "{\"messages\":[{\"body\":1},{\"body\":2}]}"

WALK_TEST(in_v2_every_link_can_be_followed, walk_open(w, "/v2/acme"))
{
    step(w, "PUT", "/queues/q", NULL, 201);
    walk_messages_and_claims(w, POSTS, TERMS);
    step(w, "GET", "/queues/q", NULL, 200);
    w->f.c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    step(w, "PATCH", "/queues/q",
         "[{\"op\":\"add\",\"path\":\"/metadata/a\",\"value\":1}]", 200);
    w->f.c.headers[API_HEADER_CONTENT_TYPE] = NULL;
    step(w, "DELETE", "/queues/q/messages?pop=1", NULL, 200);
    step(w, "POST", "/queues/q/purge", NULL, 204);
    step(w, "DELETE", "/queues/q", NULL, 204);
}

WALK_TEST(in_v1_1_every_link_can_be_followed, walk_open(w, "/v1.1/acme"))
{
    step(w, "PUT", "/queues/q", NULL, 201);
    walk_messages_and_claims(w, POSTS, TERMS);
    step(w, "GET", "/queues/q", NULL, 200);
    step(w, "DELETE", "/queues/q/messages?pop=1", NULL, 200);
    step(w, "DELETE", "/queues/q", NULL, 204);
}

WALK_TEST(in_v1_every_link_can_be_followed, walk_open(w, "/v1/a%20b"))
{
    step(w, "PUT", "/queues/q", NULL, 201);
    walk_messages_and_claims(w, "[{\"ttl\":60,\"body\":1},{\"ttl\":60,\"body\":2}]",
                             TERMS);
    step(w, "GET", "/queues/q", NULL, 204);
    step(w, "HEAD", "/queues/q", NULL, 204);
    step(w, "PUT", "/queues/q/metadata", "{\"a\":1}", 204);
    step(w, "GET", "/queues/q/metadata", NULL, 200);
    step(w, "GET", "/queues?limit=1&marker=q", NULL, 204);
    ck_api(&w->f, "DELETE", "/v1/a%20b/queues/q", NULL, 204, NULL);
}

API_TEST(the_beginning_of_another_path_is_no_project)
{
    static const char *const roots[] = {"v1", "v1.1", "v2", "claimd", "%76%32"};
    static const char *const versions[] = {"v1", "v1.1", "v2"};

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
        for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
            ck_api(f, "PUT", api_text(f, "/%s/%s/queues/q", versions[v], roots[i]), NULL,
                   404, NULL);
            ck_assert_ptr_nonnull(strstr(api_body(&f->c), "is no project. Leave"));
        }
    f->c.headers[API_HEADER_PROJECT_ID] = "v2"; /* the header may name any project */
    ck_api(f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "PUT", "/v2/v2.0/queues/q", NULL, 201, NULL);
}

API_TEST(a_path_and_a_header_with_different_projects_are_refused)
{
    f->c.headers[API_HEADER_PROJECT_ID] = "other";
    ck_api(f, "PUT", "/v2/acme/queues/q", NULL, 400, "Invalid project identification");
    ck_assert_ptr_nonnull(
        strstr(api_body(&f->c), "the path names the project \\\"acme\\\", and the header "
                                "X-Project-ID names \\\"other\\\"."));
    ck_api(f, "PUT", "/v1/acme/queues/q", NULL, 400, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "";
    ck_api(f, "PUT", "/v2/acme/queues/q", NULL, 400, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "a b";
    ck_api(f, "PUT", "/v2/a%20b/queues/q", NULL, 201, NULL);
    ck_api(f, "GET", "/v2/queues?name=q", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"name\":\"q\""));
}

START_TEST(behind_a_proxy_every_link_has_the_prefix)
{
    struct walk w;

    walk_open_behind(&w, "/v2/acme", "/mq", "/mq");
    step(&w, "PUT", "/queues/q", NULL, 201);
    walk_messages_and_claims(&w, POSTS, TERMS);
    walk_close(&w);
    walk_open_behind(&w, "/v1.1", "/a/b-c/", "/a/b-c");
    w.f.c.headers[API_HEADER_PROJECT_ID] = "p";
    step(&w, "PUT", "/queues/q", NULL, 201);
    walk_messages_and_claims(&w, POSTS, TERMS);
    walk_close(&w);
}

/* The texts of links that are not below a version: to versions, and of claims and
 * finishes in /claimd. */
WALK_TEST(behind_a_proxy_documents_have_the_prefix,
          walk_open_behind(w, "/v2", "/mq", "/mq"))
{
    w->f.c.headers[API_HEADER_PROJECT_ID] = "p";
    ck_api(&w->f, "GET", "/", NULL, 300, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&w->f.c), "\"href\":\"/mq/v2/\""));
    ck_api(&w->f, "GET", "/v2/", NULL, 200, NULL);
    ck_assert_ptr_nonnull(
        strstr(api_body(&w->f.c), "\"href-template\":\"/mq/v2/queues/{queue_name}\""));
    ck_api_header(&w->f, "Vary", "X-Forwarded-Prefix");
    step(w, "POST", "/queues/q/messages", POSTS, 201);
    ck_api(&w->f, "POST", "/claimd/claims?queue=q", TERMS, 201, NULL);
    ck_assert_ptr_nonnull(
        strstr(api_body(&w->f.c), "\"href\":\"/mq/v2/queues/q/messages/"));
}

START_TEST(a_prefix_counts_only_if_it_is_valid_and_a_trusted_proxy_sent_it)
{
    static const char *const wrong[] = {
        NULL,        "",       "/",     "//",    "mq",       "http://evil",
        "//evil/mq", "/a//b",  "/a/..", "/../a", "/./a",     "/a b",
        "/a\"b",     "/a%2fb", "/a?b",  "/a#b",  "/mq,/mq",  "/mq, /mq",
        "/b\xfc",    "/a\\b",  "/a:b",  "/a;b",  "/a\nX: y",
    };
    char longest[URI_PREFIX_MAX + 2] = "/";
    struct walk w;

    walk_open_behind(&w, "/v2", NULL, "");
    w.f.c.headers[API_HEADER_PROJECT_ID] = "p";
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        w.f.c.headers[API_HEADER_FORWARDED_PREFIX] = wrong[i];
        step(&w, "POST", "/queues/q/messages", POSTS, 201);
    }
    memset(longest + 1, 'a', URI_PREFIX_MAX);
    w.f.c.headers[API_HEADER_FORWARDED_PREFIX] = longest;
    step(&w, "POST", "/queues/q/messages", POSTS, 201);
    longest[URI_PREFIX_MAX] = '\0';
    w.cut = longest;
    step(&w, "POST", "/queues/q/messages", POSTS, 201);
    w.cut = "";
    w.f.c.from_proxy = false;
    step(&w, "POST", "/queues/q/messages", POSTS, 201);
    walk_close(&w);
}

/* With the longest prefix, project and names, a response's head still has space for its
 * Location. */
START_TEST(the_longest_links_fit_behind_the_longest_prefix)
{
    char cut[URI_PREFIX_MAX + 1] = "/", project[3 * 256 + 1], queue[65];
    const char *id, *path;
    struct walk w;

    memset(cut + 1, 'a', URI_PREFIX_MAX - 1);
    for (size_t i = 0; i < 256; i++)
        memcpy(project + 3 * i, "%20", 4);
    memset(queue, 'q', 64);
    queue[64] = cut[URI_PREFIX_MAX] = '\0';
    walk_open_behind(&w, "/v2", cut, cut);
    path = api_text(&w.f, "/%s/queues/%s/subscriptions", project, queue);
    ck_api(&w.f, "POST", api_text(&w.f, "/v2%s", path),
           "{\"subscriber\":\"http://203.0.113.9/\"}", 201, NULL);
    id = api_text(&w.f, "%s", api_pick(&w.f, "subscription_id"));
    ck_api(&w.f, "PUT", api_text(&w.f, "/v2%s/%s/confirm", path, id),
           "{\"confirmed\":true}", 204, NULL);
    ck_api_header(&w.f, "Location", api_text(&w.f, "%s/v2%s/%s/confirm", cut, path, id));
    w.followed++;
    walk_close(&w);
}

WALK_TEST(nothing_of_it_is_seen_without_the_project, walk_open(w, "/v1/acme"))
{
    step(w, "PUT", "/queues/q", NULL, 201);
    ck_api(&w->f, "HEAD", "/v1/queues/q", NULL, 404, NULL);
    ck_api(&w->f, "HEAD", "/v1/other/queues/q", NULL, 404, NULL);
}
