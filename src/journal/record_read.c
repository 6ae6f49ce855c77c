#include "journal/record_type.h"
#include "journal/wire.h"

/* Takes len bytes off; NULL if there are fewer. */
static const uint8_t *
take(struct record *r, size_t len)
{
    const uint8_t *at = r->at;

    if (r->left < len)
        return NULL;
    r->at += len;
    r->left -= len;
    return at;
}

/* Takes a text off; false if it is not whole. */
static bool
take_text(struct record *r, size_t len, struct bytes *out)
{
    const uint8_t *at = take(r, len);

    if (at == NULL)
        return false;
    *out = bytes_of((const char *)at, len);
    return true;
}

static struct store_marks
get_marks(const uint8_t *at)
{
    return (struct store_marks){wire_u64(at), wire_u64(at + 8), wire_u64(at + 16)};
}

static bool
take_document(struct record *r)
{
    struct store_settings *set = &r->metadata.settings;
    const uint8_t *at = take(r, DOCUMENT_BYTES);
    unsigned flags;

    if (at == NULL)
        return false;
    flags = wire_u16(at);
    if ((flags & ~(unsigned)DOCUMENT_FLAGS) != 0)
        return false;
    *set = (struct store_settings){.max_post_bytes = wire_i64(at + 8),
                                   .message_ttl_s = wire_i64(at + 16),
                                   .message_delay_s = wire_i64(at + 24),
                                   .max_claim_count = wire_i64(at + 32),
                                   .dead_letter_ttl_s = wire_i64(at + 40),
                                   .transient = (flags & DOCUMENT_TRANSIENT) != 0,
                                   .encrypt = (flags & DOCUMENT_ENCRYPT) != 0};
    if (!take_text(r, wire_u16(at + 2), &set->dead_letter) ||
        !take_text(r, wire_u32(at + 4), &r->metadata.json))
        return false;
    if ((flags & DOCUMENT_DEAD_LETTER) == 0)
        set->dead_letter = BYTES_NONE;
    r->change.metadata = &r->metadata;
    r->change.transient = set->transient;
    return true;
}

static bool
take_queue(struct record *r)
{
    const uint8_t *at = take(r, QUEUE_BYTES - DOCUMENT_BYTES);
    struct store_change *change = &r->change;

    if (at == NULL || wire_u32(at + 48) > STORE_TOPIC)
        return false;
    change->fence_base = wire_u64(at);
    change->last_number = wire_u64(at + 8);
    change->last_claim = wire_u64(at + 16);
    change->marks = get_marks(at + 24);
    change->queue.kind = (enum store_kind)wire_u32(at + 48);
    return take_text(r, wire_u16(at + 52), &change->queue.project) &&
           take_text(r, wire_u16(at + 54), &change->queue.name) && take_document(r);
}

static bool
take_gone(struct record *r)
{
    const uint8_t *at = take(r, GONE_BYTES);

    if (at == NULL)
        return false;
    r->change.fence_base = wire_u64(at);
    r->change.last_claim = wire_u64(at + 8);
    r->change.marks = get_marks(at + 16);
    return true;
}

static bool
take_claim(struct record *r)
{
    const uint8_t *at = take(r, CLAIM_BYTES);

    if (at == NULL || at[CLAIM_BYTES - 1] != '\0')
        return false;
    r->change.claim_number = wire_u64(at);
    r->change.claim_started_ms = wire_i64(at + 8);
    r->change.claim_ends_ms = wire_i64(at + 16);
    memcpy(r->change.claim_id.text, at + 24, STORE_ID_CAP);
    return true;
}

static bool
take_mark(struct record *r)
{
    const uint8_t *at = take(r, MARK_BYTES);

    if (at == NULL || wire_u64(at) < MARK_OPENED || wire_u64(at) > MARK_CLOSED)
        return false;
    r->mark = (struct mark){(enum record_mark)wire_u64(at), get_marks(at + 16),
                            wire_u64(at + 8)};
    return true;
}

