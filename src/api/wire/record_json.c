#include "api/wire/record_json.h"
#include "api/caller.h"
#include "api/wire/decode.h"
#include "api/wire/message.h"
#include "api/wire/metadata.h"
#include "api/wire/subscription.h"
#include "claimd/base/invariant.h"
#include "claimd/base/nearest.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"
#include "claimd/schedule/definition.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* ------------------------------------------------------------------ writing */

/* Without printf(), because numbers would be most of the cost of a dump. */
static void
write_seconds(struct buf *out, const char *name, int64_t ms)
{
    uint64_t size = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    unsigned rest = (unsigned)(size % 1000);

    json_write_name(out, name);
    if (ms < 0)
        buf_byte(out, '-');
    buf_u64(out, size / 1000);
    if (rest != 0)
        buf_printf(out, ".%03u", rest);
}

static void
write_count(struct buf *out, const char *name, uint64_t count)
{
    if (count != 0)
        json_write_u64(out, name, count);
}

/* Opens the object of this name, whose first member is an id. */
static void
open_object(struct buf *out, const char *name, const struct store_id *id)
{
    json_write_raw(out, name, bytes_str("{"));
    json_write_text(out, "id", bytes_str(id->text));
}

static void
write_details(struct buf *out, const struct store_details *d, int64_t now_ms)
{
    json_write_raw(out, "details", bytes_str("{"));
    json_write_text(out, "reason", d->reason);
    json_write_text(out, "client", d->client);
    if (d->released_ms != 0)
        write_seconds(out, "released", now_ms - d->released_ms);
    json_write_text(out, "origin", d->origin);
    if (d->dead_lettered_ms != 0)
        write_seconds(out, "dead_lettered", now_ms - d->dead_lettered_ms);
    if (d->cause != STORE_CAUSE_UNKNOWN) {
        json_write_text(out, "cause", cause_name(d->cause));
        json_write_u64(out, "attempts", d->attempts);
    }
    json_write_text(out, "unique", d->unique.key);
    if (d->unique.until_claimed)
        json_write_flag(out, "until_claimed", true);
    if (d->unique.due_ms != 0)
        json_write_i64(out, "due_ms", d->unique.due_ms);
    buf_byte(out, '}');
}

static void
write_message(struct buf *out, const struct store_message_record *m, int64_t now_ms)
{
    const struct store_claim_record *claim = m->claim;
    char checksum[CHECKSUM_LEN], client[16];

    open_object(out, "message", &m->id);
    write_seconds(out, "ttl", m->expires_ms - m->posted_ms);
    write_seconds(out, "age", now_ms - m->posted_ms);
    if (m->delayed_until_ms != 0)
        write_seconds(out, "delay", m->delayed_until_ms - now_ms);
    if (claim != NULL) {
        open_object(out, "claim", &claim->id);
        write_seconds(out, "ttl", claim->ends_ms - claim->started_ms);
        write_seconds(out, "age", now_ms - claim->started_ms);
        buf_byte(out, '}');
    }
    if (m->claim_count != (claim != NULL)) /* otherwise it is the default */
        json_write_u64(out, "claim_count", m->claim_count);
    if (m->client != 0) {
        hex_write(client, m->client, sizeof(client));
        json_write_text(out, "client", bytes_of(client, sizeof(client)));
    }
    if (m->checksum != NULL) {
        checksum_write(m->checksum, checksum);
        json_write_text(out, "checksum", bytes_of(checksum, sizeof(checksum)));
    }
    if (m->details != NULL)
        write_details(out, m->details, now_ms);
    if (!store_is_sealed(m->body)) {
        json_write_raw(out, "body", m->body);
        return;
    }
    json_write_raw(out, "sealed", bytes_str("\"")); /* a body stays encrypted */
    buf_hex(out, m->body);
    buf_byte(out, '"');
}

