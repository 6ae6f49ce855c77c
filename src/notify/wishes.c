#include "notify/wishes.h"

#include "claimd/json/string.h"

/* ------------------------------------------------------------------ members */

static void
take_member(const struct json_scan_name *name, const struct json_scan_value *value,
            struct wishes *out)
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
wishes_read(struct bytes options, struct wishes *out)
{
    struct json_scan_value value;
    struct json_scan_name name;
    struct json_scan s;

    *out = (struct wishes){.post_data = BYTES_NONE};
    json_scan_begin(&s, options);
    if (!bytes_present(options) || !json_scan_enter(&s, SCAN_OBJECT))
        return;
    while (json_scan_member(&s, &name) && json_scan_value(&s, &value))
        take_member(&name, &value, out);
    if (s.bad)
        *out = (struct wishes){.post_data = BYTES_NONE};
}

void
wish_write(struct buf *out, struct bytes inside)
{
    char utf8[4];

    while (inside.len > 0) {
        uint32_t c = json_string_next(&inside);

        buf_add(out, utf8, utf8_write(c, utf8));
    }
}

/* ------------------------------------------------------------------ headers */

/* What is ours to say: whom, how long, how it is sent, who we are, and that it is us. */
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
    wish_write(line, name->text);
    name_len = line->len;
    /* Of a header without value libcurl makes none, unless it ends so. */
    buf_str(line, value->text.len == 2 ? ";" : ": ");
    wish_write(line, json_scan_inside(value));
    buf_byte(line, '\0');
    if (line->failed)
        return true; /* the caller looks */
    view = bytes_of(line->data, name_len);
    value_view = bytes_of(line->data + name_len, line->len - name_len - 1);
    return is_name(view) && !is_ours(view) && is_value(value_view) &&
           line->len <= HEADER_LINE_MOST;
}

bool
wished_headers(struct bytes post_headers, struct buf *line,
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
