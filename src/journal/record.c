#include "journal/record.h"
#include "claimd/base/invariant.h"
#include "claimd/ds/list.h"
#include "journal/frame.h"
#include "journal/wire.h"

#include <stddef.h>

/* ------------------------------------------------------------------ tables */

/* The format of a field, and the type of its member. */
enum width {
    END,
    U64,       /* uint64_t, int64_t */
    U32,       /* uint32_t */
    FLAG,      /* bool: a byte */
    SWITCHES,  /* flags of struct store_settings, and which of its fields follow */
    KIND,      /* enum store_kind */
    MARK_KIND, /* enum record_mark */
    KEY_KIND,  /* enum store_key_kind */
    ID,        /* struct store_id: 12 bytes; zeros: none */
    TEXT,      /* struct bytes: length 4, bytes */
    OPTIONAL_TEXT,
    /* A byte in front says whether the field is present: */
    OPTIONAL_TIME,     /* int64_t other than 0 */
    OPTIONAL_CLAIM,    /* pointer to a claim */
    OPTIONAL_CHECKSUM, /* pointer to a checksum */
    OPTIONAL_ID,       /* struct store_id, where original_id is set */
    POINTED_DETAILS    /* pointer to details: see put_details() */
};

enum base { CHANGE, METADATA, SUBSCRIPTION, MARKED, KEY, RUN, MESSAGE, BASES };

struct field {
    uint8_t width, base;
    uint16_t offset;
};

#define FIELD(width, base, type, member)                                                 \
    {                                                                                    \
        width, base, offsetof(struct type, member)                                       \
    }
#define OF_CHANGE(width, member)   FIELD(width, CHANGE, store_change, member)
#define OF_METADATA(width, member) FIELD(width, METADATA, store_metadata, member)
#define OF_SUBSCRIPTION(width, member)                                                   \
    FIELD(width, SUBSCRIPTION, store_subscription_record, member)
#define OF_MARK(width, member)    FIELD(width, MARKED, mark, member)
#define OF_KEY(width, member)     FIELD(width, KEY, store_key_record, member)
#define OF_RUN(width, member)     FIELD(width, RUN, store_run_record, member)
#define OF_MESSAGE(width, member) FIELD(width, MESSAGE, store_message_record, member)

#define DOCUMENT                                                                         \
    OF_METADATA(FLAG, settings.transient), OF_METADATA(SWITCHES, settings),              \
        OF_METADATA(U64, settings.max_post_bytes),                                       \
        OF_METADATA(U64, settings.message_ttl_s),                                        \
        OF_METADATA(U64, settings.message_delay_s),                                      \
        OF_METADATA(U64, settings.max_claim_count),                                      \
        OF_METADATA(U64, settings.dead_letter_ttl_s),                                    \
        OF_METADATA(OPTIONAL_TEXT, settings.dead_letter), OF_METADATA(TEXT, json)

#define PROGRESS                                                                         \
    OF_SUBSCRIPTION(U64, number), OF_SUBSCRIPTION(FLAG, confirmed),                      \
        OF_SUBSCRIPTION(FLAG, attached), OF_SUBSCRIPTION(U64, after),                    \
        OF_SUBSCRIPTION(U32, pending), OF_SUBSCRIPTION(U64, delivered),                  \
        OF_SUBSCRIPTION(U64, permanent_failures), OF_SUBSCRIPTION(U64, dropped)

#define WHOLE_MESSAGE                                                                    \
    OF_MESSAGE(U64, number), OF_MESSAGE(U64, posted_ms), OF_MESSAGE(U64, expires_ms),    \
        OF_MESSAGE(U64, client), OF_MESSAGE(U32, claim_count),                           \
        OF_MESSAGE(OPTIONAL_TIME, delayed_until_ms), OF_MESSAGE(OPTIONAL_CLAIM, claim),  \
        OF_MESSAGE(OPTIONAL_CHECKSUM, checksum), OF_MESSAGE(OPTIONAL_ID, id),            \
        OF_MESSAGE(TEXT, body)