static void
write_subscription(struct buf *out, const struct store_subscription_record *s,
                   int64_t now_ms)
{
    open_object(out, "subscription", &s->id);
    json_write_text(out, "subscriber", s->subscriber);
    json_write_raw(out, "options", s->options);
    json_write_i64(out, "ttl", s->ttl_s);
    write_seconds(out, "age", now_ms - s->started_ms);
    json_write_flag(out, "confirmed", s->confirmed);
    if (s->pending == STORE_PENDING_CONFIRM)
        json_write_flag(out, "asked", true);
    write_count(out, "delivered", s->delivered);
    write_count(out, "given_up", s->permanent_failures);
    write_count(out, "fallen_out", s->dropped);
}

/* The members that name a queue, by kind. */
static const char *const kind_names[STORE_KINDS] = {
    [STORE_QUEUE] = "queue", [STORE_TOPIC] = "topic", [STORE_SCHEDULES] = "schedules"};

const char *
record_json_kind(enum store_kind kind)
{
    return kind_names[kind];
}

void
record_json_write_head(struct buf *out, int64_t now_ms)
{
    buf_printf(out, "{\"claimd\":\"dump\",\"version\":%d,\"now_ms\":%" PRId64 "}\n",
               RECORD_JSON_VERSION, now_ms);
}

void
record_json_write(struct buf *out, const struct store_queue *where,
                  const struct store_record *record, int64_t now_ms)
{
    buf_byte(out, '{');
    json_write_text(out, "project", where->project);
    json_write_text(out, kind_names[where->kind], where->name);
    if (record->kind == STORE_RECORD_MESSAGE) {
        write_message(out, &record->message, now_ms);
    } else if (record->kind == STORE_RECORD_SUBSCRIPTION) {
        write_subscription(out, &record->subscription, now_ms);
    } else {
        json_write_name(out, "metadata");
        metadata_plain(&record->metadata, out);
        if ((record->metadata.settings.paused & STORE_PAUSE_CLAIMS) != 0)
            json_write_flag(out, "claims_paused", true);
        if ((record->metadata.settings.paused & STORE_PAUSE_POSTS) != 0)
            json_write_flag(out, "posts_paused", true);
        json_write_text(out, "paused_by", record->metadata.settings.paused_by);
        buf_str(out, "}\n");
        return;
    }
    buf_str(out, "}}\n");
}

/* ------------------------------------------------------------------ values */

/* A member that an object may have. */
struct record_field {
    const char *name;
    enum {
        FIELD_VALUE,
        FIELD_TEXT,
        FIELD_ID,
        FIELD_FLAG,
        FIELD_SECONDS,
        FIELD_COUNT
    } kind;
    size_t offset; /* of its value in the structure to fill in */
    int64_t bound; /* SECONDS: the least number of milliseconds; COUNT: the maximum */
};

#define FIELD_NAMED(name, type, member, kind, bound)                                     \
    {                                                                                    \
        name, FIELD_##kind, offsetof(struct type, member), bound                         \
    }
#define FIELD(type, member, kind, bound) FIELD_NAMED(#member, type, member, kind, bound)

enum { FIELDS_MOST = 15 };

#define LONGEST_S INT64_C(10000000000)

/*
 * Refuses a member of an object: "" (the line), "message", "message.claim" or
 * "subscription". name: NULL: refuses the object itself.
 */
static enum status __attribute__((format(printf, 4, 5)))
refuse_member(struct record_reader *r, const char *of, const char *name,
              const char *format, ...)
{
    const bool both = of[0] != '\0' && name != NULL;
    char what[REASON_CAP];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    (void)reason_give(r->why, ST_BAD_VALUE, "%s%s%s%s%s", of, both ? "." : "",
                      name == NULL ? "" : name, of[0] == '\0' && name == NULL ? "" : ": ",
                      what);
    return ST_BAD_VALUE;
}

/* Adds the object and the member to the reason of another check. */
static enum status
locate_reason(struct record_reader *r, const char *of, const char *name, enum status st)
{
    struct reason why = *r->why;

    return st == ST_BAD_VALUE || st == ST_BAD_BODY
               ? refuse_member(r, of, name, "%s", why.text)
               : st;
}

