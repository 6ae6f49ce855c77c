/* Requests with an Idempotency-Key (docs/api.md 27). */
#include "support/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES "/v2/queues/q/messages"
#define CLAIMS   "/v2/queues/q/claims"
#define POP      "/v2/queues/q/messages?pop=2"
#define LETTERS  "{\"messages\":[{\"body\":\"a\"},{\"body\":\"b\"}]}"
#define KEY      "0123456789abcdef"

static void
use_key(struct api_fixture *f, const char *key)
{
    f->c.headers[API_HEADER_IDEMPOTENCY_KEY] = key;
}

/* Sends a request, whose response must be that of an earlier one. */
static void
ck_repeated(struct api_fixture *f, const char *method, const char *target,
            const char *body, int code, const char *response)
{
    ck_assert_int_eq(api_call(&f->c, method, target, body), code);
    ck_api_header(f, "Idempotent-Replay", "true");
    ck_assert_str_eq(api_body(&f->c), response);
}

static void
ck_messages(struct api_fixture *f, uint64_t total)
{
    struct store_totals totals;

    ck_assert_int_eq(store_totals(f->store, STORE_AT(f->c.now_ms), &totals), ST_OK);
    ck_assert_uint_eq(totals.messages, total);
}

TEST_CASE("key");

API_TEST(a_repeated_post_has_the_first_response)
{
    char *first, *location;

    use_key(f, KEY);
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    ck_api_header(f, "Idempotent-Replay", NULL);
    first = strdup(api_body(&f->c));
    location = strdup(api_response_header(&f->c, "Location"));
    ck_repeated(f, "POST", MESSAGES, LETTERS, 201, first);
    ck_api_header(f, "Location", location);
    ck_messages(f, 2);
    free(first);
    free(location);
}

API_TEST(a_repeated_claim_is_the_same_claim)
{
    char *first, *number;

    api_post_letters(f, "q", "abc");
    use_key(f, KEY);
    ck_api(f, "POST", CLAIMS "?limit=2", "{\"ttl\":100,\"grace\":60}", 201, NULL);
    first = strdup(api_body(&f->c));
    number = strdup(api_response_header(&f->c, "Claim-Number"));
    ck_repeated(f, "POST", CLAIMS "?limit=2", "{\"ttl\":100,\"grace\":60}", 201, first);
    ck_api_header(f, "Claim-Number", number);
    ck_assert(f->c.res.claim_stays); /* its client comes back for it */
    f->c.now_ms += 100000;
    ck_api(f, "POST", CLAIMS "?limit=2", "{\"ttl\":100,\"grace\":60}", 409,
           "Claim has ended");
    use_key(f, NULL);
    ck_api(f, "POST", CLAIMS "?limit=2", "{\"ttl\":100,\"grace\":60}", 201, NULL);
    ck_assert(!f->c.res.claim_stays);
    free(first);
    free(number);
}

API_TEST(a_repeated_pop_has_the_first_messages)
{
    char *first;

    api_post_letters(f, "q", "abc");
    use_key(f, KEY);
    ck_api(f, "DELETE", POP, NULL, 200, NULL);
    first = strdup(api_body(&f->c));
    ck_repeated(f, "DELETE", POP, NULL, 200, first);
    ck_messages(f, 1);
    free(first);
}

API_TEST(a_repeated_finish_has_the_first_response)
{
    const char *claim, *body;
    char *first, target[160];

    api_post_letters(f, "q", "ab");
    ck_api(f, "POST", CLAIMS, NULL, 201, NULL);
    claim = strrchr(api_response_header(&f->c, "Location"), '/') + 1;
    snprintf(target, sizeof(target), "/claimd/queues/q/claims/%s/finish", claim);
    body = arena_printf(&f->kept, "{\"delete\":[\"%s\",\"%s\"]}",
                        api_pick(f, "messages.0.id"), api_pick(f, "messages.1.id"))
               .data;
    use_key(f, KEY);
    ck_api(f, "POST", target, body, 200, NULL);
    first = strdup(api_body(&f->c));
    ck_repeated(f, "POST", target, body, 200, first);
    use_key(f, NULL);
    ck_api(f, "POST", target, body, 409, "Resource conflict");
    free(first);
}

