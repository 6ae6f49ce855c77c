#include "api/wire/subscription.h"
#include "api/wire/decode.h"
#include "claimd/base/clock.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"
#include "claimd/json/tree.h"
#include "claimd/store/retry_policy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void
subscription_write(struct buf *out, struct bytes source,
                   const struct store_subscription *subscription)
{
    buf_byte(out, '{');
    json_write_text(out, "id", store_id_bytes(&subscription->id));
    json_write_text(out, "source", source);
    json_write_text(out, "subscriber", subscription->subscriber);
    json_write_i64(out, "ttl", subscription->ttl_s);
    json_write_i64(out, "age", subscription->age_s);
    json_write_raw(out, "options", subscription->options);
    json_write_flag(out, "confirmed", subscription->confirmed);
    buf_byte(out, '}');
}

void
subscription_write_progress(struct buf *out, int64_t now_ms,
                            const struct clock *time_base,
                            const struct store_subscription *subscription)
{
    const struct store_progress *p = &subscription->progress;

    buf_byte(out, '{');
    json_write_text(out, "id", store_id_bytes(&subscription->id));
    json_write_flag(out, "confirmed", subscription->confirmed);
    json_write_i64(out, "ttl", subscription->ttl_s);
    json_write_i64(out, "age", subscription->age_s);
    json_write_u64(out, "delivered", p->delivered);
    json_write_u64(out, "given_up", p->permanent_failures);
    json_write_u64(out, "fallen_out", p->dropped);
    json_write_u64(out, "behind", p->behind);
    json_write_u64(out, "failures", p->failures);
    json_write_u64(out, "failed", p->failed);
    json_write_flag(out, "delivering", p->leased);
    if (p->next_try_ms > now_ms)
        json_write_time(out, "next_try", clock_to_wall_ms(time_base, p->next_try_ms));
    else
        json_write_raw(out, "next_try", bytes_str("null")); /* due, or without messages */
    buf_byte(out, '}');
}

/* ------------------------------------------------------------------ reading */

/* 9999-12-31T23:59:59Z, the last second of a year with four digits. */
#define LAST_SECOND INT64_C(253402300799)

enum { SUBSCRIBER, TTL, OPTIONS, MEMBERS };

/* Reads the members of a body, which must be an object. */
static enum status
read_members(struct bytes body, const char *const *names, size_t count,
             struct json_scan_value *members, struct json_names *seen, struct reason *why)
{
    if (body.len == 0)
        return reason_give(why, ST_BAD_VALUE, "a body is required");
    if (json_fault(body, why))
        return ST_BAD_BODY;
    if (json_members_read(body, names, count, members, seen) != ST_OK)
        return reason_give(why, ST_BAD_VALUE, "the body must be an object");
    return ST_OK;
}

/* ------------------------------------------------------------------ the subscriber */

/*
 * True if a URI has no blanks, no characters that could end a line of a request or a
 * mail, and no backslashes, which some parsers read as slashes and so see another host.
 */
static bool
is_clean(struct bytes uri)
{
    for (size_t i = 0; i < uri.len; i++)
        if ((unsigned char)uri.data[i] <= ' ' || uri.data[i] == 0x7f ||
            uri.data[i] == '\\')
            return false;
    return true;
}

static const char *
types_text(unsigned types)
{
    static const char *const texts[] = {
        "none",   "http",           "https",           "http or https",
        "mailto", "http or mailto", "https or mailto", "http, https or mailto"};

    return texts[types & ((1U << SUBSCRIBER_TYPES) - 1)];
}

static enum subscriber_type
find_type(struct bytes scheme)
{
    static const char *const names[] = {"http", "https", "mailto"};
    unsigned i = 0;

    while (i < SUBSCRIBER_TYPES && !bytes_equal_nocase(scheme, bytes_str(names[i])))
        i++;
    return (enum subscriber_type)i;
}

/* True if the part behind the scheme has a host (//HOST...) or a mail address. */
static bool
has_address(enum subscriber_type type, struct bytes rest)
{
    if (type == SUBSCRIBER_MAILTO)
        return bytes_cut(&rest, '?').len > 0;
    return rest.len > 2 && rest.data[0] == '/' && rest.data[1] == '/' &&
           strchr("/?#:@", rest.data[2]) == NULL;
}

