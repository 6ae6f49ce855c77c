#include "api/wire/decode.h"
#include "claimd/base/clock.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <stdio.h>
#include <time.h>

/* Most posts have ten messages or fewer. */
#define DRAFTS_FIRST 16

struct post_reader {
    struct json_scan scan;
    enum post_form form;
    const struct api_limits *limits; /* borrowed */
    struct integer_range ttl, delay;
    struct arena *arena;        /* borrowed */
    struct store_draft *drafts; /* from the arena */
    size_t count, cap;
    size_t index;                  /* of the present message */
    enum status st;                /* the worst of all messages so far */
    struct reason *why;            /* borrowed; of the first message with st */
    struct unknown_names *unknown; /* borrowed */
};

/* The members of a message; SCAN_NONE: left out. The last one of a name counts. */
struct post_fields {
    struct json_scan_value body, ttl, delay;
};

/* The name of the list of messages in reasons. */
static const char *
list_name(const struct post_reader *r)
{
    return r->form == POST_V1 ? "" : "messages";
}

/* The status to report of two for one body: a wrong type before a wrong value. */
static enum status
decode_worse(enum status a, enum status b)
{
    if (a == ST_OK || b == ST_BAD_BODY)
        return b;
    return a;
}

/* True if st is worse than all before, so that it needs a reason. */
static bool
is_worst(const struct post_reader *r, enum status st)
{
    return decode_worse(r->st, st) != r->st;
}

/* Refuses the present message for a member, such as ".ttl"; "" for the whole message. */
static void
refuse_item(struct post_reader *r, enum status st, const char *member, const char *what)
{
    if (!is_worst(r, st))
        return;
    r->st = reason_give(r->why, st, "%s[%zu]%s %s", list_name(r), r->index, member, what);
}

/* The same for an integer. */
static void
refuse_item_integer(struct post_reader *r, enum status st, const char *member,
                    const struct json_scan_value *value,
                    const struct integer_range *range)
{
    char name[64];

    if (!is_worst(r, st))
        return;
    (void)snprintf(name, sizeof(name), "%s[%zu].%s", list_name(r), r->index, member);
    r->st = integer_refuse(r->why, st, name, value, range);
}

static bool
drafts_grow(struct post_reader *r)
{
    size_t cap = r->cap == 0 ? DRAFTS_FIRST : r->cap * 2;
    struct store_draft *grown = arena_array(r->arena, cap, sizeof(*grown));

    if (grown == NULL)
        return false;
    if (r->count > 0)
        memcpy(grown, r->drafts, r->count * sizeof(*grown));
    r->drafts = grown;
    r->cap = cap;
    return true;
}

static void
read_fields(struct post_reader *r, struct post_fields *f)
{
    struct json_scan_name name;

    while (json_scan_member(&r->scan, &name)) {
        struct json_scan_value *value = NULL;

        if (json_scan_name_is(&name, "body"))
            value = &f->body;
        else if (json_scan_name_is(&name, "ttl"))
            value = &f->ttl;
        else if (json_scan_name_is(&name, "delay") && r->form == POST_V2)
            value = &f->delay;
        else
            unknown_add(r->unknown, name.text);
        (void)json_scan_value(&r->scan, value); /* json_scan_end() reports errors */
    }
}

static void
draft_read(struct post_reader *r, const struct post_fields *f, struct store_draft *draft)
{
    enum status ttl = decode_integer(&f->ttl, &r->ttl, &draft->ttl_s);
    enum status delay = decode_integer(&f->delay, &r->delay, &draft->delay_s);

    draft->body = f->body.text;
    if (f->body.kind == SCAN_NONE)
        refuse_item(r, ST_BAD_BODY, ".body", "is missing");
    if (r->form == POST_V1 && (f->ttl.kind == SCAN_NONE || f->ttl.kind == SCAN_NULL))
        refuse_item(r, ST_BAD_BODY, ".ttl", "is missing");
    if (ttl != ST_OK)
        refuse_item_integer(r, ttl, "ttl", &f->ttl, &r->ttl);
    if (delay != ST_OK)
        refuse_item_integer(r, delay, "delay", &f->delay, &r->delay);
}

