/* Topics (docs/api.md 19): what they do as queues do, and what they do not. */
#include "support/api_fixture.h"

#include <string.h>

#define TOPIC "/v2/topics/news"
#define QUEUE "/v2/queues/news"
#define TI    "Invalid topic identification"

/* Posts a message; its id. */
static const char *
post(struct api_fixture *f)
{
    ck_api(f, "POST", TOPIC "/messages", "{\"messages\":[{\"body\":1,\"ttl\":300}]}", 201,
           NULL);
    return api_pick_id(f, "resources.0");
}

TEST_CASE("topics");

API_TEST(a_topic_and_a_queue_of_one_name_have_nothing_in_common)
{
    const char *id, *path;

    ck_api(f, "PUT", TOPIC, "{\"color\":\"red\"}", 201, NULL);
    ck_api(f, "PUT", QUEUE, NULL, 201, NULL);
    id = post(f);
    ck_api(f, "GET", api_text(f, QUEUE "/messages/%s", id), NULL, 404, "Not found");
    ck_api(f, "GET", api_text(f, TOPIC "/messages/%s", id), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "href"), api_text(f, TOPIC "/messages/%s", id));
    ck_api(f, "POST", TOPIC "/subscriptions", "{\"subscriber\":\"http://example.org\"}",
           201, NULL);
    ck_api_header(f, "Location", TOPIC "/subscriptions");
    path = api_pick(f, "subscription_id");
    ck_api(f, "GET", api_text(f, QUEUE "/subscriptions/%s", path), NULL, 404, NULL);
    ck_api(f, "PUT", api_text(f, TOPIC "/subscriptions/%s/confirm", path),
           "{\"confirmed\":true}", 204, NULL);
    ck_api_header(f, "Location", api_text(f, TOPIC "/subscriptions/%s/confirm", path));
    ck_api(f, "DELETE", QUEUE, NULL, 204, NULL);
    ck_api(f, "GET", TOPIC "/stats", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"total\":1"));
    ck_assert_str_eq(api_pick(f, "messages.oldest.href"),
                     api_text(f, TOPIC "/messages/%s", id));
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_api_body(f, "{'queues':[],'links':[]}");
    ck_api(f, "DELETE", TOPIC, NULL, 204, NULL);
    ck_api(f, "GET", api_text(f, TOPIC "/messages/%s", id), NULL, 404, NULL);
}

API_TEST(it_shows_the_three_members_that_mean_something_to_it)
{
    ck_api(f, "GET", TOPIC, NULL, 200, NULL); /* an unknown one, as of queues */
    ck_api_body(f, "{'_max_messages_post_size':262144,'_default_message_ttl':3600,"
                   "'_default_message_delay':0}");
    ck_api(f, "PUT", TOPIC, "{\"_default_message_ttl\":60,\"_max_claim_count\":null}",
           201, NULL);
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    ck_api(f, "PATCH", TOPIC,
           "[{\"op\":\"add\",\"path\":\"/metadata/color\",\"value\":\"red\"}]", 200,
           NULL);
    ck_api_body(f, "{'_default_message_ttl':60,'_max_claim_count':null,'color':'red',"
                   "'_max_messages_post_size':262144,'_default_message_delay':0}");
    ck_api(f, "PATCH", "/v2/topics/none", "[]", 404, "Not found");
    ck_assert_str_eq(api_pick(f, "description"), "topic none does not exist");
    ck_api(f, "PUT", "/v2/topics/bad", "{\"_default_message_ttl\":1}", 400,
           "Invalid API request");
}

