#include "api/openapi/template.h"

#include "claimd/base/invariant.h"

#include <stddef.h>

#define LIMIT(name)                                                                      \
    {                                                                                    \
#name, offsetof(struct api_limits, name)                                         \
    }

/* Called as their options are. */
static const struct {
    const char *name;
    size_t offset;
} numbers[] = {
    LIMIT(max_queues_per_page),
    LIMIT(max_messages_per_page),
    LIMIT(max_subscriptions_per_page),
    LIMIT(max_queue_metadata),
    LIMIT(max_messages_per_claim_or_pop),
    LIMIT(default_message_ttl),
    LIMIT(max_messages_post_size),
    LIMIT(min_message_ttl),
    LIMIT(max_message_ttl),
    LIMIT(default_message_delay),
    LIMIT(max_message_delay),
    LIMIT(default_claim_ttl),
    LIMIT(min_claim_ttl),
    LIMIT(max_claim_ttl),
    LIMIT(default_claim_grace),
    LIMIT(min_claim_grace),
    LIMIT(max_claim_grace),
    LIMIT(default_subscription_ttl),
    LIMIT(max_wait),
    LIMIT(min_length_client_id),
    LIMIT(max_length_client_id),
};

static int64_t
find_number(struct bytes name, const struct api_limits *l)
{
    const size_t count = sizeof(numbers) / sizeof(numbers[0]);
    size_t i = 0;

    if (bytes_equal_str(name, "default_queues_page"))
        return limits_page(l, l->max_queues_per_page);
    if (bytes_equal_str(name, "default_messages_page"))
        return limits_page(l, l->max_messages_per_page);
    if (bytes_equal_str(name, "default_subscriptions_page"))
        return limits_page(l, l->max_subscriptions_per_page);
    if (bytes_equal_str(name, "default_claim_page"))
        return limits_page(l, l->max_messages_per_claim_or_pop);
    while (i < count && !bytes_equal_str(name, numbers[i].name))
        i++;
    ENSURE(i < count);
    return *(const int64_t *)((const char *)l + numbers[i].offset);
}

/* Writes what stands behind a dollar sign; returns how much of the text that was. */
static size_t
write_number(struct buf *out, const char *text, const struct api_limits *l)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz_");

    if (len == 0)
        buf_byte(out, '$'); /* the end of a pattern */
    else
        buf_i64(out, find_number(bytes_of(text, len), l));
    return len;
}

/* The same behind an opening bracket. */
static size_t
write_reference(struct buf *out, const char *text)
{
    size_t len = strcspn(text, ">");

    ENSURE(text[len] == '>');
    buf_str(out, "{\"$ref\":\"#/components/");
    buf_add(out, text, len);
    buf_str(out, "\"}");
    return len + 1;
}

static bool
is_plain(char c)
{
    return c != '\'' && c != '$' && c != '<' && c != '\0';
}

void
template_write(struct buf *out, const char *text, const struct api_limits *limits)
{
    while (text != NULL && *text != '\0') {
        size_t plain = 0; /* short: strcspn() takes longer to begin than that */

        while (is_plain(text[plain]))
            plain++;
        buf_add(out, text, plain);
        text += plain;
        if (*text == '\'')
            buf_byte(out, '"');
        else if (*text == '$')
            text += write_number(out, text + 1, limits);
        else if (*text == '<')
            text += write_reference(out, text + 1);
        if (*text != '\0')
            text++;
    }
}

struct bytes
template_next(const char **text)
{
    const char *from = *text != NULL ? strchr(*text, '<') : NULL;
    size_t len;

    if (from == NULL)
        return BYTES_NONE;
    len = strcspn(++from, ">");
    *text = from + len;
    return bytes_of(from, len);
}