API_TEST(each_part_of_a_request_makes_it_another_one)
{
    use_key(f, KEY);
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    /* Another body is a mistake. */
    ck_api(f, "POST", MESSAGES, "{\"messages\":[{\"body\":\"c\"}]}", 422,
           "Idempotency key reused");
    /* Another key, queue, query, method, client or project is another request. */
    use_key(f, "another key.");
    ck_assert_int_eq(api_call(&f->c, "POST", MESSAGES, LETTERS), 400); /* a blank */
    use_key(f, "another-key.");
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    use_key(f, KEY);
    ck_api(f, "POST", "/v2/queues/r/messages", LETTERS, 201, NULL);
    ck_api(f, "POST", MESSAGES "?x=1", LETTERS, 201, NULL);
    ck_api(f, "DELETE", MESSAGES "?pop=1", NULL, 200, NULL);
    ck_api_header(f, "Idempotent-Replay", NULL);
    f->c.headers[API_HEADER_CLIENT_ID] = "3381af92-2b9e-11e3-b191-71861300734d";
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    ck_api_header(f, "Idempotent-Replay", NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "another";
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    ck_api_header(f, "Idempotent-Replay", NULL);
    ck_messages(f, 11);
}

API_TEST(the_form_of_a_key)
{
    char longest[130];

    memset(longest, 'k', sizeof(longest));
    longest[129] = '\0';
    use_key(f, "1234567");
    ck_api(f, "POST", MESSAGES, LETTERS, 400, "Invalid API request");
    use_key(f, longest);
    ck_api(f, "POST", MESSAGES, LETTERS, 400, "Invalid API request");
    use_key(f, "");
    ck_api(f, "POST", MESSAGES, LETTERS, 400, "Invalid API request");
    use_key(f, "12345678\x7f");
    ck_api(f, "DELETE", POP, NULL, 400, "Invalid API request");
    use_key(f, "12345678\xc3\xa4");
    ck_api(f, "POST", CLAIMS, NULL, 400, "Invalid API request");
    ck_messages(f, 0);
    longest[128] = '\0';
    use_key(f, longest);
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    use_key(f, "!~345678");
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
}

API_TEST(a_refused_request_keeps_no_key)
{
    use_key(f, KEY);
    ck_api(f, "POST", MESSAGES, "{}", 400, "Invalid API request");
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    ck_api_header(f, "Idempotent-Replay", NULL);
}

API_TEST(a_claim_of_several_queues_has_no_key)
{
    api_post_letters(f, "q", "a");
    use_key(f, KEY);
    ck_api(f, "POST", "/claimd/claims?queue=q&queue=r", NULL, 400, "Invalid API request");
    ck_api(f, "POST", "/claimd/claims?queue=q&queue=q", NULL, 201, NULL);
    ck_api(f, "POST", "/claimd/claims?queue=q&queue=q", NULL, 201, NULL);
    ck_api_header(f, "Idempotent-Replay", "true");
}

API_TEST(other_requests_ignore_the_key)
{
    use_key(f, "short");
    ck_api(f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    ck_api(f, "GET", MESSAGES, NULL, 200, NULL);
    ck_api(f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
}

API_TEST(old_versions_have_keys_too)
{
    use_key(f, KEY);
    ck_api(f, "POST", "/v1/queues/q/messages", "[{\"body\":1,\"ttl\":300}]", 404, NULL);
    ck_api(f, "POST", "/v1.1/queues/q/messages",
           "{\"messages\":[{\"body\":1,\"ttl\":300}]}", 201, NULL);
    ck_api(f, "POST", "/v1.1/queues/q/messages",
           "{\"messages\":[{\"body\":1,\"ttl\":300}]}", 201, NULL);
    ck_api_header(f, "Idempotent-Replay", "true");
    ck_api(f, "POST", "/v1/queues/q/messages", "[{\"body\":1,\"ttl\":300}]", 201, NULL);
    ck_api(f, "POST", "/v1/queues/q/messages", "[{\"body\":1,\"ttl\":300}]", 201, NULL);
    ck_messages(f, 2);
}

API_TEST(a_request_that_still_waits_is_not_repeated)
{
    struct pending first, second;

    pending_prepare(&first, f, "POST", CLAIMS, "wait=20");
    first.req.headers[API_HEADER_IDEMPOTENCY_KEY] = bytes_str(KEY);
    ck_assert_int_eq(pending_fetch(&first), API_WAIT);
    ck_assert_int_eq(pending_fetch(&first), API_WAIT);
    pending_prepare(&second, f, "POST", CLAIMS, "wait=20");
    second.req.headers[API_HEADER_IDEMPOTENCY_KEY] = bytes_str(KEY);
    ck_assert_int_eq(pending_fetch(&second), API_SEND);
    ck_assert_int_eq(second.res.code, 409);
    ck_assert_str_eq(pending_header(&second, "Retry-After"), "1");
    pending_end(&second);
    pending_prepare(&second, f, "POST", CLAIMS, "wait=20");
    second.req.headers[API_HEADER_IDEMPOTENCY_KEY] = bytes_str(KEY);
    second.req.headers[API_HEADER_PROJECT_ID] = bytes_str("another");
    ck_assert_int_eq(pending_fetch(&second), API_WAIT); /* it is another request */
    pending_end(&second);
    api_post_letters(f, "q", "a");
    pending_finish(&first, 201);
    pending_end(&first);
    pending_prepare(&second, f, "POST", CLAIMS, "wait=20");
    second.req.headers[API_HEADER_IDEMPOTENCY_KEY] = bytes_str(KEY);
    ck_assert_int_eq(pending_fetch(&second), API_SEND);
    ck_assert_int_eq(second.res.code, 201);
    ck_assert_str_eq(pending_header(&second, "Idempotent-Replay"), "true");
    pending_end(&second);
}

API_TEST(the_key_of_a_client_that_hangs_up_is_free)
{
    struct pending first, second;

    pending_prepare(&first, f, "DELETE", POP, "wait=20");
    first.req.headers[API_HEADER_IDEMPOTENCY_KEY] = bytes_str(KEY);
    ck_assert_int_eq(pending_fetch(&first), API_WAIT);
    pending_end(&first);
    pending_prepare(&second, f, "DELETE", POP, "wait=20");
    second.req.headers[API_HEADER_IDEMPOTENCY_KEY] = bytes_str(KEY);
    ck_assert_int_eq(pending_fetch(&second), API_WAIT);
    pending_end(&second);
}

API_TEST(more_keys_than_the_limit)
{
    char key[] = "key-number-aa";

    if (api_fixture_on_redis()) /* which has no limit but its memory */
        return;
    for (int i = 0; i < API_FIXTURE_KEYS / 2; i++) { /* the share of one project */
        key[12] = (char)('a' + i);
        use_key(f, key);
        ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    }
    use_key(f, "one-too-many");
    ck_api(f, "POST", MESSAGES, LETTERS, 503, "Too many idempotency keys");
    ck_api_header(f, "Retry-After", "600");
    ck_api(f, "POST", CLAIMS, NULL, 503, NULL);
    f->c.now_ms += 600000 - 1001;
    ck_api(f, "POST", MESSAGES, LETTERS, 503, NULL);
    ck_api_header(f, "Retry-After", "2");
    f->c.now_ms += 1000;
    ck_api(f, "POST", MESSAGES, LETTERS, 503, NULL);
    ck_api_header(f, "Retry-After", "1");
    f->c.now_ms -= 600000 - 1;
    f->c.headers[API_HEADER_PROJECT_ID] = "another";
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    use_key(f, key);
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    f->c.now_ms += api_limits_default.idempotency_window * 1000;
    use_key(f, "one-too-many");
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
}

API_TEST(without_a_window_a_key_is_refused)
{
    struct api_limits limits = api_limits_default;
    struct api_fixture other;

    (void)f;
    limits.idempotency_window = 0;
    api_fixture_open_with(&other, &limits);
    use_key(&other, KEY);
    ck_api(&other, "POST", MESSAGES, LETTERS, 400, "Invalid API request");
    use_key(&other, NULL);
    ck_api(&other, "POST", MESSAGES, LETTERS, 201, NULL);
    api_fixture_close(&other);
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
    char *first;

    use_key(f, KEY);
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    first = strdup(api_body(&f->c));
    ck_repeated(f, "POST", MESSAGES, LETTERS, 201, first);
    free(first);
    ck_api(f, "POST", CLAIMS "?limit=1", NULL, 201, NULL);
    first = strdup(api_body(&f->c));
    ck_assert_ptr_nonnull(strstr(first, "\"body\":\"a\""));
    ck_repeated(f, "POST", CLAIMS "?limit=1", NULL, 201, first);
    free(first);
    ck_api(f, "DELETE", POP, NULL, 200, NULL);
    first = strdup(api_body(&f->c));
    ck_assert_ptr_nonnull(strstr(first, "\"body\":\"b\""));
    ck_repeated(f, "DELETE", POP, NULL, 200, first);
    free(first);
}

API_TEST_WITH(a_response_that_a_test_cuts_is_there_for_the_same_key,
              api_fixture_open_testapi(f, &api_limits_default))
{
    use_key(f, KEY);
    f->c.headers[API_HEADER_FAULT] = "cut=after";
    ck_assert_int_eq(api_call(&f->c, "POST", MESSAGES, LETTERS), 201);
    ck_assert_int_eq((int)f->c.res.fault.kind, FAULT_CUT_AFTER);
    f->c.headers[API_HEADER_FAULT] = NULL;
    ck_api(f, "POST", MESSAGES, LETTERS, 201, NULL);
    ck_api_header(f, "Idempotent-Replay", "true");
    f->c.headers[API_HEADER_FAULT] = "cut=after";
    ck_assert_int_eq(api_call(&f->c, "POST", CLAIMS, NULL), 201);
    f->c.headers[API_HEADER_FAULT] = NULL;
    ck_api(f, "POST", CLAIMS, NULL, 201, NULL);
    ck_api_header(f, "Idempotent-Replay", "true");
    ck_messages(f, 2);
}
