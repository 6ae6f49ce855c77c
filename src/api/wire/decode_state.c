#include "api/wire/decode_state.h"

#include "api/caller.h"
#include "api/wire/checksum.h"
#include "api/wire/decode_subscription.h"
#include "api/wire/metadata.h"
#include "api/wire/state.h"
#include "claimd/json/fault.h"
#include "claimd/json/number.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ places */

/* A place in the document, from within outwards. */
struct at {
    const struct at *up;
    const char *name;  /* NULL: an item of a list */
    struct bytes text; /* besides the name: of a member that a client named */
    size_t index;
};

static void
write_place(struct buf *out, const struct at *at)
{
    if (at == NULL)
        return;
    write_place(out, at->up);
    if (at->name == NULL) {
        buf_printf(out, "[%zu]", at->index);
    } else if (bytes_present(at->text)) {
        buf_printf(out, "[\"%.*s\"]", (int)at->text.len, at->text.data);
    } else if (at->name[0] != '\0') {
        buf_printf(out, "%s%s", out->len == 0 ? "" : ".", at->name);
    }
}

static enum status refuse(struct state_decoder *d, const struct at *at,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));

static enum status
refuse(struct state_decoder *d, const struct at *at, const char *format, ...)
{
    char what[REASON_CAP];
    struct buf place;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    buf_init(&place, d->mem);
    write_place(&place, at);
    (void)reason_give(d->why, ST_BAD_VALUE, "%.*s%s%s", (int)place.len,
                      place.len == 0 ? "" : place.data, place.len == 0 ? "" : ": ", what);
    buf_fini(&place);
    return ST_BAD_VALUE;
}

/* A reason of somebody else's gets its place. */
static enum status
place(struct state_decoder *d, const struct at *at, enum status st)
{
    struct reason why = *d->why;

    return st == ST_BAD_VALUE || st == ST_BAD_BODY ? refuse(d, at, "%s", why.text) : st;
}

/* ------------------------------------------------------------------ values */

/* A member that an object may have. */
struct member {
    const char *name;
    struct json_scan_value value; /* out; SCAN_NONE: left out */
};

/* Reads an object whose members are among these; each of them once. */
static enum status
read_object(struct state_decoder *d, const struct at *at, struct bytes text,
            struct member *members, size_t count)
{
    struct json_scan_name name;
    struct json_scan s;

    json_scan_begin(&s, text);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return refuse(d, at, "it must be an object");
    while (json_scan_member(&s, &name)) {
        size_t i = 0;

        while (i < count && !json_scan_name_is(&name, members[i].name))
            i++;
        if (i == count)
            return refuse(d, at, "it has a member \"%.*s\" that is not known",
                          name.text.len > 64 ? 64 : (int)name.text.len, name.text.data);
        if (members[i].value.kind != SCAN_NONE)
            return refuse(d, at, "it has two members \"%s\"", members[i].name);
        (void)json_scan_value(&s, &members[i].value); /* it was checked */
    }
    return ST_OK;
}

static bool
is_left_out(const struct json_scan_value *value)
{
    return value->kind == SCAN_NONE || value->kind == SCAN_NULL;
}

#define LONGEST_S INT64_C(10000000000)

/* Seconds with up to three decimals; *out_ms stays if they are left out. */
static enum status
read_seconds(struct state_decoder *d, const struct at *up, const struct member *m,
             double least_s, int64_t *out_ms)
{
    const struct at at = {up, m->name, BYTES_NONE, 0};
    double seconds;

    if (is_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_INTEGER && m->value.kind != SCAN_REAL)
        return refuse(d, &at, "it must be a number of seconds");
    seconds = json_number_read(m->value.text);
    if (!(seconds >= least_s && seconds <= (double)LONGEST_S))
        return refuse(d, &at, "it is out of range");
    *out_ms = (int64_t)llround(seconds * 1000);
    return ST_OK;
}

static enum status
read_count(struct state_decoder *d, const struct at *up, const struct member *m,
           int64_t most, uint64_t *out)
{
    const struct at at = {up, m->name, BYTES_NONE, 0};
    int64_t value;

    if (is_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_INTEGER)
        return refuse(d, &at, "it must be a whole number");
    value = json_scan_to_i64(&m->value);
    if (value < 0 || value > most)
        return refuse(d, &at, "it is out of range");
    *out = (uint64_t)value;
    return ST_OK;
}

static enum status
read_flag(struct state_decoder *d, const struct at *up, const struct member *m, bool *out)
{
    const struct at at = {up, m->name, BYTES_NONE, 0};

    if (is_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_TRUE && m->value.kind != SCAN_FALSE)
        return refuse(d, &at, "it must be true or false");
    *out = m->value.kind == SCAN_TRUE;
    return ST_OK;
}

