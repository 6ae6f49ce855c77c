/*
 * A project in the path, for every resource of every version: whatever an answer leads
 * to begins as the request did, and can be followed without any header naming a project.
 */
#include "support/api_fixture.h"

struct walk {
    struct api_fixture f;
    const char *prefix; /* "/v1/acme" */
    size_t followed;
};

/* A caller whose headers name no project. */
static void
walk_open(struct walk *w, const char *prefix)
{
    *w = (struct walk){.prefix = prefix};
    api_fixture_open(&w->f);
    w->f.c.headers[API_HEADER_PROJECT_ID] = NULL;
}

static void
walk_close(struct walk *w)
{
    ck_assert_uint_gt(w->followed, 0);
    api_fixture_close(&w->f);
}

static void
follow(struct walk *w, const char *link)
{
    ck_assert_msg(strncmp(link, w->prefix, strlen(w->prefix)) == 0, "%s leads out of %s",
                  link, w->prefix);
    ck_assert_int_lt(api_call(&w->f.c, "GET", link, NULL), 300);
    w->followed++;
}

/* Follows every link in a text in which they all begin with "/v". */
static void
follow_all(struct walk *w, const char *text)
{
    static const char mark[] = "\"/v";

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
    const char *links[2], *answer;

    ck_api(&w->f, method, api_text(&w->f, "%s%s", w->prefix, tail), body, code, NULL);
    for (size_t i = 0; i < 2; i++) {
        const char *link = api_answer_header(&w->f.c, headers[i]);

        links[i] = link == NULL ? NULL : api_text(&w->f, "%s", link);
    }
    answer = api_text(&w->f, "%s", api_answer(&w->f.c));
    for (size_t i = 0; i < 2; i++)
        if (links[i] != NULL)
            follow(w, links[i]);
    follow_all(w, answer);
    return answer;
}

/* The id behind the last slash of the first link of this kind, without its query. */
static const char *
id_in(struct walk *w, const char *text, const char *kind)
{
    const char *at = strstr(text, kind);

    ck_assert_ptr_nonnull(at);
    return api_text(&w->f, "%.24s", at + strlen(kind));
}

/* What all three versions have, in the form of each. */
static void
walk_messages_and_claims(struct walk *w, const char *messages, const char *terms)
{
    const char *answer, *id, *claim;

    answer = step(w, "POST", "/queues/q/messages", messages, 201);
    id = id_in(w, answer, "/messages/");
    step(w, "GET", "/queues/q/messages?limit=1&echo=true", NULL, 200);
    step(w, "GET", api_text(&w->f, "/queues/q/messages?ids=%s", id), NULL, 200);
    step(w, "GET", api_text(&w->f, "/queues/q/messages/%s", id), NULL, 200);
    step(w, "GET", "/queues/q/stats", NULL, 200);
    answer = step(w, "POST", "/queues/q/claims", terms, 201);
    claim = id_in(w, answer, "?claim_id=");
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

START_TEST(in_v2_every_link_can_be_followed)
{
    struct walk w;

    walk_open(&w, "/v2/acme");
    step(&w, "PUT", "/queues/q", NULL, 201);
    walk_messages_and_claims(&w, POSTS, TERMS);
    step(&w, "GET", "/queues/q", NULL, 200);
    w.f.c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    step(&w, "PATCH", "/queues/q",
         "[{\"op\":\"add\",\"path\":\"/metadata/a\",\"value\":1}]", 200);
    w.f.c.headers[API_HEADER_CONTENT_TYPE] = NULL;
    step(&w, "DELETE", "/queues/q/messages?pop=1", NULL, 200);
    step(&w, "POST", "/queues/q/purge", NULL, 204);
    step(&w, "DELETE", "/queues/q", NULL, 204);
    walk_close(&w);
}

START_TEST(in_v1_1_every_link_can_be_followed)
{
    struct walk w;

    walk_open(&w, "/v1.1/acme");
    step(&w, "PUT", "/queues/q", NULL, 201);
    walk_messages_and_claims(&w, POSTS, TERMS);
    step(&w, "GET", "/queues/q", NULL, 200);
    step(&w, "DELETE", "/queues/q/messages?pop=1", NULL, 200);
    step(&w, "DELETE", "/queues/q", NULL, 204);
    walk_close(&w);
}

START_TEST(in_v1_every_link_can_be_followed)
{
    struct walk w;

    walk_open(&w, "/v1/a%20b");
    step(&w, "PUT", "/queues/q", NULL, 201);
    walk_messages_and_claims(&w, "[{\"ttl\":60,\"body\":1},{\"ttl\":60,\"body\":2}]",
                             TERMS);
    step(&w, "GET", "/queues/q", NULL, 204);
    step(&w, "HEAD", "/queues/q", NULL, 204);
    step(&w, "PUT", "/queues/q/metadata", "{\"a\":1}", 204);
    step(&w, "GET", "/queues/q/metadata", NULL, 200);
    step(&w, "GET", "/queues?limit=1&marker=q", NULL, 204);
    ck_api(&w.f, "DELETE", "/v1/a%20b/queues/q", NULL, 204, NULL);
    walk_close(&w);
}

START_TEST(the_beginning_of_another_path_is_no_project)
{
    static const char *const roots[] = {"v1", "v1.1", "v2", "claimd", "%76%32"};
    static const char *const versions[] = {"v1", "v1.1", "v2"};
    struct api_fixture f;

    api_fixture_open(&f);
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
        for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
            ck_api(&f, "PUT", api_text(&f, "/%s/%s/queues/q", versions[v], roots[i]),
                   NULL, 404, NULL);
            ck_assert_ptr_nonnull(strstr(api_answer(&f.c), "is no project. Leave"));
        }
    f.c.headers[API_HEADER_PROJECT_ID] = "v2"; /* the header may name any project */
    ck_api(&f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(&f, "PUT", "/v2/v2.0/queues/q", NULL, 201, NULL);
    api_fixture_close(&f);
}

START_TEST(a_path_and_a_header_with_different_projects_are_refused)
{
    struct api_fixture f;

    api_fixture_open(&f);
    f.c.headers[API_HEADER_PROJECT_ID] = "other";
    ck_api(&f, "PUT", "/v2/acme/queues/q", NULL, 400, "Invalid project identification");
    ck_assert_ptr_nonnull(strstr(
        api_answer(&f.c), "the path names the project \\\"acme\\\", and the header "
                          "X-Project-ID names \\\"other\\\"."));
    ck_api(&f, "PUT", "/v1/acme/queues/q", NULL, 400, NULL);
    f.c.headers[API_HEADER_PROJECT_ID] = "";
    ck_api(&f, "PUT", "/v2/acme/queues/q", NULL, 400, NULL);
    f.c.headers[API_HEADER_PROJECT_ID] = "a b";
    ck_api(&f, "PUT", "/v2/a%20b/queues/q", NULL, 201, NULL);
    ck_api(&f, "GET", "/v2/queues?name=q", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_answer(&f.c), "\"name\":\"q\""));
    api_fixture_close(&f);
}

START_TEST(nothing_of_it_is_seen_without_the_project)
{
    struct walk w;

    walk_open(&w, "/v1/acme");
    step(&w, "PUT", "/queues/q", NULL, 201);
    ck_api(&w.f, "HEAD", "/v1/queues/q", NULL, 404, NULL);
    ck_api(&w.f, "HEAD", "/v1/other/queues/q", NULL, 404, NULL);
    walk_close(&w);
}
