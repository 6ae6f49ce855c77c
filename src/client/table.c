#include "client/table.h"

#include "claimd/base/utf8.h"
#include "claimd/json/tree.h"
#include "client/text.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * Columns between two cells; the least width of a cell that is cut, while optional
 * columns are there, and without them; the width of a terminal that does not say it.
 */
enum { GAP = 2, COMFORTABLE = 20, LEAST = 6, USUAL_WIDTH = 80 };

void
table_init(struct table *t, struct mem *mem, const struct table_column *columns,
           size_t count)
{
    *t = (struct table){.columns = columns, .column_count = count};
    buf_init(&t->text, mem);
    buf_init(&t->ends, mem);
}

void
table_fini(struct table *t)
{
    buf_fini(&t->text);
    buf_fini(&t->ends);
}

static void
end_cell(struct table *t)
{
    buf_add(&t->ends, &t->text.len, sizeof(t->text.len));
    t->cell_count++;
}

void
table_text(struct table *t, struct bytes text)
{
    if (bytes_present(text))
        utf8_escape(&t->text, text);
    else
        buf_byte(&t->text, '-');
    end_cell(t);
}

void
table_number(struct table *t, int64_t number)
{
    buf_i64(&t->text, number);
    end_cell(t);
}

static void
add_json(struct table *t, const json_t *value)
{
    struct buf json;

    buf_init(&json, t->text.mem);
    json_tree_write(&json, value);
    table_text(t, buf_view(&json));
    t->text.failed |= json.failed;
    buf_fini(&json);
}