/* Escapes undone: borrowed if there are none, else out of the arena. */
static struct bytes
unescape(struct bytes inside, struct arena *arena)
{
    size_t len = 0;
    char *text;

    if (memchr(inside.data, '\\', inside.len) == NULL)
        return inside;
    text = arena_alloc(arena, inside.len);
    if (text == NULL)
        return BYTES_NONE;
    while (inside.len > 0)
        len += utf8_write(json_string_next(&inside), text + len);
    return bytes_of(text, len);
}

/* *out stays if it is left out. */
static enum status
read_text(struct state_decoder *d, const struct at *up, const struct member *m,
          struct bytes *out)
{
    const struct at at = {up, m->name, BYTES_NONE, 0};
    struct bytes text;

    if (is_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_STRING)
        return refuse(d, &at, "it must be a text");
    text = unescape(json_scan_inside(&m->value), d->arena);
    if (!bytes_present(text))
        return ST_NO_MEMORY;
    *out = text;
    return ST_OK;
}

/* An id that is kept; its form is the store's to check. */
static enum status
read_id(struct state_decoder *d, const struct at *up, const struct member *m,
        struct store_id *out)
{
    const struct at at = {up, m->name, BYTES_NONE, 0};
    struct bytes text = BYTES_NONE;
    enum status st = read_text(d, up, m, &text);

    *out = (struct store_id){""};
    if (st != ST_OK || !bytes_present(text))
        return st;
    if (!store_image_is_id(text))
        return refuse(d, &at,
                      "it is not in the form of ids: 24 hexadecimal digits in "
                      "lower case, the first of them a letter");
    memcpy(out->text, text.data, text.len);
    return ST_OK;
}

/* Every item of a list: how many there are. */
static enum status
count_items(struct state_decoder *d, const struct at *at, const struct member *m,
            size_t *out)
{
    struct json_scan s;

    *out = 0;
    if (is_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_ARRAY)
        return refuse(d, at, "it must be a list");
    json_scan_begin(&s, m->value.text);
    (void)json_scan_enter(&s, SCAN_ARRAY);
    while (json_scan_item(&s)) {
        (void)json_scan_value(&s, NULL);
        ++*out;
    }
    return ST_OK;
}

/* Calls `read` with each item of a list and its place. */
typedef enum status read_item_fn(struct state_decoder *d, const struct at *at,
                                 struct bytes text, size_t i, void *arg);

static enum status
read_items(struct state_decoder *d, const struct at *list, const struct member *m,
           read_item_fn *read, void *arg)
{
    struct at at = {list, NULL, BYTES_NONE, 0};
    struct json_scan_value value;
    enum status st = ST_OK;
    struct json_scan s;

    if (is_left_out(&m->value))
        return ST_OK;
    json_scan_begin(&s, m->value.text);
    (void)json_scan_enter(&s, SCAN_ARRAY);
    for (; st == ST_OK && json_scan_item(&s); at.index++) {
        (void)json_scan_value(&s, &value);
        st = read(d, &at, value.text, at.index, arg);
    }
    return st;
}

static void *
make_array(struct state_decoder *d, size_t count, size_t size)
{
    void *array = arena_array(d->arena, count + 1, size);

    if (array != NULL)
        memset(array, 0, (count + 1) * size);
    return array;
}

/* ------------------------------------------------------------------ claims */

enum { CLAIM_ID, CLAIM_TTL, CLAIM_AGE, CLAIM_MEMBERS };

static enum status
read_claim(struct state_decoder *d, const struct at *at, struct bytes text,
           struct bytes *name, struct store_image_claim *out)
{
    struct member m[CLAIM_MEMBERS] = {{.name = "id"}, {.name = "ttl"}, {.name = "age"}};
    const struct at ttl = {at, "ttl", BYTES_NONE, 0}, id = {at, "id", BYTES_NONE, 0};
    int64_t ttl_ms = d->limits->default_claim_ttl * 1000, age_ms = 0;
    enum status st = read_object(d, at, text, m, CLAIM_MEMBERS);

    *name = BYTES_NONE;
    if (st == ST_OK)
        st = read_text(d, at, &m[CLAIM_ID], name);
    if (st == ST_OK)
        st = read_seconds(d, at, &m[CLAIM_TTL], 0.001, &ttl_ms);
    if (st == ST_OK)
        st = read_seconds(d, at, &m[CLAIM_AGE], 0, &age_ms);
    if (st != ST_OK)
        return st;
    if (!bytes_present(*name) || name->len == 0)
        return refuse(d, &id, "it is missing");
    if (ttl_ms - age_ms > d->limits->max_claim_ttl * 1000)
        return refuse(d, &ttl, "it would last longer than max_claim_ttl");
    *out = (struct store_image_claim){.started_ms = d->now_ms - age_ms,
                                      .ends_ms = d->now_ms - age_ms + ttl_ms};
    if (store_image_is_id(*name))
        memcpy(out->id.text, name->data, name->len);
    return ST_OK;
}

/* The claims of a queue, and what they are called. */
struct names {
    struct bytes text;
    size_t index;
};