/* Reads a text, borrowed from the line, or from the arena if it has escapes. */
static enum status
read_text(struct record_reader *r, const char *of, const char *name,
          const struct json_scan_value *value, struct bytes *out)
{
    if (json_left_out(value))
        return ST_OK;
    if (value->kind != SCAN_STRING)
        return refuse_member(r, of, name, "it must be a string");
    return decode_string(value, r->arena, out);
}

static enum status
read_id(struct record_reader *r, const char *of, const char *name,
        const struct json_scan_value *value, struct store_id *out)
{
    struct bytes text = BYTES_NONE;
    enum status st = read_text(r, of, name, value, &text);

    if (st != ST_OK)
        return st;
    if (!store_id_good(text))
        return refuse_member(
            r, of, name,
            "it is \"%s\". An id is 24 lower-case hexadecimal digits, and the "
            "first is a letter",
            received(text).text);
    memcpy(out->text, text.data, text.len);
    return ST_OK;
}

/* Reads a value into *to, which stays as it is if the member is left out. */
static enum status
read_field(struct record_reader *r, const char *of, const struct record_field *f,
           const struct json_scan_value *value, void *to)
{
    const double least_s = (double)f->bound / 1000;
    int64_t *ms = to, count;
    uint64_t *number = to;
    bool *flag = to;
    double seconds;

    if (f->kind == FIELD_VALUE)
        memcpy(to, value, sizeof(*value));
    if (f->kind == FIELD_VALUE || json_left_out(value))
        return ST_OK;
    switch (f->kind) {
    case FIELD_TEXT:
        return read_text(r, of, f->name, value, to);
    case FIELD_ID:
        return read_id(r, of, f->name, value, to);
    case FIELD_FLAG:
        if (value->kind != SCAN_TRUE && value->kind != SCAN_FALSE)
            return refuse_member(r, of, f->name, "it must be true or false");
        *flag = value->kind == SCAN_TRUE;
        break;
    case FIELD_SECONDS: /* with up to three decimals */
        if (value->kind != SCAN_INTEGER && value->kind != SCAN_REAL)
            return refuse_member(r, of, f->name, "it must be a number of seconds");
        seconds = json_number_read(value->text);
        if (!(seconds >= least_s && seconds <= (double)LONGEST_S))
            return refuse_member(
                r, of, f->name, "it is %s. It must be between %g and %lld seconds",
                json_received(value).text, least_s, (long long)LONGEST_S);
        *ms = (int64_t)llround(seconds * 1000);
        break;
    default: /* FIELD_COUNT */
        if (value->kind != SCAN_INTEGER)
            return refuse_member(r, of, f->name, "it must be an integer");
        count = json_scan_to_i64(value);
        if (count < 0 || count > f->bound)
            return refuse_member(r, of, f->name,
                                 "it is %lld. It must be between 0 and %lld",
                                 (long long)count, (long long)f->bound);
        *number = (uint64_t)count;
    }
    return ST_OK;
}

/* Reads an object with members of these names, each at most once, into the structure
 * *to. */
static enum status
read_object(struct record_reader *r, const char *of, struct bytes text,
            const struct record_field *fields, size_t count, void *to)
{
    struct json_scan_value values[FIELDS_MOST];
    const char *names[FIELDS_MOST];
    struct json_names seen;
    enum status st = ST_OK;

    ENSURE(count <= FIELDS_MOST);
    for (size_t i = 0; i < count; i++)
        names[i] = fields[i].name;
    if (json_members_read(text, names, count, values, &seen) != ST_OK)
        return refuse_member(r, of, NULL, "it must be an object");
    if (bytes_present(seen.unknown))
        return refuse_member(r, of, NULL, "it has the unknown member \"%s\"%s",
                             received(seen.unknown).text,
                             nearest_hint(seen.unknown, names, count).text);
    if (seen.twice != NULL)
        return refuse_member(r, of, NULL, "it has the member \"%s\" twice", seen.twice);
    for (size_t i = 0; st == ST_OK && i < count; i++)
        st = read_field(r, of, &fields[i], &values[i], (char *)to + fields[i].offset);
    return st;
}

