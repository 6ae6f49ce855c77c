#include "api/wire/state/doc.h"

#include "api/wire/state.h"
#include "claimd/json/fault.h"
#include "claimd/json/number.h"
#include "claimd/json/string.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static void
write_place(struct buf *out, const struct doc_at *at)
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

enum status
doc_refuse(struct state_decoder *d, const struct doc_at *at, const char *format, ...)
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

enum status
doc_place(struct state_decoder *d, const struct doc_at *at, enum status st)
{
    struct reason why = *d->why;

    return st == ST_BAD_VALUE || st == ST_BAD_BODY ? doc_refuse(d, at, "%s", why.text)
                                                   : st;
}

/* ------------------------------------------------------------------ values */

enum status
doc_object(struct state_decoder *d, const struct doc_at *at, struct bytes text,
           struct doc_member *members, size_t count)
{
    struct json_scan_name name;
    struct json_scan s;

    json_scan_begin(&s, text);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return doc_refuse(d, at, "it must be an object");
    while (json_scan_member(&s, &name)) {
        size_t i = 0;

        while (i < count && !json_scan_name_is(&name, members[i].name))
            i++;
        if (i == count)
            return doc_refuse(d, at, "it has the unknown member \"%s\"",
                              received(name.text).text);
        if (members[i].value.kind != SCAN_NONE)
            return doc_refuse(d, at, "it has the member \"%s\" twice", members[i].name);
        (void)json_scan_value(&s, &members[i].value); /* it was checked */
    }
    return ST_OK;
}

bool
doc_left_out(const struct json_scan_value *value)
{
    return value->kind == SCAN_NONE || value->kind == SCAN_NULL;
}

#define LONGEST_S INT64_C(10000000000)

enum status
doc_seconds(struct state_decoder *d, const struct doc_at *up, const struct doc_member *m,
            double least_s, int64_t *out_ms)
{
    const struct doc_at at = {up, m->name, BYTES_NONE, 0};
    double seconds;

    if (doc_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_INTEGER && m->value.kind != SCAN_REAL)
        return doc_refuse(d, &at, "it must be a number of seconds");
    seconds = json_number_read(m->value.text);
    if (!(seconds >= least_s && seconds <= (double)LONGEST_S))
        return doc_refuse(d, &at, "it is %s. It must be between %g and %lld seconds",
                          json_received(&m->value).text, least_s, (long long)LONGEST_S);
    *out_ms = (int64_t)llround(seconds * 1000);
    return ST_OK;
}

enum status
doc_count(struct state_decoder *d, const struct doc_at *up, const struct doc_member *m,
          int64_t most, uint64_t *out)
{
    const struct doc_at at = {up, m->name, BYTES_NONE, 0};
    int64_t value;

    if (doc_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_INTEGER)
        return doc_refuse(d, &at, "it must be an integer");
    value = json_scan_to_i64(&m->value);
    if (value < 0 || value > most)
        return doc_refuse(d, &at, "it is %lld. It must be between 0 and %lld",
                          (long long)value, (long long)most);
    *out = (uint64_t)value;
    return ST_OK;
}

enum status
doc_flag(struct state_decoder *d, const struct doc_at *up, const struct doc_member *m,
         bool *out)
{
    const struct doc_at at = {up, m->name, BYTES_NONE, 0};

    if (doc_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_TRUE && m->value.kind != SCAN_FALSE)
        return doc_refuse(d, &at, "it must be true or false");
    *out = m->value.kind == SCAN_TRUE;
    return ST_OK;
}

struct bytes
doc_unescape(struct bytes inside, struct arena *arena)
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

enum status
doc_text(struct state_decoder *d, const struct doc_at *up, const struct doc_member *m,
         struct bytes *out)
{
    const struct doc_at at = {up, m->name, BYTES_NONE, 0};
    struct bytes text;

    if (doc_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_STRING)
        return doc_refuse(d, &at, "it must be a string");
    text = doc_unescape(json_scan_inside(&m->value), d->arena);
    if (!bytes_present(text))
        return ST_NO_MEMORY;
    *out = text;
    return ST_OK;
}

enum status
doc_id(struct state_decoder *d, const struct doc_at *up, const struct doc_member *m,
       struct store_id *out)
{
    const struct doc_at at = {up, m->name, BYTES_NONE, 0};
    struct bytes text = BYTES_NONE;
    enum status st = doc_text(d, up, m, &text);

    *out = (struct store_id){""};
    if (st != ST_OK || !bytes_present(text))
        return st;
    if (!store_id_good(text))
        return doc_refuse(d, &at,
                          "it is \"%s\". An id is 24 lower-case hexadecimal digits, "
                          "and the first is a letter",
                          received(text).text);
    memcpy(out->text, text.data, text.len);
    return ST_OK;
}

enum status
doc_items_count(struct state_decoder *d, const struct doc_at *at,
                const struct doc_member *m, size_t *out)
{
    struct json_scan s;

    *out = 0;
    if (doc_left_out(&m->value))
        return ST_OK;
    if (m->value.kind != SCAN_ARRAY)
        return doc_refuse(d, at, "it must be an array");
    json_scan_begin(&s, m->value.text);
    (void)json_scan_enter(&s, SCAN_ARRAY);
    while (json_scan_item(&s)) {
        (void)json_scan_value(&s, NULL);
        ++*out;
    }
    return ST_OK;
}

enum status
doc_items(struct state_decoder *d, const struct doc_at *list, const struct doc_member *m,
          doc_item_fn *read, void *arg)
{
    struct doc_at at = {list, NULL, BYTES_NONE, 0};
    struct json_scan_value value;
    enum status st = ST_OK;
    struct json_scan s;

    if (doc_left_out(&m->value))
        return ST_OK;
    json_scan_begin(&s, m->value.text);
    (void)json_scan_enter(&s, SCAN_ARRAY);
    for (; st == ST_OK && json_scan_item(&s); at.index++) {
        (void)json_scan_value(&s, &value);
        st = read(d, &at, value.text, at.index, arg);
    }
    return st;
}

void *
doc_array(struct state_decoder *d, size_t count, size_t size)
{
    void *array = arena_array(d->arena, count + 1, size);

    if (array != NULL)
        memset(array, 0, (count + 1) * size);
    return array;
}

enum status
doc_version(struct state_decoder *d, const struct doc_member *m)
{
    const struct doc_at at = {NULL, "version", BYTES_NONE, 0};

    if (m->value.kind != SCAN_INTEGER)
        return doc_refuse(d, &at, "it is %s. It must be %d",
                          json_received(&m->value).text, STATE_VERSION);
    if (json_scan_to_i64(&m->value) != STATE_VERSION)
        return doc_refuse(d, &at, "it is %s, but this server reads only version %d",
                          json_received(&m->value).text, STATE_VERSION);
    return ST_OK;
}