static bool
has_notice(const json_t *row, const char *name)
{
    const json_t *notices = json_object_get(row, "notices");

    for (size_t i = 0; i < json_array_size(notices); i++) {
        const char *text = json_string_value(json_array_get(notices, i));

        if (text != NULL && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

static void
add_queue_name(struct table *t, const json_t *name, const json_t *row)
{
    const json_t *paused = json_object_get(row, "paused");
    const bool claims = json_is_true(json_object_get(paused, "claims"));
    const bool posts = json_is_true(json_object_get(paused, "posts"));
    struct buf text;

    buf_init(&text, t->text.mem);
    buf_bytes(&text, bytes_of(json_string_value(name), json_string_length(name)));
    if (claims || posts)
        buf_str(&text, !posts   ? " (paused)"
                       : claims ? " (all paused)"
                                : " (posts paused)");
    if (has_notice(row, "no_worker"))
        buf_str(&text, " (no worker)");
    t->text.failed |= text.failed;
    table_text(t, buf_view(&text));
    buf_fini(&text);
}

/* The text of a member of an object; absent: there is none. */
static struct bytes
part_of(const json_t *object, const char *prefix, const char *name)
{
    char path[32];
    const json_t *value;

    (void)snprintf(path, sizeof(path), "%s%s", prefix, name);
    value = json_object_get(object, path);
    return json_is_string(value)
               ? bytes_of(json_string_value(value), json_string_length(value))
               : BYTES_NONE;
}

void
worker_write(struct buf *out, const json_t *object, const char *prefix)
{
    const struct bytes worker = part_of(object, prefix, "worker");
    const struct bytes name =
        bytes_present(worker) ? worker : part_of(object, prefix, "client");
    const struct bytes address = part_of(object, prefix, "address");
    const bool both = bytes_present(name) && bytes_present(address);

    buf_bytes(out, name);
    buf_str(out, both ? " (" : "");
    buf_bytes(out, address);
    buf_str(out, both ? ")" : "");
}

static void
add_worker(struct table *t, const json_t *object, const char *member)
{
    const char *dot = strchr(member, '.');
    struct buf text;

    buf_init(&text, t->text.mem);
    worker_write(&text,
                 dot == NULL ? object
                             : json_object_getn(object, member, (size_t)(dot - member)),
                 dot == NULL ? member : dot + 1);
    t->text.failed |= text.failed;
    table_text(t, buf_view(&text));
    buf_fini(&text);
}

/* The member of a path such as "details.state". NULL: there is none. */
static const json_t *
member_of(const json_t *object, const char *path)
{
    const char *dot = path == NULL ? NULL : strchr(path, '.');

    if (path == NULL)
        return NULL;
    if (dot == NULL)
        return json_object_get(object, path);
    return json_object_get(json_object_getn(object, path, (size_t)(dot - path)), dot + 1);
}

static void
add_member(struct table *t, enum table_form form, const json_t *value)
{
    char rate[32];

    if (form == TABLE_TIME && json_is_number(value)) {
        duration_write(&t->text, (int64_t)json_number_value(value));
        end_cell(t);
    } else if (form == TABLE_RATE && json_is_number(value)) {
        (void)snprintf(rate, sizeof(rate), "%.1f", json_number_value(value));
        table_text(t, bytes_str(rate));
    } else if (value == NULL || form == TABLE_TIME || form == TABLE_RATE ||
               (form != TABLE_JSON && json_is_null(value))) {
        table_text(t, BYTES_NONE);
    } else if (form != TABLE_JSON && json_is_string(value)) {
        table_text(t, bytes_of(json_string_value(value), json_string_length(value)));
    } else {
        add_json(t, value);
    }
}

void
table_row(struct table *t, const json_t *object, struct bytes given)
{
    for (const struct table_column *c = t->columns; c < t->columns + t->column_count;
         c++) {
        const json_t *value = member_of(object, c->member);

        if (c->form == TABLE_GIVEN)
            table_text(t, given);
        else if (c->form == TABLE_WORKER)
            add_worker(t, object, c->member);
        else if (c->form == TABLE_QUEUE && json_is_string(value))
            add_queue_name(t, value, object);
        else
            add_member(t, c->form, value);
    }
}

void
table_rows(struct table *t, const json_t *objects)
{
    for (size_t i = 0; i < json_array_size(objects); i++)
        table_row(t, json_array_get(objects, i), BYTES_NONE);
}

static size_t
cell_end(const struct table *t, size_t i)
{
    size_t end;

    memcpy(&end, t->ends.data + i * sizeof(end), sizeof(end));
    return end;
}

static struct bytes
cell(const struct table *t, size_t i)
{
    const size_t begin = i == 0 ? 0 : cell_end(t, i - 1);

    return bytes_of(t->text.data + begin, cell_end(t, i) - begin);
}

/* A layout: the widths of the columns; HIDDEN: the column is left out. */
enum { HIDDEN = 0 };

struct layout {
    size_t widths[TABLE_COLUMNS_MOST];
};

static size_t
layout_width(const struct table *t, const struct layout *l)
{
    size_t sum = 0;

    for (size_t i = 0; i < t->column_count; i++)
        if (l->widths[i] != HIDDEN)
            sum += l->widths[i] + (sum == 0 ? 0 : GAP);
    return sum;
}

/*
 * Takes columns of the terminal from the widest elastic column until all fits, down to
 * `least`. False: it cannot.
 */
static bool
shrink(const struct table *t, struct layout *l, size_t width, size_t least)
{
    for (size_t sum = layout_width(t, l); sum > width; sum = layout_width(t, l)) {
        size_t *widths = l->widths, widest = t->column_count, next = least;
        size_t over = sum - width;

        for (size_t i = 0; i < t->column_count; i++)
            if (t->columns[i].elastic && widths[i] > least &&
                (widest == t->column_count || widths[i] > widths[widest]))
                widest = i;
        if (widest == t->column_count)
            return false;
        for (size_t i = 0; i < t->column_count; i++) /* down to the second widest */
            if (i != widest && t->columns[i].elastic && widths[i] > next)
                next = widths[i];
        if (over > widths[widest] - next)
            over = widths[widest] - next;
        widths[widest] -= over == 0 ? 1 : over;
    }
    return true;
}

/* Finds a layout for a terminal. False: the table does not fit. */
static bool
fit(const struct table *t, struct layout *l, size_t width)
{
    struct layout whole = *l;

    for (;;) {
        size_t last = t->column_count;

        *l = whole;
        if (shrink(t, l, width, COMFORTABLE))
            return true;
        for (size_t i = 0; i < t->column_count; i++)
            if (t->columns[i].optional && whole.widths[i] != HIDDEN)
                last = i;
        if (last == t->column_count) {
            *l = whole;
            return shrink(t, l, width, LEAST);
        }
        whole.widths[last] = HIDDEN;
    }
}

static void
end_line(struct buf *out)
{
    while (out->len > 0 && out->data[out->len - 1] == ' ')
        out->len--;
    buf_byte(out, '\n');
}

/* Each row is a block of lines "name: value". */
static void
write_blocks(const struct table *t, size_t width, struct buf *out)
{
    struct buf line;

    buf_init(&line, out->mem);
    for (size_t i = 0; i < t->cell_count; i++) {
        const size_t column = i % t->column_count;

        if (column == 0 && i > 0)
            buf_byte(out, '\n');
        buf_reset(&line, SIZE_MAX);
        buf_printf(&line, "%s: ", t->columns[column].name);
        buf_bytes(&line, cell(t, i));
        text_fit(out, buf_view(&line), width, false);
        end_line(out);
        out->failed |= line.failed;
    }
    buf_fini(&line);
}

bool
table_write(const struct table *t, size_t width, struct buf *out)
{
    struct layout l;

    if (t->text.failed || t->ends.failed)
        return false;
    for (size_t c = 0; c < t->column_count; c++) {
        l.widths[c] = text_width(bytes_str(t->columns[c].name));
        for (size_t i = c; i < t->cell_count; i += t->column_count) {
            const size_t needs = text_width(cell(t, i));

            l.widths[c] = needs > l.widths[c] ? needs : l.widths[c];
        }
    }
    if (width > 0 && !fit(t, &l, width)) {
        write_blocks(t, width, out);
        return !out->failed;
    }
    for (size_t i = 0; i < t->column_count + t->cell_count; i++) {
        const size_t c = i % t->column_count;
        const struct bytes text = i < t->column_count ? bytes_str(t->columns[c].name)
                                                      : cell(t, i - t->column_count);

        if (c > 0 && l.widths[c] != HIDDEN)
            buf_str(out, "  ");
        if (l.widths[c] != HIDDEN)
            text_fit(out, text, l.widths[c], t->columns[c].right);
        if (c + 1 == t->column_count)
            end_line(out);
    }
    return !out->failed;
}

size_t
terminal_width(FILE *to)
{
    struct winsize size = {.ws_col = 0};
    const char *columns = getenv("COLUMNS");
    int64_t given = 0;

    if (!isatty(fileno(to)))
        return 0;
    if (ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    if (columns != NULL && bytes_to_i64(bytes_str(columns), &given) && given > 0 &&
        given < 10000)
        return (size_t)given;
    return USUAL_WIDTH;
}

int
table_print(struct table *t)
{
    struct buf out;

    buf_init(&out, t->text.mem);
    out.failed = !table_write(t, terminal_width(stdout), &out);
    table_fini(t);
    return print_text(&out);
}
