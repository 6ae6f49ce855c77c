/*
 * Each record reads back as the change that was written, the bytes on disk stay the same
 * from version to version, and damaged bytes are refused or make another valid record.
 * Read src/journal/record.h next.
 */
#include "journal/record.h"

#include "support/check_main.h"
#include "support/random.h"
#include "support/store_fixture.h"

#include <stdlib.h>

enum { MOST = 5, TEXT = 40 };

/* A change, and all that it points to. */
struct sample {
    struct store_change change;
    struct store_metadata metadata;
    struct store_message_record messages[MOST];
    struct store_claim_record claims[MOST];
    struct store_checksum sums[MOST];
    struct store_subscription_record subscription;
    struct store_details details[MOST];
    char texts[6][TEXT], bodies[MOST][TEXT], reasons[MOST][4][TEXT];
    size_t bytes; /* in texts and bodies */
};

/* A record in exactly as much memory as it has bytes. */
struct image {
    uint8_t *bytes; /* owned */
    size_t len;
};

static const enum store_change_kind logged[] = {
    STORE_CHANGE_QUEUE,        STORE_CHANGE_META,         STORE_CHANGE_QUEUE_GONE,
    STORE_CHANGE_PURGE,        STORE_CHANGE_POST,         STORE_CHANGE_DELETE,
    STORE_CHANGE_CLAIM,        STORE_CHANGE_RENEW,        STORE_CHANGE_RELEASE,
    STORE_CHANGE_MOVE,         STORE_CHANGE_SUBSCRIPTION, STORE_CHANGE_SUBSCRIPTION_GONE,
    STORE_CHANGE_UNSUBSCRIBED, STORE_CHANGE_CURSOR,       STORE_CHANGE_STATE,
    STORE_CHANGE_FEED,         STORE_CHANGE_RETRY,        STORE_CHANGE_DETAILS,
};

enum { LOGGED = sizeof(logged) / sizeof(logged[0]) };

static const char *const type_names[LOGGED] = {
    "QUEUE",        "META",   "QUEUE_GONE", "PURGE", "POST",         "DELETE",
    "CLAIM",        "RENEW",  "RELEASE",    "MOVE",  "SUBSCRIPTION", "SUBSCRIPTION_GONE",
    "UNSUBSCRIBED", "CURSOR", "STATE",      "FEED",  "RETRY",        "DETAILS"};

/* ---------------------------------------------------------------------- samples */

static struct bytes
some_text(struct random *r, struct sample *s, char *buffer)
{
    size_t len = random_below(r, TEXT + 1);

    for (size_t i = 0; i < len; i++)
        buffer[i] = (char)random_next(r);
    s->bytes += len;
    return bytes_of(buffer, len);
}

static bool
next_sample(struct store_change *change, struct store_message_record *out)
{
    const struct sample *s = change->from[0];

    if (change->at == change->count)
        return false;
    *out = s->messages[change->at++];
    return true;
}

static void
some_id(struct random *r, struct store_id *id)
{
    hex_write_eight(id->text, (uint32_t)random_next(r) | 0xa0000000u);
    hex_write(id->text + 8, random_next(r), 16);
}

static void
some_claim(struct random *r, struct store_claim_record *claim)
{
    some_id(r, &claim->id);
    claim->started_ms = (int64_t)random_next(r);
    claim->ends_ms = (int64_t)random_next(r);
}

static void
some_message(struct random *r, struct sample *s, size_t i)
{
    struct store_message_record *m = &s->messages[i];

    *m = (struct store_message_record){.number = random_next(r),
                                       .old_number = random_next(r),
                                       .original_id = random_chance(r, 50),
                                       .client = random_next(r),
                                       .posted_ms = (int64_t)random_next(r),
                                       .expires_ms = (int64_t)random_next(r),
                                       .delayed_until_ms = (int64_t)random_below(r, 3),
                                       .claim_count = (uint32_t)random_next(r)};
    if (m->original_id)
        some_id(r, &m->id);
    if (random_chance(r, 50)) {
        some_claim(r, &s->claims[i]);
        m->claim = &s->claims[i];
    }
    m->body = some_text(r, s, s->bodies[i]);
    for (size_t k = 0; k < sizeof(s->sums[i].digest); k++)
        s->sums[i].digest[k] = (uint8_t)random_next(r);
    m->checksum = random_chance(r, 50) ? &s->sums[i] : NULL;
    s->details[i] = (struct store_details){.released_ms = (int64_t)random_next(r),
                                           .dead_lettered_ms = (int64_t)random_next(r)};
    s->details[i].reason = some_text(r, s, s->reasons[i][0]);
    s->details[i].client = some_text(r, s, s->reasons[i][1]);
    s->details[i].origin = some_text(r, s, s->reasons[i][2]);
    s->details[i].unique.key = some_text(r, s, s->reasons[i][3]);
    s->details[i].unique.until_claimed =
        s->details[i].unique.key.len > 0 && random_chance(r, 50);
    m->details = &s->details[i];
}

