#include "api/wire/record_json.h"

#include "api/caller.h"
#include "api/wire/message.h"
#include "api/wire/metadata.h"
#include "api/wire/subscription.h"
#include "claimd/json/fault.h"
#include "claimd/json/number.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* ------------------------------------------------------------------ writing */

/* A dump has many numbers: printf() would be most of its cost. */
static void
write_member(struct buf *out, const char *name)
{
    buf_str(out, ",\"");
    buf_str(out, name);
    buf_str(out, "\":");
}

static void
write_seconds(struct buf *out, const char *name, int64_t ms)
{
    uint64_t size = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    unsigned rest = (unsigned)(size % 1000);

    write_member(out, name);
    if (ms < 0)
        buf_byte(out, '-');
    buf_u64(out, size / 1000);
    if (rest != 0)
        buf_printf(out, ".%03u", rest);
}

static void
write_text(struct buf *out, const char *name, struct bytes text)
{
    write_member(out, name);
    json_string_write(out, text);
}

static void
write_count(struct buf *out, const char *name, uint64_t count)
{
    if (count == 0)
        return;
    write_member(out, name);
    buf_u64(out, count);
}

/* Opens the object of this name, whose first member is an id. */
static void
open_object(struct buf *out, const char *name, const struct store_id *id)
{
    write_member(out, name);
    buf_str(out, "{\"id\":\"");
    buf_str(out, id->text);
    buf_byte(out, '"');
}

/* An encrypted body stays so. */
static void
write_body(struct buf *out, struct bytes body)
{
    if (!store_is_sealed(body)) {
        buf_str(out, ",\"body\":");
        buf_bytes(out, body);
        return;
    }
    buf_str(out, ",\"sealed\":\"");
    if (buf_reserve(out, 2 * body.len))
        for (size_t i = 0; i < body.len; i++) {
            hex_write(out->data + out->len, (unsigned char)body.data[i], 2);
            out->len += 2;
        }
    buf_byte(out, '"');
}

static void
write_message(struct buf *out, const struct store_message_record *m, int64_t now_ms)
{
    const struct store_claim_record *claim = m->claim;
    char checksum[CHECKSUM_LEN];

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
    if (m->claim_count != (claim != NULL)) /* what is meant if it is left out */
        buf_printf(out, ",\"claim_count\":%" PRIu32, m->claim_count);
    if (m->client != 0) {
        char client[16];

        hex_write(client, m->client, sizeof(client));
        write_text(out, "client", bytes_of(client, sizeof(client)));
    }
    if (m->checksum != NULL) {
        checksum_write(m->checksum, checksum);
        write_text(out, "checksum", bytes_of(checksum, sizeof(checksum)));
    }
    write_body(out, m->body);
}

static void
write_subscription(struct buf *out, const struct store_subscription_record *s,
                   int64_t now_ms)
{
    open_object(out, "subscription", &s->id);
    write_text(out, "subscriber", s->subscriber);
    buf_str(out, ",\"options\":");
    buf_bytes(out, s->options);
    buf_printf(out, ",\"ttl\":%" PRId64, s->ttl_s);
    write_seconds(out, "age", now_ms - s->started_ms);
    buf_printf(out, ",\"confirmed\":%s", s->confirmed ? "true" : "false");
    if (s->pending == STORE_PENDING_CONFIRM)
        buf_str(out, ",\"asked\":true");
    write_count(out, "delivered", s->delivered);
    write_count(out, "given_up", s->given_up);
    write_count(out, "fallen_out", s->fallen_out);
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
    if (bytes_present(where->project)) {
        buf_str(out, "\"project\":");
        json_string_write(out, where->project);
        buf_byte(out, ',');
    }
    buf_str(out, where->kind == STORE_TOPIC ? "\"topic\":" : "\"queue\":");
    json_string_write(out, where->name);
    if (record->kind == STORE_RECORD_MESSAGE) {
        write_message(out, &record->message, now_ms);
    } else if (record->kind == STORE_RECORD_SUBSCRIPTION) {
        write_subscription(out, &record->subscription, now_ms);
    } else {
        buf_str(out, ",\"metadata\":");
        metadata_plain(&record->metadata, out);
        buf_str(out, "}\n");
        return;
    }
    buf_str(out, "}}\n");
}