#define READ_OBJECT(r, of, text, fields, to)                                             \
    read_object(r, of, text, fields, sizeof(fields) / sizeof((fields)[0]), to)

/* ------------------------------------------------------------------ messages */

struct message_json {
    struct store_id id;
    int64_t ttl, age, delay; /* ms */
    struct json_scan_value body, sealed, claim, details;
    struct bytes checksum, client;
    uint64_t claim_count;
};

static const struct record_field message_fields[] = {
    FIELD(message_json, id, ID, 0),
    FIELD(message_json, ttl, SECONDS, 1),
    FIELD(message_json, age, SECONDS, 0),
    FIELD(message_json, delay, SECONDS, 0),
    FIELD(message_json, body, VALUE, 0),
    FIELD(message_json, sealed, VALUE, 0),
    FIELD(message_json, checksum, TEXT, 0),
    FIELD(message_json, client, TEXT, 0),
    FIELD(message_json, claim, VALUE, 0),
    FIELD(message_json, claim_count, COUNT, UINT32_MAX),
    FIELD(message_json, details, VALUE, 0),
};

/* Times are ms ago; STORE_UNSET: left out. */
struct details_json {
    struct bytes reason, client, origin, cause, unique;
    int64_t released, dead_lettered;
    uint64_t attempts, due_ms;
    bool until_claimed;
};

static const struct record_field details_fields[] = {
    FIELD(details_json, reason, TEXT, 0),
    FIELD(details_json, client, TEXT, 0),
    FIELD(details_json, origin, TEXT, 0),
    FIELD(details_json, released, SECONDS, 0),
    FIELD(details_json, dead_lettered, SECONDS, 0),
    FIELD(details_json, cause, TEXT, 0),
    FIELD(details_json, attempts, COUNT, UINT32_MAX),
    FIELD(details_json, unique, TEXT, 0),
    FIELD(details_json, until_claimed, FLAG, 0),
    FIELD(details_json, due_ms, COUNT, STORE_MS_MOST),
};

struct claim_json {
    struct bytes id;
    int64_t ttl, age; /* ms */
};

static const struct record_field claim_fields[] = {
    FIELD(claim_json, id, TEXT, 0),
    FIELD(claim_json, ttl, SECONDS, 1),
    FIELD(claim_json, age, SECONDS, 0),
};

static const char of_message[] = "message", of_claim[] = "message.claim",
                  of_details[] = "message.details";

/* Decodes pairs of hexadecimal digits into the arena. */
static enum status
read_sealed(struct record_reader *r, const struct json_scan_value *value,
            struct bytes *out)
{
    struct bytes text = BYTES_NONE;
    enum status st = read_text(r, of_message, "sealed", value, &text);
    char *body;

    if (st != ST_OK)
        return st;
    body = arena_alloc(r->arena, text.len / 2 + 1);
    if (body == NULL)
        return ST_NO_MEMORY;
    if (!hex_read_bytes(bytes_of(text.data, text.len / 2 * 2), body, text.len / 2))
        return refuse_member(r, of_message, "sealed",
                             "it must consist of hexadecimal digits");
    *out = bytes_of(body, text.len / 2);
    return text.len % 2 == 0 && store_is_sealed(*out)
               ? ST_OK
               : refuse_member(r, of_message, "sealed", "it is not an encrypted body");
}

static enum status
read_body(struct record_reader *r, const struct message_json *m, struct bytes *out)
{
    enum status st = ST_OK;

    if ((m->body.kind == SCAN_NONE) == (m->sealed.kind == SCAN_NONE))
        return refuse_member(r, of_message, "body",
                             "exactly one of body and sealed is required");
    if (m->sealed.kind != SCAN_NONE)
        st = read_sealed(r, &m->sealed, out);
    else
        *out = m->body.text;
    if (st == ST_OK && out->len > (size_t)r->limits->max_messages_post_size)
        return refuse_member(
            r, of_message, "body",
            "it is %zu bytes long. The maximum is %lld bytes (max_messages_post_size)",
            out->len, (long long)r->limits->max_messages_post_size);
    return st;
}