static bool
take_target(struct record *r)
{
    const uint8_t *at = take(r, MOVE_BYTES);

    if (at == NULL || wire_u32(at + 4) != 0)
        return false;
    r->change.target_tag = wire_u32(at);
    return true;
}

/* How far a subscription has come. */
static bool
take_progress(struct record *r)
{
    const uint8_t *at = take(r, CURSOR_BYTES);
    unsigned flags;

    if (at == NULL)
        return false;
    flags = wire_u16(at + 40);
    if ((flags & ~(unsigned)SUBSCRIPTION_FLAGS) != 0 || wire_u32(at + 44) != 0)
        return false;
    r->subscription = (struct store_subscription_record){
        .number = wire_u64(at),
        .after = wire_u64(at + 8),
        .delivered = wire_u64(at + 16),
        .given_up = wire_u64(at + 24),
        .fallen_out = wire_u64(at + 32),
        .confirmed = (flags & SUBSCRIPTION_CONFIRMED) != 0,
        .attached = (flags & SUBSCRIPTION_ATTACHED) != 0,
        .pending = wire_u16(at + 42),
    };
    r->change.subscription = &r->subscription;
    return true;
}

static bool
take_subscription(struct record *r)
{
    const uint8_t *at;

    if (!take_progress(r))
        return false;
    at = take(r, SUBSCRIPTION_BYTES - CURSOR_BYTES);
    if (at == NULL || at[SUBSCRIPTION_BYTES - CURSOR_BYTES - 1] != '\0')
        return false;
    r->subscription.started_ms = wire_i64(at);
    r->subscription.ttl_s = wire_i64(at + 8);
    memcpy(r->subscription.id.text, at + 24, STORE_ID_CAP);
    return take_text(r, wire_u32(at + 16), &r->subscription.subscriber) &&
           take_text(r, wire_u32(at + 20), &r->subscription.options);
}

static bool
take_unsubscribed(struct record *r)
{
    const uint8_t *at = take(r, SUBSCRIPTION_GONE_BYTES);

    if (at == NULL)
        return false;
    r->subscription = (struct store_subscription_record){.number = wire_u64(at)};
    r->change.subscription = &r->subscription;
    return true;
}

static bool
take_fixed(struct record *r)
{
    switch (r->type) {
    case RECORD_QUEUE:
    case RECORD_IMAGE_QUEUE:
        return take_queue(r);
    case RECORD_META:
        return take_document(r);
    case RECORD_QUEUE_GONE:
        return take_gone(r);
    case RECORD_CLAIM:
    case RECORD_RENEW:
    case RECORD_RELEASE:
    case RECORD_IMAGE_CLAIM:
        return take_claim(r);
    case RECORD_SUBSCRIPTION:
    case RECORD_IMAGE_SUBSCRIPTION:
        return take_subscription(r);
    case RECORD_SUBSCRIPTION_GONE:
        return take_unsubscribed(r);
    case RECORD_CURSOR:
        return take_progress(r);
    case RECORD_MOVE:
        return take_target(r);
    case RECORD_MARK:
        return take_mark(r);
    default:
        return true;
    }
}

static bool
take_checksum(struct record *r, struct store_message_record *out)
{
    const uint8_t *at = take(r, sizeof(r->checksum.digest));

    if (at == NULL)
        return false;
    memcpy(r->checksum.digest, at, sizeof(r->checksum.digest));
    out->checksum = &r->checksum;
    return true;
}

/* A number that is there only if the message has this flag; 0 if it is not. */
static bool
take_if(struct record *r, bool flag, uint64_t *out)
{
    const uint8_t *at = flag ? take(r, sizeof(*out)) : NULL;

    *out = at == NULL ? 0 : wire_u64(at);
    return at != NULL || !flag;
}

/* What a message has only now and then, as its flags say, and its body. */
static bool
take_extras(struct record *r, unsigned flags, size_t id_len, size_t body_len,
            struct store_message_record *out)
{
    uint64_t delayed_until;
    struct bytes id;

