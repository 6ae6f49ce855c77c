#include "claimd/api/dump.h"
#include "api/wire/record_json.h"

#include <inttypes.h>

static struct bytes
project_of(const struct dump *d)
{
    return bytes_of(d->project, d->project_len);
}

struct store_queue
dump_queue(const struct dump *d)
{
    return (struct store_queue){project_of(d), bytes_of(d->name, d->name_len),
                                (enum store_kind)d->kind};
}

/* ------------------------------------------------------------------ queues */

typedef enum status list_fn(struct store *s, struct store_op *op,
                            const struct store_page *page, struct store_queues *out);

/* Reads the next name behind the marker of a page. ST_NOT_FOUND: there is none. */
static enum status
next_name(struct store *s, struct store_op *op, list_fn *list, struct store_page *page,
          char *text, size_t cap, size_t *len)
{
    struct store_queues names = STORE_QUEUES_INIT;
    enum status st;

    page->limit = 1;
    st = list(s, op, page, &names);
    if (st == ST_OK && names.count == 0)
        st = ST_NOT_FOUND;
    if (st == ST_OK && names.queues[0].name.len > cap)
        st = ST_INTERNAL; /* the API makes no such names */
    if (st == ST_OK) {
        *len = names.queues[0].name.len;
        if (*len > 0)
            memcpy(text, names.queues[0].name.data, *len);
    }
    store_queues_release(&names);
    return st;
}

static enum status
next_project(struct store *s, struct store_op *op, struct bytes only, struct dump *d)
{
    struct store_page page = {.kind = (enum store_kind)d->kind};

    if (bytes_present(only)) {
        if (d->in_project || only.len > DUMP_PROJECT)
            return ST_NOT_FOUND;
        memcpy(d->project, only.data, only.len);
        d->project_len = only.len;
        return ST_OK;
    }
    if (d->in_project)
        page.marker = project_of(d);
    return next_name(s, op, s->vtable->project_list, &page, d->project, DUMP_PROJECT,
                     &d->project_len);
}

enum status
dump_next(struct store *s, struct store_op *op, struct bytes only, struct dump *d)
{
    for (;;) {
        struct store_page page = {.project = project_of(d),
                                  .kind = (enum store_kind)d->kind};
        enum status st = ST_NOT_FOUND;

        if (d->behind_queue)
            page.marker = bytes_of(d->name, d->name_len);
        if (d->in_project)
            st = next_name(s, op, s->vtable->queue_list, &page, d->name, DUMP_NAME,
                           &d->name_len);
        if (st == ST_OK)
            d->behind_queue = d->in_queue = true;
        if (st != ST_NOT_FOUND) {
            memset(d->resume, 0, sizeof(d->resume));
            return st;
        }
        d->behind_queue = false;
        st = next_project(s, op, only, d);
        d->in_project = st == ST_OK;
        if (st == ST_NOT_FOUND && ++d->kind == STORE_KINDS) {
            d->done = true;
            return ST_OK;
        }
        if (st != ST_OK && st != ST_NOT_FOUND)
            return st;
    }
}

/* ------------------------------------------------------------------ lines */

static enum status
read_slice(struct store *s, struct store_op *op, struct dump *d,
           struct store_records *out)
{
    const struct store_queue where = dump_queue(d);
    enum status st;

    memcpy(out->resume, d->resume, sizeof(out->resume));
    st = store_read(s, op, &where, out);
    if (st == ST_NOT_FOUND) {
        d->in_queue = false; /* deleted meanwhile */
        return ST_OK;
    }
    if (st == ST_OK) {
        d->in_queue = out->more;
        memcpy(d->resume, out->resume, sizeof(d->resume));
    }
    return st;
}

enum status
dump_read(struct store *store, struct store_op *op, struct bytes project, struct dump *d,
          struct store_records *out)
{
    enum status st = ST_OK;

    while (st == ST_OK && !d->done && out->count == 0) {
        store_records_release(out);
        st = d->in_queue ? read_slice(store, op, d, out)
                         : dump_next(store, op, project, d);
    }
    return st;
}