static void
some_metadata(struct random *r, struct sample *s)
{
    struct store_settings *set = &s->metadata.settings;

    *set = (struct store_settings){.max_post_bytes = (int64_t)random_next(r),
                                   .message_ttl_s = (int64_t)random_next(r),
                                   .message_delay_s = (int64_t)random_next(r),
                                   .max_claim_count = (int64_t)random_next(r),
                                   .dead_letter_ttl_s = (int64_t)random_next(r),
                                   .encrypt = random_chance(r, 50),
                                   .paused = (unsigned)random_below(r, 4)};
    set->claim_ttl_s = random_chance(r, 50) ? (int64_t)random_next(r) : STORE_UNSET;
    set->claim_grace_s = random_chance(r, 50) ? (int64_t)random_next(r) : STORE_UNSET;
    if (random_chance(r, 50))
        set->dead_letter = some_text(r, s, s->texts[0]);
    if (set->paused != 0 && random_chance(r, 50))
        set->paused_by = bytes_str("5\nweb3");
    s->metadata.json = some_text(r, s, s->texts[1]);
}

static void
some_subscription(struct random *r, struct sample *s)
{
    s->subscription = (struct store_subscription_record){
        .number = random_next(r),
        .subscriber = some_text(r, s, s->texts[4]),
        .options = some_text(r, s, s->texts[5]),
        .started_ms = (int64_t)random_next(r),
        .ttl_s = (int64_t)random_next(r),
        .confirmed = random_chance(r, 50),
        .attached = random_chance(r, 50),
        .after = random_next(r),
        .pending = (uint32_t)random_below(r, 4),
        .delivered = random_next(r),
        .permanent_failures = random_next(r),
        .dropped = random_next(r),
    };
    some_id(r, &s->subscription.id);
}

/* Kinds that have no messages. */
static bool
is_without_messages(enum store_change_kind kind)
{
    return kind <= STORE_CHANGE_PURGE ||
           (kind >= STORE_CHANGE_SUBSCRIPTION && kind <= STORE_CHANGE_CURSOR);
}

/* Fills in all fields, also those that the kind does not have. */
static void
some_change(struct random *r, struct sample *s, enum store_change_kind kind)
{
    struct store_change *change = &s->change;

    memset(s, 0, sizeof(*s));
    some_metadata(r, s);
    *change = (struct store_change){
        .kind = kind,
        .now_ms = (int64_t)random_next(r),
        .tag = (uint32_t)random_next(r),
        .fence_base = random_next(r),
        .last_number = random_next(r),
        .last_claim = random_next(r),
        .marks = {random_next(r), random_next(r), random_next(r)},
        .metadata = &s->metadata,
        .target_tag = (uint32_t)random_next(r),
        .next = next_sample,
        .from = {s, NULL},
    };
    change->queue.project = some_text(r, s, s->texts[2]);
    change->queue.name = some_text(r, s, s->texts[3]);
    change->queue.kind = random_chance(r, 50) ? STORE_TOPIC : STORE_QUEUE;
    some_claim(r, &change->claim);
    some_subscription(r, s);
    change->subscription = &s->subscription;
    change->count = is_without_messages(kind) ? 0 : random_below(r, MOST + 1);
    for (size_t i = 0; i < change->count; i++)
        some_message(r, s, i);
}

/* Without an assertion: Check notes each one, which is slow where there are many. */
static void *
allocate(size_t len)
{
    void *buffer = malloc(len + (len == 0));

    if (buffer == NULL)
        ck_abort_msg("no memory");
    return buffer;
}

/* Writes a change, which is used up, into the space that it is granted. */
static struct image
write_change(struct store_change *change, size_t bytes)
{
    size_t bound = record_bound(change->count, bytes);
    uint8_t *buffer = allocate(bound), *exact;
    size_t len;

    memset(buffer, 0xa5, bound);
    len = record_write(buffer, change);
    if (len == 0 || len > bound || len % 8 != 0)
        ck_abort_msg("%zu bytes in space for %zu", len, bound);
    exact = memcpy(allocate(len), buffer, len);
    free(buffer);
    return (struct image){exact, len};
}

