#include "api/decode_terms.h"

#include "api/decode_integer.h"

/* Reads the members ttl and grace of a body that must be an object. */
static enum status
read_members(struct bytes body, struct scan_value *ttl, struct scan_value *grace)
{
    struct json_scan scan;
    struct scan_name name;

    scan_begin(&scan, body);
    if (!scan_enter(&scan, SCAN_OBJECT))
        return ST_BAD_BODY;
    while (scan_member(&scan, &name)) {
        struct scan_value *value = NULL;

        if (scan_name_is(&name, "ttl"))
            value = ttl;
        else if (scan_name_is(&name, "grace"))
            value = grace;
        (void)scan_value(&scan, value); /* scan_end() tells */
    }
    return scan_end(&scan);
}

/* SDKs renew a claim that they have fetched, which shows no grace, with 0 (API.md 7.2). */
static int64_t
least_grace(enum terms_form form, const struct api_limits *limits)
{
    return form == TERMS_RENEW || form == TERMS_RENEW_V1 ? 0 : limits->min_claim_grace;
}

static bool
left_out(const struct scan_value *value)
{
    return value->kind == SCAN_NONE || value->kind == SCAN_NULL;
}

/* Is a member missing that this form requires? */
static bool
incomplete(enum terms_form form, const struct scan_value *ttl,
           const struct scan_value *grace)
{
    if (form == TERMS_CLAIM_V1)
        return left_out(ttl) || left_out(grace);
    return form == TERMS_RENEW_V1 && left_out(ttl);
}

enum status
decode_terms(struct bytes body, enum terms_form form, const struct api_limits *limits,
             struct store_terms *out)
{
    struct scan_value ttl = {SCAN_NONE, BYTES_NONE}, grace = ttl;
    struct store_terms terms = {limits->default_claim_ttl, limits->default_claim_grace};
    enum status st;

    if (form == TERMS_RENEW_V1)
        terms.grace_s = 0;
    if (body.len > 0 || form != TERMS_CLAIM) {
        st = read_members(body, &ttl, &grace);
        if (st != ST_OK)
            return st;
    }
    if (incomplete(form, &ttl, &grace))
        return ST_BAD_BODY;
    st = decode_integer(&ttl, limits->min_claim_ttl, limits->max_claim_ttl, &terms.ttl_s);
    st = decode_worse(st, decode_integer(&grace, least_grace(form, limits),
                                         limits->max_claim_grace, &terms.grace_s));
    if (st == ST_OK)
        *out = terms;
    return st;
}
