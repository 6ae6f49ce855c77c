/* Queues whose messages are encrypted (docs/api.md 21). */
#include "support/api_fixture.h"

#include <string.h>

#define KEY     "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER   "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define ENCRYPT "{\"_enable_encrypt_messages\":true}"
#define SECRETS "{\"messages\":[{\"body\":\"secret\"},{\"body\":{\"a\": [1]}}]}"

static void
set_keys(struct api_fixture *f, const char *keys)
{
    struct reason why;
    size_t line;

    ck_assert_int_eq(seal_replace(f->seal, bytes_str(keys), &line, &why), ST_OK);
}

/* With queue q, which encrypts. */
static void
open_encrypting(struct api_fixture *f)
{
    struct api_limits limits = api_limits_default;

    api_fixture_open_sealing(f, &limits, KEY);
    ck_api(f, "PUT", "/v2/queues/q", ENCRYPT, 201, NULL);
}

/* The messages of q as the store has them. */
static struct store_batch
look(const struct api_fixture *f)
{
    const struct store_queue q = {.project = bytes_str(API_CALL_PROJECT),
                                  .name = bytes_str("q")};
    const struct store_filter all = {
        .limit = 20, .include_claimed = true, .include_delayed = true};
    struct store_batch batch = STORE_BATCH_INIT;

    ck_assert_int_eq(
        store_message_list(f->store, STORE_AT(f->c.now_ms), &q, &all, &batch), ST_OK);
    return batch;
}

/* The store has so many messages in q, and none of them in clear. */
static void
ck_sealed(const struct api_fixture *f, size_t count)
{
    struct store_batch batch = look(f);

    ck_assert_uint_eq(batch.count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert(store_is_sealed(batch.messages[i].body));
        ck_assert(!bytes_contain(batch.messages[i].body, bytes_str("secret")));
    }
    store_batch_release(&batch);
}

/* Replaces what q has by one message with these bytes, as if written on the disk. */
static void
forge(struct api_fixture *f, struct bytes body)
{
    const struct store_queue q = {.project = bytes_str(API_CALL_PROJECT),
                                  .name = bytes_str("q")};
    const struct store_draft draft = {body, 300, 0};
    const struct store_post post = {.drafts = &draft, .count = 1};
    struct store_id id;

    ck_assert_int_eq(
        store_queue_purge(f->store, STORE_AT(f->c.now_ms), &q, STORE_PURGE_MESSAGES),
        ST_OK);
    ck_assert_int_eq(store_message_post(f->store, STORE_AT(f->c.now_ms), &q, &post, &id),
                     ST_OK);
}

TEST_CASE("encryption");

