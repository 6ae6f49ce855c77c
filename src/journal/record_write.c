#include "claimd/base/invariant.h"
#include "journal/record_type.h"
#include "journal/wire.h"

enum { FIXED_MOST = RECORD_HEAD_BYTES + QUEUE_BYTES + 8 };

static_assert(SUBSCRIPTION_BYTES <= QUEUE_BYTES, "the longest is the bound");
static_assert(LONG_BYTES + EXTRAS_BYTES >= SHORT_BYTES, "the longest is the bound");
static_assert(LONG_BYTES + EXTRAS_BYTES <= STORE_LOG_EACH, "and clients are told of it");

size_t
record_bound(size_t messages, size_t bytes)
{
    return FIXED_MOST + messages * (LONG_BYTES + EXTRAS_BYTES) + bytes;
}

static uint8_t *
put_marks(uint8_t *at, const struct store_marks *marks)
{
    at = wire_put_u64(at, marks->tag_start);
    at = wire_put_u64(at, marks->tags_used);
    return wire_put_u64(at, marks->fence);
}

/* Metadata: the meaning first, then the texts. */
static uint8_t *
put_document(uint8_t *at, const struct store_metadata *md)
{
    const struct store_settings *set = &md->settings;
    bool dead_letter = bytes_present(set->dead_letter);

    ENSURE(set->dead_letter.len <= UINT16_MAX && md->json.len <= UINT32_MAX);
    at = wire_put_u16(at, (uint16_t)((set->transient ? DOCUMENT_TRANSIENT : 0) |
                                     (dead_letter ? DOCUMENT_DEAD_LETTER : 0) |
                                     (set->encrypt ? DOCUMENT_ENCRYPT : 0)));
    at = wire_put_u16(at, (uint16_t)set->dead_letter.len);
    at = wire_put_u32(at, (uint32_t)md->json.len);
    at = wire_put_i64(at, set->max_post_bytes);
    at = wire_put_i64(at, set->message_ttl_s);
    at = wire_put_i64(at, set->message_delay_s);
    at = wire_put_i64(at, set->max_claim_count);
    at = wire_put_i64(at, set->dead_letter_ttl_s);
    at = wire_put(at, set->dead_letter.data, set->dead_letter.len);
    return wire_put(at, md->json.data, md->json.len);
}

static uint8_t *
put_queue(uint8_t *at, const struct store_change *change)
{
    const struct store_queue *q = &change->queue;

    ENSURE(q->project.len <= UINT16_MAX && q->name.len <= UINT16_MAX);
    at = wire_put_u64(at, change->fence_base);
    at = wire_put_u64(at, change->last_number);
    at = wire_put_u64(at, change->last_claim);
    at = put_marks(at, &change->marks);
    at = wire_put_u32(at, (uint32_t)q->kind);
    at = wire_put_u16(at, (uint16_t)q->project.len);
    at = wire_put_u16(at, (uint16_t)q->name.len);
    at = wire_put(at, q->project.data, q->project.len);
    at = wire_put(at, q->name.data, q->name.len);
    return put_document(at, change->metadata);
}

static uint8_t *
put_claim(uint8_t *at, const struct store_change *change)
{
    at = wire_put_u64(at, change->claim_number);
    at = wire_put_i64(at, change->claim_started_ms);
    at = wire_put_i64(at, change->claim_ends_ms);
    return wire_put(at, change->claim_id.text, STORE_ID_CAP);
}

static uint8_t *
put_flags(uint8_t *at, const struct store_subscription_record *s)
{
    at = wire_put_u16(at, (uint16_t)((s->confirmed ? SUBSCRIPTION_CONFIRMED : 0) |
                                     (s->attached ? SUBSCRIPTION_ATTACHED : 0)));
    return wire_put_u16(at, (uint16_t)s->pending);
}

/* How far it has come. */
static uint8_t *
put_progress(uint8_t *at, const struct store_subscription_record *s)
{
    at = wire_put_u64(at, s->number);
    at = wire_put_u64(at, s->after);
    at = wire_put_u64(at, s->delivered);
    at = wire_put_u64(at, s->given_up);
    at = wire_put_u64(at, s->fallen_out);
    at = put_flags(at, s);
    return wire_put_u32(at, 0);
}

static uint8_t *
put_subscription(uint8_t *at, const struct store_subscription_record *s)
{
    ENSURE(s->subscriber.len <= UINT32_MAX && s->options.len <= UINT32_MAX);
    at = put_progress(at, s);
    at = wire_put_i64(at, s->started_ms);
    at = wire_put_i64(at, s->ttl_s);
    at = wire_put_u32(at, (uint32_t)s->subscriber.len);
    at = wire_put_u32(at, (uint32_t)s->options.len);
    at = wire_put(at, s->id.text, STORE_ID_CAP);
    at = wire_put(at, s->subscriber.data, s->subscriber.len);
    return wire_put(at, s->options.data, s->options.len);
}