static const struct field no_fields[] = {{END, 0, 0}};
static const struct field queue_fields[] = {OF_CHANGE(U64, fence_base),
                                            OF_CHANGE(U64, last_number),
                                            OF_CHANGE(U64, last_claim),
                                            OF_CHANGE(U64, marks.tag_start),
                                            OF_CHANGE(U64, marks.tags_used),
                                            OF_CHANGE(U64, marks.fence),
                                            OF_CHANGE(KIND, queue.kind),
                                            OF_CHANGE(TEXT, queue.project),
                                            OF_CHANGE(TEXT, queue.name),
                                            DOCUMENT,
                                            {END, 0, 0}};
static const struct field document_fields[] = {DOCUMENT, {END, 0, 0}};
static const struct field gone_fields[] = {
    OF_CHANGE(U64, fence_base),      OF_CHANGE(U64, last_claim),
    OF_CHANGE(U64, marks.tag_start), OF_CHANGE(U64, marks.tags_used),
    OF_CHANGE(U64, marks.fence),     {END, 0, 0}};
static const struct field claim_fields[] = {OF_CHANGE(ID, claim.id),
                                            OF_CHANGE(U64, claim.started_ms),
                                            OF_CHANGE(U64, claim.ends_ms),
                                            {END, 0, 0}};
static const struct field move_fields[] = {OF_CHANGE(U32, target_tag), {END, 0, 0}};
static const struct field progress_fields[] = {PROGRESS, {END, 0, 0}};
static const struct field subscription_fields[] = {PROGRESS,
                                                   OF_SUBSCRIPTION(ID, id),
                                                   OF_SUBSCRIPTION(U64, started_ms),
                                                   OF_SUBSCRIPTION(U64, ttl_s),
                                                   OF_SUBSCRIPTION(TEXT, subscriber),
                                                   OF_SUBSCRIPTION(TEXT, options),
                                                   {END, 0, 0}};
static const struct field unsubscribed_fields[] = {OF_SUBSCRIPTION(U64, number),
                                                   {END, 0, 0}};
static const struct field mark_fields[] = {
    OF_MARK(MARK_KIND, what),     OF_MARK(U64, since),      OF_MARK(U64, used.tag_start),
    OF_MARK(U64, used.tags_used), OF_MARK(U64, used.fence), {END, 0, 0}};

static const struct field key_fields[] = {OF_KEY(U64, key.hash[0]),
                                          OF_KEY(U64, key.hash[1]),
                                          OF_KEY(U64, key.digest[0]),
                                          OF_KEY(U64, key.digest[1]),
                                          OF_KEY(U64, made_ms),
                                          OF_KEY(KEY_KIND, kind),
                                          OF_KEY(U64, first),
                                          OF_KEY(U32, count),
                                          OF_KEY(ID, claim_id),
                                          OF_KEY(TEXT, result),
                                          {END, 0, 0}};

static const struct field run_fields[] = {OF_RUN(U64, first),
                                          OF_RUN(U64, stored),
                                          OF_RUN(U64, unread),
                                          OF_RUN(U64, sealed),
                                          OF_RUN(U64, posted_ms),
                                          OF_RUN(U64, expires_ms),
                                          OF_RUN(U32, place.file),
                                          OF_RUN(U32, place.length),
                                          OF_RUN(U64, place.offset),
                                          OF_RUN(TEXT, outlines),
                                          {END, 0, 0}};

static const struct field whole_message[] = {WHOLE_MESSAGE, {END, 0, 0}};
static const struct field moved_message[] = {
    OF_MESSAGE(U64, old_number), WHOLE_MESSAGE, {END, 0, 0}};
static const struct field held_message[] = {OF_MESSAGE(U64, number),
                                            OF_MESSAGE(U64, expires_ms),
                                            OF_MESSAGE(U32, claim_count),
                                            {END, 0, 0}};
static const struct field retried_message[] = {
    OF_MESSAGE(U64, number),
    OF_MESSAGE(U64, expires_ms),
    OF_MESSAGE(U32, claim_count),
    OF_MESSAGE(OPTIONAL_TIME, delayed_until_ms),
    {END, 0, 0}};
