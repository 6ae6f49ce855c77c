/*
 * How the terms of a claim and of a renewal (ttl, grace, limit) are decoded and checked
 * against the options (docs/api.md 9.1, 9.3, 14.5). Read src/api/wire/decode.h next.
 */
#include "api/wire/decode.h"
#include "support/check_main.h"

static struct decoded_terms said;
static struct reason why;

static enum status
decode(enum terms_form form, const char *body)
{
    said = (struct decoded_terms){.terms = {-7, -7}, .limit = 7};
    reason_init(&why);
    return decode_terms(bytes_str(body), form, &api_limits_default, &said, &why);
}

static void
gives(enum terms_form form, const char *body, int64_t ttl_s, int64_t grace_s)
{
    ck_assert_int_eq(decode(form, body), ST_OK);
    ck_assert_int_eq(said.terms.ttl_s, ttl_s);
    ck_assert_int_eq(said.terms.grace_s, grace_s);
}

static void
refused(enum terms_form form, const char *body, enum status st)
{
    ck_assert_msg(decode(form, body) == st, "%s", body);
    ck_assert_int_eq(said.terms.ttl_s, -7); /* results are written only on success */
}

START_TEST(terms_left_out_are_unset)
{
    gives(TERMS_CLAIM, NULL, STORE_UNSET, STORE_UNSET);
    gives(TERMS_CLAIM, "", STORE_UNSET, STORE_UNSET);
    gives(TERMS_CLAIM, "{}", STORE_UNSET, STORE_UNSET);
    gives(TERMS_CLAIM, "{\"ttl\":100}", 100, STORE_UNSET);
    gives(TERMS_CLAIM, "{\"grace\":100}", STORE_UNSET, 100);
    gives(TERMS_CLAIM, "{\"ttl\":null,\"grace\":null}", STORE_UNSET, STORE_UNSET);
    gives(TERMS_RENEW, "{}", STORE_UNSET, STORE_UNSET);
    gives(TERMS_RENEW, "{\"ttl\":60,\"ttl\":61,\"x\":[{}]}", 61, STORE_UNSET);
}

START_TEST(a_renewal_needs_a_body)
{
    refused(TERMS_RENEW, NULL, ST_BAD_BODY);
    refused(TERMS_RENEW, "", ST_BAD_BODY);
}

START_TEST(both_terms_are_within_their_bounds)
{
    gives(TERMS_CLAIM, "{\"ttl\":60,\"grace\":60}", 60, 60);
    gives(TERMS_CLAIM, "{\"ttl\":43200,\"grace\":43200}", 43200, 43200);
    refused(TERMS_CLAIM, "{\"ttl\":59}", ST_BAD_VALUE);
    refused(TERMS_CLAIM, "{\"ttl\":43201}", ST_BAD_VALUE);
    refused(TERMS_CLAIM, "{\"ttl\":-60}", ST_BAD_VALUE);
    refused(TERMS_CLAIM, "{\"ttl\":9223372036854775807}", ST_BAD_VALUE);
    refused(TERMS_CLAIM, "{\"grace\":59}", ST_BAD_VALUE);
    refused(TERMS_CLAIM, "{\"grace\":43201}", ST_BAD_VALUE);
    refused(TERMS_CLAIM_V1, "{\"ttl\":60,\"grace\":59}", ST_BAD_VALUE);
    refused(TERMS_CLAIM, "{\"ttl\":true}", ST_BAD_VALUE);
}

START_TEST(a_renewal_takes_any_grace_up_to_the_maximum)
{
    static const enum terms_form forms[] = {TERMS_RENEW, TERMS_RENEW_V1};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        gives(forms[i], "{\"grace\":0,\"ttl\":600}", 600, 0);
        gives(forms[i], "{\"grace\":59,\"ttl\":60}", 60, 59);
        gives(forms[i], "{\"grace\":43200,\"ttl\":60}", 60, 43200);
        refused(forms[i], "{\"grace\":-1,\"ttl\":60}", ST_BAD_VALUE);
        refused(forms[i], "{\"grace\":43201,\"ttl\":60}", ST_BAD_VALUE);
    }
}

START_TEST(wrong_types_and_documents_are_bad_bodies)
{
    refused(TERMS_CLAIM, "{\"ttl\":\"60\"}", ST_BAD_BODY);
    refused(TERMS_CLAIM, "{\"ttl\":60.5}", ST_BAD_BODY);
    refused(TERMS_CLAIM, "{\"ttl\":1,\"grace\":[]}", ST_BAD_BODY);
    refused(TERMS_CLAIM, "{\"ttl\":9223372036854775808}", ST_BAD_BODY);
    refused(TERMS_CLAIM, "[]", ST_BAD_BODY);
    refused(TERMS_CLAIM, "\"ttl\"", ST_BAD_BODY);
    refused(TERMS_CLAIM, "123", ST_BAD_BODY);
    refused(TERMS_CLAIM, "{\"ttl\": 60,", ST_BAD_BODY);
    refused(TERMS_CLAIM, "{\"ttl\":1} x", ST_BAD_BODY);
    refused(TERMS_CLAIM, "{\"ttl\":\xff}", ST_BAD_BODY);
    refused(TERMS_CLAIM, " ", ST_BAD_BODY);
}

