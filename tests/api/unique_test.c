/* Unique messages (docs/api.md 30). */
#include "claimd/engine/engine.h"
#include "support/api_fixture.h"

#include <stdlib.h>
#include <string.h>

#define MESSAGES "/v2/queues/q/messages"
#define CLAIMS   "/v2/queues/q/claims"
#define ONE      "{\"messages\":[{\"body\":1,\"ttl\":300}]}"
#define KEY      "report-2026-11"
#define BB       "Invalid request body"
#define BV       "Invalid API request"

static void
use_unique(struct api_fixture *f, const char *header)
{
    f->c.headers[API_HEADER_UNIQUE] = header;
}

/* Posts a message to q with this header. Returns the id in the response. */
static const char *
post_unique(struct api_fixture *f, const char *header, const char *existing)
{
    use_unique(f, header);
    ck_api(f, "POST", MESSAGES, ONE, 201, NULL);
    ck_api_header(f, "Claimd-Unique", existing);
    use_unique(f, NULL);
    return api_pick_id(f, "resources.0");
}

#define ck_new(f, header)      post_unique(f, header, NULL)
#define ck_existing(f, header) post_unique(f, header, "existing")

static void
ck_messages(struct api_fixture *f, uint64_t total)
{
    struct store_totals totals;

    ck_assert_int_eq(store_totals(f->store, STORE_AT(f->c.now_ms), &totals), ST_OK);
    ck_assert_uint_eq(totals.messages, total);
}

/* The description of the last response, an error document. */
static void
ck_said(struct api_fixture *f, const char *description)
{
    ck_assert_str_eq(api_pick(f, "description"), description);
}

/* Shows details in the responses from now on. */
static void
show_details(struct api_fixture *f)
{
    f->c.headers[API_HEADER_PREFER] = "details";
}

/* The last response contains this text, or not. */
static void
shows(struct api_fixture *f, const char *text, bool expected)
{
    ck_assert_msg((strstr(api_body(&f->c), text) != NULL) == expected, "%s in %s", text,
                  api_body(&f->c));
}

TEST_CASE("post");

API_TEST(a_second_post_returns_the_message_that_exists)
{
    char *location;

    use_unique(f, KEY);
    ck_api(f, "POST", MESSAGES, ONE, 201, NULL);
    ck_api_header(f, "Claimd-Unique", NULL);
    location = strdup(api_response_header(&f->c, "Location"));
    ck_assert_ptr_nonnull(location);
    ck_api(f, "POST", MESSAGES, "{\"messages\":[{\"body\":\"another\",\"ttl\":60}]}", 201,
           NULL);
    ck_api_header(f, "Claimd-Unique", "existing");
    ck_api_header(f, "Location", location);
    ck_api_header(f, "Idempotent-Replay", NULL);
    ck_assert_str_eq(api_pick_id(f, "resources.0"), strrchr(location, '=') + 1);
    use_unique(f, NULL);
    ck_api(f, "GET", api_pick(f, "resources.0"), NULL, 200, NULL);
    shows(f, "\"body\":1", true);
    ck_messages(f, 1);
    free(location);
}

API_TEST(a_key_is_held_until_its_message_is_deleted)
{
    const char *first = ck_new(f, KEY);
    const char *claim;

    claim = api_take(f, "q", 1);
    ck_assert_ptr_nonnull(claim);
    ck_assert_str_eq(ck_existing(f, KEY "; until=deleted"), first);
    ck_api(f, "DELETE", api_text(f, MESSAGES "/%s?claim_id=%s", first, claim), NULL, 204,
           NULL);
    ck_assert_str_ne(ck_new(f, KEY ";until=deleted"), first);
    (void)ck_existing(f, KEY);
    ck_messages(f, 1);
}

API_TEST(a_key_until_claimed_is_free_after_the_first_claim)
{
    const char *first = ck_new(f, KEY "; until=claimed");

    ck_assert_str_eq(ck_existing(f, KEY), first);
    ck_assert_ptr_nonnull(api_take(f, "q", 1));
    (void)ck_new(f, KEY " ;  until=claimed ");
    (void)ck_existing(f, KEY);
    ck_messages(f, 2);
}

