#include "fuzz/reference.h"

json_t *
reference_tree(struct bytes text, bool *comparable)
{
    json_error_t error;
    json_t *tree = json_loadb(text.data, text.len, JSON_ALLOW_NUL, &error);

    *comparable =
        (text.len == 0 || memchr(text.data, '\0', text.len) == NULL) &&
        (tree != NULL || json_error_code(&error) != json_error_null_byte_in_key);
    return tree;
}

/* ST_BAD_BODY outweighs ST_BAD_VALUE outweighs ST_OK. */
static enum status
worse(enum status a, enum status b)
{
    if (a == ST_BAD_BODY || b == ST_BAD_BODY)
        return ST_BAD_BODY;
    return a == ST_OK ? b : a;
}

static bool
left_out(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return value == NULL || json_is_null(value);
}

static enum status
check_integer(const json_t *object, const char *name, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(object, name);

    if (left_out(object, name))
        return ST_OK;
    if (json_is_boolean(value))
        return ST_BAD_VALUE;
    if (!json_is_integer(value))
        return ST_BAD_BODY;
    return json_integer_value(value) < min || json_integer_value(value) > max
               ? ST_BAD_VALUE
               : ST_OK;
}

int64_t
reference_integer(const json_t *object, const char *name, int64_t when_left_out)
{
    return left_out(object, name) ? when_left_out
                                  : json_integer_value(json_object_get(object, name));
}

/* ---------------------------------------------------------------------- posts */

static enum status
check_message(const json_t *message, enum post_form form, const struct api_limits *limits)
{
    enum status st;

    if (!json_is_object(message) || json_object_get(message, "body") == NULL)
        return ST_BAD_BODY;
    if (form == POST_V1 && left_out(message, "ttl"))
        return ST_BAD_BODY;
    st = check_integer(message, "ttl", limits->min_message_ttl, limits->max_message_ttl);
    if (form == POST_V2)
        st = worse(st, check_integer(message, "delay", 0, limits->max_message_delay));
    return st;
}

const json_t *
reference_messages(const json_t *tree, enum post_form form)
{
    return form == POST_V1 ? tree : json_object_get(tree, "messages");
}

enum status
reference_post(const json_t *tree, enum post_form form, const struct api_limits *limits)
{
    const json_t *messages;
    enum status st = ST_OK;

    if (tree == NULL || (form == POST_V1 && !json_is_array(tree)))
        return ST_BAD_BODY;
    messages = reference_messages(tree, form);
    if (messages == NULL)
        return ST_BAD_VALUE;
    if (!json_is_array(messages))
        return ST_BAD_BODY;
    for (size_t i = 0; i < json_array_size(messages); i++)
        st = worse(st, check_message(json_array_get(messages, i), form, limits));
    return json_array_size(messages) == 0 ? ST_BAD_VALUE : st;
}

/* ---------------------------------------------------------------------- terms */

enum status
reference_terms(const json_t *tree, bool has_body, enum terms_form form,
                const struct api_limits *limits, struct decoded_terms *out)
{
    int64_t grace_s = form == TERMS_RENEW_V1 ? 0 : STORE_UNSET;
    bool renews = form == TERMS_RENEW || form == TERMS_RENEW_V1;
    int64_t least_grace = renews ? 0 : limits->min_claim_grace;
    enum status st;

    if (!has_body && form == TERMS_CLAIM) {
        *out = (struct decoded_terms){.terms = {STORE_UNSET, grace_s}};
        return ST_OK;
    }
    if (!json_is_object(tree))
        return ST_BAD_BODY;
    if (form == TERMS_CLAIM_V1 && left_out(tree, "grace"))
        return ST_BAD_BODY;
    if ((form == TERMS_CLAIM_V1 || form == TERMS_RENEW_V1) && left_out(tree, "ttl"))
        return ST_BAD_BODY;
    st = worse(check_integer(tree, "ttl", limits->min_claim_ttl, limits->max_claim_ttl),
               check_integer(tree, "grace", least_grace, limits->max_claim_grace));
    if (!renews)
        st = worse(
            st, check_integer(tree, "limit", 1, limits->max_messages_per_claim_or_pop));
    if (st == ST_OK)
        *out = (struct decoded_terms){
            .terms = {reference_integer(tree, "ttl", STORE_UNSET),
                      reference_integer(tree, "grace", grace_s)},
            .limit = renews ? 0 : (size_t)reference_integer(tree, "limit", 0)};
    return st;
}
