#include "notify/delivery_options.h"

#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <math.h>
#include <stddef.h>

/* ------------------------------------------------------------------ members */

static void
take_member(const struct json_scan_name *name, const struct json_scan_value *value,
            struct delivery_options *out)
{
    if (value->kind == SCAN_OBJECT && json_scan_name_is(name, "post_headers"))
        out->post_headers = value->text;
    if (value->kind != SCAN_STRING)
        return;
    if (json_scan_name_is(name, "post_data"))
        out->post_data = json_scan_inside(value);
    else if (json_scan_name_is(name, "from"))
        out->from = json_scan_inside(value);
    else if (json_scan_name_is(name, "subject"))
        out->subject = json_scan_inside(value);
}

void
delivery_options_read(struct bytes options, struct delivery_options *out)
{
    struct json_scan_value value;
    struct json_scan_name name;
    struct json_scan s;

    *out = (struct delivery_options){.post_data = BYTES_NONE};
    json_scan_begin(&s, options);
    if (!bytes_present(options) || !json_scan_enter(&s, SCAN_OBJECT))
        return;
    while (json_scan_member(&s, &name) && json_scan_value(&s, &value))
        take_member(&name, &value, out);
    if (s.bad)
        *out = (struct delivery_options){.post_data = BYTES_NONE};
}

void
option_text_write(struct buf *out, struct bytes inside)
{
    char utf8[4];

    while (inside.len > 0) {
        uint32_t c = json_string_next(&inside);

        buf_add(out, utf8, utf8_write(c, utf8));
    }
}

/* ------------------------------------------------------------------ headers */

/* Headers that only claimd sets: host, lengths, transfer, agent, signatures. */
static const char *const ours[] = {"host",
                                   "content-length",
                                   "transfer-encoding",
                                   "content-encoding",
                                   "connection",
                                   "keep-alive",
                                   "te",
                                   "trailer",
                                   "upgrade",
                                   "expect",
                                   "user-agent",
                                   "proxy-authorization",
                                   "proxy-connection",
                                   "url-signature"};

static const struct bytes signature_prefix = BYTES_LIT("webhook-");

static bool
is_ours(struct bytes name)
{
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (bytes_equal_nocase(name, bytes_str(ours[i])))
            return true;
    return name.len >= signature_prefix.len &&
           bytes_equal_nocase(bytes_of(name.data, signature_prefix.len),
                              signature_prefix);
}

/* A token of RFC 9110. */
static bool
is_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i];

        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL)
            return false;
    }
    return name.len > 0;
}