    if (!take_if(r, (flags & MESSAGE_DELAYED) != 0, &delayed_until) ||
        !take_if(r, (flags & MESSAGE_HELD) != 0, &out->claim))
        return false;
    if ((flags & MESSAGE_CHECKSUM) != 0 && !take_checksum(r, out))
        return false;
    if (id_len >= STORE_ID_CAP || !take_text(r, id_len, &id))
        return false;
    out->delayed_until_ms = (int64_t)delayed_until;
    out->foreign = (flags & MESSAGE_FOREIGN) != 0;
    memcpy(out->id.text, id.data, id_len);
    return take_text(r, body_len, &out->body);
}

static bool
take_long(struct record *r, struct store_message_record *out)
{
    const uint8_t *at = take(r, LONG_BYTES);

    /* No body is encoded yet, as a segment's required features would say; one that is sealed
     * says so itself. */
    if (at == NULL || (at[48] & ~(unsigned)MESSAGE_FLAGS) != 0 ||
        wire_u16(at + 50) != 0 || wire_u32(at + 52) != 0)
        return false;
    *out = (struct store_message_record){.number = wire_u64(at),
                                         .old_number = wire_u64(at + 8),
                                         .posted_ms = wire_i64(at + 16),
                                         .expires_ms = wire_i64(at + 24),
                                         .client = wire_u64(at + 32),
                                         .claim_count = wire_u32(at + 40)};
    return take_extras(r, at[48], at[49], wire_u32(at + 44), out);
}

static bool
take_message(struct record *r, struct store_message_record *out)
{
    enum record_form form = record_form_of(r->type);
    const uint8_t *at;

    if (form == RECORD_FORM_LONG)
        return take_long(r, out);
    at = take(r, form == RECORD_FORM_SHORT ? SHORT_BYTES : NUMBER_BYTES);
    if (at == NULL)
        return false;
    *out = (struct store_message_record){.number = wire_u64(at)};
    out->old_number = out->number;
    if (form == RECORD_FORM_SHORT) {
        out->expires_ms = wire_i64(at + 8);
        out->claim_count = wire_u32(at + 16);
    }
    return true;
}

/* All has been looked at before: nothing can be missing. */
static bool
next(struct store_change *change, struct store_message_record *out)
{
    struct record *r = container_of(change, struct record, change);

    if (change->count == 0)
        return false;
    change->count--;
    return take_message(r, out);
}

size_t
record_size(const uint8_t *from, size_t len)
{
    size_t size = len < RECORD_HEAD_BYTES ? 0 : wire_u32(from);

    return size < RECORD_HEAD_BYTES || size > len || size % 8 != 0 ? 0 : size;
}

/* Walks all messages; true if they, and the padding, are what the record consists of. */
static bool
is_whole(const struct record *r)
{
    struct record copy = *r;
    struct store_message_record m;

    for (size_t i = 0; i < r->change.count; i++)
        if (!take_message(&copy, &m))
            return false;
    for (size_t i = 0; i < copy.left; i++)
        if (copy.at[i] != 0)
            return false;
    return copy.left < 8;
}

enum status
record_read(const uint8_t *from, size_t len, struct record *out)
{
    size_t size = record_size(from, len);

    if (size == 0 || wire_u16(from + 6) != 0)
        return ST_BAD_VALUE;
    *out = (struct record){.type = (enum record_type)wire_u16(from + 4),
                           .at = from + RECORD_HEAD_BYTES,
                           .left = size - RECORD_HEAD_BYTES};
    out->change.kind = record_kind_of(out->type);
    if (out->change.kind == STORE_CHANGE_KINDS && out->type != RECORD_MARK)
        return ST_BAD_VALUE;
    out->change.tag = wire_u32(from + 8);
    out->change.count = wire_u32(from + 12);
    out->change.now_ms = wire_i64(from + 16);
    out->change.next = next;
    if (record_form_of(out->type) == RECORD_FORM_NONE && out->change.count > 0)
        return ST_BAD_VALUE;
    return take_fixed(out) && is_whole(out) ? ST_OK : ST_BAD_VALUE;
}