/* Reads an item of the list of messages. After a bad item the others are only checked. */
static void
read_message(struct post_reader *r)
{
    /* In v2 the store fills in the defaults of the queue. */
    struct store_draft draft = {
        .ttl_s = r->form == POST_V1_1 ? r->limits->default_message_ttl : STORE_UNSET,
        .delay_s = r->form == POST_V2 ? STORE_UNSET : 0};
    struct post_fields f = {
        {SCAN_NONE, BYTES_NONE}, {SCAN_NONE, BYTES_NONE}, {SCAN_NONE, BYTES_NONE}};

    if (!json_scan_enter(&r->scan, SCAN_OBJECT)) {
        (void)json_scan_value(&r->scan, NULL);
        refuse_item(r, ST_BAD_BODY, "", "must be an object");
        return;
    }
    read_fields(r, &f);
    draft_read(r, &f, &draft);
    if (r->st == ST_OK && r->count == r->cap && !drafts_grow(r))
        r->st = ST_NO_MEMORY;
    if (r->st == ST_OK)
        r->drafts[r->count++] = draft;
}

/* Reads a list of messages, which replaces an earlier one (a member of the same name). */
static void
read_messages(struct post_reader *r)
{
    r->count = r->index = 0;
    r->st = ST_OK;
    if (!json_scan_enter(&r->scan, SCAN_ARRAY)) {
        (void)json_scan_value(&r->scan, NULL);
        r->st = reason_give(r->why, ST_BAD_BODY, "messages must be an array");
        return;
    }
    for (; json_scan_item(&r->scan); r->index++)
        read_message(r);
    if (r->index == 0)
        r->st = reason_give(
            r->why, ST_BAD_VALUE,
            "the array of messages is empty. At least one message is required");
}

static void
read_object(struct post_reader *r)
{
    struct json_scan_name name;
    bool found = false;

    while (json_scan_member(&r->scan, &name)) {
        if (json_scan_name_is(&name, "messages")) {
            read_messages(r);
            found = true;
        } else {
            unknown_add(r->unknown, name.text);
            (void)json_scan_value(&r->scan, NULL);
        }
    }
    if (!found)
        r->st = reason_give(r->why, ST_BAD_VALUE, "the member messages is required");
}

static void
read_document(struct post_reader *r)
{
    enum json_scan_kind top = json_scan_peek(&r->scan);

    if (r->form == POST_V1 && top == SCAN_ARRAY) {
        read_messages(r);
    } else if (r->form != POST_V1 && json_scan_enter(&r->scan, SCAN_OBJECT)) {
        read_object(r);
    } else if (r->form == POST_V1) {
        (void)json_scan_value(&r->scan, NULL);
        r->st = reason_give(r->why, ST_BAD_BODY, "the body must be an array of messages");
    } else {
        (void)json_scan_value(&r->scan, NULL);
        /* As in Zaqar, an array is an object without messages, and other types are no
         * document. */
        r->st = reason_give(r->why, top == SCAN_ARRAY ? ST_BAD_VALUE : ST_BAD_BODY,
                            "the body must be an object with the array messages");
    }
}

enum status
decode_post(struct bytes body, enum post_form form, const struct api_limits *limits,
            struct arena *arena, struct decoded_post *out, struct reason *why)
{
    struct post_reader r = {
        .form = form,
        .limits = limits,
        .ttl = {limits->min_message_ttl, limits->max_message_ttl,
                "min_message_ttl, max_message_ttl"},
        .delay = {0, limits->max_message_delay, "max_message_delay"},
        .arena = arena,
        .why = why,
        .unknown = &out->unknown,
    };
    enum status st;

    out->unknown.count = 0;

    json_scan_begin(&r.scan, body);
    read_document(&r);
    st = json_scan_end(&r.scan);
    if (st != ST_OK) {
        if (!json_fault(body, why))
            (void)reason_give(why, st, "the body is not JSON");
        return st;
    }
    if (r.st != ST_OK)
        return r.st;
    out->drafts = r.drafts;
    out->count = r.count;
    return ST_OK;
}

/* ------------------------------------------------------------------ claims */

enum { TTL, GRACE, LIMIT, MEMBERS };

static const char *const member_names[MEMBERS] = {"ttl", "grace", "limit"};

/* Reads a member. *st is the worst status so far, and *why its reason. */
static void
read_integer(const struct json_scan_value *members, size_t which,
             const struct integer_range *range, int64_t *out, enum status *st,
             struct reason *why)
{
    enum status mine = decode_integer(&members[which], range, out);