API_TEST_WITH(every_way_of_reading_shows_the_clear_body, open_encrypting(f))
{
    const char *claim, *path;

    ck_api(f, "POST", "/v2/queues/q/messages", SECRETS, 201, NULL);
    path = api_pick(f, "resources.0");
    ck_sealed(f, 2);
    ck_api(f, "GET", path, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
    ck_api(f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":{\"a\": [1]}"));
    ck_api(f, "GET", "/v1.1/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
    ck_api(f, "GET", "/v1/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
    ck_api(f, "POST", "/v2/queues/q/claims?limit=1", "{}", 201, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
    claim = api_text(f, "%s", api_response_header(&f->c, "Location"));
    ck_api(f, "GET", claim, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
    ck_sealed(f, 2);
    ck_api(f, "DELETE", "/v2/queues/q/messages?pop=5", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":{\"a\": [1]}"));
    ck_sealed(f, 1);
}

API_TEST_WITH(a_dump_has_the_sealed_bodies_and_can_be_loaded, open_encrypting(f))
{
    const char *lines;

    ck_api(f, "POST", "/v2/queues/q/messages", SECRETS, 201, NULL);
    ck_api(f, "GET", "/claimd/dump", NULL, 200, NULL);
    lines = api_text(f, "%s", api_body(&f->c));
    ck_assert_ptr_null(strstr(lines, "secret"));
    ck_api(f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
    ck_api(f, "POST", "/claimd/load", lines, 200, NULL);
    ck_sealed(f, 2);
    ck_api(f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
}

API_TEST_WITH(old_versions_post_into_it_too, open_encrypting(f))
{
    ck_api(f, "POST", "/v1.1/queues/q/messages",
           "{\"messages\":[{\"body\":\"secret\",\"ttl\":60}]}", 201, NULL);
    ck_api(f, "POST", "/v1/queues/q/messages", "[{\"body\":\"secret\",\"ttl\":60}]", 201,
           NULL);
    ck_sealed(f, 2);
    ck_api(f, "DELETE", "/v1.1/queues/q/messages?pop=1", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
}

START_TEST(the_limits_are_those_of_the_clear_body)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;

    limits.max_messages_post_size = 38;
    api_fixture_open_sealing(&f, &limits, KEY);
    ck_api(&f, "PUT", "/v2/queues/q", ENCRYPT, 201, NULL);
    ck_api(&f, "POST", "/v2/queues/q/messages",
           "{\"messages\":[{\"body\":\"123456789 12\"}]}", 201, NULL); /* 38 bytes */
    ck_api(&f, "POST", "/v2/queues/q/messages",
           "{\"messages\":[{\"body\":\"123456789 123\"}]}", 400, "Invalid API request");
    api_fixture_close(&f);
}

START_TEST(checksums_are_those_of_the_clear_body)
{
    struct api_limits limits = api_limits_default;
    const char *clear, *encrypted;
    struct api_fixture f;

    limits.enable_checksum = true;
    api_fixture_open_sealing(&f, &limits, KEY);
    ck_api(&f, "PUT", "/v2/queues/q", ENCRYPT, 201, NULL);
    ck_api(&f, "POST", "/v2/queues/q/messages", SECRETS, 201, NULL);
    ck_api(&f, "POST", "/v2/queues/clear/messages", SECRETS, 201, NULL);
    ck_api(&f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    encrypted = api_pick(&f, "messages.0.checksum");
    ck_api(&f, "GET", "/v2/queues/clear/messages?echo=true", NULL, 200, NULL);
    clear = api_pick(&f, "messages.0.checksum");
    ck_assert_str_eq(encrypted, clear);
    api_fixture_close(&f);
}

TEST_CASE("metadata");

START_TEST(without_a_key_no_queue_is_made_to_encrypt)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;

    api_fixture_open_sealing(&f, &limits, NULL);
    ck_api(&f, "PUT", "/v2/queues/q", ENCRYPT, 400, "Invalid API request");
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "encryption_keys"));
    ck_api(&f, "PUT", "/v2/queues/q", "{\"_enable_encrypt_messages\":false}", 201, NULL);
    f.c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    ck_api(&f, "PATCH", "/v2/queues/q",
           "[{\"op\":\"add\",\"path\":\"/metadata/_enable_encrypt_messages\","
           "\"value\":true}]",
           400, "Invalid API request");
    set_keys(&f, KEY);
    ck_api(&f, "PATCH", "/v2/queues/q",
           "[{\"op\":\"add\",\"path\":\"/metadata/_enable_encrypt_messages\","
           "\"value\":true}]",
           200, NULL);
    ck_api(&f, "POST", "/v2/queues/q/messages", SECRETS, 201, NULL);
    ck_sealed(&f, 2);
    api_fixture_close(&f);
}

START_TEST(it_is_true_or_false)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture f;

    api_fixture_open_sealing(&f, &limits, KEY);
    ck_api(&f, "PUT", "/v2/queues/q", "{\"_enable_encrypt_messages\":1}", 400,
           "Invalid API request");
    ck_api(&f, "PUT", "/v2/queues/q", "{\"_enable_encrypt_messages\":\"true\"}", 400,
           "Invalid API request");
    ck_api(&f, "PUT", "/v2/queues/q", "{\"_enable_encrypt_messages\":null}", 201, NULL);
    api_fixture_close(&f);
}

API_TEST_WITH(a_client_of_version_1_does_not_end_it, open_encrypting(f))
{
    ck_api(f, "PUT", "/v1/queues/q/metadata", "{\"color\":\"red\"}", 204, NULL);
    ck_api(f, "GET", "/v1/queues/q/metadata", NULL, 200, NULL);
    ck_api_body(f, "{'color':'red','_enable_encrypt_messages':true}");
    ck_api(f, "POST", "/v2/queues/q/messages", SECRETS, 201, NULL);
    ck_sealed(f, 2);
}

API_TEST_WITH(encrypted_messages_stay_readable_after_encryption_is_switched_off,
              open_encrypting(f))
{
    ck_api(f, "POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":1}]}", 201,
           NULL);
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    ck_api(f, "PATCH", "/v2/queues/q",
           "[{\"op\":\"remove\",\"path\":\"/metadata/_enable_encrypt_messages\"}]", 200,
           NULL);
    ck_api(f, "POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":2}]}", 201,
           NULL);
    ck_api(f, "DELETE", "/v2/queues/q/messages?pop=5", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":1"));
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":2"));
}