static struct image
write_sample(const struct sample *s)
{
    struct store_change change = s->change;

    return write_change(&change, s->bytes);
}

/* ---------------------------------------------------------------------- comparing */

static void
same_metadata(const struct store_metadata *a, const struct store_metadata *b)
{
    ck_assert(bytes_equal(a->json, b->json));
    ck_assert_int_eq(a->settings.max_post_bytes, b->settings.max_post_bytes);
    ck_assert_int_eq(a->settings.message_ttl_s, b->settings.message_ttl_s);
    ck_assert_int_eq(a->settings.message_delay_s, b->settings.message_delay_s);
    ck_assert_int_eq(a->settings.claim_ttl_s, b->settings.claim_ttl_s);
    ck_assert_int_eq(a->settings.claim_grace_s, b->settings.claim_grace_s);
    ck_assert_int_eq(a->settings.max_claim_count, b->settings.max_claim_count);
    ck_assert_int_eq(a->settings.dead_letter_ttl_s, b->settings.dead_letter_ttl_s);
    ck_assert_int_eq(bytes_present(a->settings.dead_letter),
                     bytes_present(b->settings.dead_letter));
    ck_assert(bytes_equal(a->settings.dead_letter, b->settings.dead_letter));
    ck_assert_int_eq(a->settings.transient, b->settings.transient);
    ck_assert_int_eq(a->settings.encrypt, b->settings.encrypt);
    ck_assert_uint_eq(a->settings.paused, b->settings.paused);
    ck_assert(bytes_equal(a->settings.paused_by, b->settings.paused_by));
}

static void
same_marks(const struct store_marks *a, const struct store_marks *b)
{
    ck_assert_uint_eq(a->tag_start, b->tag_start);
    ck_assert_uint_eq(a->tags_used, b->tags_used);
    ck_assert_uint_eq(a->fence, b->fence);
}

static void
same_claim(const struct store_claim_record *a, const struct store_claim_record *b)
{
    ck_assert_str_eq(a->id.text, b->id.text);
    ck_assert_int_eq(a->started_ms, b->started_ms);
    ck_assert_int_eq(a->ends_ms, b->ends_ms);
}

static void
same_queue(const struct store_change *a, const struct store_change *b)
{
    ck_assert(bytes_equal(a->queue.project, b->queue.project));
    ck_assert(bytes_equal(a->queue.name, b->queue.name));
    ck_assert_int_eq(a->queue.kind, b->queue.kind);
    ck_assert_int_eq(a->transient, b->transient);
    ck_assert_uint_eq(a->fence_base, b->fence_base);
    ck_assert_uint_eq(a->last_number, b->last_number);
    ck_assert_uint_eq(a->last_claim, b->last_claim);
    same_marks(&a->marks, &b->marks);
    same_metadata(a->metadata, b->metadata);
}

/* GONE has the number only, CURSOR no texts and times. */
static void
same_subscription(enum store_change_kind kind, const struct store_subscription_record *a,
                  const struct store_subscription_record *b)
{
    ck_assert_uint_eq(a->number, b->number);
    if (kind == STORE_CHANGE_SUBSCRIPTION_GONE)
        return;
    ck_assert_int_eq(a->confirmed, b->confirmed);
    ck_assert_int_eq(a->attached, b->attached);
    ck_assert_uint_eq(a->after, b->after);
    ck_assert_uint_eq(a->pending, b->pending);
    ck_assert_uint_eq(a->delivered, b->delivered);
    ck_assert_uint_eq(a->permanent_failures, b->permanent_failures);
    ck_assert_uint_eq(a->dropped, b->dropped);
    if (kind == STORE_CHANGE_CURSOR)
        return;
    ck_assert_str_eq(a->id.text, b->id.text);
    ck_assert(bytes_equal(a->subscriber, b->subscriber));
    ck_assert(bytes_equal(a->options, b->options));
    ck_assert_int_eq(a->started_ms, b->started_ms);
    ck_assert_int_eq(a->ttl_s, b->ttl_s);
}