static const struct field detailed_message[] = {
    OF_MESSAGE(U64, number), OF_MESSAGE(POINTED_DETAILS, details), {END, 0, 0}};
/* The number in the source; the number itself if the change is no MOVE. */
static const struct field named_message[] = {OF_MESSAGE(U64, old_number), {END, 0, 0}};

struct row {
    const char *name;
    bool of_queue; /* also logged if the queue is transient */
    const struct field *fields;
    const struct field *message; /* NULL: none */
};

static const struct row rows[RECORD_TYPES] = {
    [0] = {NULL, false, no_fields, NULL},
    [STORE_CHANGE_QUEUE] = {"QUEUE", true, queue_fields, NULL},
    [STORE_CHANGE_META] = {"META", true, document_fields, NULL},
    [STORE_CHANGE_QUEUE_GONE] = {"QUEUE_GONE", true, gone_fields, NULL},
    [STORE_CHANGE_PURGE] = {"PURGE", false, no_fields, NULL},
    [STORE_CHANGE_POST] = {"POST", false, no_fields, whole_message},
    [STORE_CHANGE_DELETE] = {"DELETE", false, no_fields, named_message},
    [STORE_CHANGE_CLAIM] = {"CLAIM", false, claim_fields, held_message},
    [STORE_CHANGE_RENEW] = {"RENEW", false, claim_fields, held_message},
    [STORE_CHANGE_RELEASE] = {"RELEASE", false, claim_fields, held_message},
    [STORE_CHANGE_MOVE] = {"MOVE", false, move_fields, moved_message},
    [STORE_CHANGE_SUBSCRIPTION] = {"SUBSCRIPTION", true, subscription_fields, NULL},
    [STORE_CHANGE_SUBSCRIPTION_GONE] = {"SUBSCRIPTION_GONE", true, unsubscribed_fields,
                                        NULL},
    [STORE_CHANGE_UNSUBSCRIBED] = {"UNSUBSCRIBED", true, no_fields, NULL},
    [STORE_CHANGE_CURSOR] = {"CURSOR", false, progress_fields, NULL},
    [STORE_CHANGE_STATE] = {"STATE", false, no_fields, whole_message},
    [STORE_CHANGE_FEED] = {"FEED", false, no_fields, whole_message},
    [STORE_CHANGE_RETRY] = {"RETRY", false, no_fields, retried_message},
    [STORE_CHANGE_DETAILS] = {"DETAILS", false, no_fields, detailed_message},
    [STORE_CHANGE_KEY] = {"KEY", false, key_fields, whole_message},
    [STORE_CHANGE_RUN] = {"RUN", false, run_fields, NULL},
    [RECORD_MARK] = {"MARK", false, mark_fields, NULL},
};

static const struct row *
record_row(unsigned type)
{
    return &rows[type < RECORD_TYPES ? type : 0];
}

const char *
record_type_name(unsigned type)
{
    return record_row(type)->name;
}

unsigned
record_type_of(const struct store_change *change)
{
    /* A MOVE to a transient queue is logged as a DELETE, a MOVE from one as a MOVE. */
    if (change->kind == STORE_CHANGE_MOVE && change->target_transient)
        return change->transient ? 0 : STORE_CHANGE_DELETE;
    if ((unsigned)change->kind >= RECORD_TYPES ||
        (change->transient && change->kind != STORE_CHANGE_MOVE &&
         !rows[change->kind].of_queue))
        return 0;
    return change->kind;
}

/* ------------------------------------------------------------------ features */

bool
record_may_need_features(unsigned type)
{
    return type == STORE_CHANGE_DETAILS || type == STORE_CHANGE_QUEUE ||
           type == STORE_CHANGE_META;
}