/* Although so many others have expired that it is not deleted yet. */
API_TEST(an_expired_message_does_not_hold_its_key)
{
    api_post_letters(f, "q", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
    (void)ck_new(f, KEY);
    f->c.now_ms += 299999;
    (void)ck_existing(f, KEY);
    f->c.now_ms++;
    (void)ck_new(f, KEY);
    (void)ck_existing(f, KEY);
}

API_TEST(keys_of_queues_and_clients_do_not_meet)
{
    const char *first = ck_new(f, KEY);

    use_unique(f, KEY);
    ck_api(f, "POST", "/v2/queues/r/messages", ONE, 201, NULL);
    ck_api_header(f, "Claimd-Unique", NULL);
    /* A key belongs to the queue, not to its client. */
    f->c.headers[API_HEADER_CLIENT_ID] = "3381af92-2b9e-11e3-b191-71861300734d";
    ck_assert_str_eq(ck_existing(f, KEY), first);
    f->c.headers[API_HEADER_PROJECT_ID] = "another";
    (void)ck_new(f, KEY);
    ck_messages(f, 3);
}

API_TEST(the_form_of_a_key)
{
    char longest[130];

    memset(longest, 'k', sizeof(longest));
    longest[128] = '\0';
    (void)ck_new(f, longest);
    (void)ck_existing(f, longest);
    (void)ck_new(f, "!~+=345678");
    ck_messages(f, 2);
}

API_TEST(a_wrong_header_is_refused_and_changes_nothing)
{
    static const struct {
        const char *header, *said;
    } rows[] = {
        {"", "the key in the header Claimd-Unique is 0 characters long. It must be 8 to "
             "128"},
        {"1234567", "the key in the header Claimd-Unique is 7 characters long. It must "
                    "be 8 to 128"},
        {"1234567 ; until=claimed",
         "the key in the header Claimd-Unique is 7 characters long. It must be 8 to 128"},
        {"; until=claimed",
         "the key in the header Claimd-Unique is 0 characters long. It "
         "must be 8 to 128"},
        {"two words", "the key in the header Claimd-Unique has other characters than "
                      "visible ASCII"},
        {"12345678\x7f", "the key in the header Claimd-Unique has other characters than "
                         "visible ASCII"},
        {"12345678\xc3\xa4", "the key in the header Claimd-Unique has other characters "
                             "than visible ASCII"},
        {"schedule/q/n", "the key in the header Claimd-Unique begins with schedule/, as "
                         "those of schedules do"},
        {KEY "," KEY,
         "the header Claimd-Unique has a comma. Send the header once, with a "
         "key without commas"},
        {KEY ";", "the header Claimd-Unique has \"\" after its key. It must be "
                  "until=claimed or until=deleted"},
        {KEY "; until=never", "the header Claimd-Unique has \"until=never\" after its "
                              "key. It must be until=claimed or until=deleted"},
        {KEY "; until = claimed",
         "the header Claimd-Unique has \"until = claimed\" after "
         "its key. It must be until=claimed or until=deleted"},
        {KEY "; until=claimed; until=claimed",
         "the header Claimd-Unique has \"until=claimed; until=claimed\" after its key. "
         "It "
         "must be until=claimed or until=deleted"},
        /* The header twice. */
        {KEY "; until=claimed," KEY "; until=claimed",
         "the header Claimd-Unique has \"until=claimed,report-2026-11; until=claimed\" "
         "after its key. It must be until=claimed or until=deleted"},
    };
    char longer[130];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        use_unique(f, rows[i].header);
        ck_api(f, "POST", MESSAGES, ONE, 400, BV);
        ck_said(f, rows[i].said);
    }
    memset(longer, 'k', sizeof(longer));
    longer[129] = '\0';
    use_unique(f, longer);
    ck_api(f, "POST", MESSAGES, ONE, 400, BV);
    ck_said(f, "the key in the header Claimd-Unique is 129 characters long. It must be 8 "
               "to 128");
    ck_messages(f, 0);
}

API_TEST(a_post_of_several_messages_has_no_key)
{
    use_unique(f, KEY);
    ck_api(f, "POST", MESSAGES, "{\"messages\":[{\"body\":1},{\"body\":2}]}", 400, BV);
    ck_said(f, "the post has 2 messages. With the header Claimd-Unique it must have one");
    ck_messages(f, 0);
    (void)ck_new(f, KEY);
}