/* The fields of the kind besides messages. */
static void
same_fixed(const struct store_change *a, const struct store_change *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_int_eq(a->now_ms, b->now_ms);
    ck_assert_uint_eq(a->tag, b->tag);
    ck_assert_uint_eq(a->count, b->count);
    if (a->kind == STORE_CHANGE_QUEUE)
        same_queue(a, b);
    if (a->kind == STORE_CHANGE_META)
        same_metadata(a->metadata, b->metadata);
    if (a->kind == STORE_CHANGE_QUEUE_GONE) {
        ck_assert_uint_eq(a->fence_base, b->fence_base);
        ck_assert_uint_eq(a->last_claim, b->last_claim);
        same_marks(&a->marks, &b->marks);
    }
    if (a->kind == STORE_CHANGE_CLAIM || a->kind == STORE_CHANGE_RENEW ||
        a->kind == STORE_CHANGE_RELEASE)
        same_claim(&a->claim, &b->claim);
    if (a->kind == STORE_CHANGE_SUBSCRIPTION || a->kind == STORE_CHANGE_CURSOR ||
        a->kind == STORE_CHANGE_SUBSCRIPTION_GONE)
        same_subscription(a->kind, a->subscription, b->subscription);
    if (a->kind == STORE_CHANGE_MOVE)
        ck_assert_uint_eq(a->target_tag, b->target_tag);
}

static void
same_long(const struct store_message_record *a, const struct store_message_record *b)
{
    ck_assert_uint_eq(a->number, b->number);
    ck_assert_int_eq(a->claim == NULL, b->claim == NULL);
    if (a->claim != NULL)
        same_claim(a->claim, b->claim);
    ck_assert_int_eq(a->original_id, b->original_id);
    if (a->original_id)
        ck_assert_str_eq(a->id.text, b->id.text);
    ck_assert(bytes_equal(a->body, b->body));
    ck_assert_int_eq(a->checksum == NULL, b->checksum == NULL);
    if (a->checksum != NULL)
        ck_assert_mem_eq(a->checksum, b->checksum, sizeof(*a->checksum));
    ck_assert_uint_eq(a->client, b->client);
    ck_assert_int_eq(a->posted_ms, b->posted_ms);
    ck_assert_int_eq(a->expires_ms, b->expires_ms);
    ck_assert_int_eq(a->delayed_until_ms, b->delayed_until_ms);
    ck_assert_uint_eq(a->claim_count, b->claim_count);
}

static void
same_details(const struct store_details *a, const struct store_details *b)
{
    ck_assert(bytes_equal(a->reason, b->reason));
    ck_assert(bytes_equal(a->client, b->client));
    ck_assert(bytes_equal(a->origin, b->origin));
    ck_assert_int_eq(a->released_ms, b->released_ms);
    ck_assert_int_eq(a->dead_lettered_ms, b->dead_lettered_ms);
    ck_assert(bytes_equal(a->unique.key, b->unique.key));
    ck_assert_int_eq(a->unique.until_claimed, b->unique.until_claimed);
}

static void
same_messages(struct store_change a, struct record *record)
{
    struct store_change *b = &record->change;
    struct store_message_record one, other;

    while (a.next(&a, &one)) {
        ck_assert(b->next(b, &other));
        if (record->type == STORE_CHANGE_DELETE) { /* where it was */
            ck_assert_uint_eq(one.old_number, other.number);
            ck_assert_uint_eq(one.old_number, other.old_number);
        } else if (record->type == STORE_CHANGE_DETAILS) {
            ck_assert_uint_eq(one.number, other.number);
            same_details(one.details, other.details);
        } else if ((record->type >= STORE_CHANGE_CLAIM &&
                    record->type <= STORE_CHANGE_RELEASE) ||
                   record->type == STORE_CHANGE_RETRY) {
            ck_assert_uint_eq(one.number, other.number);
            ck_assert_int_eq(one.expires_ms, other.expires_ms);
            ck_assert_uint_eq(one.claim_count, other.claim_count);
            if (record->type == STORE_CHANGE_RETRY)
                ck_assert_int_eq(one.delayed_until_ms, other.delayed_until_ms);
        } else {
            same_long(&one, &other);
            ck_assert_uint_eq(other.old_number, record->type == STORE_CHANGE_MOVE
                                                    ? one.old_number
                                                    : one.number);
        }
    }
    ck_assert(!b->next(b, &other));
}

/* ------------------------------------------------------------------ writing, reading */

LOOP_TEST(written_records_are_read, LOGGED)
{
    struct random r = {random_seed("record")};

    for (int i = 0; i < 300; i++) {
        struct record record;
        struct sample s;
        struct image image;

        some_change(&r, &s, logged[_i]);
        s.metadata.settings.transient = s.change.transient =
            logged[_i] == STORE_CHANGE_QUEUE && random_chance(&r, 50);
        image = write_sample(&s);
        ck_assert_uint_eq(record_size(image.bytes, image.len), image.len);
        ck_assert_status(record_read(image.bytes, image.len, &record), ST_OK);
        ck_assert_str_eq(record_type_name(record.type), type_names[_i]);
        same_fixed(&s.change, &record.change);
        same_messages(s.change, &record);
        free(image.bytes);
    }
}

