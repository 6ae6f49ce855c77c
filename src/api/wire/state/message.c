#include "api/wire/state/message.h"

#include "api/wire/message.h"

enum {
    MESSAGE_ID,
    MESSAGE_BODY,
    MESSAGE_SEALED,
    MESSAGE_TTL,
    MESSAGE_AGE,
    MESSAGE_DELAY,
    MESSAGE_CLAIM,
    MESSAGE_CLAIM_COUNT,
    MESSAGE_CLIENT,
    MESSAGE_CHECKSUM,
    MESSAGE_MEMBERS
};

static const char *const message_names[MESSAGE_MEMBERS] = {
    "id",    "body",  "sealed",      "ttl",    "age",
    "delay", "claim", "claim_count", "client", "checksum"};

static enum status
read_times(struct state_decoder *d, const struct doc_at *at, const struct doc_member *m,
           struct store_image_message *out)
{
    const struct doc_at ttl = {at, "ttl", BYTES_NONE, 0};
    int64_t ttl_ms = d->limits->default_message_ttl * 1000, age_ms = 0, delay_ms = 0;
    enum status st = doc_seconds(d, at, &m[MESSAGE_TTL], 0.001, &ttl_ms);

    if (st == ST_OK)
        st = doc_seconds(d, at, &m[MESSAGE_AGE], 0, &age_ms);
    if (st == ST_OK)
        st = doc_seconds(d, at, &m[MESSAGE_DELAY], 0, &delay_ms);
    if (st != ST_OK)
        return st;
    if (ttl_ms - age_ms > d->limits->max_message_ttl * 1000)
        return doc_refuse(d, &ttl, "ttl minus age exceeds max_message_ttl");
    out->posted_ms = d->now_ms - age_ms;
    out->expires_ms = out->posted_ms + ttl_ms;
    out->delayed_until_ms = delay_ms == 0 ? 0 : d->now_ms + delay_ms;
    return ST_OK;
}

/* Pairs of hexadecimal digits, into the arena. */
static enum status
read_sealed(struct state_decoder *d, const struct doc_at *up, const struct doc_member *m,
            struct bytes *out)
{
    const struct doc_at at = {up, "sealed", BYTES_NONE, 0};
    struct bytes text = BYTES_NONE;
    enum status st = doc_text(d, up, m, &text);
    char *body;

    if (st != ST_OK)
        return st;
    body = arena_alloc(d->arena, text.len / 2 + 1);
    if (body == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < text.len / 2; i++) {
        uint64_t value;

        if (!hex_read(bytes_of(text.data + 2 * i, 2), &value))
            return doc_refuse(d, &at, "it must consist of hexadecimal digits");
        body[i] = (char)value;
    }
    *out = bytes_of(body, text.len / 2);
    return text.len % 2 == 0 && store_is_sealed(*out)
               ? ST_OK
               : doc_refuse(d, &at, "it is not an encrypted body");
}

static enum status
read_body(struct state_decoder *d, const struct doc_at *up, const struct doc_member *m,
          struct bytes *out)
{
    const struct doc_member *body = &m[MESSAGE_BODY], *sealed = &m[MESSAGE_SEALED];
    const struct doc_at at = {up, "body", BYTES_NONE, 0};
    enum status st = ST_OK;

    if ((body->value.kind == SCAN_NONE) == (sealed->value.kind == SCAN_NONE))
        return doc_refuse(d, &at, "exactly one of body and sealed is required");
    if (sealed->value.kind != SCAN_NONE)
        st = read_sealed(d, up, sealed, out);
    else
        *out = body->value.text;
    if (st == ST_OK && out->len > (size_t)d->limits->max_messages_post_size)
        return doc_refuse(
            d, &at,
            "it is %zu bytes long. The maximum is %lld bytes (max_messages_post_size)",
            out->len, (long long)d->limits->max_messages_post_size);
    return st;
}

/* The one that the document has, or the one that a post would get. */
static enum status
read_checksum(struct state_decoder *d, const struct doc_at *up,
              const struct doc_member *m, struct bytes body,
              const struct store_checksum **out)
{
    const struct doc_at at = {up, "checksum", BYTES_NONE, 0};
    struct store_checksum *sum = arena_alloc(d->arena, sizeof(*sum));
    struct bytes text = BYTES_NONE;
    enum status st = doc_text(d, up, m, &text);

    if (st != ST_OK || sum == NULL)
        return st == ST_OK ? ST_NO_MEMORY : st;
    if (!bytes_present(text)) {
        if (!d->limits->enable_checksum || store_is_sealed(body))
            return ST_OK;
        st = checksum_of(body, d->mem, sum);
    } else {
        bool good = text.len == CHECKSUM_LEN && memcmp(text.data, "MD5:", 4) == 0;

        for (size_t i = 0; good && i < sizeof(sum->digest); i++) {
            uint64_t value = 0;

            good = hex_read(bytes_of(text.data + 4 + 2 * i, 2), &value);
            sum->digest[i] = (uint8_t)value;
        }
        if (!good)
            return doc_refuse(d, &at,
                              "it must be MD5: followed by 32 hexadecimal digits");
    }
    *out = sum;
    return st;
}

static enum status
read_client(struct state_decoder *d, const struct doc_at *up, const struct doc_member *m,
            uint64_t *out)
{
    const struct doc_at at = {up, "client", BYTES_NONE, 0};
    struct bytes text = BYTES_NONE;
    enum status st = doc_text(d, up, m, &text);

    if (st != ST_OK || !bytes_present(text))
        return st;
    return text.len == 16 && hex_read(text, out)
               ? ST_OK
               : doc_refuse(d, &at, "it must be 16 hexadecimal digits");
}

enum status
state_message_read(struct state_decoder *d, const struct doc_at *at, struct bytes text,
                   struct json_scan_value *claim, struct store_image_message *out)
{
    struct doc_member m[MESSAGE_MEMBERS] = {{.name = NULL}};
    uint64_t count = 0;
    enum status st;

    for (size_t i = 0; i < MESSAGE_MEMBERS; i++)
        m[i].name = message_names[i];
    st = doc_object(d, at, text, m, MESSAGE_MEMBERS);
    if (st == ST_OK)
        st = doc_id(d, at, &m[MESSAGE_ID], &out->id);
    if (st == ST_OK)
        st = read_times(d, at, m, out);
    if (st == ST_OK)
        st = read_body(d, at, m, &out->body);
    if (st == ST_OK)
        st = read_checksum(d, at, &m[MESSAGE_CHECKSUM], out->body, &out->checksum);
    if (st == ST_OK)
        st = read_client(d, at, &m[MESSAGE_CLIENT], &out->client);
    *claim = m[MESSAGE_CLAIM].value;
    if (!doc_left_out(claim))
        count = 1;
    if (st == ST_OK)
        st = doc_count(d, at, &m[MESSAGE_CLAIM_COUNT], UINT32_MAX, &count);
    out->claim_count = (uint32_t)count;
    return st;
}