static enum status
check_uri(struct bytes uri, const struct api_limits *limits, struct reason *why)
{
    static const struct bytes trust = BYTES_LIT("trust+");
    struct bytes rest = uri, scheme = bytes_cut(&rest, ':');
    enum subscriber_type type = find_type(scheme);

    if (uri.len > STORE_SUBSCRIBER_MOST)
        return reason_give(why, ST_BAD_VALUE,
                           "subscriber is %zu bytes long. The maximum is %d bytes",
                           uri.len, STORE_SUBSCRIBER_MOST);
    if (!is_clean(uri))
        return reason_give(why, ST_BAD_VALUE,
                           "subscriber must be a URI without spaces, control characters "
                           "and backslashes");
    if (bytes_present(rest) && scheme.len > trust.len &&
        bytes_equal_nocase(bytes_of(scheme.data, trust.len), trust))
        return reason_give(why, ST_BAD_VALUE,
                           "subscriber must not begin with trust+. The server does not "
                           "support trusts of Keystone");
    if (!bytes_present(rest) || type == SUBSCRIBER_TYPES ||
        (limits->subscriber_types >> type & 1) == 0)
        return reason_give(why, ST_BAD_VALUE,
                           "the scheme of subscriber must be %s (subscriber_types)",
                           types_text(limits->subscriber_types));
    if (!has_address(type, rest))
        return reason_give(why, ST_BAD_VALUE,
                           type == SUBSCRIBER_MAILTO
                               ? "subscriber has no address. Use mailto:ADDRESS"
                               : "subscriber has no host. Use http://HOST/...");
    return ST_OK;
}

static enum status
read_subscriber(const struct json_scan_value *value, const struct api_limits *limits,
                struct arena *arena, struct bytes *out, struct reason *why)
{
    struct bytes uri;
    enum status st;

    if (json_left_out(value))
        return ST_OK;
    if (value->kind != SCAN_STRING)
        return reason_give(why, ST_BAD_VALUE, "subscriber is %s. It must be a string",
                           json_received(value).text);
    st = decode_string(value, arena, &uri);
    if (st == ST_OK)
        st = check_uri(uri, limits, why);
    if (st == ST_OK)
        *out = uri;
    return st;
}

/* ------------------------------------------------------------------ ttl, options */

static enum status
check_policy(struct bytes options, struct reason *why)
{
    struct json_scan_value policy = json_member(options, "_retry_policy");
    json_t *tree = NULL;
    enum status st;

    if (json_left_out(&policy))
        return ST_OK;
    if (policy.kind != SCAN_OBJECT)
        return reason_give(why, ST_BAD_VALUE, "_retry_policy is %s. It must be an object",
                           json_received(&policy).text);
    st = json_tree_read(policy.text, &tree);
    if (st == ST_BAD_BODY) /* a name with a NUL, which jansson cannot keep */
        return reason_give(why, ST_BAD_VALUE,
                           "_retry_policy has a member with a NUL character in its name");
    if (st == ST_OK)
        st = retry_policy_check(tree, why);
    json_decref(tree);
    return st;
}

static enum status
read_options(const struct json_scan_value *value, struct bytes *out, struct reason *why)
{
    enum status st;

    if (json_left_out(value))
        return ST_OK;
    if (value->kind != SCAN_OBJECT)
        return reason_give(why, ST_BAD_VALUE, "options is %s. It must be an object",
                           json_received(value).text);
    if (value->text.len > STORE_SUBSCRIBER_MOST)
        return reason_give(why, ST_BAD_VALUE,
                           "options is %zu bytes long. The maximum is %d bytes",
                           value->text.len, STORE_SUBSCRIBER_MOST);
    st = check_policy(value->text, why);
    if (st == ST_OK)
        *out = value->text;
    return st;
}

enum status
subscription_check(struct bytes subscriber, struct bytes options,
                   const struct api_limits *limits, struct reason *why)
{
    enum status st = check_uri(subscriber, limits, why);

    return st == ST_OK ? check_policy(options, why) : st;
}

/* ------------------------------------------------------------------ drafts */

/* Reads the members of a draft over the defaults in *out. change: it need not have all
 * members. */
static enum status
read_draft(struct bytes body, bool change, const struct api_limits *limits,
           int64_t now_ms, struct arena *arena, struct store_subscription_draft *out,
           struct reason *why)
{
    static const char *const names[MEMBERS] = {"subscriber", "ttl", "options"};
    struct json_scan_value m[MEMBERS];
    struct json_names seen;
    const struct integer_range ttl = {SUBSCRIPTION_TTL_MIN, LAST_SECOND - now_ms / 1000,
                                      "the end of the year 9999"};
    struct store_subscription_draft draft = *out;
    enum status st = read_members(body, names, MEMBERS, m, &seen, why);

    if (st != ST_OK)
        return st;
    if (!change && json_left_out(&m[SUBSCRIBER]))
        return reason_give(why, ST_BAD_VALUE, "subscriber is required");
    if (seen.count == 0)
        return reason_give(why, ST_BAD_VALUE, "the body has no member to change");
    if (json_left_out(&m[SUBSCRIBER]) && json_left_out(&m[TTL]) &&
        json_left_out(&m[OPTIONS]))
        return reason_give(why, ST_NO_KNOWN_MEMBER,
                           "the body has no member to change. The members to change are "
                           "subscriber, ttl and options");
    st = read_subscriber(&m[SUBSCRIBER], limits, arena, &draft.subscriber, why);
    if (st == ST_OK && decode_integer(&m[TTL], &ttl, &draft.ttl_s) != ST_OK)
        st = integer_refuse(why, ST_BAD_VALUE, "ttl", &m[TTL], &ttl);
    if (st == ST_OK)
        st = read_options(&m[OPTIONS], &draft.options, why);
    if (st == ST_OK)
        *out = draft;
    return st;
}