START_TEST(v1_requires_its_terms)
{
    gives(TERMS_CLAIM_V1, "{\"ttl\":60,\"grace\":70}", 60, 70);
    refused(TERMS_CLAIM_V1, NULL, ST_BAD_BODY);
    refused(TERMS_CLAIM_V1, "{}", ST_BAD_BODY);
    refused(TERMS_CLAIM_V1, "{\"ttl\":60}", ST_BAD_BODY);
    refused(TERMS_CLAIM_V1, "{\"grace\":60}", ST_BAD_BODY);
    gives(TERMS_RENEW_V1, "{\"ttl\":200}", 200, 0);
    gives(TERMS_RENEW_V1, "{\"ttl\":120,\"grace\":100}", 120, 100);
    refused(TERMS_RENEW_V1, "{}", ST_BAD_BODY);
    refused(TERMS_RENEW_V1, "{\"grace\":60}", ST_BAD_BODY);
    refused(TERMS_RENEW_V1, NULL, ST_BAD_BODY);
}

START_TEST(a_claim_may_say_how_many_messages_it_wants)
{
    static const enum terms_form claims[] = {TERMS_CLAIM, TERMS_CLAIM_V1};

    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        gives(claims[i], "{\"ttl\":60,\"grace\":60,\"limit\":20}", 60, 60);
        ck_assert_uint_eq(said.limit, 20);
        gives(claims[i], "{\"ttl\":60,\"grace\":60,\"limit\":21}", 60, 60);
        ck_assert_uint_eq(said.limit, 20);
        gives(claims[i], "{\"ttl\":60,\"grace\":60,\"limit\":9223372036854775807}", 60,
              60);
        ck_assert_uint_eq(said.limit, 20);
        gives(claims[i], "{\"ttl\":60,\"grace\":60,\"limit\":null}", 60, 60);
        ck_assert_uint_eq(said.limit, 0);
        refused(claims[i], "{\"ttl\":60,\"grace\":60,\"limit\":0}", ST_BAD_VALUE);
        refused(claims[i], "{\"ttl\":60,\"grace\":60,\"limit\":true}", ST_BAD_VALUE);
        refused(claims[i], "{\"ttl\":60,\"grace\":60,\"limit\":\"5\"}", ST_BAD_BODY);
    }
    gives(TERMS_CLAIM, NULL, STORE_UNSET, STORE_UNSET);
    ck_assert_uint_eq(said.limit, 0);
    gives(TERMS_RENEW, "{\"limit\":\"x\"}", STORE_UNSET,
          STORE_UNSET); /* nothing is claimed */
    ck_assert_uint_eq(said.limit, 0);
}

/* Refused, and for this reason. */
static void
expect_reason(enum terms_form form, const char *body, const char *reason)
{
    ck_assert_msg(decode(form, body) != ST_OK, "%s", body);
    ck_assert_str_eq(why.text, reason);
}

START_TEST(a_refusal_names_the_member_and_the_options)
{
    expect_reason(TERMS_CLAIM, "{\"ttl\":59}",
                  "ttl is 59. It must be an integer between 60 and 43200 (min_claim_ttl, "
                  "max_claim_ttl)");
    expect_reason(
        TERMS_CLAIM, "{\"ttl\":59,\"grace\":5.0}",
        "grace is 5.0. It must be an integer between 60 and 43200 (min_claim_grace, "
        "max_claim_grace)");
    expect_reason(
        TERMS_CLAIM, "{\"grace\":59}",
        "grace is 59. It must be an integer between 60 and 43200 (min_claim_grace, "
        "max_claim_grace)");
    expect_reason(
        TERMS_RENEW, "{\"grace\":43201}",
        "grace is 43201. It must be an integer between 0 and 43200 (max_claim_grace)");
    expect_reason(TERMS_CLAIM, "{\"limit\":0}",
                  "limit is 0. It must be an integer between 1 and 20 "
                  "(max_messages_per_claim_or_pop)");
    expect_reason(TERMS_CLAIM_V1, "{\"ttl\":60}", "grace is required");
    expect_reason(TERMS_RENEW_V1, "{\"grace\":60}", "ttl is required");
    expect_reason(TERMS_RENEW, "", "a body is required");
    expect_reason(TERMS_CLAIM, "[60]",
                  "the body must be an object with the members ttl and grace");
    expect_reason(
        TERMS_CLAIM, "{\"ttl\":60,}",
        "the body is not JSON: line 1, column 11: the name of a member is expected "
        "instead of '}'");
}
