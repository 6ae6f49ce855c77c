#include "api/wire/state.h"

#include "api/wire/message.h"
#include "claimd/json/string.h"

#include <inttypes.h>

static void
write_seconds(struct buf *out, const char *name, int64_t ms)
{
    uint64_t size = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    unsigned rest = (unsigned)(size % 1000);

    buf_printf(out, ",\"%s\":%s%" PRIu64, name, ms < 0 ? "-" : "", size / 1000);
    if (rest != 0)
        buf_printf(out, ".%03u", rest);
}

static void
write_text(struct buf *out, const char *name, struct bytes text)
{
    buf_printf(out, ",\"%s\":", name);
    json_string_write(out, text);
}

static void
write_count(struct buf *out, const char *name, uint64_t count)
{
    if (count > 0)
        buf_printf(out, ",\"%s\":%" PRIu64, name, count);
}

void
state_write_claim(struct buf *out, const struct store_image_claim *claim, int64_t now_ms)
{
    buf_printf(out, "{\"id\":\"%s\"", claim->id.text);
    write_seconds(out, "ttl", claim->ends_ms - claim->started_ms);
    write_seconds(out, "age", now_ms - claim->started_ms);
    buf_byte(out, '}');
}

/* What is encrypted stays so. */
static void
write_sealed(struct buf *out, struct bytes body)
{
    buf_str(out, ",\"sealed\":\"");
    if (buf_reserve(out, 2 * body.len))
        for (size_t i = 0; i < body.len; i++) {
            hex_write(out->data + out->len, (unsigned char)body.data[i], 2);
            out->len += 2;
        }
    buf_byte(out, '"');
}

static void
write_body(struct buf *out, struct bytes body)
{
    if (store_is_sealed(body)) {
        write_sealed(out, body);
        return;
    }
    buf_str(out, ",\"body\":");
    buf_bytes(out, body);
}

static void
write_held(struct buf *out, const struct store_image_claim *claim, bool whole,
           int64_t now_ms)
{
    if (!whole) {
        write_text(out, "claim", store_id_bytes(&claim->id));
        return;
    }
    buf_str(out, ",\"claim\":");
    state_write_claim(out, claim, now_ms);
}

void
state_write_message(struct buf *out, const struct store_image *image, size_t i,
                    bool whole_claim, int64_t now_ms)
{
    const struct store_image_message *m = &image->messages[i];
    char checksum[CHECKSUM_LEN];

    buf_printf(out, "{\"id\":\"%s\"", m->id.text);
    write_seconds(out, "ttl", m->expires_ms - m->posted_ms);
    write_seconds(out, "age", now_ms - m->posted_ms);
    if (m->delayed_until_ms != 0)
        write_seconds(out, "delay", m->delayed_until_ms - now_ms);
    if (m->claim > 0)
        write_held(out, &image->claims[m->claim - 1], whole_claim, now_ms);
    if (m->claim_count != (m->claim > 0)) /* what is meant if it is left out */
        buf_printf(out, ",\"claim_count\":%" PRIu32, m->claim_count);
    if (m->client != 0)
        buf_printf(out, ",\"client\":\"%016" PRIx64 "\"", m->client);
    if (m->checksum != NULL) {
        checksum_write(m->checksum, checksum);
        write_text(out, "checksum", bytes_of(checksum, sizeof(checksum)));
    }
    write_body(out, m->body);
    buf_byte(out, '}');
}

void
state_write_subscription(struct buf *out, const struct store_image_subscription *s,
                         int64_t now_ms)
{
    buf_printf(out, "{\"id\":\"%s\"", s->id.text);
    write_text(out, "subscriber", s->subscriber);
    buf_str(out, ",\"options\":");
    buf_bytes(out, s->options);
    buf_printf(out, ",\"ttl\":%" PRId64, s->ttl_s);
    write_seconds(out, "age", now_ms - s->started_ms);
    buf_printf(out, ",\"confirmed\":%s", s->confirmed ? "true" : "false");
    if (s->asked)
        buf_str(out, ",\"asked\":true");
    write_count(out, "delivered", s->delivered);
    write_count(out, "given_up", s->given_up);
    write_count(out, "fallen_out", s->fallen_out);
    buf_byte(out, '}');
}