/* Reads the checksum of the line, or makes the one that a post would get. */
static enum status
read_checksum(struct record_reader *r, struct bytes text, struct bytes body,
              const struct store_checksum **out)
{
    struct store_checksum *sum = arena_alloc(r->arena, sizeof(*sum));
    bool good = text.len == CHECKSUM_LEN && memcmp(text.data, "MD5:", 4) == 0;

    if (sum == NULL)
        return ST_NO_MEMORY;
    if (!bytes_present(text) && (!r->limits->enable_checksum || store_is_sealed(body)))
        return ST_OK;
    *out = sum;
    if (!bytes_present(text))
        return checksum_of(body, r->mem, sum);
    good = good && hex_read_bytes(bytes_of(text.data + 4, text.len - 4), sum->digest,
                                  sizeof(sum->digest));
    return good ? ST_OK
                : refuse_member(r, of_message, "checksum",
                                "it must be MD5: followed by 32 hexadecimal digits");
}

/* Reads a claim. Its id is a valid id, which is kept, or any name, which becomes
 * *name. */
static enum status
read_claim(struct record_reader *r, struct bytes text, struct bytes *name,
           const struct store_claim_record **out)
{
    struct claim_json c = {.ttl = r->limits->default_claim_ttl * 1000};
    struct store_claim_record *claim = arena_alloc(r->arena, sizeof(*claim));
    enum status st =
        claim == NULL ? ST_NO_MEMORY : READ_OBJECT(r, of_claim, text, claim_fields, &c);

    if (st != ST_OK)
        return st;
    if (c.id.len == 0)
        return refuse_member(r, of_claim, "id", "it is required");
    if (c.ttl - c.age > r->limits->max_claim_ttl * 1000)
        return refuse_member(r, of_claim, "ttl", "ttl minus age exceeds max_claim_ttl");
    *claim = (struct store_claim_record){.started_ms = r->now_ms - c.age,
                                         .ends_ms = r->now_ms - c.age + c.ttl};
    if (store_id_good(c.id))
        memcpy(claim->id.text, c.id.data, c.id.len);
    else
        *name = c.id;
    *out = claim;
    return ST_OK;
}

static enum status
read_details(struct record_reader *r, struct bytes text, const struct store_details **out)
{
    struct details_json d = {.released = STORE_UNSET, .dead_lettered = STORE_UNSET};
    enum store_cause cause = STORE_CAUSE_UNKNOWN;
    struct store_details *details = arena_alloc(r->arena, sizeof(*details));
    enum status st = details == NULL
                         ? ST_NO_MEMORY
                         : READ_OBJECT(r, of_details, text, details_fields, &d);

    if (st != ST_OK)
        return st;
    if (d.reason.len > STORE_REASON_MAX)
        return refuse_member(r, of_details, "reason",
                             "it is %zu bytes long. The maximum is %d bytes",
                             d.reason.len, STORE_REASON_MAX);
    if (d.client.len > STORE_CLIENT_MAX)
        return refuse_member(r, of_details, "client",
                             "it is %zu bytes long. The maximum is %d bytes",
                             d.client.len, STORE_CLIENT_MAX);
    if (bytes_present(d.origin) && caller_queue_name(d.origin) != ST_OK)
        return refuse_member(r, of_details, "origin", "it is not the name of a queue");
    if (bytes_present(d.cause) &&
        (!cause_read(d.cause, &cause) || d.dead_lettered == STORE_UNSET))
        return refuse_member(r, of_details, "cause",
                             "it must be worker, attempts or expired, of a dead letter");
    *details = (struct store_details){
        .reason = d.reason,
        .client = d.client,
        .released_ms = d.released == STORE_UNSET ? 0 : r->now_ms - d.released,
        .origin = d.origin,
        .dead_lettered_ms =
            d.dead_lettered == STORE_UNSET ? 0 : r->now_ms - d.dead_lettered,
        .cause = cause,
        .attempts = cause == STORE_CAUSE_UNKNOWN ? 0 : (uint32_t)d.attempts,
        .unique = {.key = d.unique,
                   .until_claimed = d.until_claimed && d.unique.len > 0,
                   .due_ms = (int64_t)d.due_ms}};
    *out = details;
    return ST_OK;
}