static int
compare_names(const void *a, const void *b)
{
    return bytes_compare(((const struct names *)a)->text,
                         ((const struct names *)b)->text);
}

struct reading {
    struct store_image *image;
    struct names *names; /* of the claims; sorted once they are all there */
};

static enum status
read_claim_item(struct state_decoder *d, const struct at *at, struct bytes text, size_t i,
                void *arg)
{
    struct reading *r = arg;

    r->names[i].index = i;
    return read_claim(d, at, text, &r->names[i].text, &r->image->claims[i]);
}

static enum status
read_claims(struct state_decoder *d, const struct at *up, const struct member *m,
            struct reading *r)
{
    const struct at at = {up, "claims", BYTES_NONE, 0};
    struct store_image *image = r->image;
    enum status st = count_items(d, &at, m, &image->claim_count);

    if (st != ST_OK)
        return st;
    image->claims = make_array(d, image->claim_count, sizeof(*image->claims));
    r->names = make_array(d, image->claim_count, sizeof(*r->names));
    if (image->claims == NULL || r->names == NULL)
        return ST_NO_MEMORY;
    st = read_items(d, &at, m, read_claim_item, r);
    if (st != ST_OK)
        return st;
    qsort(r->names, image->claim_count, sizeof(*r->names), compare_names);
    for (size_t i = 1; i < image->claim_count; i++)
        if (bytes_equal(r->names[i - 1].text, r->names[i].text)) {
            const struct at item = {&at, NULL, BYTES_NONE, r->names[i].index};
            const struct at id = {&item, "id", BYTES_NONE, 0};

            return refuse(d, &id, "it is the id of another claim, too");
        }
    return ST_OK;
}

/* 1 + index of the claim of this name; 0: there is none. */
static size_t
find_claim(const struct reading *r, struct bytes name)
{
    const struct names key = {name, 0};
    const struct names *found =
        bsearch(&key, r->names, r->image->claim_count, sizeof(key), compare_names);

    return found == NULL ? 0 : found->index + 1;
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

static enum status
read_times(struct state_decoder *d, const struct at *at, const struct member *m,
           struct store_image_message *out)
{
    const struct at ttl = {at, "ttl", BYTES_NONE, 0};
    int64_t ttl_ms = d->limits->default_message_ttl * 1000, age_ms = 0, delay_ms = 0;
    enum status st = read_seconds(d, at, &m[MESSAGE_TTL], 0.001, &ttl_ms);

    if (st == ST_OK)
        st = read_seconds(d, at, &m[MESSAGE_AGE], 0, &age_ms);
    if (st == ST_OK)
        st = read_seconds(d, at, &m[MESSAGE_DELAY], 0, &delay_ms);
    if (st != ST_OK)
        return st;
    if (ttl_ms - age_ms > d->limits->max_message_ttl * 1000)
        return refuse(d, &ttl, "it would live longer than max_message_ttl");
    out->posted_ms = d->now_ms - age_ms;
    out->expires_ms = out->posted_ms + ttl_ms;
    out->delayed_until_ms = delay_ms == 0 ? 0 : d->now_ms + delay_ms;
    return ST_OK;
}

/* Pairs of hexadecimal digits, into the arena. */
static enum status
read_sealed(struct state_decoder *d, const struct at *up, const struct member *m,
            struct bytes *out)
{
    const struct at at = {up, "sealed", BYTES_NONE, 0};
    struct bytes text = BYTES_NONE;
    enum status st = read_text(d, up, m, &text);
    char *body;

    if (st != ST_OK)
        return st;
    body = arena_alloc(d->arena, text.len / 2 + 1);
    if (body == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < text.len / 2; i++) {
        uint64_t value;

        if (!hex_read(bytes_of(text.data + 2 * i, 2), &value))
            return refuse(d, &at, "it must be hexadecimal digits");
        body[i] = (char)value;
    }
    *out = bytes_of(body, text.len / 2);
    return text.len % 2 == 0 && store_is_sealed(*out)
               ? ST_OK
               : refuse(d, &at, "it is not an encrypted body");
}

static enum status
read_body(struct state_decoder *d, const struct at *up, const struct member *m,
          struct bytes *out)
{
    const struct member *body = &m[MESSAGE_BODY], *sealed = &m[MESSAGE_SEALED];
    const struct at at = {up, "body", BYTES_NONE, 0};
    enum status st = ST_OK;

    if ((body->value.kind == SCAN_NONE) == (sealed->value.kind == SCAN_NONE))
        return refuse(d, &at, "it, or sealed, must be there, and not both");
    if (sealed->value.kind != SCAN_NONE)
        st = read_sealed(d, up, sealed, out);
    else
        *out = body->value.text;
    if (st == ST_OK && out->len > (size_t)d->limits->max_messages_post_size)
        return refuse(d, &at,
                      "it has %zu bytes, and may have %lld "
                      "(max_messages_post_size)",
                      out->len, (long long)d->limits->max_messages_post_size);
    return st;
}

/* The one that the document has, or the one that a post would get. */
static enum status
read_checksum(struct state_decoder *d, const struct at *up, const struct member *m,
              struct bytes body, const struct store_checksum **out)
{
    const struct at at = {up, "checksum", BYTES_NONE, 0};
    struct store_checksum *sum = arena_alloc(d->arena, sizeof(*sum));
    struct bytes text = BYTES_NONE;
    enum status st = read_text(d, up, m, &text);

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
            return refuse(d, &at, "it must be MD5: and 32 hexadecimal digits");
    }
    *out = sum;
    return st;
}

