#include "api/state.h"
#include "claimd/base/sometimes.h"

#include <inttypes.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ reading */

enum status
load_read(struct record_load *l, struct bytes text)
{
    struct record_reader *r = &l->reader;
    struct dump_check check = {0};
    size_t most = 0; /* lines that are not empty */

    l->count = 0;
    for (struct bytes rest = text; bytes_present(rest);)
        most += bytes_cut(&rest, '\n').len > 0;
    if (!mem_admits(r->mem, most * (sizeof(*l->lines) + sizeof(*l->batch))))
        return ST_OVER_BUDGET;
    l->lines = arena_array(r->arena, most + 1, sizeof(*l->lines));
    if (l->lines == NULL)
        return ST_NO_MEMORY;
    for (size_t number = 1; bytes_present(text); number++) {
        struct bytes one = bytes_trim(bytes_cut(&text, '\n'));
        struct record_line *line = &l->lines[l->count];
        enum status st;

        if (one.len == 0)
            continue;
        st = record_json_read(r, one, line);
        if (st == ST_OK)
            st = dump_check_record(&check,
                                   line->what == LINE_HEAD  ? DUMP_HEAD
                                   : line->what == LINE_END ? DUMP_END
                                                            : DUMP_CONTENT,
                                   line->announced, r->why);
        if (st == ST_NO_MEMORY)
            return st;
        if (st != ST_OK) {
            const struct reason what = *r->why;

            return reason_give(r->why, st, "line %zu: %s", number, what.text);
        }
        line->number = number;
        if (line->what == LINE_RECORD)
            l->count++;
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

/* Gives messages of a batch whose claims have the same name one claim, that of the
 * first. */
static enum status
join_claims(struct record_load *l, struct record_line *first, size_t count)
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

/* True if a line joins the batch of `before`. Messages come before subscriptions. */
static bool
joins_batch(const struct record_line *before, const struct record_line *line)
{
    return store_queue_equal(&before->where, &line->where) &&
           line->record.kind != STORE_RECORD_QUEUE &&
           (line->record.kind == STORE_RECORD_SUBSCRIPTION ||
            before->record.kind != STORE_RECORD_SUBSCRIPTION);
}

typedef enum status
batch_fn(struct record_load *l, struct record_line *first, size_t count);

/* Calls `run` for each batch, whose records are in l->batch. */
static enum status
for_each_batch(struct record_load *l, batch_fn *run)
{
    enum status st = ST_OK;
    size_t first = 0;

    for (size_t i = 0; st == ST_OK && i < l->count; i++) {
        l->batch[i - first] = l->lines[i].record;
        if (i + 1 < l->count && joins_batch(&l->lines[i], &l->lines[i + 1]))
            continue;
        st = run(l, &l->lines[first], i + 1 - first);
        first = i + 1;
    }
    return st;
}

static enum status
check_batch(struct record_load *l, struct record_line *first, size_t count)
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
load_check(struct record_load *l)
{
    l->batch = arena_array(l->reader.arena, l->count + 1, sizeof(*l->batch));
    if (l->batch == NULL)
        return ST_NO_MEMORY;
    return for_each_batch(l, check_batch);
}

static enum status
refuse_batch(struct record_load *l, enum status st, const struct record_line *first,
             const struct record_line *last)
{
    const struct store_queue *where = &first->where;
    const char *what = status_text(st);

    SOMETIMES_IF(st == ST_CONFLICT, LOAD_REPEATED);
    if (st == ST_CONFLICT)
        what = first->record.kind == STORE_RECORD_QUEUE && !l->replace
                   ? "it already exists. To overwrite it, send replace=true"
                   : "it already has an item with one of these ids, keys or subscribers";
    if (st == ST_NOT_FOUND)
        what = "it does not exist, and no earlier line creates it";
    (void)reason_give(l->reader.why, st, "lines %zu to %zu, of %s \"%.*s\": %s%s",
                      first->number, last->number, record_json_kind(where->kind),
                      (int)where->name.len, where->name.data, what,
                      l->whole ? "" : ". The lines before are loaded");
    return st == ST_NOT_FOUND ? ST_CONFLICT : st;
}

/* Other clients may create a queue again while it is replaced. */
enum { TRIES = 8 };

static enum status
apply_batch(struct record_load *l, struct record_line *first, size_t count)
{
    const bool replaces = l->replace && first->record.kind == STORE_RECORD_QUEUE;
    enum status st = ST_CONFLICT;

    for (int i = 0; st == ST_CONFLICT && i < (replaces ? TRIES : 1); i++) {
        st = replaces ? store_queue_delete(l->store, l->op, &first->where) : ST_OK;
        if (st == ST_OK)
            st = store_apply(l->store, l->op, &first->where, l->batch, count);
    }
    if (st != ST_OK)
        return st == ST_NO_MEMORY ? st : refuse_batch(l, st, first, &first[count - 1]);
    for (size_t i = 0; i < count; i++) {
        l->schedules = l->schedules || first[i].where.kind == STORE_SCHEDULES;
        l->queues += first[i].record.kind == STORE_RECORD_QUEUE;
        l->messages += first[i].record.kind == STORE_RECORD_MESSAGE;
        l->subscriptions += first[i].record.kind == STORE_RECORD_SUBSCRIPTION;
    }
    return ST_OK;
}

enum status
load_apply(struct record_load *l)
{
    return for_each_batch(l, apply_batch);
}

enum status
load_refusal(const struct record_load *l, enum status st)
{
    return l->reader.why->text[0] != '\0' &&
                   (st == ST_PROJECT_QUEUES || st == ST_PROJECT_MESSAGES ||
                    st == ST_PROJECT_BYTES)
               ? ST_CONFLICT
               : st;
}

/* ------------------------------------------------------------------ whole states */

enum status
state_write(struct store *store, struct store_op *op, struct bytes project,
            struct buf *out)
{
    /* Lines without a project can be loaded into any project. */
    struct dump dump = {.without_project = bytes_present(project)};
    enum status st = ST_OK;

    while (!dump.done && (st == ST_OK || st == ST_AGAIN)) /* AGAIN: much was due */
        st = dump_lines(store, op, project, SIZE_MAX, &dump, out);
    buf_printf(out, "{\"end\":%" PRIu64 "}\n", dump.lines);
    return st == ST_OK && out->failed ? ST_NO_MEMORY : st;
}

/* ------------------------------------------------------------------ checks */

static enum status
refuse_line(struct record_load *l, const struct record_line *line, const char *member,
            const char *what)
{
    return reason_give(l->reader.why, ST_BAD_VALUE, "line %zu: %s: %s", line->number,
                       member, what);
}

/* Orders by project, kind and name. */
static int
compare_queues(const struct record_line *a, const struct record_line *b)
{
    const struct store_queue *x = &a->where, *y = &b->where;
    int order = bytes_compare(x->project, y->project);

    if (order == 0 && x->kind != y->kind)
        order = (x->kind > y->kind) - (x->kind < y->kind);
    return order != 0 ? order : bytes_compare(x->name, y->name);
}

/* Orders the lines of a queue: the queue, its messages, its subscriptions, each by
 * line. */
static int
compare_lines(const void *a, const void *b)
{
    const struct record_line *x = a, *y = b;
    int order = compare_queues(x, y);

    if (order == 0)
        order = (int)x->record.kind - (int)y->record.kind;
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* True if the i-th line is the first one of a queue without a line of its own. */
static bool
lacks_queue(const struct record_load *l, size_t i)
{
    return l->lines[i].record.kind != STORE_RECORD_QUEUE &&
           (i == 0 || compare_queues(&l->lines[i], &l->lines[i - 1]) != 0);
}

/* Sorts the lines, and adds one for each queue without a line of its own. */
static enum status
complete_lines(struct record_load *l)
{
    size_t count = 0, missing = 0;
    struct record_line *lines;

    qsort(l->lines, l->count, sizeof(*l->lines), compare_lines);
    for (size_t i = 0; i < l->count; i++)
        missing += lacks_queue(l, i);
    if (missing == 0)
        return ST_OK;
    lines = arena_array(l->reader.arena, l->count + missing, sizeof(*lines));
    if (lines == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < l->count; i++) {
        if (lacks_queue(l, i))
            lines[count++] = (struct record_line){
                .what = LINE_RECORD,
                .where = l->lines[i].where,
                .record = {.kind = STORE_RECORD_QUEUE,
                           .metadata = {BYTES_NONE, STORE_SETTINGS_INIT}},
                .number = l->lines[i].number};
        lines[count++] = l->lines[i];
    }
    l->lines = lines;
    l->count = count;
    return ST_OK;
}

/* A queue, and the first walk of check_queues() that visited it; 0: none. */
struct checked_queue {
    const struct record_line *line;
    size_t walk;
};

/* The dead-letter queue of a queue. NULL: it has none, or not one of `all`. */
static struct checked_queue *
find_dead_letter_queue(const struct checked_queue *at, struct checked_queue *all,
                       size_t count)
{
    const struct store_settings *set = &at->line->record.metadata.settings;
    size_t low = 0, high = count;
    struct record_line wanted = *at->line;

    wanted.where.name = set->dead_letter;
    if (set->max_claim_count == STORE_UNSET || !bytes_present(set->dead_letter) ||
        at->line->where.kind != STORE_QUEUE)
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_queues(all[middle].line, &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && compare_queues(all[low].line, &wanted) == 0 ? &all[low] : NULL;
}

/*
 * Refuses two lines for one queue, and cycles of dead-letter queues. A walk ends at a
 * queue of an earlier walk, so each queue is visited once.
 */
static enum status
check_queues(struct record_load *l)
{
    struct checked_queue *all = arena_array(l->reader.arena, l->count + 1, sizeof(*all));
    size_t count = 0;

    if (all == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < l->count; i++)
        if (l->lines[i].record.kind == STORE_RECORD_QUEUE)
            all[count++] = (struct checked_queue){&l->lines[i], 0};
    for (size_t i = 1; i < count; i++)
        if (compare_queues(all[i - 1].line, all[i].line) == 0)
            return refuse_line(l, all[i].line, record_json_kind(all[i].line->where.kind),
                               "another line has the same name");
    for (size_t walk = 1; walk <= count; walk++) {
        struct checked_queue *at = &all[walk - 1];

        for (; at != NULL && at->walk == 0; at = find_dead_letter_queue(at, all, count))
            at->walk = walk;
        if (at != NULL && at->walk == walk &&
            find_dead_letter_queue(at, all, count) != NULL)
            return refuse_line(l, at->line, "metadata._dead_letter_queue",
                               "the dead-letter queues form a cycle");
    }
    return ST_OK;
}

static int
compare_ids(const void *a, const void *b)
{
    const struct record_line *x = *(struct record_line *const *)a;
    const struct record_line *y = *(struct record_line *const *)b;
    int order = bytes_compare(x->where.project, y->where.project);

    if (order == 0)
        order = strcmp(x->record.message.id.text, y->record.message.id.text);
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* Refuses two messages of a project with one id: a dead-lettered message keeps its id. */
static enum status
check_ids(struct record_load *l)
{
    struct record_line **ids = arena_array(l->reader.arena, l->count + 1, sizeof(*ids));
    size_t count = 0;

    if (ids == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < l->count; i++)
        if (l->lines[i].record.kind == STORE_RECORD_MESSAGE &&
            l->lines[i].record.message.id.text[0] != '\0')
            ids[count++] = &l->lines[i];
    qsort(ids, count, sizeof(struct record_line *), compare_ids);
    for (size_t i = 1; i < count; i++)
        if (bytes_equal(ids[i - 1]->where.project, ids[i]->where.project) &&
            strcmp(ids[i - 1]->record.message.id.text, ids[i]->record.message.id.text) ==
                0)
            return refuse_line(l, ids[i], "message.id",
                               "another message has the same id");
    return ST_OK;
}

enum status
state_check(struct record_load *l)
{
    enum status st = complete_lines(l);

    l->replace = l->whole = true;
    if (st == ST_OK)
        st = check_queues(l);
    if (st == ST_OK)
        st = check_ids(l);
    return st == ST_OK ? load_check(l) : st;
}

/* ------------------------------------------------------------------ replacing */

/* A slice of the old state. */
struct old_slice {
    struct old_slice *next;
    struct store_queue where;
    struct store_records records;
};

/* Reads the old state into *first. */
static enum status
read_old_state(const struct record_load *l, struct bytes project,
               struct old_slice **first)
{
    struct arena *arena = l->reader.arena;
    struct dump dump = {.begun = false};
    enum status st = ST_OK;

    while (!dump.done && (st == ST_OK || st == ST_AGAIN)) {
        struct old_slice *slice = arena_alloc(arena, sizeof(*slice));

        if (slice == NULL)
            return ST_NO_MEMORY;
        *slice = (struct old_slice){.records = STORE_RECORDS_INIT};
        st = dump_read(l->store, l->op, project, &dump, &slice->records);
        *first = slice;
        first = &slice->next;
        slice->where = dump_queue(&dump);
        slice->where.project = arena_copy(arena, slice->where.project);
        slice->where.name = arena_copy(arena, slice->where.name);
        if (!bytes_present(slice->where.project) || !bytes_present(slice->where.name))
            return ST_NO_MEMORY;
    }
    return st;
}

/* Approximate memory of a record after it is applied. */
static size_t
bytes_of_record(const struct store_record *r)
{
    if (r->kind == STORE_RECORD_MESSAGE)
        return sizeof(*r) + r->message.body.len;
    return r->kind == STORE_RECORD_QUEUE ? r->metadata.json.len
                                         : 2 * sizeof(*r) + r->subscription.options.len +
                                               r->subscription.subscriber.len;
}

/*
 * True if there is memory for the new state, and for a second copy of the old one. The
 * old bodies stay pinned until the end.
 */
static bool
has_capacity(const struct record_load *l, const struct old_slice *old)
{
    size_t total = 0;

    for (size_t i = 0; i < l->count; i++)
        total += bytes_of_record(&l->lines[i].record);
    for (; old != NULL; old = old->next)
        for (size_t i = 0; i < old->records.count; i++)
            total += bytes_of_record(&old->records.all[i]);
    return mem_admits(l->reader.mem, total);
}

/* True for the first slice of a queue. */
static bool
begins_queue(const struct old_slice *slice)
{
    return slice->records.count > 0 && slice->records.all[0].kind == STORE_RECORD_QUEUE;
}

/* Restores the old state as far as possible. False: not all of it. */
static bool
restore_old_state(struct record_load *l, const struct old_slice *old)
{
    bool all = true;

    for (size_t i = 0; i < l->count; i++) /* if that fails, store_apply() fails below */
        if (l->lines[i].record.kind == STORE_RECORD_QUEUE)
            (void)store_queue_delete(l->store, l->op, &l->lines[i].where);
    for (; old != NULL; old = old->next) {
        enum status st = ST_OK;

        if (begins_queue(old))
            st = store_queue_delete(l->store, l->op, &old->where);
        if (st == ST_OK && old->records.count > 0)
            st = store_apply(l->store, l->op, &old->where, old->records.all,
                             old->records.count);
        all = all && st == ST_OK;
    }
    return all;
}

/* Replaces the old state by the new lines, or restores it. */
static enum status
replace_or_restore(struct record_load *l, const struct old_slice *old)
{
    enum status st = ST_OK;
    struct reason first;

    for (const struct old_slice *s = old; st == ST_OK && s != NULL; s = s->next)
        if (begins_queue(s))
            st = store_queue_delete(l->store, l->op, &s->where);
    if (st == ST_OK)
        st = load_apply(l);
    if (st == ST_OK)
        return ST_OK;
    first = *l->reader.why;
    if (!restore_old_state(l, old))
        (void)reason_give(l->reader.why, st, "%s. Part of the old state was not restored",
                          first.text[0] == '\0' ? status_text(st) : first.text);
    return st;
}

enum status
state_replace(struct record_load *l, struct bytes project)
{
    struct old_slice *old = NULL;
    enum status st = read_old_state(l, project, &old);

    if (st == ST_OK && !has_capacity(l, old))
        st = ST_OVER_BUDGET;
    if (st == ST_OK)
        st = replace_or_restore(l, old);
    for (; old != NULL; old = old->next)
        store_records_release(&old->records);
    return st;
}

enum status
state_seed(struct record_load *l, struct bytes text)
{
    enum status st = load_read(l, text);
    size_t first = 0;

    if (st == ST_OK)
        st = state_check(l);
    for (size_t i = 1; st == ST_OK && i <= l->count; i++) {
        const struct bytes project = l->lines[first].where.project;
        struct record_load part = *l; /* the lines of a project */

        if (i < l->count && bytes_equal(l->lines[i].where.project, project))
            continue;
        part.lines += first;
        part.count = i - first;
        st = state_replace(&part, project);
        first = i;
    }
    return st;
}