unsigned
record_features(struct store_change *change)
{
    struct store_message_record m;
    unsigned needed = 0;

    if (change->kind == STORE_CHANGE_QUEUE && change->queue.kind == STORE_SCHEDULES)
        needed |= SEGMENT_UNIQUE;
    if (change->metadata != NULL && change->metadata->settings.paused_by.len > 0)
        needed |= SEGMENT_CAUSES;
    while (change->kind == STORE_CHANGE_DETAILS && change->next(change, &m)) {
        if (m.details->unique.key.len > 0)
            needed |= SEGMENT_UNIQUE;
        if (m.details->cause != STORE_CAUSE_UNKNOWN)
            needed |= SEGMENT_CAUSES;
    }
    return needed;
}

/* ------------------------------------------------------------------ writing */

enum {
    FIXED_MOST = 192,
    ID_BYTES = 12,
    ID_DIGITS = 2 * ID_BYTES,
    ABSENT = 0,
    PRESENT = 1
};

size_t
record_bound(size_t messages, size_t bytes)
{
    return FIXED_MOST + messages * STORE_LOG_EACH + bytes;
}

static uint8_t *
put_id(uint8_t *at, const struct store_id *id)
{
    for (size_t i = 0; i < ID_DIGITS; i += 8) {
        uint32_t part = 0;

        ENSURE(id->text[0] == '\0' || hex_read_eight_nocase(id->text + i, &part));
        at = wire_put_u32(at, part);
    }
    return at;
}

static uint8_t *
put_text(uint8_t *at, struct bytes text)
{
    ENSURE(text.len < UINT32_MAX);
    at = wire_put_u32(at, (uint32_t)text.len);
    return wire_put(at, text.data, text.len);
}

/* In the length of the reason: the cause and the attempts of a dead letter follow the
 * texts; a byte of bits and the key come last. */
#define KEYED_BIT (UINT32_C(1) << 31)
#define CAUSE_BIT (UINT32_C(1) << 30)

/* The byte in front of the key; DUE: the due time follows it. */
enum { UNTIL_CLAIMED_BIT = 1, DUE_BIT = 2 };

/* Two times and three texts, and what there is of the cause and the key. */
static uint8_t *
put_details(uint8_t *at, const struct store_details *details)
{
    const bool keyed = details->unique.key.len > 0;
    const bool caused = details->cause != STORE_CAUSE_UNKNOWN;

    ENSURE(details->reason.len < CAUSE_BIT);
    at = wire_put_u64(at, (uint64_t)details->released_ms);
    at = wire_put_u64(at, (uint64_t)details->dead_lettered_ms);
    at = wire_put_u32(at, (uint32_t)details->reason.len | (keyed ? KEYED_BIT : 0) |
                              (caused ? CAUSE_BIT : 0));
    at = wire_put(at, details->reason.data, details->reason.len);
    at = put_text(at, details->client);
    at = put_text(at, details->origin);
    if (caused) {
        *at++ = (uint8_t)details->cause;
        at = wire_put_u32(at, details->attempts);
    }
    if (!keyed)
        return at;
    *at++ = (uint8_t)((details->unique.until_claimed ? UNTIL_CLAIMED_BIT : 0) |
                      (details->unique.due_ms != 0 ? DUE_BIT : 0));
    if (details->unique.due_ms != 0)
        at = wire_put_u64(at, (uint64_t)details->unique.due_ms);
    return put_text(at, details->unique.key);
}

/*
 * A byte of bits: encrypt, those of enum store_pause, and which of claim_ttl_s,
 * claim_grace_s and paused_by follow. Older records have only the first.
 */
enum {
    ENCRYPT_BIT = 1,
    PAUSE_SHIFT = 1,
    PAUSE_BITS = STORE_PAUSE_CLAIMS | STORE_PAUSE_POSTS,
    CLAIM_TTL_BIT = 8,
    CLAIM_GRACE_BIT = 16,
    PAUSED_BY_BIT = 32
};

