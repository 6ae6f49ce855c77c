#include "notify/delivery_options.h"

#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <math.h>
#include <stddef.h>

/* ------------------------------------------------------------------ members */

static void
options_read_member(const struct json_scan_name *name,
                    const struct json_scan_value *value, struct delivery_options *out)
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
        options_read_member(&name, &value, out);
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

/* Headers that only claimd may set. */
static const char *const reserved_headers[] = {"host",
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
is_reserved_header(struct bytes name)
{
    for (size_t i = 0; i < sizeof(reserved_headers) / sizeof(reserved_headers[0]); i++)
        if (bytes_equal_nocase(name, bytes_str(reserved_headers[i])))
            return true;
    return name.len >= signature_prefix.len &&
           bytes_equal_nocase(bytes_of(name.data, signature_prefix.len),
                              signature_prefix);
}

/* A token of RFC 9110. */
static bool
is_header_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i];

        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL)
            return false;
    }
    return name.len > 0;
}

static bool
is_header_value(struct bytes value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* Writes the line of a header, with a NUL. False: the header must not be sent. */
static bool
header_line_write(const struct json_scan_name *name, const struct json_scan_value *value,
                  struct buf *line)
{
    struct bytes view, value_view;
    size_t name_len;

    buf_reset(line, SIZE_MAX);
    if (value->kind != SCAN_STRING || value->text.len > HEADER_LINE_MOST)
        return false;
    option_text_write(line, name->text);
    name_len = line->len;
    /* libcurl sends a header without value only if its line ends with a semicolon. */
    buf_str(line, value->text.len == 2 ? ";" : ": ");
    option_text_write(line, json_scan_inside(value));
    buf_byte(line, '\0');
    if (line->failed)
        return true; /* the caller checks line->failed */
    view = bytes_of(line->data, name_len);
    value_view = bytes_of(line->data + name_len, line->len - name_len - 1);
    return is_header_name(view) && !is_reserved_header(view) &&
           is_header_value(value_view) && line->len <= HEADER_LINE_MOST;
}

bool
option_headers(struct bytes post_headers, struct buf *line,
               bool (*add)(void *ctx, const char *line), void *ctx)
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
        if (!header_line_write(&name, &value, line))
            continue;
        if (line->failed || !add(ctx, line->data))
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
policy_read_integer(struct retry_policy *p, const struct json_scan_name *name,
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
policy_read_backoff(struct retry_policy *p, const struct json_scan_value *value)
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

/* False: the member has a wrong type or value. */
static bool
policy_read_member(struct retry_policy *p, const struct json_scan_name *name,
                   const struct json_scan_value *value)
{
    if (value->kind == SCAN_NULL)
        return true;
    if (json_scan_name_is(name, "retry_backoff_function"))
        return policy_read_backoff(p, value);
    if (!json_scan_name_is(name, "ignore_subscription_override"))
        return policy_read_integer(p, name, value);
    p->queue_decides = value->kind == SCAN_TRUE;
    return value->kind == SCAN_TRUE || value->kind == SCAN_FALSE;
}

static int64_t
clamp(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* Reads the policy at the position of s. False: the value is not a valid policy. */
static bool
policy_read(struct json_scan *s, struct retry_policy *out)
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
        good = policy_read_member(&p, &name, &value) && good;
    p.retries_with_no_delay = clamp(p.retries_with_no_delay, RETRY_RETRIES_MOST);
    p.minimum_delay_retries = clamp(p.minimum_delay_retries, RETRY_RETRIES_MOST);
    p.maximum_delay_retries = clamp(p.maximum_delay_retries, RETRY_RETRIES_MOST);
    p.minimum_delay = clamp(p.minimum_delay, RETRY_DELAY_MOST_S);
    p.maximum_delay = clamp(p.maximum_delay, RETRY_DELAY_MOST_S);
    if (!good || s->bad || p.maximum_delay - p.minimum_delay < RETRY_DELAY_SPAN_LEAST)
        return false;
    *out = p;
    return true;
}

/* Reads the policy of a document. False: there is no valid one. */
static bool
policy_find(struct bytes document, struct retry_policy *out)
{
    struct json_scan_name name;
    struct json_scan s;
    bool found = false;

    json_scan_begin(&s, document);
    if (!bytes_present(document) || !json_scan_enter(&s, SCAN_OBJECT))
        return false;
    while (json_scan_member(&s, &name)) {
        if (json_scan_name_is(&name, "_retry_policy"))
            found = policy_read(&s, out);
        else
            (void)json_scan_value(&s, NULL);
    }
    return found;
}

void
retry_policy_read(struct bytes options, struct bytes metadata, struct retry_policy *out)
{
    struct retry_policy own, queue;
    bool has_own = policy_find(options, &own), has_queue = policy_find(metadata, &queue);
    bool queue_decides =
        (has_own && own.queue_decides) || (has_queue && queue.queue_decides);

    if (has_own && !queue_decides)
        *out = own;
    else
        *out = has_queue ? queue : default_policy;
}

/* ------------------------------------------------------------------ waiting */

/* a * (b / a)^(i / (n - 1)), rounded down. 0 would not grow, so it counts as 1. */
static int64_t
grow_geometrically(int64_t a, int64_t b, int64_t i, int64_t n)
{
    double from = a == 0 ? 1 : (double)a;
    double exponent = (double)i / (double)(n - 1);

    if (i == n - 1)
        return b;
    /* The rounding error of pow() must not make an integer smaller. */
    return (int64_t)floor(from * pow((double)b / from, exponent) + 1e-9);
}

/* The i-th growing delay of n, from 0. n is at least 2 (RETRY_DELAY_SPAN_LEAST). */
static int64_t
growing_delay(const struct retry_policy *p, int64_t i, int64_t n)
{
    int64_t a = p->minimum_delay, b = p->maximum_delay;

    switch (p->backoff) {
    case RETRY_linear:
        return a + STEP_S * i;
    case RETRY_arithmetic: /* at most 242000^2 * 1209600, which fits */
        return a + i * (i + 1) * (b - a) / (n * (n - 1));
    default:
        return grow_geometrically(a, b, i, n);
    }
}

bool
retry_wait(const struct retry_policy *p, uint32_t failed, int64_t *wait_ms)
{
    const int64_t span = p->maximum_delay - p->minimum_delay;
    const int64_t n = /* number of growing delays */
        p->backoff == RETRY_linear ? (span + STEP_S - 1) / STEP_S : span / STEP_S;
    int64_t i = (int64_t)failed - 1, wait_s;

    if (i < p->retries_with_no_delay)
        wait_s = 0;
    else if ((i -= p->retries_with_no_delay) < p->minimum_delay_retries)
        wait_s = p->minimum_delay;
    else if ((i -= p->minimum_delay_retries) < n)
        wait_s = growing_delay(p, i, n);
    else if (i - n < p->maximum_delay_retries)
        wait_s = p->maximum_delay;
    else
        return false;
    *wait_ms = wait_s * 1000;
    return true;
}