static enum status
read_client(struct state_decoder *d, const struct at *up, const struct member *m,
            uint64_t *out)
{
    const struct at at = {up, "client", BYTES_NONE, 0};
    struct bytes text = BYTES_NONE;
    enum status st = read_text(d, up, m, &text);

    if (st != ST_OK || !bytes_present(text))
        return st;
    return text.len == 16 && hex_read(text, out)
               ? ST_OK
               : refuse(d, &at, "it must be 16 hexadecimal digits");
}

/* All but the claim, which is left in *claim. */
static enum status
read_message(struct state_decoder *d, const struct at *at, struct bytes text,
             struct json_scan_value *claim, struct store_image_message *out)
{
    struct member m[MESSAGE_MEMBERS] = {{.name = NULL}};
    uint64_t count = 0;
    enum status st;

    for (size_t i = 0; i < MESSAGE_MEMBERS; i++)
        m[i].name = message_names[i];
    st = read_object(d, at, text, m, MESSAGE_MEMBERS);
    if (st == ST_OK)
        st = read_id(d, at, &m[MESSAGE_ID], &out->id);
    if (st == ST_OK)
        st = read_times(d, at, m, out);
    if (st == ST_OK)
        st = read_body(d, at, m, &out->body);
    if (st == ST_OK)
        st = read_checksum(d, at, &m[MESSAGE_CHECKSUM], out->body, &out->checksum);
    if (st == ST_OK)
        st = read_client(d, at, &m[MESSAGE_CLIENT], &out->client);
    *claim = m[MESSAGE_CLAIM].value;
    if (!is_left_out(claim))
        count = 1;
    if (st == ST_OK)
        st = read_count(d, at, &m[MESSAGE_CLAIM_COUNT], UINT32_MAX, &count);
    out->claim_count = (uint32_t)count;
    return st;
}

