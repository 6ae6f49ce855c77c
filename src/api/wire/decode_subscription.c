#include "api/wire/decode_subscription.h"

#include "api/wire/decode_integer.h"
#include "api/wire/retry_policy.h"
#include "claimd/json/fault.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"
#include "claimd/json/tree.h"

/* 9999-12-31T23:59:59Z: the last second that a date of four digits can tell. */
#define LAST_SECOND INT64_C(253402300799)

/* What a body said; SCAN_NONE: left out. Of members named twice the last one counts. */
struct members {
    struct json_scan_value subscriber, ttl, options;
    size_t count; /* of all, known or not */
};

static bool
left_out(const struct json_scan_value *value)
{
    return value->kind == SCAN_NONE || value->kind == SCAN_NULL;
}

/* Enters the object that a body must be. */
static enum status
enter(struct json_scan *s, struct bytes body, struct reason *why)
{
    if (body.len == 0)
        return reason_give(why, ST_BAD_VALUE, "a body is required");
    if (json_fault(body, why))
        return ST_BAD_BODY;
    json_scan_begin(s, body);
    if (!json_scan_enter(s, SCAN_OBJECT))
        return reason_give(why, ST_BAD_VALUE, "the body must be an object");
    return ST_OK;
}

static enum status
read_members(struct bytes body, struct members *m, struct reason *why)
{
    struct json_scan_name name;
    struct json_scan s;
    enum status st = enter(&s, body, why);

    if (st != ST_OK)
        return st;
    while (json_scan_member(&s, &name)) {
        struct json_scan_value *value = NULL;

        if (json_scan_name_is(&name, "subscriber"))
            value = &m->subscriber;
        else if (json_scan_name_is(&name, "ttl"))
            value = &m->ttl;
        else if (json_scan_name_is(&name, "options"))
            value = &m->options;
        (void)json_scan_value(&s, value); /* it was checked */
        m->count++;
    }
    return ST_OK;
}

/* ------------------------------------------------------------------ the subscriber */

/* Escapes undone, out of the arena. */
static struct bytes
unescape(struct bytes inside, struct arena *arena)
{
    char *text =
        arena_alloc(arena, inside.len + 1); /* an escape is longer than what it is */
    size_t len = 0;

    if (text == NULL)
        return BYTES_NONE;
    while (inside.len > 0)
        len += utf8_write(json_string_next(&inside), text + len);
    text[len] = '\0';
    return bytes_of(text, len);
}

/* A URI has neither blanks nor what could end a line of a request or a mail; nor backslashes,
 * which some who read it take for slashes, so that they see another host than others. */
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
    static const char *const texts[] = {"none",
                                        "http",
                                        "https",
                                        "http and https",
                                        "mailto",
                                        "http and mailto",
                                        "https and mailto",
                                        "http, https and mailto"};

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

static bool
is_trust(struct bytes scheme)
{
    static const struct bytes prefix = BYTES_LIT("trust+");

    return scheme.len > prefix.len &&
           bytes_equal_nocase(bytes_of(scheme.data, prefix.len), prefix);
}

/* What stands behind the scheme: //HOST..., or somebody's address. */
static bool
names_somebody(enum subscriber_type type, struct bytes rest)
{
    if (type == SUBSCRIBER_MAILTO)
        return bytes_cut(&rest, '?').len > 0;
    return rest.len > 2 && rest.data[0] == '/' && rest.data[1] == '/' &&
           strchr("/?#:@", rest.data[2]) == NULL;
}

static enum status
check_uri(struct bytes uri, const struct api_limits *limits, struct reason *why)
{
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
    if (bytes_present(rest) && is_trust(scheme))
        return reason_give(why, ST_BAD_VALUE,
                           "subscriber must not begin with trust+. The server does not "
                           "support trusts of Keystone");
    if (!bytes_present(rest) || type == SUBSCRIBER_TYPES ||
        (limits->subscriber_types >> type & 1) == 0)
        return reason_give(why, ST_BAD_VALUE,
                           "the scheme of subscriber must be %s (subscriber_types)",
                           types_text(limits->subscriber_types));
    if (!names_somebody(type, rest))
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

    if (left_out(value))
        return ST_OK;
    if (value->kind != SCAN_STRING)
        return reason_give(why, ST_BAD_VALUE, "subscriber is %s. It must be a string",
                           json_received(value).text);
    uri = unescape(json_scan_inside(value), arena);
    if (!bytes_present(uri))
        return ST_NO_MEMORY;
    st = check_uri(uri, limits, why);
    if (st == ST_OK)
        *out = uri;
    return st;
}

