#include "client/top_model.h"

#include "client/table.h"
#include "client/text.h"

#include <stdio.h>

/* A terminal that is narrower shows no table. */
enum { WIDTH_LEAST = 16 };

void
top_model_init(struct top_model *m, struct mem *mem)
{
    *m = (struct top_model){.mem = mem};
}

static void
free_rows(struct mem *mem, struct top_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_decref(rows[i].queue);
    mem_free(mem, rows);
}

void
top_model_fini(struct top_model *m)
{
    free_rows(m->mem, m->rows, m->count);
    *m = (struct top_model){.mem = m->mem};
}

const char *
top_sort_name(enum top_sort sort)
{
    static const char *const names[TOP_SORTS] = {"oldest_ready", "ready", "claimed",
                                                 "name"};

    return names[sort];
}

const char *
top_row_text(const struct top_row *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row->queue, name));

    return text == NULL ? "" : text;
}

/* Index of the row of the same queue; m->count: there is none. */
static size_t
find_row(const struct top_model *m, const struct top_row *row)
{
    size_t i = 0;

    while (
        i < m->count &&
        (strcmp(top_row_text(&m->rows[i], "name"), top_row_text(row, "name")) != 0 ||
         strcmp(top_row_text(&m->rows[i], "project"), top_row_text(row, "project")) != 0))
        i++;
    return i;
}

/* Adds a sample, or replaces the last one while its interval lasts. */
static void
add_sample(struct top_row *row, int64_t ready, int64_t now_s)
{
    if (row->samples == 0 || now_s - row->sampled_s >= TOP_SAMPLE_S) {
        if (row->samples == TOP_SAMPLES)
            memmove(row->ready, row->ready + 1,
                    (TOP_SAMPLES - 1) * sizeof(row->ready[0]));
        else
            row->samples++;
        row->sampled_s = now_s;
    }
    row->ready[row->samples - 1] = ready;
}

bool
top_model_update(struct top_model *m, const json_t *page, int64_t now_s)
{
    const json_t *queues = json_object_get(page, "queues");
    const size_t most = json_array_size(queues);
    struct top_row *rows = mem_calloc(m->mem, most + 1, sizeof(*rows));
    size_t count = 0, selected = m->selected;

    if (rows == NULL)
        return false;
    for (size_t i = 0; i < most; i++) {
        struct top_row row = {.queue = json_array_get(queues, i)};
        const size_t old = find_row(m, &row);

        if (!json_is_object(row.queue))
            continue;
        if (old < m->count) {
            row = m->rows[old];
            row.queue = json_array_get(queues, i);
            selected = old == m->selected ? count : selected;
        }
        (void)json_incref(row.queue);
        add_sample(&row, json_integer_value(json_object_get(row.queue, "ready")), now_s);
        rows[count++] = row;
    }
    free_rows(m->mem, m->rows, m->count);
    m->rows = rows;
    m->count = count;
    m->selected = selected < count ? selected : count == 0 ? 0 : count - 1;
    m->total = json_integer_value(json_object_get(page, "total"));
    return true;
}

void
top_row_add_history(struct top_row *row, const json_t *history)
{
    const json_t *samples = json_object_get(history, "samples");
    size_t count = json_array_size(samples);
    const size_t space = TOP_SAMPLES - row->samples;
    const size_t add = count < space ? count : space;

    memmove(row->ready + add, row->ready, row->samples * sizeof(row->ready[0]));
    for (size_t i = 0; i < add; i++) {
        const json_t *sample = json_array_get(samples, count - add + i);

        row->ready[i] = json_integer_value(json_object_get(sample, "ready"));
    }
    row->samples += add;
}

struct top_row *
top_model_selected(const struct top_model *m)
{
    return m->selected < m->count ? &m->rows[m->selected] : NULL;
}

void
top_model_move(struct top_model *m, long rows)
{
    long to = (long)m->selected + rows;

    if (to >= (long)m->count)
        to = (long)m->count - 1;
    m->selected = to < 0 ? 0 : (size_t)to;
}

/* ------------------------------------------------------------------ table */

static const struct table_column columns[] = {
    {"project", false, true, true, TABLE_MEMBER, "project"},
    {"queue", false, true, false, TABLE_QUEUE, "name"},
    {"oldest", true, false, false, TABLE_TIME, "oldest_ready_age"},
    {"ready", true, false, true, TABLE_MEMBER, "ready"},
    {"ready, 2 min", false, false, true, TABLE_GIVEN, NULL},
    {"claimed", true, false, true, TABLE_MEMBER, "claimed"},
    {"in/s", true, false, true, TABLE_RATE, "rates.posted"},
    {"out/s", true, false, true, TABLE_RATE, "rates.deleted"},
    {"claim", true, false, true, TABLE_TIME, "oldest_claim_age"},
    {"dead", true, false, true, TABLE_MEMBER, "dead_letters"},
    {"waiting", true, false, true, TABLE_MEMBER, "waiters"},
    {"delayed", true, false, true, TABLE_MEMBER, "delayed"},
    {"again/s", true, false, true, TABLE_RATE, "rates.requeued"},
    {"on disk", true, false, true, TABLE_MEMBER, "unloaded"}};

/* Without such messages, the table has no column for them. */
static bool
has_unloaded(const struct top_model *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (json_integer_value(json_object_get(m->rows[i].queue, "unloaded")) > 0)
            return true;
    return false;
}

bool
top_model_write(const struct top_model *m, bool projects, size_t width, struct buf *out)
{
    const size_t skip = projects ? 0 : 1;
    const size_t count = COUNT_OF(columns) - skip - !has_unloaded(m);
    struct table table;
    struct buf line;
    bool good;

    if (width < WIDTH_LEAST)
        return false;
    table_init(&table, m->mem, columns + skip, count);
    buf_init(&line, m->mem);
    for (size_t i = 0; i < m->count; i++) {
        buf_reset(&line, SIZE_MAX);
        sparkline_write(&line, m->rows[i].ready, m->rows[i].samples);
        table_row(&table, m->rows[i].queue, buf_view(&line));
    }
    buf_fini(&line);
    good = table_write(&table, width, out);
    table_fini(&table);
    return good;
}