    if (mine != ST_OK && decode_worse(*st, mine) != *st)
        *st = integer_refuse(why, mine, member_names[which], &members[which], range);
}

enum status
decode_terms(struct bytes body, enum terms_form form, const struct api_limits *l,
             struct decoded_terms *out, struct reason *why)
{
    const bool renews = form == TERMS_RENEW || form == TERMS_RENEW_V1;
    const struct integer_range ttl = {l->min_claim_ttl, l->max_claim_ttl,
                                      "min_claim_ttl, max_claim_ttl"};
    /* A claim shows no grace, so SDKs renew a claim that they have fetched with grace
     * 0. */
    const struct integer_range grace = {
        renews ? 0 : l->min_claim_grace, l->max_claim_grace,
        renews ? "max_claim_grace" : "min_claim_grace, max_claim_grace"};
    const struct integer_range limit = {1, l->max_messages_per_claim_or_pop,
                                        "max_messages_per_claim_or_pop"};
    struct json_scan_value m[MEMBERS] = {{SCAN_NONE, BYTES_NONE}};
    struct decoded_terms decoded = {
        .terms = {STORE_UNSET, form == TERMS_RENEW_V1 ? 0 : STORE_UNSET}};
    struct json_names seen = {.unknown = BYTES_NONE};
    enum status st = ST_OK;
    int64_t messages = 0;

    if ((body.len > 0 || form != TERMS_CLAIM) &&
        json_members_read(body, member_names, renews ? LIMIT : MEMBERS, m, &seen) !=
            ST_OK)
        return json_fault(body, why)
                   ? ST_BAD_BODY
                   : reason_give(
                         why, ST_BAD_BODY,
                         "the body must be an object with the members ttl and grace");
    if ((form == TERMS_CLAIM_V1 || form == TERMS_RENEW_V1) && json_left_out(&m[TTL]))
        return reason_give(why, ST_BAD_BODY, "ttl is required");
    if (form == TERMS_CLAIM_V1 && json_left_out(&m[GRACE]))
        return reason_give(why, ST_BAD_BODY, "grace is required");
    read_integer(m, TTL, &ttl, &decoded.terms.ttl_s, &st, why);
    read_integer(m, GRACE, &grace, &decoded.terms.grace_s, &st, why);
    /* Zaqar ignores a limit in the body, so an SDK may send any. The parameter is
     * strict. */
    if (m[LIMIT].kind == SCAN_INTEGER && json_scan_to_i64(&m[LIMIT]) > limit.max)
        messages = limit.max;
    else
        read_integer(m, LIMIT, &limit, &messages, &st, why);
    decoded.limit = (size_t)messages;
    decoded.unknown = seen.unknown;
    if (st == ST_OK)
        *out = decoded;
    return st;
}

/* ------------------------------------------------------------------ integers, strings */

enum status
decode_integer(const struct json_scan_value *value, const struct integer_range *range,
               int64_t *out)
{
    int64_t number;

    switch (value->kind) {
    case SCAN_NONE:
    case SCAN_NULL:
        return ST_OK;
    case SCAN_INTEGER:
        number = json_scan_to_i64(value);
        if (number < range->min || number > range->max)
            return ST_BAD_VALUE;
        *out = number;
        return ST_OK;
    case SCAN_TRUE:
    case SCAN_FALSE:
        return ST_BAD_VALUE;
    default:
        return ST_BAD_BODY;
    }
}

enum status
integer_refuse(struct reason *why, enum status st, const char *name,
               const struct json_scan_value *value, const struct integer_range *range)
{
    const bool fixed = range->options == NULL;

    return reason_give(
        why, st, "%s is %s. It must be an integer between %lld and %lld%s%s%s", name,
        json_received(value).text, (long long)range->min, (long long)range->max,
        fixed ? "" : " (", fixed ? "" : range->options, fixed ? "" : ")");
}

/* Decodes a checked text between quotes. ST_NO_MEMORY. */
static enum status
decode_inside(struct bytes inside, struct arena *arena, struct bytes *out)
{
    size_t len = 0;
    char *text;

    *out = inside;
    if (memchr(inside.data, '\\', inside.len) == NULL)
        return ST_OK;
    text = arena_alloc(arena, inside.len); /* an escape is longer than its character */
    if (text == NULL)
        return ST_NO_MEMORY;
    while (inside.len > 0)
        len += utf8_write(json_string_next(&inside), text + len);
    *out = bytes_of(text, len);
    return ST_OK;
}