static bool
is_value(struct bytes value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* Writes the line of a header, with a NUL; false if it may not be sent. */
static bool
write_line(const struct json_scan_name *name, const struct json_scan_value *value,
           struct buf *line)
{
    struct bytes view, value_view;
    size_t name_len;

    buf_reset(line, SIZE_MAX);
    if (value->kind != SCAN_STRING || value->text.len > HEADER_LINE_MOST)
        return false;
    option_text_write(line, name->text);
    name_len = line->len;
    /* Of a header without value libcurl makes none, unless it ends so. */
    buf_str(line, value->text.len == 2 ? ";" : ": ");
    option_text_write(line, json_scan_inside(value));
    buf_byte(line, '\0');
    if (line->failed)
        return true; /* the caller looks */
    view = bytes_of(line->data, name_len);
    value_view = bytes_of(line->data + name_len, line->len - name_len - 1);
    return is_name(view) && !is_ours(view) && is_value(value_view) &&
           line->len <= HEADER_LINE_MOST;
}

bool
option_headers(struct bytes post_headers, struct buf *line,
               bool (*take)(void *ctx, const char *line), void *ctx)
{
    struct json_scan_value value;
    struct json_scan_name name;
    struct json_scan s;
    size_t count = 0;

    json_scan_begin(&s, post_headers);
    if (!bytes_present(post_headers) || !json_scan_enter(&s, SCAN_OBJECT))
        return true;
    while (count < HEADERS_MOST && json_scan_member(&s, &name) &&
           json_scan_value(&s, &value)) {
        if (!write_line(&name, &value, line))
            continue;
        if (line->failed || !take(ctx, line->data))
            return false;
        count++;
    }
    return true;
}

/* Seconds from one delay to the next of the linear function. */
enum { STEP_S = 5 };

#define DEFAULT(name, value) .name = value,

static const struct retry_policy default_policy = {RETRY_INTEGERS(DEFAULT)};

/* ------------------------------------------------------------------ reading */

static const struct integer {
    const char *name;
    size_t offset;
} integers[] = {
#define INTEGER(name, value) {#name, offsetof(struct retry_policy, name)},
    RETRY_INTEGERS(INTEGER)};

static const char *const backoffs[] = {
#define NAME(name) #name,
    RETRY_BACKOFFS(NAME)};

enum { INTEGERS = sizeof(integers) / sizeof(integers[0]) };

static bool
take_integer(struct retry_policy *p, const struct json_scan_name *name,
             const struct json_scan_value *value)
{
    for (size_t i = 0; i < INTEGERS; i++) {
        if (!json_scan_name_is(name, integers[i].name))
            continue;
        if (value->kind == SCAN_INTEGER)
            *(int64_t *)((char *)p + integers[i].offset) = json_scan_to_i64(value);
        return value->kind == SCAN_INTEGER;
    }
    return true;
}

static bool
take_backoff(struct retry_policy *p, const struct json_scan_value *value)
{
    for (int i = 0; value->kind == SCAN_STRING && i < RETRY_BACKOFF_COUNT; i++) {
        const struct bytes quoted = bytes_of(value->text.data + 1, value->text.len - 2);

        if (!bytes_equal_str(quoted, backoffs[i]))
            continue;
        p->backoff = (enum retry_backoff)i;
        return true;
    }
    return false;
}

/* False if a member is not what it must be. */
static bool
take_policy_member(struct retry_policy *p, const struct json_scan_name *name,
                   const struct json_scan_value *value)
{
    if (value->kind == SCAN_NULL)
        return true;
    if (json_scan_name_is(name, "retry_backoff_function"))
        return take_backoff(p, value);
    if (!json_scan_name_is(name, "ignore_subscription_override"))
        return take_integer(p, name, value);
    p->queue_decides = value->kind == SCAN_TRUE;
    return value->kind == SCAN_TRUE || value->kind == SCAN_FALSE;
}

static int64_t
cut(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* True if the object is a policy, and then in *out; it stands where s is. */
static bool
read_policy(struct json_scan *s, struct retry_policy *out)
{
    struct retry_policy p = default_policy;
    struct json_scan_value value;
    struct json_scan_name name;
    bool good = true;

    if (!json_scan_enter(s, SCAN_OBJECT)) {
        (void)json_scan_value(s, NULL);
        return false;
    }
    while (json_scan_member(s, &name) && json_scan_value(s, &value))
        good = take_policy_member(&p, &name, &value) && good;
    p.retries_with_no_delay = cut(p.retries_with_no_delay, RETRY_RETRIES_MOST);
    p.minimum_delay_retries = cut(p.minimum_delay_retries, RETRY_RETRIES_MOST);
    p.maximum_delay_retries = cut(p.maximum_delay_retries, RETRY_RETRIES_MOST);
    p.minimum_delay = cut(p.minimum_delay, RETRY_DELAY_MOST_S);
    p.maximum_delay = cut(p.maximum_delay, RETRY_DELAY_MOST_S);
    if (!good || s->bad || p.maximum_delay - p.minimum_delay < RETRY_DELAY_SPAN_LEAST)
        return false;
    *out = p;
    return true;
}

/* The policy that a document has; false if it has none. */
static bool
find_policy(struct bytes document, struct retry_policy *out)
{
    struct json_scan_name name;
    struct json_scan s;
    bool found = false;

    json_scan_begin(&s, document);
    if (!bytes_present(document) || !json_scan_enter(&s, SCAN_OBJECT))
        return false;
    while (json_scan_member(&s, &name)) {
        if (json_scan_name_is(&name, "_retry_policy"))
            found = read_policy(&s, out);
        else
            (void)json_scan_value(&s, NULL);
    }
    return found;
}

void
retry_policy_read(struct bytes options, struct bytes metadata, struct retry_policy *out)
{
    struct retry_policy own, queue;
    bool has_own = find_policy(options, &own), has_queue = find_policy(metadata, &queue);
    bool queue_decides =
        (has_own && own.queue_decides) || (has_queue && queue.queue_decides);

    if (has_own && !queue_decides)
        *out = own;
    else
        *out = has_queue ? queue : default_policy;
}

/* ------------------------------------------------------------------ waiting */

/* a * (b / a)^(i / (n - 1)), rounded down; a wait of 0 s does not grow, so it counts as 1. */
static int64_t
grow_geometrically(int64_t a, int64_t b, int64_t i, int64_t n)
{
    double from = a == 0 ? 1 : (double)a;
    double exponent = (double)i / (double)(n - 1);

    if (i == n - 1)
        return b;
    /* What is whole must not become less by the error of the power. */
    return (int64_t)floor(from * pow((double)b / from, exponent) + 1e-9);
}

/* The i-th of n delays that grow, from 0; n is at least 2 (RETRY_DELAY_SPAN_LEAST). */
static int64_t
growing(const struct retry_policy *p, int64_t i, int64_t n)
{
    int64_t a = p->minimum_delay, b = p->maximum_delay;

    switch (p->backoff) {
    case RETRY_linear:
        return a + STEP_S * i;
    case RETRY_arithmetic: /* no more than 242000^2 * 1209600: it fits */
        return a + i * (i + 1) * (b - a) / (n * (n - 1));
    default:
        return grow_geometrically(a, b, i, n);
    }
}

bool
retry_wait(const struct retry_policy *p, uint32_t failed, int64_t *wait_ms)
{
    const int64_t span = p->maximum_delay - p->minimum_delay;
    /* How many delays grow. */
    const int64_t n =
        p->backoff == RETRY_linear ? (span + STEP_S - 1) / STEP_S : span / STEP_S;
    int64_t i = (int64_t)failed - 1, wait_s;

    if (i < p->retries_with_no_delay)
        wait_s = 0;
    else if ((i -= p->retries_with_no_delay) < p->minimum_delay_retries)
        wait_s = p->minimum_delay;
    else if ((i -= p->minimum_delay_retries) < n)
        wait_s = growing(p, i, n);
    else if (i - n < p->maximum_delay_retries)
        wait_s = p->maximum_delay;
    else
        return false;
    *wait_ms = wait_s * 1000;
    return true;
}
