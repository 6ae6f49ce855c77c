#include "api/wire/decode_terms.h"

#include "api/wire/decode_integer.h"
#include "claimd/json/fault.h"

/* What a body said; SCAN_NONE: left out. Of members named twice the last one counts. */
struct members {
    struct json_scan_value ttl, grace, limit;
};

static bool
renews(enum terms_form form)
{
    return form == TERMS_RENEW || form == TERMS_RENEW_V1;
}

static enum status
refuse_document(struct bytes body, struct reason *why)
{
    if (json_fault(body, why))
        return ST_BAD_BODY;
    return reason_give(why, ST_BAD_BODY,
                       "the body must be an object with the members ttl and grace");
}

/* Reads the members of a body that must be an object. */
static enum status
read_members(struct bytes body, enum terms_form form, struct members *m,
             struct reason *why)
{
    struct json_scan scan;
    struct json_scan_name name;

    json_scan_begin(&scan, body);
    if (!json_scan_enter(&scan, SCAN_OBJECT))
        return refuse_document(body, why);
    while (json_scan_member(&scan, &name)) {
        struct json_scan_value *value = NULL;

        if (json_scan_name_is(&name, "ttl"))
            value = &m->ttl;
        else if (json_scan_name_is(&name, "grace"))
            value = &m->grace;
        else if (json_scan_name_is(&name, "limit") && !renews(form))
            value = &m->limit;
        (void)json_scan_value(&scan, value); /* json_scan_end() tells */
    }
    return json_scan_end(&scan) == ST_OK ? ST_OK : refuse_document(body, why);
}

static bool
left_out(const struct json_scan_value *value)
{
    return value->kind == SCAN_NONE || value->kind == SCAN_NULL;
}

/* The member that this form requires and does not have; NULL: none. */
static const char *
missing(enum terms_form form, const struct members *m)
{
    if ((form == TERMS_CLAIM_V1 || form == TERMS_RENEW_V1) && left_out(&m->ttl))
        return "ttl";
    return form == TERMS_CLAIM_V1 && left_out(&m->grace) ? "grace" : NULL;
}

/* Reads one of them; *st is the worst so far, with its reason. */
static void
read_integer(const struct json_scan_value *value, const char *name,
             const struct integer_range *range, int64_t *out, enum status *st,
             struct reason *why)
{
    enum status mine = decode_integer(value, range, out);

    if (mine != ST_OK && decode_worse(*st, mine) != *st)
        *st = integer_refuse(why, mine, name, value, range);
}

static enum status
read_integers(const struct members *m, enum terms_form form, const struct api_limits *l,
              struct decoded_terms *out, struct reason *why)
{
    const struct integer_range ttl = {l->min_claim_ttl, l->max_claim_ttl,
                                      "min_claim_ttl, max_claim_ttl"};
    /* SDKs renew a claim that they have fetched, which shows no grace, with 0. */
    const struct integer_range grace = {
        renews(form) ? 0 : l->min_claim_grace, l->max_claim_grace,
        renews(form) ? "max_claim_grace" : "min_claim_grace, max_claim_grace"};
    const struct integer_range limit = {1, l->max_messages_per_claim_or_pop,
                                        "max_messages_per_claim_or_pop"};
    int64_t messages = 0;
    enum status st = ST_OK;

    read_integer(&m->ttl, "ttl", &ttl, &out->terms.ttl_s, &st, why);
    read_integer(&m->grace, "grace", &grace, &out->terms.grace_s, &st, why);
    read_integer(&m->limit, "limit", &limit, &messages, &st, why);
    out->limit = (size_t)messages;
    return st;
}

enum status
decode_terms(struct bytes body, enum terms_form form, const struct api_limits *limits,
             struct decoded_terms *out, struct reason *why)
{
    const struct json_scan_value none = {SCAN_NONE, BYTES_NONE};
    struct members m = {none, none, none};
    struct decoded_terms decoded = {
        .terms = {limits->default_claim_ttl, limits->default_claim_grace}};
    enum status st;

    if (form == TERMS_RENEW_V1)
        decoded.terms.grace_s = 0;
    if (body.len > 0 || form != TERMS_CLAIM) {
        st = read_members(body, form, &m, why);
        if (st != ST_OK)
            return st;
    }
    if (missing(form, &m) != NULL)
        return reason_give(why, ST_BAD_BODY, "%s is required", missing(form, &m));
    st = read_integers(&m, form, limits, &decoded, why);
    if (st == ST_OK)
        *out = decoded;
    return st;
}
