/*
 * Signatures of pre-signed URLs (docs/api.md 17) and of web hooks (docs/api.md 20.6),
 * compared with those of Python's hmac, and the change of keys. Read claimd/auth/signer.h
 * next.
 */
#include "claimd/auth/signer.h"
#include "support/arena_fixture.h"

#include <string.h>

#define KEY   "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"

/* By another HMAC (Python's), over the text as the contract has it. */
#define BY_KEY   "e651788c25e1162e8153107626176a6a130c07ed6a696b751bfde34022ac9260"
#define BY_OTHER "35165fda0cc8508d1cf47994a6a8a3314d8776e84d7fd306211a9907400df7ab"

static const struct grant demo = {
    .paths = BYTES_LIT("/v2/queues/demo/claims,/v2/queues/demo/messages"),
    .methods = BYTES_LIT("GET,POST"),
    .project = BYTES_LIT("fake"),
    .expires = BYTES_LIT("2099-01-01T00:00:00")};

ARENA_CASE("signer");

/* One with these keys. */
static struct signer *
with_keys(const char *list)
{
    struct signer *s = NULL;
    struct reason why;
    size_t line;

    ck_assert_int_eq(signer_new(f.mem, &s), ST_OK);
    ck_assert_int_eq(signer_replace(s, bytes_str(list), &line, &why), ST_OK);
    return s;
}

static enum status
verify(struct signer *s, const struct grant *grant, const char *signature)
{
    return signer_verify(s, grant, bytes_str(signature), &f.arena);
}

#define SIGNER_TEST_WITH(id, make) MADE_TEST(id, struct signer, s, make, signer_free(s))
#define SIGNER_TEST(id)            SIGNER_TEST_WITH(id, with_keys(KEY))

SIGNER_TEST_WITH(a_grant_has_the_signature_of_the_contract, with_keys(KEY "\n"))
{
    char signature[SIGNATURE_DIGITS + 1];

    ck_assert_int_eq(signer_sign(s, &demo, &f.arena, signature), ST_OK);
    ck_assert_str_eq(signature, BY_KEY);
    ck_assert_int_eq(verify(s, &demo, BY_KEY), ST_OK);
    ck_assert_int_eq(verify(s, &demo, BY_OTHER), ST_NO_PATH);
}

SIGNER_TEST(the_order_of_its_lists_does_not_count)
{
    struct grant turned = demo;

    turned.paths = bytes_str("/v2/queues/demo/messages,/v2/queues/demo/claims");
    turned.methods = bytes_str("POST,GET");
    ck_assert_int_eq(verify(s, &turned, BY_KEY), ST_OK);
}

SIGNER_TEST(whatever_is_changed_in_it_has_another_one)
{
    struct grant g[] = {demo, demo, demo, demo, demo, demo, demo};
    char bad[SIGNATURE_DIGITS + 1] = BY_KEY;

    g[0].paths = bytes_str("/v2/queues/demo/messages");
    g[1].methods = bytes_str("DELETE,GET,POST");
    g[2].methods = bytes_str("GET,POST,");
    g[3].methods = BYTES_NONE;
    g[4].project = bytes_str("fakes");
    g[5].expires = bytes_str("2099-01-01T00:00:01");
    g[6].paths = bytes_str("");
    for (size_t i = 0; i < sizeof(g) / sizeof(g[0]); i++)
        ck_assert_int_eq(verify(s, &g[i], BY_KEY), ST_NO_PATH);
    for (size_t i = 0; i < SIGNATURE_DIGITS; i++) {
        bad[i] ^= 1;
        ck_assert_int_eq(verify(s, &demo, bad), ST_NO_PATH);
        bad[i] ^= 1;
    }
    ck_assert_int_eq(verify(s, &demo, ""), ST_NO_PATH);
    ck_assert_int_eq(verify(s, &demo, BY_KEY "0"), ST_NO_PATH);
}

SIGNER_TEST_WITH(of_several_keys_the_first_signs_and_each_verifies,
                 with_keys("# the new one\n" OTHER "\r\n\n  " KEY "  \n"))
{
    char signature[SIGNATURE_DIGITS + 1];
    struct reason why;
    size_t line;

    ck_assert_int_eq(signer_sign(s, &demo, &f.arena, signature), ST_OK);
    ck_assert_str_eq(signature, BY_OTHER);
    ck_assert_int_eq(verify(s, &demo, BY_KEY), ST_OK);
    ck_assert_int_eq(signer_replace(s, bytes_str(OTHER), &line, &why), ST_OK);
    ck_assert_int_eq(verify(s, &demo, BY_KEY), ST_NO_PATH);
    ck_assert_int_eq(verify(s, &demo, BY_OTHER), ST_OK);
}