static enum status
read_message_item(struct state_decoder *d, const struct at *at, struct bytes text,
                  size_t i, void *arg)
{
    const struct reading *r = arg;
    struct store_image_message *out = &r->image->messages[i];
    const struct at place = {at, "claim", BYTES_NONE, 0};
    struct member claim = {.name = "claim"};
    struct bytes name = BYTES_NONE;
    enum status st = read_message(d, at, text, &claim.value, out);

    if (st == ST_OK)
        st = read_text(d, at, &claim, &name);
    if (st != ST_OK || !bytes_present(name))
        return st;
    out->claim = find_claim(r, name);
    return out->claim > 0 ? ST_OK
                          : refuse(d, &place, "the queue has no claim \"%.*s\"",
                                   name.len > 64 ? 64 : (int)name.len, name.data);
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

static enum status
read_address(struct state_decoder *d, const struct at *at, const struct member *m,
             struct store_image_subscription *out)
{
    struct at place_of = {at, "subscriber", BYTES_NONE, 0};
    enum status st = read_text(d, at, &m[SUB_SUBSCRIBER], &out->subscriber);

    if (st == ST_OK && !bytes_present(out->subscriber))
        return refuse(d, &place_of, "it is missing");
    out->options = bytes_str("{}");
    if (m[SUB_OPTIONS].value.kind == SCAN_OBJECT) {
        out->options = m[SUB_OPTIONS].value.text;
    } else if (st == ST_OK && !is_left_out(&m[SUB_OPTIONS].value)) {
        place_of.name = "options";
        return refuse(d, &place_of, "it must be an object");
    }
    if (st == ST_OK)
        st = place(d, at,
                   subscription_check(out->subscriber, out->options, d->limits, d->why));
    return st;
}

static enum status
read_subscription(struct state_decoder *d, const struct at *at, struct bytes text,
                  struct store_image_subscription *out)
{
    struct member m[SUB_MEMBERS] = {{.name = NULL}};
    uint64_t ttl_s = (uint64_t)d->limits->default_subscription_ttl;
    int64_t age_ms = 0;
    enum status st;

    for (size_t i = 0; i < SUB_MEMBERS; i++)
        m[i].name = subscription_names[i];
    st = read_object(d, at, text, m, SUB_MEMBERS);
    if (st == ST_OK)
        st = read_id(d, at, &m[SUB_ID], &out->id);
    if (st == ST_OK)
        st = read_address(d, at, m, out);
    if (st == ST_OK)
        st = read_count(d, at, &m[SUB_TTL], STORE_IMAGE_MS_MOST / 1000, &ttl_s);
    if (st == ST_OK)
        st = read_seconds(d, at, &m[SUB_AGE], 0, &age_ms);
    if (st == ST_OK)
        st = read_flag(d, at, &m[SUB_CONFIRMED], &out->confirmed);
    if (st == ST_OK)
        st = read_flag(d, at, &m[SUB_ASKED], &out->asked);
    if (st == ST_OK)
        st = read_count(d, at, &m[SUB_DELIVERED], INT64_MAX, &out->delivered);
    if (st == ST_OK)
        st = read_count(d, at, &m[SUB_GIVEN_UP], INT64_MAX, &out->given_up);
    if (st == ST_OK)
        st = read_count(d, at, &m[SUB_FALLEN_OUT], INT64_MAX, &out->fallen_out);
    out->ttl_s = (int64_t)ttl_s;
    out->started_ms = d->now_ms - age_ms;
    return st;
}

static enum status
read_subscription_item(struct state_decoder *d, const struct at *at, struct bytes text,
                       size_t i, void *arg)
{
    const struct reading *r = arg;

    return read_subscription(d, at, text, &r->image->subscriptions[i]);
}

/* ------------------------------------------------------------------ queues */

static enum status
read_metadata(struct state_decoder *d, const struct at *up, const struct member *m,
              struct store_metadata *out)
{
    const struct at at = {up, "metadata", BYTES_NONE, 0};
    struct bytes text = is_left_out(&m->value) ? bytes_str("") : m->value.text;
    enum status st = metadata_decode(text, d->limits, d->arena, out, d->why);

    return st == ST_TOO_LARGE
               ? refuse(d, &at, "it is larger than max_queue_metadata allows")
               : place(d, &at, st);
}

static enum status
read_name(struct state_decoder *d, const struct at *up, const struct member *m,
          struct bytes *out)
{
    const struct at at = {up, m->name, BYTES_NONE, 0};
    struct bytes text = BYTES_NONE;
    enum status st = read_text(d, up, m, &text);

    if (st != ST_OK)
        return st;
    *out = text;
    return bytes_present(text) && caller_queue_name(text) == ST_OK
               ? ST_OK
               : refuse(d, &at, "it must be 1 to 64 characters out of A-Z a-z 0-9 _ - .");
}

static enum status
read_lists(struct state_decoder *d, const struct at *at, struct store_image *image,
           const struct member *claims, const struct member *messages,
           const struct member *subscriptions)
{
    const struct at message_list = {at, "messages", BYTES_NONE, 0};
    const struct at subscription_list = {at, "subscriptions", BYTES_NONE, 0};
    struct reading r = {image, NULL};
    enum status st = read_claims(d, at, claims, &r);

    if (st == ST_OK)
        st = count_items(d, &message_list, messages, &image->message_count);
    if (st == ST_OK)
        st =
            count_items(d, &subscription_list, subscriptions, &image->subscription_count);
    if (st != ST_OK)
        return st;
    image->messages = make_array(d, image->message_count, sizeof(*image->messages));
    image->subscriptions =
        make_array(d, image->subscription_count, sizeof(*image->subscriptions));
    if (image->messages == NULL || image->subscriptions == NULL)
        return ST_NO_MEMORY;
    st = read_items(d, &message_list, messages, read_message_item, &r);
    return st == ST_OK ? read_items(d, &subscription_list, subscriptions,
                                    read_subscription_item, &r)
                       : st;
}

/* What the store would have against it, with its place. */
static enum status
check_image(struct state_decoder *d, const struct at *at, const struct store_image *image)
{
    struct store_flaw flaw;
    enum status st = store_image_check(d->mem, image, &flaw);

    if (st == ST_BAD_VALUE) {
        const struct at list = {at, flaw.part, BYTES_NONE, 0};
        const struct at item = {&list, NULL, BYTES_NONE, flaw.index};
        const struct at member = {&item, flaw.member, BYTES_NONE, 0};

        return refuse(d, &member, "%s", flaw.what);
    }
    for (size_t i = 0; st == ST_OK && i < image->message_count; i++) {
        const struct at list = {at, "messages", BYTES_NONE, 0};
        const struct at item = {&list, NULL, BYTES_NONE, i};

        if (image->metadata.settings.encrypt && !store_is_sealed(image->messages[i].body))
            return refuse(d, &item,
                          "the queue has _enable_encrypt_messages, and the "
                          "body is not sealed");
    }
    return st;
}

static enum status
read_queue(struct state_decoder *d, const struct at *at, struct bytes text,
           struct state_queue *out)
{
    enum { NAME, METADATA, CLAIMS, MESSAGES, SUBSCRIPTIONS, MEMBERS };
    struct member m[MEMBERS] = {{.name = "name"},
                                {.name = "metadata"},
                                {.name = "claims"},
                                {.name = "messages"},
                                {.name = "subscriptions"}};
    enum status st = read_object(d, at, text, m, MEMBERS);

    out->image = (struct store_image){.first = true};
    if (st == ST_OK)
        st = read_name(d, at, &m[NAME], &out->where.name);
    if (st == ST_OK)
        st = read_metadata(d, at, &m[METADATA], &out->image.metadata);
    if (st == ST_OK)
        st = read_lists(d, at, &out->image, &m[CLAIMS], &m[MESSAGES], &m[SUBSCRIPTIONS]);
    return st == ST_OK ? check_image(d, at, &out->image) : st;
}

/* ------------------------------------------------------------------ projects */

/* Queues or topics of a project that are being read. */
struct listing {
    struct state_project *project;
    enum store_kind kind;
};

static enum status
read_queue_item(struct state_decoder *d, const struct at *at, struct bytes text, size_t i,
                void *arg)
{
    const struct listing *l = arg;
    struct state_queue *q = &l->project->queues[l->project->count++];

    (void)i;
    q->where.project = l->project->name;
    q->where.kind = l->kind;
    return read_queue(d, at, text, q);
}

/* The place of the i-th queue of a project: queues first, then topics. */
static enum status
refuse_queue(struct state_decoder *d, const struct at *up, const struct state_project *p,
             size_t i, const char *member, const char *what)
{
    const bool topic = p->queues[i].where.kind == STORE_TOPIC;
    size_t before = 0;

    while (topic && p->queues[before].where.kind == STORE_QUEUE)
        before++;
    {
        const struct at list = {up, topic ? "topics" : "queues", BYTES_NONE, 0};
        const struct at item = {&list, NULL, BYTES_NONE, i - before};
        const struct at at = {&item, member, BYTES_NONE, 0};

        return refuse(d, &at, "%s", what);
    }
}

/* Queues of a project in the order of their names, those of a kind together. */
struct sorted {
    const struct state_queue *queue;
    size_t index;
};

static int
compare_queues(const void *a, const void *b)
{
    const struct store_queue *x = &((const struct sorted *)a)->queue->where;
    const struct store_queue *y = &((const struct sorted *)b)->queue->where;

    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind)
                              : bytes_compare(x->name, y->name);
}