enum status
decode_string(const struct json_scan_value *value, struct arena *arena, struct bytes *out)
{
    return decode_inside(json_scan_inside(value), arena, out);
}

enum status
decode_name(const struct json_scan_name *name, struct arena *arena, struct bytes *out)
{
    return decode_inside(name->text, arena, out);
}

/* ------------------------------------------------------------------ dates */

/* From 1000-01-01T00:00:00 to 9999-12-31T23:59:59, in UTC: years of four digits. */
static const int64_t first_s = -INT64_C(30610224000), last_s = INT64_C(253402300799);

struct time_reader {
    struct bytes rest;
    bool bad;
};

static bool
skip_char(struct time_reader *r, char c)
{
    if (r->rest.len == 0 || *r->rest.data != c)
        return false;
    r->rest = bytes_of(r->rest.data + 1, r->rest.len - 1);
    return true;
}

static void
expect_char(struct time_reader *r, char c)
{
    if (!skip_char(r, c))
        r->bad = true;
}

static bool
next_is_digit(const struct time_reader *r)
{
    return r->rest.len > 0 && *r->rest.data >= '0' && *r->rest.data <= '9';
}

/* Reads a number of so many digits, from `least` to `most`. */
static int
read_digits(struct time_reader *r, int digits, int least, int most)
{
    int value = 0;

    for (int i = 0; i < digits; i++) {
        if (!next_is_digit(r)) {
            r->bad = true;
            return least;
        }
        value = 10 * value + (*r->rest.data - '0');
        r->rest = bytes_of(r->rest.data + 1, r->rest.len - 1);
    }
    if (value < least || value > most)
        r->bad = true;
    return value;
}

static void
read_second(struct time_reader *r, struct tm *tm)
{
    tm->tm_sec = read_digits(r, 2, 0, 59);
    if (!skip_char(r, '.') && !skip_char(r, ','))
        return;
    if (!next_is_digit(r))
        r->bad = true;
    while (next_is_digit(r))
        (void)read_digits(r, 1, 0, 9);
}

/* Reads a zone as seconds ahead of UTC. */
static int
read_zone(struct time_reader *r)
{
    int sign, seconds;

    if (r->rest.len == 0 || skip_char(r, 'Z') || skip_char(r, 'z'))
        return 0;
    sign = skip_char(r, '-') ? -1 : 1;
    if (sign > 0)
        expect_char(r, '+');
    seconds = read_digits(r, 2, 0, 23) * 3600;
    if (skip_char(r, ':') || r->rest.len > 0)
        seconds += read_digits(r, 2, 0, 59) * 60;
    return sign * seconds;
}

bool
iso_time_read(struct bytes text, int64_t *out_ms)
{
    struct time_reader r = {.rest = text};
    struct tm tm = {0};
    int zone = 0, day;
    int64_t seconds;

    tm.tm_year = read_digits(&r, 4, 1000, 9999) - 1900;
    expect_char(&r, '-');
    tm.tm_mon = read_digits(&r, 2, 1, 12) - 1;
    expect_char(&r, '-');
    tm.tm_mday = read_digits(&r, 2, 1, 31);
    if (r.rest.len > 0) {
        if (!skip_char(&r, 'T') && !skip_char(&r, 't'))
            expect_char(&r, ' ');
        tm.tm_hour = read_digits(&r, 2, 0, 23);
        expect_char(&r, ':');
        tm.tm_min = read_digits(&r, 2, 0, 59);
        if (skip_char(&r, ':'))
            read_second(&r, &tm);
        zone = read_zone(&r);
    }
    if (r.bad || r.rest.len > 0)
        return false;
    day = tm.tm_mday;
    seconds =
        timegm(&tm); /* changes a day that does not exist to one of the next month */
    if (tm.tm_mday != day || seconds - zone < first_s || seconds - zone > last_s)
        return false;
    *out_ms = (seconds - zone) * 1000;
    return true;
}

void
iso_time_write(int64_t ms, char out[ISO_TIME_CAP])
{
    char text[CLOCK_TEXT_CAP];

    clock_text(ms, text);
    memcpy(out, text, ISO_TIME_CAP - 1);
    out[ISO_TIME_CAP - 1] = '\0'; /* over the Z */
}
