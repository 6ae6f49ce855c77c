#include "notify/delivery_options.h"

#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <math.h>
#include <stddef.h>

/* ------------------------------------------------------------------ members */

/* Absent: the value is no string. */
static struct bytes
string_inside(const struct json_scan_value *value)
{
    return value->kind == SCAN_STRING ? json_scan_inside(value) : BYTES_NONE;
}

void
delivery_options_read(struct bytes options, struct delivery_options *out)
{
    enum { HEADERS, DATA, FROM, SUBJECT, MEMBERS };
    static const char *const names[MEMBERS] = {"post_headers", "post_data", "from",
                                               "subject"};
    struct json_scan_value m[MEMBERS];

    *out = (struct delivery_options){.post_data = BYTES_NONE};
    if (json_members_read(options, names, MEMBERS, m, NULL) != ST_OK)
        return;
    if (m[HEADERS].kind == SCAN_OBJECT)
        out->post_headers = m[HEADERS].text;
    out->post_data = string_inside(&m[DATA]);
    out->from = string_inside(&m[FROM]);
    out->subject = string_inside(&m[SUBJECT]);
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

#define NAME(name, value)   #name,
#define OFFSET(name, value) offsetof(struct retry_policy, name),
#define BACKOFF(name)       #name,

static const size_t offsets[] = {RETRY_INTEGERS(OFFSET)};

enum {
    INTEGERS = sizeof(offsets) / sizeof(offsets[0]),
    FUNCTION = INTEGERS,
    FLAG,
    MEMBERS
};

static const char *const member_names[MEMBERS] = {
    RETRY_INTEGERS(NAME) "retry_backoff_function", "ignore_subscription_override"};

static const char *const backoffs[] = {RETRY_BACKOFFS(BACKOFF)};

static bool
policy_read_backoff(struct retry_policy *p, const struct json_scan_value *value)
{
    for (int i = 0; value->kind == SCAN_STRING && i < RETRY_BACKOFF_COUNT; i++) {
        if (!bytes_equal_str(json_scan_inside(value), backoffs[i]))
            continue;
        p->backoff = (enum retry_backoff)i;
        return true;
    }
    return false;
}

static int64_t
clamp(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* False: the text is not a valid policy. */
static bool
policy_read(struct bytes text, struct retry_policy *out)
{
    struct retry_policy p = default_policy;
    struct json_scan_value m[MEMBERS];

    if (json_members_read(text, member_names, MEMBERS, m, NULL) != ST_OK)
        return false;
    for (size_t i = 0; i < INTEGERS; i++) {
        if (json_left_out(&m[i]))
            continue;
        if (m[i].kind != SCAN_INTEGER)
            return false;
        *(int64_t *)((char *)&p + offsets[i]) = json_scan_to_i64(&m[i]);
    }
    p.queue_decides = m[FLAG].kind == SCAN_TRUE;
    p.retries_with_no_delay = clamp(p.retries_with_no_delay, RETRY_RETRIES_MOST);
    p.minimum_delay_retries = clamp(p.minimum_delay_retries, RETRY_RETRIES_MOST);
    p.maximum_delay_retries = clamp(p.maximum_delay_retries, RETRY_RETRIES_MOST);
    p.minimum_delay = clamp(p.minimum_delay, RETRY_DELAY_MOST_S);
    p.maximum_delay = clamp(p.maximum_delay, RETRY_DELAY_MOST_S);
    if ((!json_left_out(&m[FUNCTION]) && !policy_read_backoff(&p, &m[FUNCTION])) ||
        (!json_left_out(&m[FLAG]) && !p.queue_decides && m[FLAG].kind != SCAN_FALSE) ||
        p.maximum_delay - p.minimum_delay < RETRY_DELAY_SPAN_LEAST)
        return false;
    *out = p;
    return true;
}

/* Reads the policy of a document. False: there is no valid one. */
static bool
policy_find(struct bytes document, struct retry_policy *out)
{
    const struct json_scan_value policy = json_member(document, "_retry_policy");

    return policy.kind == SCAN_OBJECT && policy_read(policy.text, out);
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