START_TEST(a_record_may_begin_at_any_address_and_ends_by_its_size)
{
    struct random r = {1};
    struct sample s;
    struct image image;
    struct record record;
    uint8_t *odd;

    some_change(&r, &s, STORE_CHANGE_POST);
    image = write_sample(&s);
    odd = allocate(image.len + 9);
    memcpy(odd + 1, image.bytes, image.len);
    memset(odd + 1 + image.len, 0xff, 8); /* the bytes behind it are not its */
    ck_assert_status(record_read(odd + 1, image.len + 8, &record), ST_OK);
    same_fixed(&s.change, &record.change);
    same_messages(s.change, &record);
    free(odd);
    free(image.bytes);
}

/* A POST of one message with a body of one byte: 24 + 44 + 1, and 3 of padding. */
static struct image
small_post(void)
{
    static const struct store_message_record m = {.number = 0x0102,
                                                  .old_number = 0x0102,
                                                  .client = 0x0304,
                                                  .posted_ms = 0x0506,
                                                  .expires_ms = 0x0708,
                                                  .claim_count = 9,
                                                  .body = {"1", 1}};
    static struct sample s;

    memset(&s, 0, sizeof(s));
    s.messages[0] = m;
    s.change = (struct store_change){.kind = STORE_CHANGE_POST,
                                     .now_ms = 0x0a0b,
                                     .tag = 0x0c0d,
                                     .count = 1,
                                     .next = next_sample,
                                     .from = {&s, NULL}};
    s.bytes = 1;
    return write_sample(&s);
}

START_TEST(the_bytes_on_disk_stay_as_they_are)
{
    static const uint8_t expected[72] = {
        72,   0,    0, 0, 5,   0, 0, 0, /* size, POST */
        0x0d, 0x0c, 0, 0, 1,   0, 0, 0, /* tag, count */
        0x0b, 0x0a, 0, 0, 0,   0, 0, 0, /* time */
        0x02, 0x01, 0, 0, 0,   0, 0, 0, /* number */
        0x06, 0x05, 0, 0, 0,   0, 0, 0, /* posted */
        0x08, 0x07, 0, 0, 0,   0, 0, 0, /* expires */
        0x04, 0x03, 0, 0, 0,   0, 0, 0, /* client */
        9,    0,    0, 0, 0,   0, 0, 0, /* claim count; no delay, claim, checksum or id */
        1,    0,    0, 0, '1', 0, 0, 0, /* length of the body, body, padding */
    };
    struct image image = small_post();

    ck_assert_uint_eq(image.len, sizeof(expected));
    ck_assert_mem_eq(image.bytes, expected, sizeof(expected));
    free(image.bytes);
}

/* The DETAILS of one message: 24 + 8 + 28 and the reason, and what `unique` adds. */
static struct image
small_details(const struct store_unique *unique)
{
    static struct sample s;

    memset(&s, 0, sizeof(s));
    s.details[0] = (struct store_details){
        .reason = BYTES_LIT("why"), .released_ms = 0x0102, .dead_lettered_ms = 0x0304};
    if (unique != NULL)
        s.details[0].unique = *unique;
    s.messages[0] =
        (struct store_message_record){.number = 0x0506, .details = &s.details[0]};
    s.change = (struct store_change){.kind = STORE_CHANGE_DETAILS,
                                     .now_ms = 0x0a0b,
                                     .tag = 0x0c0d,
                                     .count = 1,
                                     .next = next_sample,
                                     .from = {&s, NULL}};
    s.bytes = store_details_bytes(&s.details[0]);
    return write_sample(&s);
}

START_TEST(details_without_a_key_stay_as_they_are)
{
    static const uint8_t expected[64] = {
        64,   0,    0, 0, 19,  0,   0,   0, /* size, DETAILS */
        0x0d, 0x0c, 0, 0, 1,   0,   0,   0, /* tag, count */
        0x0b, 0x0a, 0, 0, 0,   0,   0,   0, /* time */
        0x06, 0x05, 0, 0, 0,   0,   0,   0, /* number */
        0x02, 0x01, 0, 0, 0,   0,   0,   0, /* released */
        0x04, 0x03, 0, 0, 0,   0,   0,   0, /* dead-lettered */
        3,    0,    0, 0, 'w', 'h', 'y',    /* reason */
        0,    0,    0, 0,                   /* client */
        0,    0,    0, 0, 0,                /* origin, padding */
    };
    struct image image = small_details(NULL);

    ck_assert_uint_eq(image.len, sizeof(expected));
    ck_assert_mem_eq(image.bytes, expected, sizeof(expected));
    free(image.bytes);
}