/* ------------------------------------------------------------------ values */

/* A member that an object may have. */
struct member {
    const char *name;
    struct json_scan_value value; /* SCAN_NONE: left out */
};

/*
 * Refuses a member of an object: of "" (the line), "message", "message.claim" or "subscription".
 * `name` NULL: the object itself.
 */
static enum status __attribute__((format(printf, 4, 5)))
refuse(struct record_reader *r, const char *of, const char *name, const char *format, ...)
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

/* The reason of a refusal by another check gets its place. */
static enum status
place(struct record_reader *r, const char *of, const char *name, enum status st)
{
    struct reason why = *r->why;

    return st == ST_BAD_VALUE || st == ST_BAD_BODY ? refuse(r, of, name, "%s", why.text)
                                                   : st;
}

/* Reads an object whose members are among these, each of them once. */
static enum status
read_object(struct record_reader *r, const char *of, struct bytes text,
            const char *const *names, struct member *members, size_t count)
{
    struct json_scan_name name;
    struct json_scan s;

    for (size_t i = 0; i < count; i++)
        members[i] = (struct member){.name = names[i]};
    json_scan_begin(&s, text);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return refuse(r, of, NULL, "it must be an object");
    while (json_scan_member(&s, &name)) {
        size_t i = 0;

        while (i < count && !json_scan_name_is(&name, members[i].name))
            i++;
        if (i == count)
            return refuse(r, of, NULL, "it has the unknown member \"%s\"",
                          received(name.text).text);
        if (members[i].value.kind != SCAN_NONE)
            return refuse(r, of, NULL, "it has the member \"%s\" twice", members[i].name);
        (void)json_scan_value(&s, &members[i].value); /* it was checked */
    }
    return ST_OK;
}

/* Those that follow leave *out as it is if the member is left out, or null. */
static bool
left_out(const struct member *m)
{
    return m->value.kind == SCAN_NONE || m->value.kind == SCAN_NULL;
}

#define LONGEST_S INT64_C(10000000000)

/* Seconds with up to three decimals. */
static enum status
read_seconds(struct record_reader *r, const char *of, const struct member *m,
             double least_s, int64_t *out_ms)
{
    double seconds;

    if (left_out(m))
        return ST_OK;
    if (m->value.kind != SCAN_INTEGER && m->value.kind != SCAN_REAL)
        return refuse(r, of, m->name, "it must be a number of seconds");
    seconds = json_number_read(m->value.text);
    if (!(seconds >= least_s && seconds <= (double)LONGEST_S))
        return refuse(r, of, m->name, "it is %s. It must be between %g and %lld seconds",
                      json_received(&m->value).text, least_s, (long long)LONGEST_S);
    *out_ms = (int64_t)llround(seconds * 1000);
    return ST_OK;
}

static enum status
read_count(struct record_reader *r, const char *of, const struct member *m, int64_t most,
           uint64_t *out)
{
    int64_t value;

    if (left_out(m))
        return ST_OK;
    if (m->value.kind != SCAN_INTEGER)
        return refuse(r, of, m->name, "it must be an integer");
    value = json_scan_to_i64(&m->value);
    if (value < 0 || value > most)
        return refuse(r, of, m->name, "it is %lld. It must be between 0 and %lld",
                      (long long)value, (long long)most);
    *out = (uint64_t)value;
    return ST_OK;
}

static enum status
read_flag(struct record_reader *r, const char *of, const struct member *m, bool *out)
{
    if (left_out(m))
        return ST_OK;
    if (m->value.kind != SCAN_TRUE && m->value.kind != SCAN_FALSE)
        return refuse(r, of, m->name, "it must be true or false");
    *out = m->value.kind == SCAN_TRUE;
    return ST_OK;
}

/* Borrowed from the line, or out of the arena if it has escapes. */
static enum status
read_text(struct record_reader *r, const char *of, const struct member *m,
          struct bytes *out)
{
    struct bytes inside;
    size_t len = 0;
    char *text;

    if (left_out(m))
        return ST_OK;
    if (m->value.kind != SCAN_STRING)
        return refuse(r, of, m->name, "it must be a string");
    inside = json_scan_inside(&m->value);
    *out = inside;
    if (memchr(inside.data, '\\', inside.len) == NULL)
        return ST_OK;
    text = arena_alloc(r->arena, inside.len);
    if (text == NULL)
        return ST_NO_MEMORY;
    while (inside.len > 0)
        len += utf8_write(json_string_next(&inside), text + len);
    *out = bytes_of(text, len);
    return ST_OK;
}

