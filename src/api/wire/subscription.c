#include "api/wire/subscription.h"

#include "api/wire/decode.h"
#include "claimd/base/clock.h"
#include "claimd/json/fault.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"
#include "claimd/json/tree.h"
#include "claimd/store/retry_policy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static void
write_head(struct buf *out, const struct store_subscription *s)
{
    buf_str(out, "{\"id\":\"");
    buf_bytes(out, store_id_bytes(&s->id));
    buf_byte(out, '"');
}

static void
write_text(struct buf *out, const char *name, struct bytes text)
{
    buf_str(out, name);
    json_string_write(out, text);
}

static void
write_number(struct buf *out, const char *name, int64_t number)
{
    buf_str(out, name);
    buf_i64(out, number);
}

static void
write_count(struct buf *out, const char *name, uint64_t count)
{
    buf_str(out, name);
    buf_u64(out, count);
}

static void
write_flag(struct buf *out, const char *name, bool flag)
{
    buf_str(out, name);
    buf_str(out, flag ? "true" : "false");
}

void
subscription_write(struct buf *out, struct bytes source,
                   const struct store_subscription *subscription)
{
    write_head(out, subscription);
    write_text(out, ",\"source\":", source);
    write_text(out, ",\"subscriber\":", subscription->subscriber);
    write_number(out, ",\"ttl\":", subscription->ttl_s);
    write_number(out, ",\"age\":", subscription->age_s);
    buf_str(out, ",\"options\":");
    buf_bytes(out, subscription->options);
    write_flag(out, ",\"confirmed\":", subscription->confirmed);
    buf_byte(out, '}');
}

void
subscription_write_progress(struct buf *out, int64_t now_ms,
                            const struct store_subscription *subscription)
{
    const struct store_progress *p = &subscription->progress;
    char next_try[CLOCK_TEXT_CAP];

    write_head(out, subscription);
    write_flag(out, ",\"confirmed\":", subscription->confirmed);
    write_number(out, ",\"ttl\":", subscription->ttl_s);
    write_number(out, ",\"age\":", subscription->age_s);
    write_count(out, ",\"delivered\":", p->delivered);
    write_count(out, ",\"given_up\":", p->given_up);
    write_count(out, ",\"fallen_out\":", p->fallen_out);
    write_count(out, ",\"behind\":", p->behind);
    write_count(out, ",\"failures\":", p->failures);
    write_count(out, ",\"failed\":", p->failed);
    write_flag(out, ",\"delivering\":", p->lent);
    clock_text(p->next_try_ms, next_try);
    if (p->next_try_ms > now_ms)
        write_text(out, ",\"next_try\":", bytes_str(next_try));
    else
        buf_str(out, ",\"next_try\":null"); /* it is due, or rests */
    buf_byte(out, '}');
}

/* ------------------------------------------------------------------ reading */

/* 9999-12-31T23:59:59Z: the last second that a date of four digits can tell. */
#define LAST_SECOND INT64_C(253402300799)

/* What a body said; SCAN_NONE: left out. Of members named twice the last one counts. */
struct members {
    struct json_scan_value subscriber, ttl, options;
    size_t count; /* of all, known or not */
};

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

    *m = (struct members){.count = 0};
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

    if (decode_left_out(value))
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

static enum status
check_policy(struct bytes options, struct reason *why)
{
    struct json_scan_value policy = decode_member(options, "_retry_policy");
    json_t *tree = NULL;
    enum status st;

    if (decode_left_out(&policy))
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

    if (decode_left_out(value))
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

enum status
decode_subscription(struct bytes body, const struct api_limits *limits, int64_t now_ms,
                    struct arena *arena, struct store_subscription_draft *out,
                    struct reason *why)
{
    struct store_subscription_draft draft = {.subscriber = BYTES_NONE,
                                             .options = BYTES_LIT("{}"),
                                             .ttl_s = limits->default_subscription_ttl};
    struct members m;
    enum status st = read_members(body, &m, why);

    if (st != ST_OK)
        return st;
    if (decode_left_out(&m.subscriber))
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
    enum status st = read_members(body, &m, why);

    if (st != ST_OK)
        return st;
    if (m.count == 0)
        return reason_give(why, ST_BAD_VALUE, "the body has no member to change");
    if (decode_left_out(&m.subscriber) && decode_left_out(&m.ttl) &&
        decode_left_out(&m.options))
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
    struct json_scan_value value;
    struct json_scan s;
    enum status st = enter(&s, body, why);

    if (st != ST_OK)
        return st;
    value = decode_member(body, "confirmed");
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
member(const json_t *policy, const char *name)
{
    const json_t *value = json_object_get(policy, name);

    return json_is_null(value) ? NULL : value;
}

/* A member that is not what it must be. */
static enum status
refuse(struct reason *why, const char *name, const json_t *value, const char *what)
{
    return reason_give(why, ST_BAD_VALUE, "_retry_policy.%s is %s. It must be %s", name,
                       json_tree_received(value).text, what);
}

static enum status
check_integers(const json_t *policy, struct reason *why)
{
    static const char *const names[] = {RETRY_INTEGERS(INTEGER)};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const json_t *value = member(policy, names[i]);

        if (value != NULL && !json_is_integer(value))
            return refuse(why, names[i], value, "an integer");
    }
    return ST_OK;
}

static enum status
check_function(const json_t *policy, struct reason *why)
{
    static const char *const known[] = {RETRY_BACKOFFS(BACKOFF)};
    const json_t *value = member(policy, "retry_backoff_function");

    if (value == NULL)
        return ST_OK;
    for (size_t i = 0; json_is_string(value) && i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(json_string_value(value), known[i]) == 0)
            return ST_OK;
    return refuse(why, "retry_backoff_function", value,
                  "linear, arithmetic, geometric or exponential");
}

static int64_t
delay(const json_t *policy, const char *name, int64_t otherwise)
{
    const json_t *value = member(policy, name);

    return value == NULL ? otherwise : json_integer_value(value);
}

static enum status
check_delays(const json_t *policy, struct reason *why)
{
    int64_t least = delay(policy, "minimum_delay", minimum_delay_default);
    int64_t most = delay(policy, "maximum_delay", maximum_delay_default);

    /* Without a sign the difference of any two fits. */
    if (most >= least && (uint64_t)most - (uint64_t)least >= RETRY_DELAY_SPAN_LEAST)
        return ST_OK;
    return reason_give(
        why, ST_BAD_VALUE,
        "_retry_policy.maximum_delay is %lld. It must be at least %d seconds longer "
        "than minimum_delay, which is %lld",
        (long long)most, RETRY_DELAY_SPAN_LEAST, (long long)least);
}

enum status
retry_policy_check(const json_t *policy, struct reason *why)
{
    const json_t *flag = member(policy, "ignore_subscription_override");
    enum status st = ST_OK;

    if (!json_is_object(policy))
        return reason_give(why, ST_BAD_VALUE, "_retry_policy is %s. It must be an object",
                           json_tree_received(policy).text);
    st = check_integers(policy, why);
    if (st == ST_OK)
        st = check_function(policy, why);
    if (st == ST_OK && flag != NULL && !json_is_boolean(flag))
        st = refuse(why, "ignore_subscription_override", flag, "true or false");
    return st == ST_OK ? check_delays(policy, why) : st;
}