/* ------------------------------------------------------------------ ttl, options */

static enum status
read_ttl(const struct json_scan_value *value, int64_t now_ms, int64_t *out,
         struct reason *why)
{
    const struct integer_range range = {SUBSCRIPTION_TTL_MIN, LAST_SECOND - now_ms / 1000,
                                        "the end of the year 9999"};

    if (decode_integer(value, &range, out) == ST_OK)
        return ST_OK;
    return integer_refuse(why, ST_BAD_VALUE, "ttl", value, &range);
}

/* The last member _retry_policy of options that are an object. */
static struct json_scan_value
find_policy(struct bytes options)
{
    struct json_scan_value policy = {.kind = SCAN_NONE};
    struct json_scan_name name;
    struct json_scan s;

    json_scan_begin(&s, options);
    (void)json_scan_enter(&s, SCAN_OBJECT);
    while (json_scan_member(&s, &name))
        (void)json_scan_value(&s,
                              json_scan_name_is(&name, "_retry_policy") ? &policy : NULL);
    return policy;
}

static enum status
check_policy(struct bytes options, struct reason *why)
{
    struct json_scan_value policy = find_policy(options);
    json_t *tree = NULL;
    enum status st;

    if (left_out(&policy))
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

    if (left_out(value))
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

/* ------------------------------------------------------------------ the whole */

static enum status
read_draft(const struct members *m, const struct api_limits *limits, int64_t now_ms,
           struct arena *arena, struct store_subscription_draft *out, struct reason *why)
{
    enum status st =
        read_subscriber(&m->subscriber, limits, arena, &out->subscriber, why);

    if (st == ST_OK)
        st = read_ttl(&m->ttl, now_ms, &out->ttl_s, why);
    return st == ST_OK ? read_options(&m->options, &out->options, why) : st;
}

static enum status
read_body(struct bytes body, struct members *m, struct reason *why)
{
    const struct json_scan_value none = {SCAN_NONE, BYTES_NONE};

    *m = (struct members){none, none, none, 0};
    return read_members(body, m, why);
}

enum status
decode_subscription(struct bytes body, const struct api_limits *limits, int64_t now_ms,
                    struct arena *arena, struct store_subscription_draft *out,
                    struct reason *why)
{
    struct store_subscription_draft draft = {.subscriber = BYTES_NONE,
                                             .options = BYTES_LIT("{}"),
                                             .ttl_s = limits->default_subscription_ttl};
    struct members m;
    enum status st = read_body(body, &m, why);

    if (st != ST_OK)
        return st;
    if (left_out(&m.subscriber))
        return reason_give(why, ST_BAD_VALUE, "subscriber is required");
    st = read_draft(&m, limits, now_ms, arena, &draft, why);
    if (st == ST_OK)
        *out = draft;
    return st;
}

enum status
decode_subscription_change(struct bytes body, const struct api_limits *limits,
                           int64_t now_ms, struct arena *arena,
                           struct store_subscription_draft *out, struct reason *why)
{
    struct store_subscription_draft draft = {BYTES_NONE, BYTES_NONE, STORE_UNSET};
    struct members m;
    enum status st = read_body(body, &m, why);

    if (st != ST_OK)
        return st;
    if (m.count == 0)
        return reason_give(why, ST_BAD_VALUE, "the body has no member to change");
    if (left_out(&m.subscriber) && left_out(&m.ttl) && left_out(&m.options))
        return reason_give(why, ST_NO_KNOWN_MEMBER,
                           "the body has no member to change. The members to change are "
                           "subscriber, ttl and options");
    st = read_draft(&m, limits, now_ms, arena, &draft, why);
    if (st == ST_OK)
        *out = draft;
    return st;
}

enum status
decode_confirmation(struct bytes body, bool *out, struct reason *why)
{
    struct json_scan_value value = {.kind = SCAN_NONE};
    struct json_scan_name name;
    struct json_scan s;
    enum status st = enter(&s, body, why);

    if (st != ST_OK)
        return st;
    while (json_scan_member(&s, &name))
        (void)json_scan_value(&s, json_scan_name_is(&name, "confirmed") ? &value : NULL);
    if (value.kind != SCAN_TRUE && value.kind != SCAN_FALSE)
        return reason_give(why, ST_BAD_VALUE, "confirmed is %s. It must be true or false",
                           json_received(&value).text);
    *out = value.kind == SCAN_TRUE;
    return ST_OK;
}