enum status
dump_lines(struct store *store, struct store_op *op, struct bytes project, size_t bytes,
           struct dump *dump, struct buf *out)
{
    const size_t before = out->len;
    enum status st = ST_OK;

    if (!dump->begun) {
        record_json_write_head(out, op->now_ms);
        dump->lines++;
    }
    dump->begun = true;
    while (st == ST_OK && !dump->done && out->len - before < bytes) {
        struct store_records records = STORE_RECORDS_INIT;

        st = dump_read(store, op, project, dump, &records);
        for (size_t i = 0; i < records.count; i++) {
            struct store_queue where = dump_queue(dump);

            if (dump->without_project)
                where.project = BYTES_NONE;
            record_json_write(out, &where, &records.all[i], op->now_ms);
        }
        dump->lines += records.count;
        store_records_release(&records);
        if (out->failed)
            return ST_NO_MEMORY;
    }
    return st == ST_AGAIN && out->len > before ? ST_OK : st;
}

/* ------------------------------------------------------------------ markers */

/* FLAGS.PROJECT.NAME.RESUME.RESUME.RESUME; the names in hexadecimal */
void
dump_write_marker(const struct dump *d, struct buf *out)
{
    buf_printf(out, "%u.",
               d->kind << 3 | (unsigned)d->in_project << 2 |
                   (unsigned)d->behind_queue << 1 | (unsigned)d->in_queue);
    buf_hex(out, project_of(d));
    buf_byte(out, '.');
    buf_hex(out, dump_queue(d).name);
    for (size_t i = 0; i < 3; i++)
        buf_printf(out, ".%" PRIu64, d->resume[i]);
}

static bool
read_hex(struct bytes digits, char *out, size_t cap, size_t *len)
{
    *len = digits.len / 2;
    return *len <= cap && hex_read_bytes(digits, out, *len);
}

bool
dump_read_marker(struct bytes text, struct dump *out)
{
    uint64_t flags;

    *out = (struct dump){.begun = true};
    if (!bytes_to_u64(bytes_cut(&text, '.'), &flags) || flags > 15 ||
        !bytes_present(text) ||
        !read_hex(bytes_cut(&text, '.'), out->project, DUMP_PROJECT, &out->project_len) ||
        !bytes_present(text) ||
        !read_hex(bytes_cut(&text, '.'), out->name, DUMP_NAME, &out->name_len))
        return false;
    for (size_t i = 0; i < 3; i++)
        if (!bytes_present(text) || !bytes_to_u64(bytes_cut(&text, '.'), &out->resume[i]))
            return false;
    out->kind = (unsigned)flags >> 3;
    out->in_project = (flags & 4) != 0;
    out->behind_queue = (flags & 2) != 0;
    out->in_queue = (flags & 1) != 0;
    return !bytes_present(text);
}

/* ------------------------------------------------------------------ completeness */

enum status
dump_check_record(struct dump_check *c, enum dump_record record, uint64_t announced,
                  struct reason *why)
{
    if (c->ended)
        return reason_give(
            why, ST_BAD_VALUE,
            "it follows the end record, which must be the last line of a dump");
    if (record == DUMP_HEAD)
        c->needs_end = true;
    if (record == DUMP_END) {
        c->ended = true;
        c->announced = announced;
    } else {
        c->records++;
    }
    return ST_OK;
}

enum status
dump_check_complete(const struct dump_check *c, struct reason *why)
{
    if (c->needs_end && !c->ended)
        return reason_give(
            why, ST_BAD_VALUE,
            "the dump has no end record. It is truncated after record %" PRIu64
            ". Dump again",
            c->records);
    if (c->ended && c->announced != DUMP_UNCOUNTED && c->announced != c->records)
        return reason_give(why, ST_BAD_VALUE,
                           "the end record counts %" PRIu64
                           " records, but the dump has %" PRIu64 ". Dump again",
                           c->announced, c->records);
    return ST_OK;
}