/* "" if it is left out. */
static enum status
read_id(struct record_reader *r, const char *of, const struct member *m,
        struct store_id *out)
{
    struct bytes text = BYTES_NONE;
    enum status st = read_text(r, of, m, &text);

    *out = (struct store_id){""};
    if (st != ST_OK || !bytes_present(text))
        return st;
    if (!store_id_good(text))
        return refuse(r, of, m->name,
                      "it is \"%s\". An id is 24 lower-case hexadecimal digits, and the "
                      "first is a letter",
                      received(text).text);
    memcpy(out->text, text.data, text.len);
    return ST_OK;
}

/* ------------------------------------------------------------------ messages */

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

static const char of_message[] = "message";

static enum status
read_times(struct record_reader *r, const struct member *m,
           struct store_message_record *out)
{
    int64_t ttl_ms = r->limits->default_message_ttl * 1000, age_ms = 0, delay_ms = 0;
    enum status st = read_seconds(r, of_message, &m[MESSAGE_TTL], 0.001, &ttl_ms);

    if (st == ST_OK)
        st = read_seconds(r, of_message, &m[MESSAGE_AGE], 0, &age_ms);
    if (st == ST_OK)
        st = read_seconds(r, of_message, &m[MESSAGE_DELAY], 0, &delay_ms);
    if (st != ST_OK)
        return st;
    if (ttl_ms - age_ms > r->limits->max_message_ttl * 1000)
        return refuse(r, of_message, "ttl", "ttl minus age exceeds max_message_ttl");
    out->posted_ms = r->now_ms - age_ms;
    out->expires_ms = out->posted_ms + ttl_ms;
    out->delayed_until_ms = delay_ms == 0 ? 0 : r->now_ms + delay_ms;
    return ST_OK;
}

/* Pairs of hexadecimal digits, into the arena. */
static enum status
read_sealed(struct record_reader *r, const struct member *m, struct bytes *out)
{
    struct bytes text = BYTES_NONE;
    enum status st = read_text(r, of_message, m, &text);
    char *body;

    if (st != ST_OK)
        return st;
    body = arena_alloc(r->arena, text.len / 2 + 1);
    if (body == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < text.len / 2; i++) {
        uint64_t value;

        if (!hex_read(bytes_of(text.data + 2 * i, 2), &value))
            return refuse(r, of_message, m->name,
                          "it must consist of hexadecimal digits");
        body[i] = (char)value;
    }
    *out = bytes_of(body, text.len / 2);
    return text.len % 2 == 0 && store_is_sealed(*out)
               ? ST_OK
               : refuse(r, of_message, m->name, "it is not an encrypted body");
}

static enum status
read_body(struct record_reader *r, const struct member *m, struct bytes *out)
{
    const struct member *body = &m[MESSAGE_BODY], *sealed = &m[MESSAGE_SEALED];
    enum status st = ST_OK;

    if ((body->value.kind == SCAN_NONE) == (sealed->value.kind == SCAN_NONE))
        return refuse(r, of_message, "body",
                      "exactly one of body and sealed is required");
    if (sealed->value.kind != SCAN_NONE)
        st = read_sealed(r, sealed, out);
    else
        *out = body->value.text;
    if (st == ST_OK && out->len > (size_t)r->limits->max_messages_post_size)
        return refuse(
            r, of_message, "body",
            "it is %zu bytes long. The maximum is %lld bytes (max_messages_post_size)",
            out->len, (long long)r->limits->max_messages_post_size);
    return st;
}