/* Checks that a message in a queue of schedules is a schedule, under its own key. */
static enum status
check_schedule(struct record_reader *r, const struct store_message_record *m)
{
    const struct bytes key = m->details == NULL ? BYTES_NONE : m->details->unique.key;
    char text[SCHEDULE_KEY_CAP];
    struct schedule_progress progress;
    struct schedule s;

    if (m->details != NULL &&
        schedule_progress_read(m->details->reason, &progress) != ST_OK)
        return refuse_member(r, of_details, "reason", "it is not that of a schedule");
    if (store_is_sealed(m->body))
        return ST_OK;
    if (schedule_read(m->body, &s) != ST_OK || caller_queue_name(s.queue) != ST_OK)
        return refuse_member(r, of_message, "body", "it is not a schedule");
    if (!bytes_equal(key, schedule_key(text, s.queue, s.name)))
        return refuse_member(r, of_details, "unique",
                             "it is not that of the schedule, QUEUE/NAME");
    return ST_OK;
}

static enum status
read_message(struct record_reader *r, struct bytes text, struct record_line *line)
{
    struct message_json m = {.ttl = r->limits->default_message_ttl * 1000,
                             .claim_count = UINT64_MAX};
    struct store_message_record *out = &line->record.message;
    enum status st = READ_OBJECT(r, of_message, text, message_fields, &m);
    const bool claimed = !json_left_out(&m.claim);

    line->record.kind = STORE_RECORD_MESSAGE;
    if (st != ST_OK)
        return st;
    if (line->where.kind != STORE_SCHEDULES &&
        m.ttl - m.age > r->limits->max_message_ttl * 1000)
        return refuse_member(r, of_message, "ttl",
                             "ttl minus age exceeds max_message_ttl");
    if (bytes_present(m.client) &&
        (m.client.len != 16 || !hex_read(m.client, &out->client)))
        return refuse_member(r, of_message, "client", "it must be 16 hexadecimal digits");
    out->id = m.id;
    out->posted_ms = r->now_ms - m.age;
    out->expires_ms = out->posted_ms + m.ttl;
    out->delayed_until_ms = m.delay == 0 ? 0 : r->now_ms + m.delay;
    out->claim_count = m.claim_count == UINT64_MAX ? claimed : (uint32_t)m.claim_count;
    st = read_body(r, &m, &out->body);
    if (st == ST_OK)
        st = read_checksum(r, m.checksum, out->body, &out->checksum);
    if (st == ST_OK && !json_left_out(&m.details))
        st = read_details(r, m.details.text, &out->details);
    if (st == ST_OK && line->where.kind == STORE_SCHEDULES)
        st = check_schedule(r, out);
    return st == ST_OK && claimed ? read_claim(r, m.claim.text, &line->claim, &out->claim)
                                  : st;
}

/* ------------------------------------------------------------------ subscriptions */

struct subscription_json {
    struct store_id id;
    struct bytes subscriber;
    struct json_scan_value options;
    uint64_t ttl; /* s */
    int64_t age;  /* ms */
    bool confirmed, asked;
    uint64_t delivered, permanent_failures, dropped;
};

static const struct record_field subscription_fields[] = {
    FIELD(subscription_json, id, ID, 0),
    FIELD(subscription_json, subscriber, TEXT, 0),
    FIELD(subscription_json, options, VALUE, 0),
    FIELD(subscription_json, ttl, COUNT, STORE_MS_MOST / 1000),
    FIELD(subscription_json, age, SECONDS, 0),
    FIELD(subscription_json, confirmed, FLAG, 0),
    FIELD(subscription_json, asked, FLAG, 0),
    FIELD(subscription_json, delivered, COUNT, INT64_MAX),
    FIELD_NAMED("given_up", subscription_json, permanent_failures, COUNT, INT64_MAX),
    FIELD_NAMED("fallen_out", subscription_json, dropped, COUNT, INT64_MAX),
};