API_TEST(topics_are_listed_by_themselves_and_not_counted)
{
    ck_api(f, "PUT", "/v2/topics/b", "{\"with_count\":\"true\"}", 201, NULL);
    ck_api(f, "PUT", "/v2/topics/a", "{\"color\":\"red\"}", 201, NULL);
    ck_api(f, "PUT", QUEUE, NULL, 201, NULL);
    ck_api(f, "GET", "/v2/topics?limit=1", NULL, 200, NULL);
    ck_api_body(f, "{'topics':[{'name':'a','href':'/v2/topics/a'}],'links':[{'rel':"
                   "'next','href':'/v2/topics?limit=1&marker=a'}]}");
    ck_api(f, "GET", "/v2/topics?color=red", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "topics.0.name"), "a");
    ck_assert_ptr_null(strstr(api_body(&f->c), "/v2/topics/b"));
    /* It is one more member of metadata that must fit. */
    ck_api(f, "GET", "/v2/topics?with_count=true", NULL, 200, NULL);
    ck_api_body(f, "{'topics':[{'name':'b','href':'/v2/topics/b'}],'links':[{'rel':"
                   "'next','href':'/v2/topics?with_count=true&marker=b'}]}");
}

API_TEST(names_are_refused_as_those_of_topics)
{
    static const struct api_row rows[] = {
        {"PUT", "/v2/topics/a!b", NULL, 400, TI},
        {"GET", "/v2/topics/", NULL, 400, TI},
        {"GET", "/v2/topics/a%20b/messages", NULL, 400, TI},
        {"POST", "/v2/topics/a%20b/subscriptions", "{}", 400, TI},
        {"GET", "/claimd/topics/a%20b/subscriptions", NULL, 400, TI},
        {"PUT", "/v2/queues/a!b", NULL, 400, "Invalid queue identification"},
    };
    char project[258];

    ck_api_rows(f, rows);
    memset(project, 'p', sizeof(project) - 1);
    project[sizeof(project) - 1] = '\0';
    f->c.headers[API_HEADER_PROJECT_ID] = project;
    ck_api(f, "PUT", TOPIC, NULL, 400, TI);
    ck_api(f, "GET", "/v2/topics", NULL, 400, "Invalid project identification");
}

API_TEST(a_project_may_stand_in_the_path)
{
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "PUT", "/v2/acme/topics/news", NULL, 201, NULL);
    ck_api_header(f, "Location", "/v2/acme/topics/news");
    ck_api(f, "GET", "/v2/acme/topics", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "topics.0.href"), "/v2/acme/topics/news");
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_api(f, "GET", "/v2/topics", NULL, 200, NULL);
    ck_api_body(f, "{'topics':[],'links':[]}");
    /* These words are never projects. */
    ck_api(f, "GET", "/v2/topics/queues", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/queues/topics", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/topics/queues/stats", NULL, 200, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", "/v2/acme/topics/", NULL, 400, TI);
}

API_TEST(its_messages_are_listed_popped_and_deleted)
{
    const char *id;

    id = post(f);
    ck_api(f, "GET", TOPIC "/messages?echo=true&limit=1", NULL, 200, NULL);
    ck_assert_ptr_nonnull(
        strstr(api_pick(f, "links.0.href"), TOPIC "/messages?limit=1&echo=true&marker="));
    ck_api(f, "DELETE", api_text(f, TOPIC "/messages/%s", id), NULL, 204, NULL);
    (void)post(f);
    ck_api(f, "DELETE", TOPIC "/messages?pop=1", NULL, 200, NULL);
    id = post(f);
    ck_api(f, "POST", TOPIC "/purge", "{\"resource_types\":[\"messages\"]}", 204, NULL);
    ck_api(f, "GET", api_text(f, TOPIC "/messages/%s", id), NULL, 404, "Not found");
    ck_assert_ptr_nonnull(strstr(api_pick(f, "description"), "topic news"));
}

API_TEST(metrics_show_it_by_a_label_of_its_own)
{
    ck_api(f, "PUT", QUEUE, NULL, 201, NULL);
    (void)post(f);
    ck_api(f, "GET", "/metrics", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c),
                                 "claimd_queue_messages{project=\"" API_CALL_PROJECT
                                 "\",topic=\"news\",state=\"claimable\"} 1"));
    ck_assert_ptr_nonnull(strstr(api_body(&f->c),
                                 "claimd_queue_messages{project=\"" API_CALL_PROJECT
                                 "\",queue=\"news\",state=\"claimable\"} 0"));
}