/* The one that the line has, or the one that a post would get. */
static enum status
read_checksum(struct record_reader *r, const struct member *m, struct bytes body,
              const struct store_checksum **out)
{
    struct store_checksum *sum = arena_alloc(r->arena, sizeof(*sum));
    struct bytes text = BYTES_NONE;
    enum status st = read_text(r, of_message, m, &text);
    bool good;

    if (st != ST_OK || sum == NULL)
        return st == ST_OK ? ST_NO_MEMORY : st;
    if (!bytes_present(text)) {
        if (!r->limits->enable_checksum || store_is_sealed(body))
            return ST_OK;
        *out = sum;
        return checksum_of(body, r->mem, sum);
    }
    good = text.len == CHECKSUM_LEN && memcmp(text.data, "MD5:", 4) == 0;
    for (size_t i = 0; good && i < sizeof(sum->digest); i++) {
        uint64_t value = 0;

        good = hex_read(bytes_of(text.data + 4 + 2 * i, 2), &value);
        sum->digest[i] = (uint8_t)value;
    }
    *out = sum;
    return good ? ST_OK
                : refuse(r, of_message, m->name,
                         "it must be MD5: followed by 32 hexadecimal digits");
}

static enum status
read_client(struct record_reader *r, const struct member *m, uint64_t *out)
{
    struct bytes text = BYTES_NONE;
    enum status st = read_text(r, of_message, m, &text);

    if (st != ST_OK || !bytes_present(text))
        return st;
    return text.len == 16 && hex_read(text, out)
               ? ST_OK
               : refuse(r, of_message, m->name, "it must be 16 hexadecimal digits");
}

/* A claim is called by its id, which is kept, or by any name, which becomes *name. */
static enum status
read_claim(struct record_reader *r, struct bytes text, struct bytes *name,
           const struct store_claim_record **out)
{
    enum { ID, TTL, AGE, MEMBERS };
    static const char of[] = "message.claim";
    static const char *const names[MEMBERS] = {"id", "ttl", "age"};
    struct member m[MEMBERS];
    int64_t ttl_ms = r->limits->default_claim_ttl * 1000, age_ms = 0;
    struct store_claim_record *claim = arena_alloc(r->arena, sizeof(*claim));
    struct bytes called = BYTES_NONE;
    enum status st =
        claim == NULL ? ST_NO_MEMORY : read_object(r, of, text, names, m, MEMBERS);

    if (st == ST_OK)
        st = read_text(r, of, &m[ID], &called);
    if (st == ST_OK)
        st = read_seconds(r, of, &m[TTL], 0.001, &ttl_ms);
    if (st == ST_OK)
        st = read_seconds(r, of, &m[AGE], 0, &age_ms);
    if (st != ST_OK)
        return st;
    if (!bytes_present(called) || called.len == 0)
        return refuse(r, of, "id", "it is required");
    if (ttl_ms - age_ms > r->limits->max_claim_ttl * 1000)
        return refuse(r, of, "ttl", "ttl minus age exceeds max_claim_ttl");
    *claim = (struct store_claim_record){.started_ms = r->now_ms - age_ms,
                                         .ends_ms = r->now_ms - age_ms + ttl_ms};
    if (store_id_good(called))
        memcpy(claim->id.text, called.data, called.len);
    else
        *name = called;
    *out = claim;
    return ST_OK;
}

static enum status
read_message(struct record_reader *r, struct bytes text, struct record_line *line)
{
    struct store_message_record *out = &line->record.message;
    struct member m[MESSAGE_MEMBERS];
    uint64_t count = 0;
    enum status st = read_object(r, of_message, text, message_names, m, MESSAGE_MEMBERS);

    line->record.kind = STORE_RECORD_MESSAGE;
    if (st == ST_OK)
        st = read_id(r, of_message, &m[MESSAGE_ID], &out->id);
    if (st == ST_OK)
        st = read_times(r, m, out);
    if (st == ST_OK)
        st = read_body(r, m, &out->body);
    if (st == ST_OK)
        st = read_checksum(r, &m[MESSAGE_CHECKSUM], out->body, &out->checksum);
    if (st == ST_OK)
        st = read_client(r, &m[MESSAGE_CLIENT], &out->client);
    if (st == ST_OK && !left_out(&m[MESSAGE_CLAIM])) {
        count = 1;
        st = read_claim(r, m[MESSAGE_CLAIM].value.text, &line->claim, &out->claim);
    }
    if (st == ST_OK)
        st = read_count(r, of_message, &m[MESSAGE_CLAIM_COUNT], UINT32_MAX, &count);
    out->claim_count = (uint32_t)count;
    return st;
}

/* ------------------------------------------------------------------ subscriptions */