API_TEST(a_post_has_one_kind_of_key)
{
    use_unique(f, KEY);
    f->c.headers[API_HEADER_IDEMPOTENCY_KEY] = "0123456789abcdef";
    ck_api(f, "POST", MESSAGES, ONE, 400, BV);
    ck_said(f, "the post has the headers Claimd-Unique and Idempotency-Key. Send one of "
               "them");
    ck_messages(f, 0);
    use_unique(f, NULL);
    ck_api(f, "POST", MESSAGES, ONE, 201, NULL);
    ck_api_header(f, "Idempotent-Replay", NULL);
}

API_TEST(a_message_of_a_topic_has_no_key)
{
    ck_api(f, "PUT", "/v2/topics/t", NULL, 201, NULL);
    use_unique(f, KEY);
    ck_api(f, "POST", "/v2/topics/t/messages", ONE, 400, BV);
    ck_said(f, "messages of topics cannot have the header Claimd-Unique");
    ck_messages(f, 0);
}

API_TEST(a_refusal_has_priority_over_a_message_that_exists)
{
    ck_api(f, "PUT", "/v2/queues/q", "{\"_max_messages_post_size\":60}", 201, NULL);
    (void)ck_new(f, KEY);
    use_unique(f, KEY);
    ck_api(f, "POST", MESSAGES,
           "{\"messages\":[{\"body\":\"0123456789012345678901234567890123456789\"}]}",
           400, BV);
    ck_api(f, "POST", MESSAGES, "{\"messages\":[{\"body\":1,\"ttl\":60,\"delay\":60}]}",
           400, BV);
    ck_api(f, "POST", MESSAGES, "{\"messages\":[{\"ttl\":60}]}", 400, NULL);
    ck_api(f, "POST", "/claimd/queues/q/pause", "{\"posts\":true}", 200, NULL);
    ck_api(f, "POST", MESSAGES, ONE, 503, NULL);
    ck_api_header(f, "Claimd-Unique", NULL);
    ck_api(f, "POST", "/claimd/queues/q/pause", "{\"posts\":false,\"claims\":false}", 200,
           NULL);
    (void)ck_existing(f, KEY);
    ck_messages(f, 1);
}

API_TEST(a_full_project_still_returns_the_message_that_exists)
{
    (void)ck_new(f, KEY);
    if (api_fixture_on_redis())
        return; /* which has no quotas of messages */
    engine_limit(f->store, &(struct engine_limits){.messages = 1});
    ck_api(f, "POST", MESSAGES, ONE, 429, "Too many messages");
    (void)ck_existing(f, KEY);
    use_unique(f, "another-key");
    ck_api(f, "POST", MESSAGES, ONE, 429, "Too many messages");
    ck_messages(f, 1);
}

API_TEST(old_versions_have_unique_messages_too)
{
    use_unique(f, KEY);
    ck_api(f, "POST", "/v1.1/queues/q/messages", ONE, 201, NULL);
    ck_api_header(f, "Claimd-Unique", NULL);
    ck_api(f, "POST", "/v1.1/queues/q/messages", ONE, 201, NULL);
    ck_api_header(f, "Claimd-Unique", "existing");
    ck_api(f, "POST", "/v1/queues/q/messages", "[{\"body\":1,\"ttl\":300}]", 201, NULL);
    ck_api_header(f, "Claimd-Unique", "existing");
    shows(f, "\"partial\":false", true);
    ck_api(f, "POST", "/v1/queues/q/messages",
           "[{\"body\":1,\"ttl\":300},{\"body\":2,\"ttl\":300}]", 400, BV);
    ck_messages(f, 1);
}