static enum status
read_subscription(struct record_reader *r, struct bytes text, struct record_line *line)
{
    static const char of[] = "subscription";
    struct subscription_json s = {.ttl = (uint64_t)r->limits->default_subscription_ttl};
    enum status st = READ_OBJECT(r, of, text, subscription_fields, &s);

    if (st != ST_OK)
        return st;
    if (!bytes_present(s.subscriber))
        return refuse_member(r, of, "subscriber", "it is required");
    if (s.options.kind != SCAN_OBJECT && !json_left_out(&s.options))
        return refuse_member(r, of, "options", "it must be an object");
    line->record = (struct store_record){
        .kind = STORE_RECORD_SUBSCRIPTION,
        .subscription = {.id = s.id,
                         .subscriber = s.subscriber,
                         .options = s.options.kind == SCAN_OBJECT ? s.options.text
                                                                  : bytes_str("{}"),
                         .ttl_s = (int64_t)s.ttl,
                         .started_ms = r->now_ms - s.age,
                         .confirmed = s.confirmed,
                         .pending = s.asked ? STORE_PENDING_CONFIRM : STORE_PENDING_NONE,
                         .delivered = s.delivered,
                         .permanent_failures = s.permanent_failures,
                         .dropped = s.dropped}};
    return locate_reason(r, of, NULL,
                         subscription_check(s.subscriber,
                                            line->record.subscription.options, r->limits,
                                            r->why));
}

/* ------------------------------------------------------------------ lines */

struct line_json {
    struct json_scan_value claimd, version, now_ms; /* the head */
    struct json_scan_value project, kinds[STORE_KINDS], metadata, message, subscription;
    struct json_scan_value end, next;
    bool claims_paused, posts_paused;
    struct bytes paused_by;
};

static const struct record_field line_fields[] = {
    FIELD(line_json, claimd, VALUE, 0),
    FIELD(line_json, version, VALUE, 0),
    FIELD(line_json, now_ms, VALUE, 0),
    FIELD(line_json, project, VALUE, 0),
    {"queue", FIELD_VALUE, offsetof(struct line_json, kinds[STORE_QUEUE]), 0},
    {"topic", FIELD_VALUE, offsetof(struct line_json, kinds[STORE_TOPIC]), 0},
    {"schedules", FIELD_VALUE, offsetof(struct line_json, kinds[STORE_SCHEDULES]), 0},
    FIELD(line_json, metadata, VALUE, 0),
    FIELD(line_json, message, VALUE, 0),
    FIELD(line_json, subscription, VALUE, 0),
    FIELD(line_json, end, VALUE, 0),
    FIELD(line_json, next, VALUE, 0),
    FIELD(line_json, claims_paused, FLAG, 0),
    FIELD(line_json, posts_paused, FLAG, 0),
    FIELD(line_json, paused_by, TEXT, 0),
};

static enum status
read_head(struct record_reader *r, const struct json_scan_value *version)
{
    if (version->kind != SCAN_INTEGER)
        return refuse_member(r, "", "version", "it is %s. It must be %d",
                             json_received(version).text, RECORD_JSON_VERSION);
    if (json_scan_to_i64(version) != RECORD_JSON_VERSION)
        return refuse_member(r, "", "version",
                             "it is %s, but this server reads only version %d",
                             json_received(version).text, RECORD_JSON_VERSION);
    return ST_OK;
}