TEST_CASE("keys");

/* All that reads is refused so, and takes nothing. */
static void
ck_shut(struct api_fixture *f, int code, const char *title, size_t count)
{
    static const struct {
        const char *method, *target, *body;
    } rows[] = {
        {"GET", "/v2/queues/q/messages?echo=true", NULL},
        {"GET", "/v1/queues/q/messages?echo=true", NULL},
        {"POST", "/v2/queues/q/claims", "{}"},
        {"POST", "/v1/queues/q/claims", "{\"ttl\":60,\"grace\":60}"},
        {"POST", "/claimd/claims?queue=q", "{}"},
        {"DELETE", "/v2/queues/q/messages?pop=5", NULL},
    };
    struct store_batch batch;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_api(f, rows[i].method, rows[i].target, rows[i].body, code, title);
        ck_assert_ptr_nonnull(strstr(api_body(&f->c), "is encrypted"));
    }
    batch = look(f);
    ck_assert_uint_eq(batch.count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(batch.messages[i].claim_count, 0);
        ck_assert_str_eq(batch.messages[i].claim_id.text, "");
    }
    store_batch_release(&batch);
}

API_TEST_WITH(without_the_key_nothing_is_shown_and_nothing_is_taken, open_encrypting(f))
{
    const char *path;

    ck_api(f, "POST", "/v2/queues/q/messages", SECRETS, 201, NULL);
    path = api_pick(f, "resources.0");
    set_keys(f, OTHER);
    ck_shut(f, 503, "Service temporarily unavailable", 2);
    ck_api(f, "GET", path, NULL, 503, "Service temporarily unavailable");
    ck_api_header(f, "Retry-After", "30");
    set_keys(f, OTHER "\n" KEY);
    ck_api(f, "DELETE", "/v2/queues/q/messages?pop=5", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
}

API_TEST_WITH(a_claim_cannot_be_shown_without_the_key_and_lives_on, open_encrypting(f))
{
    const char *claim;

    ck_api(f, "POST", "/v2/queues/q/messages", SECRETS, 201, NULL);
    ck_api(f, "POST", "/v2/queues/q/claims", "{}", 201, NULL);
    claim = api_text(f, "%s", api_response_header(&f->c, "Location"));
    set_keys(f, OTHER);
    ck_api(f, "GET", claim, NULL, 503, "Service temporarily unavailable");
    set_keys(f, KEY);
    ck_api(f, "GET", claim, NULL, 200, NULL);
}

API_TEST_WITH(without_any_key_nothing_is_posted, open_encrypting(f))
{
    struct store_batch batch;
    struct seal *shut = NULL;
    const struct seal_config none = {.mem = NULL};
    struct seal_config config = none;

    config.mem = f->mem;
    ck_assert_int_eq(seal_new(&config, &shut), ST_OK);
    seal_swap(f->seal, shut);
    ck_api(f, "POST", "/v2/queues/q/messages", SECRETS, 503,
           "Service temporarily unavailable");
    batch = look(f);
    ck_assert_uint_eq(batch.count, 0);
    store_batch_release(&batch);
    seal_free(shut);
}

API_TEST_WITH(a_dead_letter_that_cannot_be_encrypted_is_explained, open_encrypting(f))
{
    static const struct api_row rows[] = {
        {"PUT", "/v2/queues/jobs",
         "{\"_max_claim_count\":1,\"_dead_letter_queue\":\"q\"}", 201, NULL},
        {"POST", "/v2/queues/jobs/messages", SECRETS, 201, NULL},
        {"POST", "/v2/queues/jobs/claims", "{}", 201, NULL},
    };

    ck_api_rows(f, rows);
    ck_api(f, "DELETE", api_text(f, "%s", api_response_header(&f->c, "Location")), NULL,
           204, NULL);
    /* Only the API of the fixture can encrypt, not its store. */
    if (api_fixture_on_redis()) { /* the message waits in the outbox */
        ck_api(f, "POST", "/v2/queues/jobs/claims", "{}", 204, NULL);
        return;
    }
    ck_api(f, "POST", "/v2/queues/jobs/claims", "{}", 503,
           "Service temporarily unavailable");
    ck_assert_ptr_nonnull(strstr(api_body(&f->c),
                                 "a message must move to a queue that encrypts its "
                                 "messages, but the server has no key"));
}

API_TEST_WITH(a_body_changed_in_the_store_is_never_delivered, open_encrypting(f))
{
    struct store_batch batch;
    char body[256];
    size_t len;

    ck_api(f, "POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":\"secret\"}]}",
           201, NULL);
    batch = look(f);
    len = batch.messages[0].body.len;
    ck_assert_uint_lt(len, sizeof(body));
    memcpy(body, batch.messages[0].body.data, len);
    store_batch_release(&batch);
    forge(f, bytes_of(body, len));
    ck_api(f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    body[len - 20] ^= 4;
    forge(f, bytes_of(body, len));
    ck_shut(f, 500, "Internal server error", 1);
    forge(f, bytes_of(body, 7));
    ck_shut(f, 500, "Internal server error", 1);
}

API_TEST_WITH(a_body_of_another_project_does_not_open, open_encrypting(f))
{
    struct store_batch batch;
    char body[256];
    size_t len;

    f->c.headers[API_HEADER_PROJECT_ID] = "other";
    ck_api(f, "PUT", "/v2/queues/q", ENCRYPT, 201, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_api(f, "POST", "/v2/queues/q/messages", "{\"messages\":[{\"body\":\"secret\"}]}",
           201, NULL);
    batch = look(f);
    len = batch.messages[0].body.len;
    memcpy(body, batch.messages[0].body.data, len);
    store_batch_release(&batch);
    {
        const struct store_queue q = {.project = bytes_str("other"),
                                      .name = bytes_str("q")};
        const struct store_draft draft = {bytes_of(body, len), 300, 0};
        const struct store_post post = {.drafts = &draft, .count = 1};
        struct store_id id;

        ck_assert_int_eq(
            store_message_post(f->store, STORE_AT(f->c.now_ms), &q, &post, &id), ST_OK);
    }
    f->c.headers[API_HEADER_PROJECT_ID] = "other";
    ck_api(f, "DELETE", "/v2/queues/q/messages?pop=5", NULL, 500,
           "Internal server error");
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_api(f, "DELETE", "/v2/queues/q/messages?pop=5", NULL, 200, NULL);
}