API_TEST(other_requests_ignore_the_header)
{
    (void)ck_new(f, KEY);
    use_unique(f, "short");
    ck_api(f, "GET", MESSAGES, NULL, 200, NULL);
    ck_api(f, "POST", CLAIMS, NULL, 201, NULL);
    ck_api(f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
}

static void
open_encrypting(struct api_fixture *f)
{
    const struct api_limits limits = api_limits_default;

    api_fixture_open_sealing(
        f, &limits, "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    ck_api(f, "PUT", "/v2/queues/q", "{\"_enable_encrypt_messages\":true}", 201, NULL);
}

API_TEST_WITH(keys_of_an_encrypted_queue, open_encrypting(f))
{
    const char *first = ck_new(f, KEY);

    ck_assert_str_eq(ck_existing(f, KEY), first);
    ck_api(f, "GET", api_text(f, MESSAGES "/%s", first), NULL, 200, NULL);
    shows(f, "\"body\":1", true);
    ck_messages(f, 1);
}

TEST_CASE("details");

API_TEST(details_show_the_key)
{
    const char *first = ck_new(f, KEY);
    const char *second = ck_new(f, "another-key; until=claimed");

    ck_api(f, "GET", api_text(f, MESSAGES "/%s", first), NULL, 200, NULL);
    shows(f, KEY, false);
    show_details(f);
    ck_api(f, "GET", api_text(f, MESSAGES "/%s", first), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "details.unique"), KEY);
    shows(f, "unique_until", false);
    ck_api(f, "GET", api_text(f, MESSAGES "/%s", second), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "details.unique"), "another-key");
    ck_assert_str_eq(api_pick(f, "details.unique_until"), "claimed");
    ck_api(f, "POST", CLAIMS, NULL, 201, NULL);
    shows(f, "\"unique\":\"" KEY "\"", true);
    shows(f, "another-key", false); /* this claim has freed it */
    ck_api(f, "GET", api_text(f, "/claimd/queues/q/messages/%s", first), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "unique"), KEY);
}

/* ------------------------------------------------------------------ finish */

/* With queue `jobs`, which has a dead-letter queue. */
static void
open_jobs(struct api_fixture *f)
{
    api_fixture_open(f);
    ck_api(f, "PUT", "/v2/queues/jobs",
           "{\"_max_claim_count\":5,\"_dead_letter_queue\":\"dead\"}", 201, NULL);
}

#define JOBS_TEST(id) API_TEST_WITH(id, open_jobs(f))

/* Finishes messages of a claim of `jobs`. */
static void
finish(struct api_fixture *f, const char *claim, const char *body, int code,
       const char *title)
{
    ck_api(f, "POST", api_text(f, "/claimd/queues/jobs/claims/%s/finish", claim), body,
           code, title);
}

/* Claims a new message of `jobs`, without a key or with this one. */
static const char *
hold(struct api_fixture *f, const char *key, const char **id)
{
    const char *claim;

    use_unique(f, key);
    ck_api(f, "POST", "/v2/queues/jobs/messages", ONE, 201, NULL);
    ck_api_header(f, "Claimd-Unique", NULL);
    use_unique(f, NULL);
    *id = api_pick_id(f, "resources.0");
    claim = api_take(f, "jobs", 10);
    ck_assert_ptr_nonnull(claim);
    return claim;
}

/* A finish that deletes a message and posts one with a key to a queue. */
static const char *
delete_and_post(struct api_fixture *f, const char *id, const char *queue)
{
    return api_text(f,
                    "{\"delete\":[\"%s\"],\"post\":[{\"queue\":\"%s\",\"unique\":"
                    "{\"key\":\"" KEY "\"},\"messages\":[{\"body\":1,\"ttl\":300}]}]}",
                    id, queue);
}

TEST_CASE("finish");

JOBS_TEST(a_finish_posts_a_unique_message_once)
{
    const char *id, *claim = hold(f, NULL, &id), *posted;

    finish(f, claim, delete_and_post(f, id, "q"), 200, NULL);
    shows(f, "existing", false);
    posted = api_pick_id(f, "posted.0.resources.0");
    ck_assert_str_eq(ck_existing(f, KEY), posted);
    claim = hold(f, NULL, &id);
    finish(f, claim, delete_and_post(f, id, "q"), 200, NULL);
    ck_api_body(f, api_text(f,
                            "{'results': [{'id': '%s', 'result': 'deleted'}],"
                            "'posted': [{'queue': 'q', 'existing': true,"
                            "'resources': ['/v2/queues/q/messages/%s']}]}",
                            id, posted));
    ck_messages(f, 1);
}

JOBS_TEST(a_finish_that_deletes_the_holder_posts_its_key_again)
{
    const char *id, *claim = hold(f, KEY, &id);

    finish(f, claim, delete_and_post(f, id, "jobs"), 200, NULL);
    shows(f, "existing", false);
    ck_assert_str_ne(api_pick_id(f, "posted.0.resources.0"), id);
    ck_messages(f, 1);
}