static uint8_t *
put_switches(uint8_t *at, const struct store_settings *set)
{
    const bool ttl = set->claim_ttl_s != STORE_UNSET;
    const bool grace = set->claim_grace_s != STORE_UNSET;
    const bool by = set->paused_by.len > 0;

    *at++ = (uint8_t)((set->encrypt ? ENCRYPT_BIT : 0) | (set->paused << PAUSE_SHIFT) |
                      (ttl ? CLAIM_TTL_BIT : 0) | (grace ? CLAIM_GRACE_BIT : 0) |
                      (by ? PAUSED_BY_BIT : 0));
    if (ttl)
        at = wire_put_u64(at, (uint64_t)set->claim_ttl_s);
    if (grace)
        at = wire_put_u64(at, (uint64_t)set->claim_grace_s);
    return by ? put_text(at, set->paused_by) : at;
}

/* Fields with a byte in front that says whether they are present. */
static uint8_t *
put_optional(uint8_t *at, enum width width, const void *member,
             const struct store_message_record *m)
{
    const struct store_claim_record *claim;
    const void *pointed = NULL;
    bool there;

    if (width == OPTIONAL_TIME)
        there = *(const int64_t *)member != 0;
    else if (width == OPTIONAL_ID)
        there = m->original_id;
    else
        there = (pointed = *(const void *const *)member) != NULL;
    *at++ = there ? PRESENT : ABSENT;
    if (!there)
        return at;
    switch (width) {
    case OPTIONAL_TIME:
        return wire_put(at, member, sizeof(int64_t));
    case OPTIONAL_ID:
        return put_id(at, member);
    case OPTIONAL_CLAIM:
        claim = pointed;
        at = put_id(at, &claim->id);
        at = wire_put_u64(at, (uint64_t)claim->started_ms);
        return wire_put_u64(at, (uint64_t)claim->ends_ms);
    default:
        return wire_put(at, pointed, sizeof(struct store_checksum));
    }
}

static uint8_t *
put_fields(uint8_t *at, const struct field *fields, const void *const bases[BASES])
{
    for (const struct field *f = fields; f->width != END; f++) {
        const void *member = (const char *)bases[f->base] + f->offset;

        switch ((enum width)f->width) {
        case U64:
            at = wire_put(at, member, sizeof(uint64_t));
            break;
        case U32:
        case KIND:
        case MARK_KIND:
        case KEY_KIND:
            at = wire_put(at, member, sizeof(uint32_t));
            break;
        case FLAG:
            *at++ = *(const bool *)member;
            break;
        case SWITCHES:
            at = put_switches(at, member);
            break;
        case ID:
            at = put_id(at, member);
            break;
        case OPTIONAL_TEXT:
            if (!bytes_present(*(const struct bytes *)member)) {
                at = wire_put_u32(at, UINT32_MAX);
                break;
            }
            at = put_text(at, *(const struct bytes *)member);
            break;
        case TEXT:
            at = put_text(at, *(const struct bytes *)member);
            break;
        case POINTED_DETAILS:
            at = put_details(at, *(const struct store_details *const *)member);
            break;
        default:
            at = put_optional(at, (enum width)f->width, member, bases[MESSAGE]);
        }
    }
    return at;
}

/* Pads the record that ends at `end`, and writes its head. Returns its size. */
static size_t
finish_record(uint8_t *to, uint8_t *end, unsigned type, uint32_t tag, size_t count,
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
    (void)wire_put_u64(at, (uint64_t)now_ms);
    return (size_t)(end - to);
}

size_t
record_write(uint8_t *to, struct store_change *change)
{
    const unsigned type = record_type_of(change);
    const struct row *row = record_row(type);
    struct store_message_record m;
    const void *const bases[BASES] = {[CHANGE] = change,
                                      [METADATA] = change->metadata,
                                      [SUBSCRIPTION] = change->subscription,
                                      [KEY] = change->key,
                                      [RUN] = change->run,
                                      [MESSAGE] = &m};
    size_t count = 0;
    uint8_t *at;

    if (type == 0)
        return 0;
    at = put_fields(to + RECORD_HEAD_BYTES, row->fields, bases);
    for (; row->message != NULL && change->next(change, &m); count++)
        at = put_fields(at, row->message, bases);
    return finish_record(to, at, type, change->tag, count, change->now_ms);
}