static const struct store_unique some_key = {.key = {"abcdefgh", 8},
                                             .until_claimed = true};

/* Of small_details(&some_key): where the length of the reason, and the bits are. */
enum { REASON_AT = 48, BITS_AT = 63 };

START_TEST(the_bytes_of_a_key_stay_as_they_are)
{
    static const uint8_t expected[] = {
        3, 0, 0, 0x80, 'w', 'h', 'y',                          /* a key follows */
        0, 0, 0, 0,                                            /* client */
        0, 0, 0, 0,                                            /* origin */
        1,                                                     /* until it is claimed */
        8, 0, 0, 0,    'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', /* key */
        0, 0, 0, 0                                             /* padding */
    };
    struct image image = small_details(&some_key);

    ck_assert_uint_eq(image.len, REASON_AT + sizeof(expected));
    ck_assert_mem_eq(image.bytes + REASON_AT, expected, sizeof(expected));
    free(image.bytes);
}

START_TEST(a_mark_is_read)
{
    for (enum record_mark what = MARK_OPENED; what <= MARK_FILE_GONE; what++) {
        const struct mark mark = {what, {1, 2, 3}, 4};
        uint8_t *bytes = allocate(record_bound(0, 0));
        struct record record;
        size_t size;

        size = record_write_mark(bytes, &mark, 5);
        ck_assert_uint_le(size, record_bound(0, 0));
        ck_assert_status(record_read(bytes, size, &record), ST_OK);
        ck_assert_str_eq(record_type_name(record.type), "MARK");
        ck_assert_int_eq(record.mark.what, what);
        same_marks(&record.mark.used, &mark.used);
        ck_assert_uint_eq(record.mark.since, 4);
        ck_assert_int_eq(record.change.now_ms, 5);
        bytes[RECORD_HEAD_BYTES] = what == MARK_OPENED ? 0 : MARK_FILE_GONE + 1;
        ck_assert_status(record_read(bytes, size, &record), ST_BAD_VALUE);
        free(bytes);
    }
}

/* ---------------------------------------------------------- changes without a record */

/* The change that the log has of a kind; NULL: none. */
static const char *
logged_as(enum store_change_kind kind, bool transient, bool target_transient)
{
    struct random r = {1};
    struct sample s;

    some_change(&r, &s, kind);
    s.change.transient = transient;
    s.change.target_transient = target_transient;
    return record_type_name(record_type_of(&s.change));
}

START_TEST(expirations_are_not_logged)
{
    ck_assert_ptr_null(logged_as(STORE_CHANGE_EXPIRED, false, false));
    ck_assert_ptr_null(logged_as(STORE_CHANGE_DELAY_OVER, false, false));
    ck_assert_ptr_null(logged_as(STORE_CHANGE_CLAIM_OVER, false, false));
}

START_TEST(of_a_transient_queue_only_itself_and_its_subscriptions_are_logged)
{
    for (size_t i = 0; i < LOGGED; i++) {
        bool about_queue = logged[i] == STORE_CHANGE_QUEUE ||
                           logged[i] == STORE_CHANGE_META ||
                           logged[i] == STORE_CHANGE_QUEUE_GONE ||
                           logged[i] == STORE_CHANGE_SUBSCRIPTION ||
                           logged[i] == STORE_CHANGE_SUBSCRIPTION_GONE ||
                           logged[i] == STORE_CHANGE_UNSUBSCRIBED;

        if (logged[i] == STORE_CHANGE_MOVE)
            continue;
        if (about_queue)
            ck_assert_str_eq(logged_as(logged[i], true, false), type_names[i]);
        else
            ck_assert_ptr_null(logged_as(logged[i], true, false));
    }
}

START_TEST(a_message_moved_out_of_scope_is_deleted)
{
    ck_assert_str_eq(logged_as(STORE_CHANGE_MOVE, false, false), "MOVE");
    ck_assert_str_eq(logged_as(STORE_CHANGE_MOVE, true, false), "MOVE");
    ck_assert_str_eq(logged_as(STORE_CHANGE_MOVE, false, true), "DELETE");
    ck_assert_ptr_null(logged_as(STORE_CHANGE_MOVE, true, true));
}