static const struct sorted *
find_queue(const struct sorted *all, size_t count, struct bytes name)
{
    const struct state_queue wanted = {.where = {.name = name, .kind = STORE_QUEUE}};
    const struct sorted key = {&wanted, 0};

    return bsearch(&key, all, count, sizeof(key), compare_queues);
}

static bool
moves_letters(const struct state_queue *q)
{
    const struct store_settings *set = &q->image.metadata.settings;

    return set->max_claim_count != STORE_UNSET && bytes_present(set->dead_letter);
}

/* Would a dead letter of this queue come back to one where it has been? */
static bool
is_cycle(const struct sorted *all, size_t count, const struct state_queue *q)
{
    const struct state_queue *at = q;

    for (size_t steps = 0; moves_letters(at) && steps <= count; steps++) {
        const struct sorted *next =
            find_queue(all, count, at->image.metadata.settings.dead_letter);

        if (next == NULL)
            return false;
        at = next->queue;
        if (at == q)
            return true;
    }
    return false; /* if there is one, another queue is in it */
}

static enum status
check_queues(struct state_decoder *d, const struct at *up, const struct state_project *p)
{
    struct sorted *all = make_array(d, p->count, sizeof(*all));

    if (all == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < p->count; i++)
        all[i] = (struct sorted){&p->queues[i], i};
    qsort(all, p->count, sizeof(*all), compare_queues);
    for (size_t i = 1; i < p->count; i++)
        if (compare_queues(&all[i - 1], &all[i]) == 0)
            return refuse_queue(d, up, p, all[i].index, "name",
                                "it is the name of another one, too");
    for (size_t i = 0; i < p->count; i++)
        if (p->queues[i].where.kind == STORE_QUEUE &&
            is_cycle(all, p->count, &p->queues[i]))
            return refuse_queue(d, up, p, i, "metadata._dead_letter_queue",
                                "dead letters of the queue would come back to it");
    return ST_OK;
}

/* An id of a message and its queue. */
struct used_id {
    struct bytes text;
    size_t queue, message;
};

static int
compare_ids(const void *a, const void *b)
{
    const struct used_id *x = a, *y = b;
    int order = bytes_compare(x->text, y->text);

    return order != 0 ? order : (x->queue > y->queue) - (x->queue < y->queue);
}