START_TEST(without_a_key_nothing_is_signed_and_nothing_is_right)
{
    struct signer *s = NULL;
    char signature[SIGNATURE_DIGITS + 1];

    ck_assert_int_eq(signer_new(f.mem, &s), ST_OK);
    ck_assert_int_eq(signer_sign(s, &demo, &f.arena, signature), ST_NOT_FOUND);
    ck_assert_int_eq(verify(s, &demo, BY_KEY), ST_NO_PATH);
    ck_assert_int_eq(verify(s, &demo, ""), ST_NO_PATH);
    signer_free(s);
}

SIGNER_TEST(keys_that_cannot_be_taken_change_nothing)
{
    static const struct {
        const char *list;
        size_t line;
        const char *why;
    } rows[] = {
        {"", 0, "the file has no key"},
        {"# nothing\n\n", 0, "the file has no key"},
        {KEY "\nshort", 2, "a key must be 32 to 256 characters"},
        {"0123456789abcdef 0123456789abcde\x7f", 1, "a key must be 32 to 256 characters"},
        {KEY "\n" KEY "\n" KEY "\n" KEY "\n" KEY "\n" KEY "\n" KEY "\n" KEY "\n" KEY, 9,
         "the file has more than 8 keys"},
    };
    struct reason why;
    size_t line;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        reason_init(&why);
        ck_assert_int_eq(signer_replace(s, bytes_str(rows[i].list), &line, &why),
                         ST_BAD_VALUE);
        ck_assert_uint_eq(line, rows[i].line);
        ck_assert_msg(strstr(why.text, rows[i].why) != NULL, "%s", why.text);
    }
    ck_assert_int_eq(verify(s, &demo, BY_KEY), ST_OK);
}

/* By another HMAC, likewise. */
#define VOUCHED_BY_KEY "v1,zGAPGBlM3ZQ420YhP4w9ekE/wStdxLzObpA98ii4vR0="
#define VOUCHED_SHORT                                                                    \
    "v1,CppBCLb2V/zQILn07RdiKVDsijjPb9QqNbC+4vMXzXk=" /* of one byte each */
#define VOUCHED_BY_OTHER "v1,PPaTi/WYcVuJWJwO6hzzrsTJBN9+6NeZ+EZSxDupeew="

START_TEST(a_web_hook_is_vouched_for_by_each_key)
{
    const struct webhook webhook = {.project = BYTES_LIT("fake"),
                                    .id = BYTES_LIT("5-7"),
                                    .body = BYTES_LIT("{\"a\":1}"),
                                    .sent_s = 1700000000};
    const struct webhook one_byte_each = {.project = BYTES_LIT("p"),
                                          .id = BYTES_LIT("5"),
                                          .body = BYTES_LIT("1"),
                                          .sent_s = 1700000000};
    struct signer *s = with_keys(KEY);
    struct webhook changed[] = {webhook, webhook, webhook, webhook};
    char out[WEBHOOK_SIGNATURES_CAP];

    ck_assert_int_eq(signer_sign_webhook(s, &webhook, out), ST_OK);
    ck_assert_str_eq(out, VOUCHED_BY_KEY);
    ck_assert_int_eq(signer_sign_webhook(s, &one_byte_each, out), ST_OK);
    ck_assert_str_eq(out, VOUCHED_SHORT);
    changed[0].project = bytes_str("");
    changed[1].id = bytes_str("5-8");
    changed[2].body = bytes_str("{\"a\":2}");
    changed[3].sent_s++;
    for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
        ck_assert_int_eq(signer_sign_webhook(s, &changed[i], out), ST_OK);
        ck_assert_str_ne(out, VOUCHED_BY_KEY);
    }
    signer_free(s);
    s = with_keys(OTHER "\n" KEY);
    ck_assert_int_eq(signer_sign_webhook(s, &webhook, out), ST_OK);
    ck_assert_str_eq(out, VOUCHED_BY_OTHER " " VOUCHED_BY_KEY);
    signer_free(s);
}

START_TEST(without_keys_nothing_is_signed)
{
    const struct webhook webhook = {.project = BYTES_LIT("fake")};
    char out[WEBHOOK_SIGNATURES_CAP];
    struct signer *s;

    ck_assert_int_eq(signer_new(f.mem, &s), ST_OK);
    ck_assert_int_eq(signer_sign_webhook(s, &webhook, out), ST_NOT_FOUND);
    signer_free(s);
}

START_TEST(as_many_vouch_as_there_are_keys)
{
    const struct webhook webhook = {.project = BYTES_LIT("fake")};
    char list[SIGNER_KEYS_MAX * 40] = "", out[WEBHOOK_SIGNATURES_CAP];
    struct signer *s;

    for (int i = 0; i < SIGNER_KEYS_MAX; i++)
        strcat(list, KEY "\n");
    s = with_keys(list);
    ck_assert_int_eq(signer_sign_webhook(s, &webhook, out), ST_OK);
    ck_assert_uint_eq(strlen(out), WEBHOOK_SIGNATURES_CAP - 1);
    signer_free(s);
}