size_t
record_write_mark(uint8_t *to, const struct mark *mark, int64_t now_ms)
{
    const void *const bases[BASES] = {[MARKED] = mark};
    uint8_t *at = put_fields(to + RECORD_HEAD_BYTES, mark_fields, bases);

    return finish_record(to, at, RECORD_MARK, 0, 0, now_ms);
}

/* ------------------------------------------------------------------ reading */

/* Reads len bytes; NULL if there are fewer. */
static const uint8_t *
get_bytes(struct record *r, size_t len)
{
    const uint8_t *at = r->at;

    if (r->left < len)
        return NULL;
    r->at += len;
    r->left -= len;
    return at;
}

static bool
get_number(struct record *r, void *out, size_t size)
{
    const uint8_t *at = get_bytes(r, size);

    if (at != NULL)
        memcpy(out, at, size);
    return at != NULL;
}

/* Reads a number from `least` to `most` into an enum. */
static bool
get_enum(struct record *r, uint32_t least, uint32_t most, void *out)
{
    uint32_t value;

    if (!get_number(r, &value, sizeof(value)) || value < least || value > most)
        return false;
    memcpy(out, &value, sizeof(value));
    return true;
}

static bool
get_flag(struct record *r, bool *out)
{
    const uint8_t *at = get_bytes(r, 1);

    if (at == NULL || *at > PRESENT)
        return false;
    *out = *at == PRESENT;
    return true;
}

static bool
get_id(struct record *r, struct store_id *out)
{
    const uint8_t *at = get_bytes(r, ID_BYTES);

    *out = (struct store_id){""};
    if (at == NULL)
        return false;
    if (wire_blank(at, ID_BYTES))
        return true;
    for (size_t i = 0; i < ID_DIGITS; i += 8, at += 4)
        hex_write_eight(out->text + i, wire_u32(at));
    return store_id_good(store_id_bytes(out));
}

static bool
get_text_of(struct record *r, uint32_t len, struct bytes *out)
{
    const uint8_t *at = get_bytes(r, len);

    if (at != NULL)
        *out = bytes_of((const char *)at, len);
    return at != NULL;
}

static bool
get_text(struct record *r, bool optional, struct bytes *out)
{
    uint32_t len;

    *out = BYTES_NONE;
    if (!get_number(r, &len, sizeof(len)))
        return false;
    return len == UINT32_MAX ? optional : get_text_of(r, len, out);
}

static bool
get_switches(struct record *r, struct store_settings *out)
{
    const unsigned known = ENCRYPT_BIT | PAUSE_BITS << PAUSE_SHIFT | CLAIM_TTL_BIT |
                           CLAIM_GRACE_BIT | PAUSED_BY_BIT;
    const uint8_t *at = get_bytes(r, 1);
    unsigned bits;

    if (at == NULL || *at > known)
        return false;
    bits = *at;
    out->encrypt = (bits & ENCRYPT_BIT) != 0;
    out->paused = bits >> PAUSE_SHIFT & PAUSE_BITS;
    out->claim_ttl_s = out->claim_grace_s = STORE_UNSET;
    return ((bits & CLAIM_TTL_BIT) == 0 ||
            get_number(r, &out->claim_ttl_s, sizeof(out->claim_ttl_s))) &&
           ((bits & CLAIM_GRACE_BIT) == 0 ||
            get_number(r, &out->claim_grace_s, sizeof(out->claim_grace_s))) &&
           ((bits & PAUSED_BY_BIT) == 0 ||
            (get_text(r, false, &out->paused_by) && out->paused_by.len > 0));
}

static bool
get_unique(struct record *r, struct store_unique *out)
{
    const uint8_t *at = get_bytes(r, 1);

    unsigned bits;

    if (at == NULL || *at > (UNTIL_CLAIMED_BIT | DUE_BIT))
        return false;
    bits = *at;
    out->until_claimed = (bits & UNTIL_CLAIMED_BIT) != 0;
    if ((bits & DUE_BIT) != 0 && !get_number(r, &out->due_ms, sizeof(out->due_ms)))
        return false;
    return get_text(r, false, &out->key) && out->key.len > 0;
}

