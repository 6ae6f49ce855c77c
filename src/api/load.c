#include "api/load.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ reading */

/* Lines that are not empty, at most. */
static size_t
count_lines(struct bytes text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] != '\n' && (i == 0 || text.data[i - 1] == '\n');
    return count;
}

static enum status
check_order(struct dump_check *check, const struct record_line *line, struct reason *why)
{
    return dump_check_record(check,
                             line->what == LINE_HEAD  ? DUMP_HEAD
                             : line->what == LINE_END ? DUMP_END
                                                      : DUMP_CONTENT,
                             line->announced, why);
}

/* Puts the number of the line in front of the reason. */
static enum status
refuse_line(struct reason *why, enum status st, size_t number)
{
    struct reason what = *why;

    (void)reason_give(why, st, "line %zu: %s", number, what.text);
    return st;
}

enum status
load_read(struct load *l, struct bytes text)
{
    struct record_reader *r = &l->reader;
    const size_t most = count_lines(text);
    struct dump_check check = {0};

    l->count = 0;
    if (!mem_admits(r->mem, most * (sizeof(*l->lines) + sizeof(*l->batch))))
        return ST_OVER_BUDGET;
    l->lines = arena_array(r->arena, most + 1, sizeof(*l->lines));
    if (l->lines == NULL)
        return ST_NO_MEMORY;
    for (size_t number = 1; bytes_present(text); number++) {
        struct bytes one = bytes_trim(bytes_cut(&text, '\n'));
        struct record_line line;
        enum status st;

        if (one.len == 0)
            continue;
        st = record_json_read(r, one, &line);
        if (st == ST_OK)
            st = check_order(&check, &line, r->why);
        if (st != ST_OK)
            return st == ST_NO_MEMORY ? st : refuse_line(r->why, st, number);
        line.number = number;
        if (line.what == LINE_RECORD)
            l->lines[l->count++] = line;
    }
    return dump_check_complete(&check, r->why);
}

/* ------------------------------------------------------------------ claims with names */

static int
compare_names(const void *a, const void *b)
{
    const struct record_line *x = *(struct record_line *const *)a;
    const struct record_line *y = *(struct record_line *const *)b;
    int order = bytes_compare(x->claim, y->claim);

    return order != 0 ? order : (x > y) - (x < y);
}

/* One claim holds the messages of a batch whose claims have the same name: that of the first. */
static enum status
join_claims(struct load *l, struct record_line *first, size_t count)
{
    struct record_line **named = arena_array(l->reader.arena, count, sizeof(*named));
    size_t names = 0;

    if (named == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (bytes_present(first[i].claim))
            named[names++] = &first[i];
    if (names > 1)
        qsort(named, names, sizeof(struct record_line *), compare_names);
    for (size_t i = 1; i < names; i++)
        if (bytes_equal(named[i - 1]->claim, named[i]->claim))
            named[i]->record.message.claim = named[i - 1]->record.message.claim;
    return ST_OK;
}

/* ------------------------------------------------------------------ batches */

/* May a line join the batch of `before`? Messages come before subscriptions. */
static bool
joins(const struct record_line *before, const struct record_line *line)
{
    return store_queue_equal(&before->where, &line->where) &&
           line->record.kind != STORE_RECORD_QUEUE &&
           (line->record.kind == STORE_RECORD_SUBSCRIPTION ||
            before->record.kind != STORE_RECORD_SUBSCRIPTION);
}

typedef enum status batch_fn(struct load *l, struct record_line *first, size_t count);

/* Calls `run` for each batch, whose records are in l->batch. */
static enum status
for_each_batch(struct load *l, batch_fn *run)
{
    enum status st = ST_OK;
    size_t first = 0;

    for (size_t i = 0; st == ST_OK && i < l->count; i++) {
        l->batch[i - first] = l->lines[i].record;
        if (i + 1 < l->count && joins(&l->lines[i], &l->lines[i + 1]))
            continue;
        st = run(l, &l->lines[first], i + 1 - first);
        first = i + 1;
    }
    return st;
}

static enum status
check_batch(struct load *l, struct record_line *first, size_t count)
{
    static const char *const of[] = {[STORE_RECORD_QUEUE] = "",
                                     [STORE_RECORD_MESSAGE] = "message.",
                                     [STORE_RECORD_SUBSCRIPTION] = "subscription."};
    struct store_flaw flaw;
    enum status st = join_claims(l, first, count);

    if (st == ST_OK)
        st = store_records_check(l->reader.mem, l->batch, count, &flaw);
    if (st == ST_BAD_VALUE)
        (void)reason_give(l->reader.why, st, "line %zu: %s%s: %s",
                          first[flaw.index].number, of[first[flaw.index].record.kind],
                          flaw.member, flaw.what);
    return st;
}

enum status
load_check(struct load *l)
{
    l->batch = arena_array(l->reader.arena, l->count + 1, sizeof(*l->batch));
    if (l->batch == NULL)
        return ST_NO_MEMORY;
    return for_each_batch(l, check_batch);
}

static enum status
refuse_batch(struct load *l, enum status st, const struct record_line *first,
             const struct record_line *last)
{
    const struct store_queue *where = &first->where;
    const char *what = status_text(st);

    if (st == ST_CONFLICT)
        what = first->record.kind == STORE_RECORD_QUEUE && !l->replace
                   ? "it already exists. To overwrite it, send replace=true"
                   : "it already has an item with one of these ids or subscribers";
    if (st == ST_NOT_FOUND)
        what = "it does not exist, and no earlier line creates it";
    (void)reason_give(l->reader.why, st, "lines %zu to %zu, of %s \"%.*s\": %s%s",
                      first->number, last->number,
                      where->kind == STORE_TOPIC ? "topic" : "queue",
                      (int)where->name.len, where->name.data, what,
                      l->whole ? "" : ". The lines before are loaded");
    return st == ST_NOT_FOUND ? ST_CONFLICT : st;
}

/* Other clients may make a queue again as often while it is replaced. */
enum { TRIES = 8 };

static enum status
apply_batch(struct load *l, struct record_line *first, size_t count)
{
    const bool replaces = l->replace && first->record.kind == STORE_RECORD_QUEUE;
    enum status st = ST_CONFLICT;

    for (int i = 0; st == ST_CONFLICT && i < (replaces ? TRIES : 1); i++) {
        st = replaces ? store_queue_delete(l->store, l->visit, &first->where) : ST_OK;
        if (st == ST_OK)
            st = store_apply(l->store, l->visit, &first->where, l->batch, count);
    }
    if (st != ST_OK)
        return st == ST_NO_MEMORY ? st : refuse_batch(l, st, first, &first[count - 1]);
    for (size_t i = 0; i < count; i++) {
        l->queues += first[i].record.kind == STORE_RECORD_QUEUE;
        l->messages += first[i].record.kind == STORE_RECORD_MESSAGE;
        l->subscriptions += first[i].record.kind == STORE_RECORD_SUBSCRIPTION;
    }
    return ST_OK;
}

enum status
load_apply(struct load *l)
{
    return for_each_batch(l, apply_batch);
}

enum status
load_refusal(enum status st)
{
    return st == ST_PROJECT_QUEUES || st == ST_PROJECT_MESSAGES || st == ST_PROJECT_BYTES
               ? ST_CONFLICT
               : st;
}