enum status
decode_subscription(struct bytes body, const struct api_limits *limits, int64_t now_ms,
                    struct arena *arena, struct store_subscription_draft *out,
                    struct reason *why)
{
    *out = (struct store_subscription_draft){.subscriber = BYTES_NONE,
                                             .options = BYTES_LIT("{}"),
                                             .ttl_s = limits->default_subscription_ttl};
    return read_draft(body, false, limits, now_ms, arena, out, why);
}

enum status
decode_subscription_change(struct bytes body, const struct api_limits *limits,
                           int64_t now_ms, struct arena *arena,
                           struct store_subscription_draft *out, struct reason *why)
{
    *out = (struct store_subscription_draft){BYTES_NONE, BYTES_NONE, STORE_UNSET};
    return read_draft(body, true, limits, now_ms, arena, out, why);
}

enum status
decode_confirmation(struct bytes body, bool *out, struct reason *why)
{
    static const char *const name = "confirmed";
    struct json_scan_value value;
    enum status st = read_members(body, &name, 1, &value, NULL, why);

    if (st != ST_OK)
        return st;
    if (value.kind != SCAN_TRUE && value.kind != SCAN_FALSE)
        return reason_give(why, ST_BAD_VALUE, "confirmed is %s. It must be true or false",
                           json_received(&value).text);
    *out = value.kind == SCAN_TRUE;
    return ST_OK;
}

/* ------------------------------------------------------------------ retry policies */

#define DEFAULT(name, value) name##_default = value,
#define INTEGER(name, value) #name,
#define BACKOFF(name)        #name,

enum { RETRY_INTEGERS(DEFAULT) };

/* A member that is null counts as left out. */
static const json_t *
policy_member(const json_t *policy, const char *name)
{
    const json_t *value = json_object_get(policy, name);

    return json_is_null(value) ? NULL : value;
}

static enum status
refuse_policy(struct reason *why, const char *name, const json_t *value, const char *what)
{
    return reason_give(why, ST_BAD_VALUE, "_retry_policy.%s is %s. It must be %s", name,
                       json_tree_received(value).text, what);
}

enum status
retry_policy_check(const json_t *policy, struct reason *why)
{
    static const char *const integers[] = {RETRY_INTEGERS(INTEGER)};
    static const char *const backoffs[] = {RETRY_BACKOFFS(BACKOFF)};
    const size_t known = sizeof(backoffs) / sizeof(backoffs[0]);
    const json_t *flag = policy_member(policy, "ignore_subscription_override");
    const json_t *backoff = policy_member(policy, "retry_backoff_function");
    const json_t *minimum = policy_member(policy, "minimum_delay");
    const json_t *maximum = policy_member(policy, "maximum_delay");
    int64_t least = minimum_delay_default, most = maximum_delay_default;
    size_t i = 0;

    if (!json_is_object(policy))
        return reason_give(why, ST_BAD_VALUE, "_retry_policy is %s. It must be an object",
                           json_tree_received(policy).text);
    for (size_t k = 0; k < sizeof(integers) / sizeof(integers[0]); k++) {
        const json_t *value = policy_member(policy, integers[k]);

        if (value != NULL && !json_is_integer(value))
            return refuse_policy(why, integers[k], value, "an integer");
    }
    while (json_is_string(backoff) && i < known &&
           strcmp(json_string_value(backoff), backoffs[i]) != 0)
        i++;
    if (backoff != NULL && (!json_is_string(backoff) || i == known))
        return refuse_policy(why, "retry_backoff_function", backoff,
                             "linear, arithmetic, geometric or exponential");
    if (flag != NULL && !json_is_boolean(flag))
        return refuse_policy(why, "ignore_subscription_override", flag, "true or false");
    if (minimum != NULL)
        least = json_integer_value(minimum);
    if (maximum != NULL)
        most = json_integer_value(maximum);
    /* The difference of any two numbers fits an unsigned one. */
    if (most >= least && (uint64_t)most - (uint64_t)least >= RETRY_DELAY_SPAN_LEAST)
        return ST_OK;
    return reason_give(
        why, ST_BAD_VALUE,
        "_retry_policy.maximum_delay is %lld. It must be at least %d seconds longer "
        "than minimum_delay, which is %lld",
        (long long)most, RETRY_DELAY_SPAN_LEAST, (long long)least);
}