JOBS_TEST(a_release_with_a_reason_keeps_the_key)
{
    const char *id, *claim = hold(f, KEY, &id);

    finish(f, claim,
           api_text(f, "{\"release\":[{\"id\":\"%s\",\"reason\":\"busy\"}]}", id), 200,
           NULL);
    use_unique(f, KEY);
    ck_api(f, "POST", "/v2/queues/jobs/messages", ONE, 201, NULL);
    ck_api_header(f, "Claimd-Unique", "existing");
}

JOBS_TEST(a_finish_may_free_its_key_at_the_first_claim)
{
    const char *id, *claim = hold(f, NULL, &id);

    finish(f, claim,
           "{\"post\":[{\"queue\":\"q\",\"unique\":{\"key\":\"" KEY
           "\",\"until\":\"claimed\"},\"messages\":[{\"body\":1,\"ttl\":300}]}]}",
           200, NULL);
    (void)ck_existing(f, KEY);
    ck_assert_ptr_nonnull(api_take(f, "q", 1));
    (void)ck_new(f, KEY);
}

JOBS_TEST(a_wrong_key_of_a_finish_is_refused_and_changes_nothing)
{
    static const struct {
        const char *unique, *messages, *title, *said;
    } rows[] = {
        {"1", "{\"body\":1}", BB,
         "unique must be an object with the members key and until, which are strings"},
        {"{}", "{\"body\":1}", BB,
         "unique must be an object with the members key and until, which are strings"},
        {"{\"key\":1}", "{\"body\":1}", BB,
         "unique must be an object with the members key and until, which are strings"},
        {"{\"key\":\"" KEY "\",\"until\":1}", "{\"body\":1}", BB,
         "unique must be an object with the members key and until, which are strings"},
        {"{\"key\":\"" KEY "\",\"more\":1}", "{\"body\":1}", BB,
         "unique must be an object with the members key and until, which are strings"},
        {"{\"key\":\"" KEY "\",\"until\":\"never\"}", "{\"body\":1}", BV,
         "until is \"never\". It must be \"claimed\" or \"deleted\""},
        {"{\"key\":\"1234567\"}", "{\"body\":1}", BV,
         "the key of unique is 7 characters long. It must be 8 to 128"},
        {"{\"key\":\"one,two;three\"}", "{\"body\":1}", BV,
         "the key of unique has a comma or a semicolon"},
        {"{\"key\":\"schedule/q/n\"}", "{\"body\":1}", BV,
         "the key of unique begins with schedule/, as those of schedules do"},
        {"{\"key\":\"two words\"}", "{\"body\":1}", BV,
         "the key of unique has other characters than visible ASCII"},
        {"{\"key\":\"" KEY "\"}", "{\"body\":1},{\"body\":2}", BV,
         "an item of post has 2 messages. With unique it must have one"},
    };
    const char *id, *claim = hold(f, NULL, &id);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        finish(f, claim,
               api_text(f,
                        "{\"delete\":[\"%s\"],\"post\":[{\"queue\":\"q\",\"unique\":%s,"
                        "\"messages\":[%s]}]}",
                        id, rows[i].unique, rows[i].messages),
               400, rows[i].title);
        ck_said(f, rows[i].said);
    }
    ck_messages(f, 1);
    finish(f, claim,
           "{\"post\":[{\"queue\":\"q\",\"unique\":null,\"messages\":[{\"body\":1},"
           "{\"body\":2}]}]}",
           200, NULL);
    ck_messages(f, 3);
}

JOBS_TEST(a_repeated_finish_says_again_that_the_message_existed)
{
    const char *id, *claim, *body;
    char *first;

    (void)ck_new(f, KEY);
    claim = hold(f, NULL, &id);
    body = delete_and_post(f, id, "q");
    f->c.headers[API_HEADER_IDEMPOTENCY_KEY] = "0123456789abcdef";
    finish(f, claim, body, 200, NULL);
    shows(f, "\"existing\":true", true);
    first = strdup(api_body(&f->c));
    finish(f, claim, body, 200, NULL);
    ck_api_header(f, "Idempotent-Replay", "true");
    ck_assert_str_eq(api_body(&f->c), first);
    free(first);
}

/* ------------------------------------------------------------------ redrive */

TEST_CASE("redrive");