START_TEST(a_deletion_by_a_move_names_the_numbers_of_the_source)
{
    struct random r = {1};
    struct record record;
    struct image image;
    struct sample s;

    do
        some_change(&r, &s, STORE_CHANGE_MOVE);
    while (s.change.count == 0);
    s.change.target_transient = true;
    image = write_sample(&s);
    ck_assert_status(record_read(image.bytes, image.len, &record), ST_OK);
    ck_assert_int_eq(record.type, STORE_CHANGE_DELETE);
    ck_assert_uint_eq(record.change.tag, s.change.tag);
    same_messages(s.change, &record);
    free(image.bytes);
}

/* ------------------------------------------------------------------ invalid records */

/* Reads bytes that end with their memory. */
static enum status
read_copy(const uint8_t *bytes, size_t len, struct record *record, uint8_t **copy)
{
    *copy = allocate(len);
    if (len > 0)
        memcpy(*copy, bytes, len);
    return record_read(*copy, len, record);
}

static void
expect_refused(const uint8_t *bytes, size_t len)
{
    struct record record;
    uint8_t *copy;

    if (read_copy(bytes, len, &record, &copy) != ST_BAD_VALUE)
        ck_abort_msg("%zu bytes are a record", len);
    free(copy);
}

/* Says in the record's head that it has so many bytes. */
static void
set_size(uint8_t *bytes, size_t size)
{
    uint32_t field = (uint32_t)size;

    memcpy(bytes, &field, sizeof(field)); /* little-endian machines only, as wire.h */
}

LOOP_TEST(a_record_of_a_wrong_length_is_refused, LOGGED)
{
    struct random r = {random_seed("records cut off")};

    for (int i = 0; i < 40; i++) {
        struct sample s;
        struct image image;
        uint8_t *longer;

        some_change(&r, &s, logged[_i]);
        image = write_sample(&s);
        for (size_t len = 0; len < image.len; len++)
            expect_refused(image.bytes, len);
        longer = memcpy(allocate(image.len + 8), image.bytes, image.len);
        memset(longer + image.len, 0, 8);
        for (size_t len = 0; len < image.len + 16; len++) {
            set_size(longer, len);
            if (len != image.len)
                expect_refused(longer, image.len + 8);
        }
        free(longer);
        free(image.bytes);
    }
}

START_TEST(unknown_types_are_refused)
{
    struct image image = small_post();

    for (unsigned type = 0; type <= UINT16_MAX; type++) {
        if (type >= STORE_CHANGE_QUEUE && type <= RECORD_MARK)
            continue;
        image.bytes[4] = (uint8_t)type;
        image.bytes[5] = (uint8_t)(type >> 8);
        expect_refused(image.bytes, image.len);
    }
    free(image.bytes);
}

/* Each of these bytes is 0, and a record in which it is not is refused. */
static void
expect_zeros(size_t from, size_t to)
{
    struct image image = small_post();

    for (size_t i = from; i < to; i++) {
        ck_assert_uint_eq(image.bytes[i], 0);
        image.bytes[i] = 0x80;
        expect_refused(image.bytes, image.len);
        image.bytes[i] = 0;
    }
    free(image.bytes);
}

START_TEST(padding_is_zero)
{
    expect_zeros(69, 72);
}

START_TEST(unused_fields_are_zero)
{
    expect_zeros(6, 8);   /* in the head */
    expect_zeros(60, 64); /* a byte says 0 or 1: whether there is a delay, ... */
}

START_TEST(unknown_kinds_are_refused)
{
    enum { KIND = RECORD_HEAD_BYTES + 48 };
    struct random r = {1};
    struct image image;
    struct sample s;

    some_change(&r, &s, STORE_CHANGE_QUEUE);
    image = write_sample(&s);
    ck_assert_uint_eq(image.bytes[KIND], s.change.queue.kind);
    image.bytes[KIND] = STORE_KINDS;
    expect_refused(image.bytes, image.len);
    image.bytes[KIND] = STORE_TOPIC;
    image.bytes[KIND + 3] = 1;
    expect_refused(image.bytes, image.len);
    free(image.bytes);
}

START_TEST(unknown_flags_of_a_document_are_refused)
{
    struct random r = {1};
    struct image image;
    struct sample s;

    some_change(&r, &s, STORE_CHANGE_META);
    image = write_sample(&s);
    for (size_t i = 0; i < 2; i++) { /* one flag, then five */
        const uint8_t known = image.bytes[RECORD_HEAD_BYTES + i];

        image.bytes[RECORD_HEAD_BYTES + i] |= (uint8_t)(i == 0 ? 2 : 32);
        expect_refused(image.bytes, image.len);
        image.bytes[RECORD_HEAD_BYTES + i] = known;
    }
    free(image.bytes);
}