/* A message is in one queue: a dead letter takes its id along. */
static enum status
check_ids(struct state_decoder *d, const struct at *up, const struct state_project *p)
{
    struct used_id *ids;
    size_t count = 0;

    for (size_t i = 0; i < p->count; i++)
        count += p->queues[i].image.message_count;
    ids = make_array(d, count, sizeof(*ids));
    if (ids == NULL)
        return ST_NO_MEMORY;
    count = 0;
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->queues[i].image.message_count; k++) {
            const struct store_id *id = &p->queues[i].image.messages[k].id;

            if (id->text[0] != '\0')
                ids[count++] = (struct used_id){store_id_bytes(id), i, k};
        }
    qsort(ids, count, sizeof(*ids), compare_ids);
    for (size_t i = 1; i < count; i++)
        if (bytes_equal(ids[i - 1].text, ids[i].text)) {
            char member[64];

            (void)snprintf(member, sizeof(member), "messages[%zu].id", ids[i].message);
            return refuse_queue(d, up, p, ids[i].queue, member,
                                "it is the id of a message of another queue, too");
        }
    return ST_OK;
}

static enum status
read_project(struct state_decoder *d, const struct at *at, const struct member *queues,
             const struct member *topics, struct state_project *out)
{
    const struct at queue_list = {at, "queues", BYTES_NONE, 0};
    const struct at topic_list = {at, "topics", BYTES_NONE, 0};
    struct listing l = {out, STORE_QUEUE};
    size_t queue_count, topic_count = 0;
    enum status st = count_items(d, &queue_list, queues, &queue_count);

    if (st == ST_OK)
        st = count_items(d, &topic_list, topics, &topic_count);
    if (st != ST_OK)
        return st;
    out->queues = make_array(d, queue_count + topic_count, sizeof(*out->queues));
    if (out->queues == NULL)
        return ST_NO_MEMORY;
    st = read_items(d, &queue_list, queues, read_queue_item, &l);
    l.kind = STORE_TOPIC;
    if (st == ST_OK)
        st = read_items(d, &topic_list, topics, read_queue_item, &l);
    if (st == ST_OK)
        st = check_queues(d, at, out);
    return st == ST_OK ? check_ids(d, at, out) : st;
}

static enum status
read_named_project(struct state_decoder *d, const struct at *at, struct bytes text,
                   struct state_project *out)
{
    struct member m[] = {{.name = "queues"}, {.name = "topics"}};
    enum status st = read_object(d, at, text, m, 2);

    return st == ST_OK ? read_project(d, at, &m[0], &m[1], out) : st;
}

/* {"p": {"queues": [...]}, ...} */
static enum status
read_projects(struct state_decoder *d, const struct json_scan_value *value,
              struct state *out)
{
    const struct at at = {NULL, "projects", BYTES_NONE, 0};
    struct json_scan_value item;
    struct json_scan_name name;
    enum status st = ST_OK;
    size_t count = 0;
    struct json_scan s;

    json_scan_begin(&s, value->text);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return refuse(d, &at, "it must be an object");
    while (json_scan_member(&s, &name)) {
        (void)json_scan_value(&s, NULL);
        count++;
    }
    out->projects = make_array(d, count, sizeof(*out->projects));
    if (out->projects == NULL)
        return ST_NO_MEMORY;
    json_scan_begin(&s, value->text);
    (void)json_scan_enter(&s, SCAN_OBJECT);
    while (st == ST_OK && json_scan_member(&s, &name)) {
        struct state_project *p = &out->projects[out->count];
        const struct at place_of = {&at, "", name.text, 0};

        (void)json_scan_value(&s, &item);
        p->name = unescape(name.text, d->arena);
        if (!bytes_present(p->name))
            return ST_NO_MEMORY;
        if (p->name.len > CALLER_PROJECT_MAX)
            return refuse(d, &at, "%s", status_text(ST_BAD_PROJECT));
        for (size_t i = 0; i < out->count; i++)
            if (bytes_equal(out->projects[i].name, p->name))
                return refuse(d, &place_of, "it is there twice");
        out->count++;
        st = read_named_project(d, &place_of, item.text, p);
    }
    return st;
}

static enum status
check_version(struct state_decoder *d, const struct member *m)
{
    const struct at at = {NULL, "version", BYTES_NONE, 0};

    if (m->value.kind != SCAN_INTEGER)
        return refuse(d, &at, "it must be there, and be %d", STATE_VERSION);
    if (json_scan_to_i64(&m->value) != STATE_VERSION)
        return refuse(d, &at, "it is %.*s, and this server reads %d",
                      m->value.text.len > 20 ? 20 : (int)m->value.text.len,
                      m->value.text.data, STATE_VERSION);
    return ST_OK;
}