/* What a type has in front of its messages. */
static uint8_t *
put_fixed(uint8_t *at, enum record_type type, const struct store_change *change)
{
    switch (type) {
    case RECORD_QUEUE:
    case RECORD_IMAGE_QUEUE:
        return put_queue(at, change);
    case RECORD_META:
        return put_document(at, change->metadata);
    case RECORD_QUEUE_GONE:
        at = wire_put_u64(at, change->fence_base);
        at = wire_put_u64(at, change->last_claim);
        return put_marks(at, &change->marks);
    case RECORD_CLAIM:
    case RECORD_RENEW:
    case RECORD_RELEASE:
    case RECORD_IMAGE_CLAIM:
        return put_claim(at, change);
    case RECORD_SUBSCRIPTION:
    case RECORD_IMAGE_SUBSCRIPTION:
        return put_subscription(at, change->subscription);
    case RECORD_SUBSCRIPTION_GONE:
        return wire_put_u64(at, change->subscription->number);
    case RECORD_CURSOR:
        return put_progress(at, change->subscription);
    case RECORD_MOVE:
        at = wire_put_u32(at, change->target_tag);
        return wire_put_u32(at, 0);
    default:
        return at;
    }
}

static uint8_t *
put_long(uint8_t *at, const struct store_message_record *m)
{
    size_t id_len = m->foreign ? strlen(m->id.text) : 0;
    unsigned flags = (m->checksum != NULL ? MESSAGE_CHECKSUM : 0u) |
                     (m->foreign ? MESSAGE_FOREIGN : 0u) |
                     (m->delayed_until_ms != 0 ? MESSAGE_DELAYED : 0u) |
                     (m->claim != 0 ? MESSAGE_HELD : 0u);

    at = wire_put_u64(at, m->number);
    at = wire_put_u64(at, m->old_number);
    at = wire_put_i64(at, m->posted_ms);
    at = wire_put_i64(at, m->expires_ms);
    at = wire_put_u64(at, m->client);
    at = wire_put_u32(at, m->claim_count);
    at = wire_put_u32(at, (uint32_t)m->body.len);
    *at++ = (uint8_t)flags;
    *at++ = (uint8_t)id_len;
    at = wire_put_u16(at, 0); /* encoding of the body: as it is */
    at = wire_put_u32(at, 0); /* its key: none */
    if (m->delayed_until_ms != 0)
        at = wire_put_i64(at, m->delayed_until_ms);
    if (m->claim != 0)
        at = wire_put_u64(at, m->claim);
    if (m->checksum != NULL)
        at = wire_put(at, m->checksum->digest, sizeof(m->checksum->digest));
    at = wire_put(at, m->id.text, id_len);
    return wire_put(at, m->body.data, m->body.len);
}

static uint8_t *
put_message(uint8_t *at, enum record_form form, const struct store_message_record *m)
{
    switch (form) {
    case RECORD_FORM_LONG:
        return put_long(at, m);
    case RECORD_FORM_SHORT:
        at = wire_put_u64(at, m->number);
        at = wire_put_i64(at, m->expires_ms);
        return wire_put_u32(at, m->claim_count);
    default:
        return wire_put_u64(at,
                            m->old_number); /* where it was: but for a MOVE the same */
    }
}

/* Pads the record that ends at `end`, and writes its head. */
static size_t
finish(uint8_t *to, uint8_t *end, enum record_type type, uint32_t tag, size_t count,
       int64_t now_ms)
{
    uint8_t *at = to;

    while ((end - to) % 8 != 0)
        *end++ = 0;
    at = wire_put_u32(at, (uint32_t)(end - to));
    at = wire_put_u16(at, (uint16_t)type);
    at = wire_put_u16(at, 0);
    at = wire_put_u32(at, tag);
    at = wire_put_u32(at, (uint32_t)count);
    (void)wire_put_i64(at, now_ms);
    return (size_t)(end - to);
}

size_t
record_write(uint8_t *to, struct store_change *change)
{
    enum record_type type = record_type_of(change);
    enum record_form form = record_form_of(type);
    struct store_message_record m;
    size_t count = 0;
    uint8_t *at;

    if (type == 0)
        return 0;
    at = put_fixed(to + RECORD_HEAD_BYTES, type, change);
    for (; form != RECORD_FORM_NONE && change->next(change, &m); count++)
        at = put_message(at, form, &m);
    return finish(to, at, type, change->tag, count, change->now_ms);
}

size_t
record_write_mark(uint8_t *to, const struct mark *mark, int64_t now_ms)
{
    uint8_t *at = to + RECORD_HEAD_BYTES;

    at = wire_put_u64(at, (uint64_t)mark->what);
    at = wire_put_u64(at, mark->since);
    at = put_marks(at, &mark->used);
    return finish(to, at, RECORD_MARK, 0, 0, now_ms);
}