enum {
    SUB_ID,
    SUB_SUBSCRIBER,
    SUB_OPTIONS,
    SUB_TTL,
    SUB_AGE,
    SUB_CONFIRMED,
    SUB_ASKED,
    SUB_DELIVERED,
    SUB_GIVEN_UP,
    SUB_FALLEN_OUT,
    SUB_MEMBERS
};

static const char *const subscription_names[SUB_MEMBERS] = {
    "id",        "subscriber", "options",   "ttl",      "age",
    "confirmed", "asked",      "delivered", "given_up", "fallen_out"};

static const char of_subscription[] = "subscription";

static enum status
read_address(struct record_reader *r, const struct member *m,
             struct store_subscription_record *out)
{
    enum status st = read_text(r, of_subscription, &m[SUB_SUBSCRIBER], &out->subscriber);

    if (st != ST_OK)
        return st;
    if (!bytes_present(out->subscriber))
        return refuse(r, of_subscription, "subscriber", "it is required");
    out->options = bytes_str("{}");
    if (m[SUB_OPTIONS].value.kind == SCAN_OBJECT)
        out->options = m[SUB_OPTIONS].value.text;
    else if (!left_out(&m[SUB_OPTIONS]))
        return refuse(r, of_subscription, "options", "it must be an object");
    return place(r, of_subscription, NULL,
                 subscription_check(out->subscriber, out->options, r->limits, r->why));
}

static enum status
read_subscription(struct record_reader *r, struct bytes text, struct record_line *line)
{
    struct store_subscription_record *out = &line->record.subscription;
    struct member m[SUB_MEMBERS];
    uint64_t *const counts[] = {&out->delivered, &out->given_up, &out->fallen_out};
    uint64_t ttl_s = (uint64_t)r->limits->default_subscription_ttl;
    int64_t age_ms = 0;
    bool asked = false;
    enum status st =
        read_object(r, of_subscription, text, subscription_names, m, SUB_MEMBERS);

    line->record.kind = STORE_RECORD_SUBSCRIPTION;
    if (st == ST_OK)
        st = read_id(r, of_subscription, &m[SUB_ID], &out->id);
    if (st == ST_OK)
        st = read_address(r, m, out);
    if (st == ST_OK)
        st = read_count(r, of_subscription, &m[SUB_TTL], STORE_MS_MOST / 1000, &ttl_s);
    if (st == ST_OK)
        st = read_seconds(r, of_subscription, &m[SUB_AGE], 0, &age_ms);
    if (st == ST_OK)
        st = read_flag(r, of_subscription, &m[SUB_CONFIRMED], &out->confirmed);
    if (st == ST_OK)
        st = read_flag(r, of_subscription, &m[SUB_ASKED], &asked);
    for (size_t i = 0; st == ST_OK && i < sizeof(counts) / sizeof(counts[0]); i++)
        st = read_count(r, of_subscription, &m[SUB_DELIVERED + i], INT64_MAX, counts[i]);
    out->pending = asked ? STORE_PENDING_CONFIRM : STORE_PENDING_NONE;
    out->ttl_s = (int64_t)ttl_s;
    out->started_ms = r->now_ms - age_ms;
    return st;
}

/* ------------------------------------------------------------------ lines */

enum {
    LINE_DUMP,
    LINE_VERSION,
    LINE_NOW,
    LINE_PROJECT,
    LINE_QUEUE,
    LINE_TOPIC,
    LINE_METADATA,
    LINE_MESSAGE,
    LINE_SUBSCRIPTION,
    LINE_COUNT,
    LINE_NEXT,
    LINE_MEMBERS
};

static const char *const line_names[LINE_MEMBERS] = {
    "claimd",   "version", "now_ms",       "project", "queue", "topic",
    "metadata", "message", "subscription", "end",     "next"};

static enum status
read_head(struct record_reader *r, const struct member *version)
{
    if (version->value.kind != SCAN_INTEGER)
        return refuse(r, "", version->name, "it is %s. It must be %d",
                      json_received(&version->value).text, RECORD_JSON_VERSION);
    if (json_scan_to_i64(&version->value) != RECORD_JSON_VERSION)
        return refuse(r, "", version->name,
                      "it is %s, but this server reads only version %d",
                      json_received(&version->value).text, RECORD_JSON_VERSION);
    return ST_OK;
}