JOBS_TEST(a_dead_letter_stays_while_another_message_holds_its_key)
{
    const char *id, *claim = hold(f, KEY, &id), *other;

    finish(f, claim, api_text(f, "{\"dead_letter\":[\"%s\"]}", id), 200, NULL);
    use_unique(f, KEY);
    ck_api(f, "POST", "/v2/queues/jobs/messages", ONE, 201, NULL);
    ck_api_header(f, "Claimd-Unique", NULL); /* a dead letter holds no key */
    use_unique(f, NULL);
    other = api_pick(f, "resources.0");
    for (int dry = 1; dry >= 0; dry--) {
        ck_api(f, "POST", "/claimd/queues/dead/redrive",
               dry ? "{\"dry_run\":true}" : "{\"dry_run\":false}", 200, NULL);
        ck_api_body(f, "{'moved': 0, 'remaining': 1, 'without_origin': 0, 'key_held': 1,"
                       "'by_target': {}}");
    }
    show_details(f);
    ck_api(f, "GET", api_text(f, "/v2/queues/dead/messages/%s", id), NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "details.unique"), KEY);
    ck_api(f, "DELETE", other, NULL, 204, NULL);
    ck_api(f, "POST", "/claimd/queues/dead/redrive", NULL, 200, NULL);
    ck_api_body(f, "{'moved': 1, 'remaining': 0, 'without_origin': 0, 'key_held': 0,"
                   "'by_target': {'jobs': 1}}");
    use_unique(f, KEY);
    ck_api(f, "POST", "/v2/queues/jobs/messages", ONE, 201, NULL);
    ck_api_header(f, "Claimd-Unique", "existing");
    ck_assert_str_eq(api_pick_id(f, "resources.0"), id);
}

/* ------------------------------------------------------------------ dump and load */

TEST_CASE("dump");

#define LINE "{\"project\":\"" API_CALL_PROJECT "\",\"queue\":\"q\""

/* The dump of the project, with its end record. */
static const char *
dump(struct api_fixture *f)
{
    ck_api(f, "GET", "/claimd/dump", NULL, 200, NULL);
    return api_text(f, "%s", api_body(&f->c));
}

API_TEST(a_dump_and_a_load_keep_the_keys)
{
    const char *first = ck_new(f, KEY);
    const char *second = ck_new(f, "another-key; until=claimed"), *lines = dump(f);

    shows(f, "\"unique\":\"another-key\",\"until_claimed\":true}", true);
    shows(f, "\"unique\":\"" KEY "\"}", true);
    ck_api(f, "POST", "/claimd/load?replace=true", lines, 200, NULL);
    ck_assert_str_eq(dump(f), lines);
    ck_assert_str_eq(ck_existing(f, KEY), first);
    ck_assert_str_eq(ck_existing(f, "another-key"), second);
    (void)api_take(f, "q", 10);
    (void)ck_existing(f, KEY);
    (void)ck_new(f, "another-key");
    ck_messages(f, 3);
}

/* A line of a message with these details. */
static const char *
line_of(struct api_fixture *f, const char *details)
{
    return api_text(f, LINE ",\"message\":{\"body\":1,\"details\":{%s}}}\n", details);
}

API_TEST(a_load_that_would_make_a_key_twice_is_refused)
{
    const char *keyed = line_of(f, "\"unique\":\"" KEY "\"");
    const char *letter =
        line_of(f, "\"unique\":\"" KEY "\",\"origin\":\"r\",\"dead_lettered\":1");
    char longer[130];

    memset(longer, 'k', sizeof(longer));
    longer[129] = '\0';
    ck_api(f, "POST", "/claimd/load", api_text(f, LINE "}\n%s%s", keyed, keyed), 400,
           NULL);
    ck_said(f, "line 3: message.details.unique: another message holds the same key");
    ck_api(
        f, "POST", "/claimd/load",
        api_text(f, LINE "}\n%s", line_of(f, api_text(f, "\"unique\":\"%s\"", longer))),
        400, NULL);
    ck_said(f, "line 2: message.details.unique: it is too long");
    ck_messages(f, 0);
    /* A dead letter holds no key. */
    ck_api(f, "POST", "/claimd/load",
           api_text(f, LINE "}\n%s%s%s", letter, keyed, letter), 200, NULL);
    (void)ck_existing(f, KEY);
    ck_api(f, "POST", "/claimd/load", keyed, 409, NULL);
    shows(f, "it already has an item with one of these ids, keys or subscribers", true);
    ck_api(f, "POST", "/claimd/load", letter, 200, NULL);
    ck_messages(f, 4);
}