START_TEST(unknown_bits_of_a_key_are_refused)
{
    struct image image = small_details(&some_key);

    for (unsigned bit = 4; bit <= 0x80; bit <<= 1) {
        image.bytes[BITS_AT] = (uint8_t)(1 | bit);
        expect_refused(image.bytes, image.len);
    }
    free(image.bytes);
}

START_TEST(a_key_that_is_empty_or_not_announced_is_refused)
{
    struct image image = small_details(&some_key);

    image.bytes[REASON_AT + 3] = 0;
    expect_refused(image.bytes, image.len);
    image.bytes[REASON_AT + 3] = 0x80;
    memset(image.bytes + BITS_AT + 1, 0, image.len - BITS_AT - 1);
    set_size(image.bytes, BITS_AT + 9); /* the shortest padding */
    expect_refused(image.bytes, BITS_AT + 9);
    free(image.bytes);
    image = small_details(NULL);
    image.bytes[REASON_AT + 3] = 0x80;
    expect_refused(image.bytes, image.len);
    free(image.bytes);
}

/* Bytes in the texts and bodies of a record. */
static size_t
texts_of(const struct record *record)
{
    struct record copy = *record;
    const struct store_change *change = &copy.change;
    struct store_message_record m;
    size_t total = change->queue.project.len + change->queue.name.len;

    if (change->metadata != NULL)
        total += change->metadata->json.len + change->metadata->settings.dead_letter.len +
                 change->metadata->settings.paused_by.len;
    if (change->subscription != NULL)
        total += change->subscription->subscriber.len + change->subscription->options.len;
    while (copy.change.next(&copy.change, &m))
        total += m.body.len + (m.details == NULL ? 0 : store_details_bytes(m.details));
    return total;
}

/* Writes what was read. */
static struct image
write_again(const struct record *record)
{
    struct record copy = *record;

    if (copy.change.metadata != NULL)
        copy.change.metadata = &copy.metadata;
    return write_change(&copy.change, texts_of(record));
}

/* A change that was read can be written, and is the same when it is read again. */
static void
expect_well_formed(const struct record *record)
{
    struct image first, second;
    struct record again;

    if (record->type == RECORD_MARK)
        return;
    first = write_again(record);
    if (record_read(first.bytes, first.len, &again) != ST_OK)
        ck_abort_msg("a record that was written again cannot be read");
    second = write_again(&again);
    if (first.len != second.len || memcmp(first.bytes, second.bytes, first.len) != 0)
        ck_abort_msg("it is another record when it is written again");
    free(first.bytes);
    free(second.bytes);
}

LOOP_TEST(a_changed_byte_makes_a_valid_record_or_is_refused, LOGGED)
{
    struct random r = {random_seed("records with a byte changed")};
    size_t refused = 0, read = 0;

    for (int i = 0; i < 300; i++) {
        struct sample s;
        struct image image;

        some_change(&r, &s, logged[_i]);
        image = write_sample(&s);
        for (size_t at = 0; at < image.len; at++) {
            uint8_t was = image.bytes[at];
            struct record record;
            uint8_t *copy;

            image.bytes[at] ^= (uint8_t)(1 + random_below(&r, 255));
            if (read_copy(image.bytes, image.len, &record, &copy) == ST_OK) {
                expect_well_formed(&record);
                read++;
            } else
                refused++;
            image.bytes[at] = was;
            free(copy);
        }
        free(image.bytes);
    }
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_gt(read, 0);
}

START_TEST(noise_is_no_record)
{
    struct random r = {random_seed("noise as records")};

    for (int i = 0; i < 20000; i++) {
        uint8_t noise[256];
        struct record record;
        size_t len = 8 * random_below(&r, 33);
        uint8_t *copy;

        for (size_t k = 0; k < len; k++)
            noise[k] = random_chance(&r, 60) ? 0 : (uint8_t)random_next(&r);
        if (len >= RECORD_HEAD_BYTES) {
            set_size(noise, len);
            noise[4] = (uint8_t)(1 + random_below(&r, RECORD_MARK));
            noise[5] = 0;
        }
        if (read_copy(noise, len, &record, &copy) == ST_OK)
            expect_well_formed(&record);
        free(copy);
    }
}