static enum status
read_project(struct record_reader *r, const struct member *m, struct bytes *out)
{
    enum status st;

    *out = r->project;
    st = read_text(r, "", m, out);
    if (st != ST_OK)
        return st;
    if (!bytes_present(*out) || out->len > CALLER_PROJECT_MAX)
        return refuse(r, "", m->name, "it is required, and at most %d bytes long",
                      CALLER_PROJECT_MAX);
    if (r->only && !bytes_equal(*out, r->project))
        return refuse(
            r, "", m->name,
            "it is \"%s\". In a request for one project it must be that project",
            received(*out).text);
    return ST_OK;
}

static enum status
read_queue(struct record_reader *r, const struct member *m, struct store_queue *out)
{
    const bool topic = m[LINE_TOPIC].value.kind != SCAN_NONE;
    const struct member *name = topic ? &m[LINE_TOPIC] : &m[LINE_QUEUE];
    enum status st = read_project(r, &m[LINE_PROJECT], &out->project);

    if (st != ST_OK)
        return st;
    if (topic && m[LINE_QUEUE].value.kind != SCAN_NONE)
        return refuse(r, "", NULL,
                      "it has both a queue and a topic. Only one is allowed");
    out->kind = topic ? STORE_TOPIC : STORE_QUEUE;
    out->name = BYTES_NONE;
    st = read_text(r, "", name, &out->name);
    if (st != ST_OK)
        return st;
    return bytes_present(out->name) && caller_queue_name(out->name) == ST_OK
               ? ST_OK
               : refuse(
                     r, "", name->name,
                     "it is \"%s\". It must be 1 to 64 characters from A-Z a-z 0-9 _ - .",
                     received(out->name).text);
}

static enum status
read_metadata(struct record_reader *r, const struct member *m, struct store_metadata *out)
{
    struct bytes text = left_out(m) ? bytes_str("") : m->value.text;
    enum status st = metadata_decode(text, r->limits, r->arena, out, r->why);

    return st == ST_TOO_LARGE
               ? refuse(r, "", m->name, "it is larger than max_queue_metadata allows")
               : place(r, "", m->name, st);
}

/* {"end":5}; {"end":true} and {"next":"MARKER"} end a page. */
static enum status
read_end(struct record_reader *r, const struct member *m, struct record_line *out)
{
    const struct member *count = &m[LINE_COUNT];

    out->what = LINE_END;
    out->announced = UINT64_MAX;
    if (count->value.kind == SCAN_TRUE || count->value.kind == SCAN_NONE)
        return ST_OK;
    if (count->value.kind != SCAN_INTEGER)
        return refuse(r, "", NULL, "end is %s. It must be the number of records, or true",
                      json_received(&count->value).text);
    return read_count(r, "", count, INT64_MAX, &out->announced);
}

enum status
record_json_read(struct record_reader *r, struct bytes text, struct record_line *out)
{
    struct member m[LINE_MEMBERS];
    enum status st;

    *out = (struct record_line){.what = LINE_HEAD};
    if (json_fault(text, r->why))
        return ST_BAD_BODY;
    st = read_object(r, "", text, line_names, m, LINE_MEMBERS);
    if (st != ST_OK)
        return st;
    if (m[LINE_DUMP].value.kind != SCAN_NONE)
        return read_head(r, &m[LINE_VERSION]);
    if (m[LINE_COUNT].value.kind != SCAN_NONE || m[LINE_NEXT].value.kind != SCAN_NONE)
        return read_end(r, m, out);
    out->what = LINE_RECORD;
    st = read_queue(r, m, &out->where);
    if (st != ST_OK)
        return st;
    if ((m[LINE_METADATA].value.kind != SCAN_NONE) +
            (m[LINE_MESSAGE].value.kind != SCAN_NONE) +
            (m[LINE_SUBSCRIPTION].value.kind != SCAN_NONE) >
        1)
        return refuse(r, "", NULL,
                      "only one of metadata, message and subscription is allowed");
    if (m[LINE_MESSAGE].value.kind != SCAN_NONE)
        return read_message(r, m[LINE_MESSAGE].value.text, out);
    if (m[LINE_SUBSCRIPTION].value.kind != SCAN_NONE)
        return read_subscription(r, m[LINE_SUBSCRIPTION].value.text, out);
    return read_metadata(r, &m[LINE_METADATA], &out->record.metadata);
}