static enum status
read_queue(struct record_reader *r, const struct line_json *l, struct store_queue *out)
{
    enum store_kind kind = STORE_QUEUE;
    size_t named = 0;
    enum status st;

    for (size_t i = 0; i < STORE_KINDS; i++)
        if (l->kinds[i].kind != SCAN_NONE) {
            kind = (enum store_kind)i;
            named++;
        }
    *out = (struct store_queue){r->project, BYTES_NONE, kind};
    st = read_text(r, "", "project", &l->project, &out->project);
    if (st != ST_OK)
        return st;
    if (!bytes_present(out->project) || out->project.len > CALLER_PROJECT_MAX)
        return refuse_member(r, "", "project",
                             "it is required, and at most %d bytes long",
                             CALLER_PROJECT_MAX);
    if (r->only && !bytes_equal(out->project, r->project))
        return refuse_member(
            r, "", "project",
            "it is \"%s\". In a request for one project it must be that project",
            received(out->project).text);
    if (named > 1)
        return refuse_member(r, "", NULL,
                             "it has more than one of queue, topic and schedules. Only "
                             "one is allowed");
    st = read_text(r, "", kind_names[kind], &l->kinds[kind], &out->name);
    if (st != ST_OK)
        return st;
    return bytes_present(out->name) && caller_queue_name(out->name) == ST_OK
               ? ST_OK
               : refuse_member(
                     r, "", kind_names[kind],
                     "it is \"%s\". It must be 1 to 64 characters from A-Z a-z 0-9 _ - .",
                     received(out->name).text);
}

/* Reads {"end":5}, or {"end":true} and {"next":"MARKER"} at the end of a page. */
static enum status
read_end(struct record_reader *r, const struct json_scan_value *count,
         struct record_line *out)
{
    static const struct record_field end = {"end", FIELD_COUNT, 0, INT64_MAX};

    out->what = LINE_END;
    out->announced = UINT64_MAX;
    if (count->kind == SCAN_TRUE || count->kind == SCAN_NONE)
        return ST_OK;
    if (count->kind != SCAN_INTEGER)
        return refuse_member(r, "", NULL,
                             "end is %s. It must be the number of records, or true",
                             json_received(count).text);
    return read_field(r, "", &end, count, &out->announced);
}

enum status
record_json_read(struct record_reader *r, struct bytes text, struct record_line *out)
{
    struct line_json l = {.claims_paused = false};
    struct store_settings *set;
    struct paused_by by;
    enum status st;

    *out = (struct record_line){.what = LINE_HEAD};
    if (json_fault(text, r->why))
        return ST_BAD_BODY;
    st = READ_OBJECT(r, "", text, line_fields, &l);
    if (st != ST_OK)
        return st;
    if (l.claimd.kind != SCAN_NONE)
        return read_head(r, &l.version);
    if (l.end.kind != SCAN_NONE || l.next.kind != SCAN_NONE)
        return read_end(r, &l.end, out);
    out->what = LINE_RECORD;
    st = read_queue(r, &l, &out->where);
    if (st != ST_OK)
        return st;
    if ((l.metadata.kind != SCAN_NONE) + (l.message.kind != SCAN_NONE) +
            (l.subscription.kind != SCAN_NONE) >
        1)
        return refuse_member(r, "", NULL,
                             "only one of metadata, message and subscription is allowed");
    if (l.message.kind != SCAN_NONE)
        return read_message(r, l.message.text, out);
    if (l.subscription.kind != SCAN_NONE)
        return read_subscription(r, l.subscription.text, out);
    st = metadata_decode(json_left_out(&l.metadata) ? bytes_str("") : l.metadata.text,
                         r->limits, r->arena, &out->record.metadata, r->why);
    set = &out->record.metadata.settings;
    set->paused = (l.claims_paused ? STORE_PAUSE_CLAIMS : 0U) |
                  (l.posts_paused ? STORE_PAUSE_POSTS : 0U);
    set->paused_by = l.paused_by;
    if (st == ST_OK && bytes_present(l.paused_by) &&
        (set->paused == 0 || !paused_by_read(l.paused_by, &by)))
        return refuse_member(r, "", "paused_by",
                             "it must be of a paused queue: a time in milliseconds, a "
                             "line feed and at most %d bytes",
                             STORE_CLIENT_MAX);
    return st == ST_TOO_LARGE
               ? refuse_member(r, "", "metadata",
                               "it is larger than max_queue_metadata allows")
               : locate_reason(r, "", "metadata", st);
}
