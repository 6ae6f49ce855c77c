/*
 * The terms of a claim: taken, refused and read as a naive reader of jansson's tree
 * would.
 *
 * Input: one byte for the form (a digit), then the body.
 */
#include "fuzz/fuzz.h"
#include "fuzz/reference.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum terms_form forms[] = {TERMS_CLAIM, TERMS_RENEW, TERMS_CLAIM_V1,
                                            TERMS_RENEW_V1};
    struct decoded_terms said = {.terms = {-1, -1}}, expected_said = said;
    struct reason why;
    enum status st, expected;
    enum terms_form form;
    struct bytes body;
    bool comparable;
    json_t *tree;

    if (size == 0)
        return 0;
    form = forms[data[0] % 4];
    body = fuzz_input(data + 1, size - 1);
    tree = reference_tree(body, &comparable);
    reason_init(&why);
    st = decode_terms(body, form, &api_limits_default, &said, &why);
    fuzz_check(st == ST_OK || why.text[0] != '\0', "refused without a reason");
    expected =
        reference_terms(tree, body.len > 0, form, &api_limits_default, &expected_said);
    json_decref(tree);
    if (!comparable)
        return 0;
    fuzz_check(st == expected, "%s instead of %s", status_name(st),
               status_name(expected));
    fuzz_check(said.terms.ttl_s == expected_said.terms.ttl_s &&
                   said.terms.grace_s == expected_said.terms.grace_s &&
                   said.limit == expected_said.limit,
               "ttl %lld, grace %lld, limit %zu", (long long)said.terms.ttl_s,
               (long long)said.terms.grace_s, said.limit);
    return 0;
}