static bool
get_cause(struct record *r, struct store_details *out)
{
    const uint8_t *at = get_bytes(r, 1);

    if (at == NULL || *at == STORE_CAUSE_UNKNOWN || *at >= STORE_CAUSES)
        return false;
    out->cause = (enum store_cause) * at;
    return get_number(r, &out->attempts, sizeof(out->attempts));
}

/* Reads details into the record, which *out points to then. */
static bool
get_details(struct record *r, const struct store_details **out)
{
    struct store_details *d = &r->details;
    uint32_t len;

    *out = d;
    *d = (struct store_details){.released_ms = 0};
    return get_number(r, &d->released_ms, sizeof(d->released_ms)) &&
           get_number(r, &d->dead_lettered_ms, sizeof(d->dead_lettered_ms)) &&
           get_number(r, &len, sizeof(len)) &&
           get_text_of(r, len & ~(KEYED_BIT | CAUSE_BIT), &d->reason) &&
           get_text(r, false, &d->client) && get_text(r, false, &d->origin) &&
           ((len & CAUSE_BIT) == 0 || get_cause(r, d)) &&
           ((len & KEYED_BIT) == 0 || get_unique(r, &d->unique));
}

/* Fields with a byte in front that says whether they are present. */
static bool
get_optional(struct record *r, enum width width, void *member,
             struct store_message_record *m)
{
    struct store_claim_record *claim = &r->change.claim;
    bool there;

    if (!get_flag(r, &there))
        return false;
    if (!there)
        return true;
    switch (width) {
    case OPTIONAL_TIME:
        return get_number(r, member, sizeof(int64_t)) && *(int64_t *)member != 0;
    case OPTIONAL_ID:
        m->original_id = true;
        return get_id(r, member) && ((struct store_id *)member)->text[0] != '\0';
    case OPTIONAL_CLAIM:
        m->claim = claim;
        return get_id(r, &claim->id) && claim->id.text[0] != '\0' &&
               get_number(r, &claim->started_ms, sizeof(claim->started_ms)) &&
               get_number(r, &claim->ends_ms, sizeof(claim->ends_ms));
    default:
        m->checksum = &r->checksum;
        return get_number(r, &r->checksum, sizeof(r->checksum));
    }
}

static bool
get_field(struct record *r, const struct field *f, void *const bases[BASES])
{
    void *member = (char *)bases[f->base] + f->offset;

    switch ((enum width)f->width) {
    case U64:
        return get_number(r, member, sizeof(uint64_t));
    case U32:
        return get_number(r, member, sizeof(uint32_t));
    case KIND:
        return get_enum(r, STORE_QUEUE, STORE_SCHEDULES, member);
    case MARK_KIND:
        return get_enum(r, MARK_OPENED, MARK_FILE_GONE, member);
    case KEY_KIND:
        return get_enum(r, STORE_KEY_POST, STORE_KEY_FINISH, member);
    case FLAG:
        return get_flag(r, member);
    case SWITCHES:
        return get_switches(r, member);
    case ID:
        return get_id(r, member);
    case TEXT:
    case OPTIONAL_TEXT:
        return get_text(r, f->width == OPTIONAL_TEXT, member);
    case POINTED_DETAILS:
        return get_details(r, member);
    default:
        return get_optional(r, (enum width)f->width, member, bases[MESSAGE]);
    }
}

static bool
get_fields(struct record *r, const struct field *fields, struct store_message_record *m)
{
    void *const bases[BASES] = {[CHANGE] = &r->change,
                                [METADATA] = &r->metadata,
                                [SUBSCRIPTION] = &r->subscription,
                                [MARKED] = &r->mark,
                                [KEY] = &r->key,
                                [RUN] = &r->run,
                                [MESSAGE] = m};

    for (const struct field *f = fields; f->width != END; f++)
        if (!get_field(r, f, bases))
            return false;
    return true;
}

static_assert(
    offsetof(struct store_message_record, client) ==
        offsetof(struct store_message_record, number) + 24,
    "get_plain_message() copies number, posted_ms, expires_ms and client at once");

