#include "api/wire/message.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <nettle/md5.h>
#include <stdio.h>
#include <stdlib.h>

size_t
message_space(const struct message_form *form, size_t count)
{
    /* The fixed text of a document, its numbers and its checksum. */
    enum { FRAME = 128, NUMBERS = 3 * 20, CHECKSUM = CHECKSUM_LEN + 16 };
    /* The same of its details, and their texts, in which each byte may need an escape. */
    enum {
        DETAILS = 640 + 6 * (STORE_REASON_MAX + STORE_CLIENT_MAX + STORE_METRICS_NAME +
                             STORE_UNIQUE_MAX)
    };

    return 2 + count * (FRAME + NUMBERS + CHECKSUM + form->href.len + 3 * STORE_ID_CAP +
                        (form->details ? DETAILS : 0));
}

/*
 * These functions write at `at`, where the space is reserved, and return the end. Ids and
 * hrefs need no escapes.
 */
static char *
put_bytes(char *at, const char *text, size_t len)
{
    memcpy(at, text, len);
    return at + len;
}

#define PUT(at, literal) put_bytes(at, literal, sizeof(literal) - 1)

static char *
put_id(char *at, const struct store_id *id)
{
    return put_bytes(at, id->text, strlen(id->text));
}

static char *
put_number(char *at, int64_t number)
{
    if (number < 0)
        at = PUT(at, "-");
    return at + decimal_write(at, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static char *
put_href(char *at, const struct message_form *form, const struct store_message *message)
{
    at = PUT(at, "\"href\":\"");
    at = put_bytes(at, form->href.data, form->href.len);
    at = PUT(at, "/");
    at = put_id(at, &message->id);
    if (message->claim_id.text[0] != '\0' && !form->hide_claim) {
        at = PUT(at, "?claim_id=");
        at = put_id(at, &message->claim_id);
    }
    return PUT(at, "\",");
}

static char *
put_message(char *at, const struct message_form *form,
            const struct store_message *message)
{
    at = PUT(at, "{");
    if (form->shape != MESSAGE_V1) {
        at = PUT(at, "\"id\":\"");
        at = put_id(at, &message->id);
        at = PUT(at, "\",");
    }
    if (form->shape != MESSAGE_POP)
        at = put_href(at, form, message);
    at = PUT(at, "\"ttl\":");
    at = put_number(at, message->ttl_s);
    at = PUT(at, ",\"age\":");
    at = put_number(at, message->age_s);
    at = PUT(at, ",\"body\":");
    at = put_bytes(at, message->body.data, message->body.len);
    if (form->shape == MESSAGE_POP) {
        at = PUT(at, ",\"claim_id\":null,\"claim_count\":");
        at = put_number(at, message->claim_count);
    }
    return at;
}

void
time_write(struct buf *out, const char *name, int64_t ms, const struct clock *time_base)
{
    json_write_time(out, name, clock_to_wall_ms(time_base, ms));
}

static const char *const causes[STORE_CAUSES] = {[STORE_CAUSE_WORKER] = "worker",
                                                 [STORE_CAUSE_ATTEMPTS] = "attempts",
                                                 [STORE_CAUSE_EXPIRED] = "expired"};

struct bytes
cause_name(enum store_cause cause)
{
    return bytes_str(causes[cause]);
}

bool
cause_read(struct bytes name, enum store_cause *out)
{
    for (int i = STORE_CAUSE_UNKNOWN + 1; i < STORE_CAUSES; i++)
        if (bytes_equal_str(name, causes[i])) {
            *out = (enum store_cause)i;
            return true;
        }
    return false;
}

struct holder
holder_of(struct bytes text)
{
    struct holder out;

    out.client = bytes_cut(&text, HOLDER_MARK);
    out.address = bytes_cut(&text, HOLDER_MARK);
    out.worker = text;
    return out;
}

bool
holder_has(struct bytes text, struct bytes part)
{
    const struct holder h = holder_of(text);
    const size_t len = part.len < HOLDER_CLIENT_MAX ? part.len : HOLDER_CLIENT_MAX;

    return bytes_equal(h.client, bytes_of(part.data, len)) ||
           bytes_equal(h.address, part) || bytes_equal(h.worker, part);
}

static void
write_part(struct buf *out, const char *prefix, const char *name, struct bytes part)
{
    char whole[16];

    (void)snprintf(whole, sizeof(whole), "%s%s", prefix, name);
    if (part.len > 0)
        json_write_text(out, whole, part);
    else if (prefix[0] == '\0')
        json_write_text_or_null(out, whole, BYTES_NONE);
}

void
holder_write(struct buf *out, const char *prefix, struct bytes text)
{
    const struct holder h = holder_of(text);

    write_part(out, prefix, "client", h.client);
    write_part(out, prefix, "address", h.address);
    write_part(out, prefix, "worker", h.worker);
}

bool
paused_by_read(struct bytes text, struct paused_by *out)
{
    const bool fits = text.len <= STORE_PAUSED_BY_MAX;
    const struct bytes time = bytes_cut(&text, HOLDER_MARK);
    uint64_t ms;

    *out = (struct paused_by){.holder = BYTES_NONE};
    if (!fits || !bytes_present(text) || text.len > STORE_CLIENT_MAX ||
        !bytes_to_u64(time, &ms) || ms > (uint64_t)STORE_MS_MOST)
        return false;
    *out = (struct paused_by){.at_ms = (int64_t)ms, .holder = text};
    return true;
}

void
details_write(struct buf *out, const struct store_details *details,
              const struct clock *time_base)
{
    if (details == NULL)
        return;
    json_write_text(out, "last_reason", details->reason);
    holder_write(out, "last_", details->client);
    if (details->released_ms != 0)
        time_write(out, "last_released_at", details->released_ms, time_base);
    json_write_text(out, "origin_queue", details->origin);
    if (details->dead_lettered_ms != 0)
        time_write(out, "dead_lettered_at", details->dead_lettered_ms, time_base);
    if (details->cause != STORE_CAUSE_UNKNOWN) {
        json_write_text(out, "cause", cause_name(details->cause));
        json_write_u64(out, "attempts", details->attempts);
    }
    json_write_text(out, "unique", details->unique.key);
    if (details->unique.until_claimed)
        json_write_text(out, "unique_until", bytes_str("claimed"));
    if (details->unique.due_ms != 0) /* which is a time of the wall clock */
        json_write_time(out, "due_at", details->unique.due_ms);
}

const char *
message_state(const struct store_message *message)
{
    if (message->claim_id.text[0] != '\0')
        return "claimed";
    return message->delayed_until_ms != 0 ? "delayed" : "ready";
}

/* Writes the member `details` behind the other members, and closes the message. */
static void
write_details(struct buf *out, const struct store_message *message,
              const struct clock *time_base)
{
    buf_str(out, ",\"details\":{");
    json_write_text(out, "state", bytes_str(message_state(message)));
    json_write_u64(out, "delivery_count", message->claim_count);
    time_write(out, "created_at", message->posted_ms, time_base);
    time_write(out, "expires_at", message->expires_ms, time_base);
    if (message->delayed_until_ms != 0)
        time_write(out, "delayed_until", message->delayed_until_ms, time_base);
    details_write(out, message->details, time_base);
    buf_str(out, "}}");
}

void
message_write(struct buf *out, const struct message_form *form,
              const struct store_message *message)
{
    char *start, *at;

    if (!buf_reserve(out, message_space(form, 1) + message->body.len))
        return;
    start = out->data + out->len;
    at = put_message(start, form, message);
    if (form->checksum && form->shape != MESSAGE_V1 && message->checksum != NULL &&
        !bytes_equal_str(message->body, "null")) {
        at = PUT(at, ",\"checksum\":\"");
        checksum_write(message->checksum, at);
        at = PUT(at + CHECKSUM_LEN, "\"");
    }
    if (!form->details)
        at = PUT(at, "}");
    out->len += (size_t)(at - start);
    if (form->details)
        write_details(out, message, form->time_base);
}

void
message_write_all(struct buf *out, const struct message_form *form,
                  const struct store_message *messages, size_t count)
{
    buf_byte(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        message_write(out, form, &messages[i]);
    }
    buf_byte(out, ']');
}

/* ------------------------------------------------------------------ checksums */

/* The place of a member of an open object in the form written so far. */
struct member {
    size_t order;          /* among the members of its object */
    size_t name, name_end; /* with its quotes */
    size_t value, value_end;
    bool dropped; /* an earlier member of the same name has its value now */
};

struct writer {
    struct json_scan scan;
    struct buf *out;
    struct buf members; /* a stack of struct member: those of all open objects */
};

static void form_value(struct writer *w);

static void
form_unit(struct buf *out, uint32_t unit)
{
    char escape[6] = {'\\', 'u'};

    hex_write(escape + 2, unit, 4);
    buf_add(out, escape, sizeof(escape));
}

static void
form_character(struct buf *out, uint32_t c)
{
    static const char short_for[0x60] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
        ['\t'] = 't', ['"'] = '"',  ['\\'] = '\\'};

    if (c < sizeof(short_for) && short_for[c] != 0) {
        buf_byte(out, '\\');
        buf_byte(out, short_for[c]);
    } else if (c >= 0x20 && c < 0x7f) {
        buf_byte(out, (char)c);
    } else if (c < 0x10000) {
        form_unit(out, c);
    } else {
        form_unit(out, 0xd800 + ((c - 0x10000) >> 10));
        form_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
    }
}

static void
form_string(struct buf *out, struct bytes inside)
{
    buf_byte(out, '"');
    while (inside.len > 0)
        form_character(out, json_string_next(&inside));
    buf_byte(out, '"');
}

static void
form_scalar(struct buf *out, const struct json_scan_value *value)
{
    if (value->kind == SCAN_STRING)
        form_string(out, json_scan_inside(value));
    else if (value->kind == SCAN_REAL)
        json_number_write(out, json_number_read(value->text));
    else if (bytes_equal_str(value->text, "-0"))
        buf_byte(out, '0');
    else
        buf_bytes(out, value->text);
}

static int
by_order(const void *a, const void *b)
{
    size_t left = ((const struct member *)a)->order;
    size_t right = ((const struct member *)b)->order;

    return left < right ? -1 : left > right;
}

/* Equal names have equal forms, so their bytes can be compared. */
static int
by_name(const void *a, const void *b, void *form)
{
    const struct member *left = a, *right = b;
    const char *text = form;
    int order =
        bytes_compare(bytes_of(text + left->name, left->name_end - left->name),
                      bytes_of(text + right->name, right->name_end - right->name));

    return order != 0 ? order : by_order(a, b);
}

static bool
same_name(const struct writer *w, const struct member *a, const struct member *b)
{
    const char *text = w->out->data;

    return bytes_equal(bytes_of(text + a->name, a->name_end - a->name),
                       bytes_of(text + b->name, b->name_end - b->name));
}

/* Gives the first member of each name the value of the last. True if a name appears
 * twice. */
static bool
merge_members(struct writer *w, struct member *members, size_t count)
{
    bool merged = false;
    size_t first = 0;

    qsort_r(members, count, sizeof(*members), by_name, w->out->data);
    for (size_t i = 1; i < count; i++) {
        if (!same_name(w, &members[first], &members[i])) {
            first = i;
            continue;
        }
        members[first].value = members[i].value;
        members[first].value_end = members[i].value_end;
        members[i].dropped = true;
        merged = true;
    }
    return merged;
}

/* Writes the remaining members to `again`, with braces. */
static void
rewrite_members(const struct writer *w, const struct member *members, size_t count,
                struct buf *again)
{
    const char *text = w->out->data;

    for (size_t i = 0; i < count; i++) {
        const struct member *m = &members[i];

        if (m->dropped)
            continue;
        buf_str(again, again->len == 0 ? "{" : ", ");
        buf_add(again, text + m->name, m->name_end - m->name);
        buf_str(again, ": ");
        buf_add(again, text + m->value, m->value_end - m->value);
    }
    buf_byte(again, '}');
}

/*
 * Unites members of the same name of the object that begins at `start`: the last value
 * remains, at the place of the first. O(size of the object) if there are any.
 */
static void
unite_members(struct writer *w, size_t base, size_t start)
{
    size_t count = (w->members.len - base) / sizeof(struct member);
    struct member *members;
    struct buf again;

    if (count < 2)
        return;
    members = (struct member *)(void *)(w->members.data + base);
    if (!merge_members(w, members, count))
        return;
    qsort(members, count, sizeof(*members), by_order);
    buf_init(&again, w->out->mem);
    rewrite_members(w, members, count, &again);
    w->out->len = start;
    buf_bytes(w->out, buf_view(&again));
    w->out->failed |= again.failed;
    buf_fini(&again);
}

static void
form_member(struct writer *w, const struct json_scan_name *name, size_t order)
{
    struct member m = {.order = order};

    m.name = w->out->len;
    form_string(w->out, name->text);
    m.name_end = w->out->len;
    buf_str(w->out, ": ");
    m.value = w->out->len;
    form_value(w);
    m.value_end = w->out->len;
    buf_add(&w->members, &m, sizeof(m));
}

static void
form_object(struct writer *w)
{
    size_t base = w->members.len, start = w->out->len, order = 0;
    struct json_scan_name name;

    buf_byte(w->out, '{');
    while (json_scan_member(&w->scan, &name)) {
        if (order > 0)
            buf_str(w->out, ", ");
        form_member(w, &name, order++);
    }
    buf_byte(w->out, '}');
    if (!w->out->failed && !w->members.failed)
        unite_members(w, base, start);
    w->members.len = base;
}

static void
form_array(struct writer *w)
{
    bool first = true;

    buf_byte(w->out, '[');
    while (json_scan_item(&w->scan)) {
        if (!first)
            buf_str(w->out, ", ");
        first = false;
        form_value(w);
    }
    buf_byte(w->out, ']');
}

/* Recurses as deep as the text nests, which the scanner limits to SCAN_DEPTH_MAX. */
static void
form_value(struct writer *w)
{
    struct json_scan_value value;

    if (json_scan_enter(&w->scan, SCAN_OBJECT))
        form_object(w);
    else if (json_scan_enter(&w->scan, SCAN_ARRAY))
        form_array(w);
    else if (json_scan_value(&w->scan, &value))
        form_scalar(w->out, &value);
}

enum status
checksum_form(struct bytes body, struct buf *out)
{
    struct writer w = {.out = out};
    enum status st;

    buf_init(&w.members, out->mem);
    json_scan_begin(&w.scan, body);
    form_value(&w);
    st = json_scan_end(&w.scan);
    if (st == ST_OK && (out->failed || w.members.failed))
        st = ST_NO_MEMORY;
    buf_fini(&w.members);
    return st;
}

enum status
checksum_of(struct bytes body, struct mem *mem, struct store_checksum *out)
{
    struct md5_ctx md5;
    struct buf form;
    enum status st;

    buf_init(&form, mem);
    st = checksum_form(body, &form);
    if (st == ST_OK) {
        md5_init(&md5);
        md5_update(&md5, form.len, (const uint8_t *)form.data);
        md5_digest(&md5, sizeof(out->digest), out->digest);
    }
    buf_fini(&form);
    return st;
}

void
checksum_write(const struct store_checksum *checksum, char out[CHECKSUM_LEN])
{
    memcpy(out, "MD5:", 4);
    (void)hex_write_bytes(
        out + 4, bytes_of((const char *)checksum->digest, sizeof(checksum->digest)));
}