enum status
decode_state(struct state_decoder *d, struct bytes text, struct bytes project,
             bool may_name, struct state *out)
{
    enum { VERSION, NOW, QUEUES, TOPICS, PROJECTS, MEMBERS };
    struct member m[MEMBERS] = {{.name = "version"},
                                {.name = "now_ms"},
                                {.name = "queues"},
                                {.name = "topics"},
                                {.name = "projects"}};
    enum status st;

    *out = (struct state){.count = 0};
    if (json_fault(text, d->why))
        return ST_BAD_BODY;
    st = read_object(d, NULL, text, m, MEMBERS);
    if (st == ST_OK)
        st = check_version(d, &m[VERSION]);
    if (st != ST_OK)
        return st;
    if (m[PROJECTS].value.kind != SCAN_NONE) {
        const struct at at = {NULL, "projects", BYTES_NONE, 0};

        if (bytes_present(project) && !may_name)
            return refuse(d, &at, "the request is about one project");
        if (m[QUEUES].value.kind != SCAN_NONE || m[TOPICS].value.kind != SCAN_NONE)
            return refuse(d, &at, "queues and topics belong into it");
        return read_projects(d, &m[PROJECTS].value, out);
    }
    if (!bytes_present(project))
        return refuse(d, NULL,
                      "the document must have projects, or the request name one");
    out->projects = make_array(d, 1, sizeof(*out->projects));
    if (out->projects == NULL)
        return ST_NO_MEMORY;
    out->count = 1;
    out->projects[0].name = project;
    return read_project(d, NULL, &m[QUEUES], &m[TOPICS], &out->projects[0]);
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
    LINE_END,
    LINE_NEXT,
    LINE_MEMBERS
};

static const char *const line_names[LINE_MEMBERS] = {
    "claimd",   "version", "now_ms",       "project", "queue", "topic",
    "metadata", "message", "subscription", "end",     "next"};

static enum status
read_address_of(struct state_decoder *d, const struct member *m, struct state_line *out)
{
    const struct member *name =
        m[LINE_TOPIC].value.kind != SCAN_NONE ? &m[LINE_TOPIC] : &m[LINE_QUEUE];
    const struct at at = {NULL, "project", BYTES_NONE, 0};
    enum status st = read_text(d, NULL, &m[LINE_PROJECT], &out->where.project);

    if (st != ST_OK)
        return st;
    if (m[LINE_TOPIC].value.kind != SCAN_NONE && m[LINE_QUEUE].value.kind != SCAN_NONE)
        return refuse(d, NULL, "it has both a queue and a topic");
    if (!bytes_present(out->where.project) || out->where.project.len > CALLER_PROJECT_MAX)
        return refuse(d, &at, "it is missing, or too long");
    out->where.kind = name == &m[LINE_TOPIC] ? STORE_TOPIC : STORE_QUEUE;
    return read_name(d, NULL, name, &out->where.name);
}

static enum status
read_line_message(struct state_decoder *d, struct bytes text, struct state_line *out)
{
    const struct at at = {NULL, "message", BYTES_NONE, 0};
    const struct at place_of = {&at, "claim", BYTES_NONE, 0};
    struct json_scan_value claim;
    struct bytes name;
    enum status st = read_message(d, &at, text, &claim, &out->message);

    if (st != ST_OK || is_left_out(&claim))
        return st;
    st = read_claim(d, &place_of, claim.text, &name, &out->claim);
    if (st == ST_OK && out->claim.id.text[0] == '\0')
        return refuse(d, &place_of, "its id is not in the form of ids");
    out->message.claim = 1;
    return st;
}

static enum status
read_line(struct state_decoder *d, const struct member *m, struct state_line *out)
{
    const struct at at = {NULL, "subscription", BYTES_NONE, 0};
    enum status st = read_address_of(d, m, out);

    if (st != ST_OK)
        return st;
    if (m[LINE_MESSAGE].value.kind != SCAN_NONE) {
        out->what = STATE_MESSAGE;
        return read_line_message(d, m[LINE_MESSAGE].value.text, out);
    }
    if (m[LINE_SUBSCRIPTION].value.kind != SCAN_NONE) {
        out->what = STATE_SUBSCRIPTION;
        return read_subscription(d, &at, m[LINE_SUBSCRIPTION].value.text,
                                 &out->subscription);
    }
    out->what = STATE_QUEUE;
    return read_metadata(d, NULL, &m[LINE_METADATA], &out->metadata);
}

enum status
decode_state_line(struct state_decoder *d, struct bytes text, struct state_line *out)
{
    struct member m[LINE_MEMBERS] = {{.name = NULL}};
    enum status st;

    *out = (struct state_line){.what = STATE_HEAD};
    if (json_fault(text, d->why))
        return ST_BAD_BODY;
    for (size_t i = 0; i < LINE_MEMBERS; i++)
        m[i].name = line_names[i];
    st = read_object(d, NULL, text, m, LINE_MEMBERS);
    if (st != ST_OK)
        return st;
    if (m[LINE_DUMP].value.kind != SCAN_NONE)
        return check_version(d, &m[LINE_VERSION]);
    if (m[LINE_END].value.kind != SCAN_NONE || m[LINE_NEXT].value.kind != SCAN_NONE) {
        out->what = STATE_END;
        return ST_OK;
    }
    return read_line(d, m, out);
}