/*
 * Reads a whole message without optional fields, like nearly all messages. This saves a
 * third of the time of recovery. False: the message is another one or damaged, and
 * nothing was read.
 */
static bool
get_plain_message(struct record *r, struct store_message_record *out)
{
    enum {
        COUNT_AT = 32,
        BYTES_AT = COUNT_AT + 4,
        LENGTH_AT = BYTES_AT + 4,
        BODY_AT = LENGTH_AT + 4
    };
    uint32_t len;

    if (r->left < BODY_AT || wire_u32(r->at + BYTES_AT) != 0)
        return false;
    len = wire_u32(r->at + LENGTH_AT);
    if (len > r->left - BODY_AT)
        return false;
    memcpy(&out->number, r->at, COUNT_AT);
    out->claim_count = wire_u32(r->at + COUNT_AT);
    out->body = bytes_of((const char *)r->at + BODY_AT, len);
    (void)get_bytes(r, BODY_AT + len);
    return true;
}

static bool
get_message(struct record *r, struct store_message_record *out)
{
    const struct field *fields = record_row(r->type)->message;

    *out = (struct store_message_record){.number = 0};
    if (!(fields == whole_message && get_plain_message(r, out)) &&
        !get_fields(r, fields, out))
        return false;
    if (fields == named_message)
        out->number = out->old_number;
    else if (fields != moved_message)
        out->old_number = out->number;
    return true;
}

/* Reads the next message. It was read before, so this cannot fail. */
static bool
next_message(struct store_change *change, struct store_message_record *out)
{
    struct record *r = container_of(change, struct record, change);

    if (change->count == 0)
        return false;
    change->count--;
    return get_message(r, out);
}

size_t
record_size(const uint8_t *from, size_t len)
{
    size_t size = len < RECORD_HEAD_BYTES ? 0 : wire_u32(from);

    return size < RECORD_HEAD_BYTES || size > len || size % 8 != 0 ? 0 : size;
}

static bool
is_run(const struct store_run_record *run)
{
    const size_t count = (size_t)__builtin_popcountll(run->stored);

    return run->first % 64 == 0 && count > 0 && (run->unread & ~run->stored) == 0 &&
           (run->sealed & ~run->stored) == 0 &&
           run->outlines.len == count * sizeof(struct store_outline);
}

enum status
record_read(const uint8_t *from, size_t len, struct record *out)
{
    size_t size = record_size(from, len);
    struct store_message_record m;
    const struct row *row;
    struct record rest;

    if (size == 0 || wire_u16(from + 6) != 0)
        return ST_BAD_VALUE;
    *out = (struct record){.type = wire_u16(from + 4),
                           .at = from + RECORD_HEAD_BYTES,
                           .left = size - RECORD_HEAD_BYTES};
    row = record_row(out->type);
    if (row->name == NULL)
        return ST_BAD_VALUE;
    out->change = (struct store_change){.kind = (enum store_change_kind)out->type,
                                        .tag = wire_u32(from + 8),
                                        .count = wire_u32(from + 12),
                                        .now_ms = wire_i64(from + 16),
                                        .next = next_message};
    if (!get_fields(out, row->fields, NULL) ||
        (row->message == NULL && out->change.count > 0))
        return ST_BAD_VALUE;
    /* The rest must consist of the messages and the padding. */
    rest = *out;
    for (size_t i = 0; i < out->change.count; i++)
        if (!get_message(&rest, &m))
            return ST_BAD_VALUE;
    if (rest.left >= 8 || !wire_blank(rest.at, rest.left))
        return ST_BAD_VALUE;
    if (row->fields[0].base == METADATA || row->fields == queue_fields) {
        out->change.metadata = &out->metadata;
        out->change.transient = out->metadata.settings.transient;
    }
    if (row->fields == key_fields)
        out->change.key = &out->key;
    if (row->fields == run_fields)
        out->change.run = &out->run;
    if (row->fields == run_fields && !is_run(&out->run))
        return ST_BAD_VALUE;
    if (row->fields[0].base == SUBSCRIPTION)
        out->change.subscription = &out->subscription;
    return ST_OK;
}
