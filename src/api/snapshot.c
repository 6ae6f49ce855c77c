#include "api/snapshot.h"

#include "claimd/base/buf.h"
#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/ds/list.h"
#include "claimd/store/store.h"

#include <stdlib.h>

struct snapshot_row {
    struct store_population here;
    int64_t posted_ms, age_ms, claimed_age_ms;
    uint64_t waiters;
    uint32_t text; /* place of project, name and dead-letter queue in the texts */
    uint16_t project_len;
    uint8_t name_len, dead_letter_len, paused;
    bool has_oldest;
};

/* A selection that was made. */
struct selection {
    struct list link;
    enum queue_sort sort;
    struct snapshot_selection view;
    struct bytes project, part; /* behind the rows */
    uint32_t rows[];
};

struct snapshot {
    struct mem *mem;
    struct snapshots *all;
    size_t users;    /* of `all`'s lock; the present one has one of its own */
    int64_t made_ms; /* by the clock of the store */
    int64_t made_real_ms;
    uint64_t total;
    bool more;       /* queues behind the last row */
    struct buf rows; /* of struct snapshot_row, by project and name */
    struct buf texts;
    struct lock lock; /* for the selections */
    struct list selections;
};

struct snapshots {
    struct mem *mem;
    struct lock lock;
    struct snapshot *present; /* NULL: none yet */
    bool building;            /* a request makes the next one */
};

enum { ROWS_A_CALL = 64, ROWS_A_SLICE = 512 };

/* While a request makes the next snapshot, others use one of this age, but none that is left from earlier
 * viewers. */
enum { SNAPSHOT_OLDEST_MS = 5 * SNAPSHOT_LIFE_MS };

uint64_t
queue_sort_key(enum queue_sort sort, bool has_oldest, int64_t posted_ms,
               const struct store_population *here)
{
    switch (sort) {
    case SORT_OLDEST_READY:
        return has_oldest ? (uint64_t)posted_ms : UINT64_MAX;
    case SORT_READY:
        return UINT64_MAX - here->claimable;
    case SORT_CLAIMED:
        return UINT64_MAX - here->claimed;
    default:
        return 0;
    }
}

/* ------------------------------------------------------------------ life */

enum status
snapshots_new(struct mem *mem, struct snapshots **out)
{
    struct snapshots *all = mem_calloc(mem, 1, sizeof(*all));

    if (all == NULL)
        return ST_NO_MEMORY;
    all->mem = mem;
    lock_init(&all->lock);
    *out = all;
    return ST_OK;
}

void
snapshots_free(struct snapshots *all)
{
    if (all == NULL)
        return;
    if (all->present != NULL)
        snapshot_release(all->present);
    lock_fini(&all->lock);
    mem_free(all->mem, all);
}

static struct snapshot *
snapshot_new(struct snapshots *all, int64_t now_ms, int64_t real_ms)
{
    struct snapshot *s = mem_calloc(all->mem, 1, sizeof(*s));

    if (s == NULL)
        return NULL;
    s->mem = all->mem;
    s->all = all;
    s->users = 1;
    s->made_ms = now_ms;
    s->made_real_ms = real_ms;
    buf_init(&s->rows, all->mem);
    buf_init(&s->texts, all->mem);
    lock_init(&s->lock);
    list_init(&s->selections);
    return s;
}

static void
snapshot_free(struct snapshot *s)
{
    struct list *link;

    while ((link = list_pop(&s->selections)) != NULL)
        mem_free(s->mem, container_of(link, struct selection, link));
    buf_fini(&s->rows);
    buf_fini(&s->texts);
    lock_fini(&s->lock);
    mem_free(s->mem, s);
}

void
snapshot_release(struct snapshot *s)
{
    size_t users;

    lock_acquire(&s->all->lock);
    users = --s->users;
    lock_release(&s->all->lock);
    if (users == 0)
        snapshot_free(s);
}

/* ------------------------------------------------------------------ making one */

static const struct snapshot_row *
row_at(const struct snapshot *s, size_t i)
{
    return (const struct snapshot_row *)(const void *)s->rows.data + i;
}

static size_t
row_count(const struct snapshot *s)
{
    return s->rows.len / sizeof(struct snapshot_row);
}

static struct bytes
row_project(const struct snapshot *s, const struct snapshot_row *row)
{
    return bytes_of(s->texts.data + row->text, row->project_len);
}

static struct bytes
row_name(const struct snapshot *s, const struct snapshot_row *row)
{
    return bytes_of(s->texts.data + row->text + row->project_len, row->name_len);
}

static void
add_row(struct snapshot *s, const struct store_queue_metrics *from)
{
    const struct snapshot_row row = {
        .here = from->here,
        .posted_ms = from->posted_ms,
        .age_ms = from->age_ms,
        .claimed_age_ms = from->claimed_age_ms,
        .waiters = from->waiters,
        .text = (uint32_t)s->texts.len,
        .project_len = (uint16_t)from->project_len,
        .name_len = (uint8_t)from->name_len,
        .dead_letter_len = (uint8_t)from->dead_letter_len,
        .paused = (uint8_t)from->paused,
        .has_oldest = from->has_oldest,
    };

    buf_bytes(&s->rows, bytes_of((const char *)&row, sizeof(row)));
    buf_bytes(&s->texts, bytes_of(from->project, from->project_len));
    buf_bytes(&s->texts, bytes_of(from->name, from->name_len));
    buf_bytes(&s->texts, bytes_of(from->dead_letter, from->dead_letter_len));
}

/* Reads a slice of the queues. ST_AGAIN: there are more. */
static enum status
read_slice(struct snapshot *s, struct store *store, struct store_op *op)
{
    struct store_queue_metrics *rows = mem_alloc(s->mem, ROWS_A_CALL * sizeof(*rows));
    struct store_survey survey = {.whole = true, .rows = rows, .limit = ROWS_A_CALL};
    enum status st = rows == NULL ? ST_NO_MEMORY : ST_OK;
    size_t read = 0, count = row_count(s);

    if (st == ST_OK && count > 0) {
        survey.after_project = row_project(s, row_at(s, count - 1));
        survey.after_name = row_name(s, row_at(s, count - 1));
    }
    do {
        if (st == ST_OK)
            st = store_queue_survey(store, op, &survey);
        for (size_t i = 0; st == ST_OK && i < survey.count; i++)
            if (!rows[i].gone)
                add_row(s, &rows[i]);
        if (st == ST_OK && (s->rows.failed || s->texts.failed))
            st = ST_NO_MEMORY;
        if (st != ST_OK)
            break;
        read += survey.count;
        s->total = survey.total;
        s->more = survey.more;
        if (survey.count > 0) {
            survey.after_project = bytes_of(rows[survey.count - 1].project,
                                            rows[survey.count - 1].project_len);
            survey.after_name =
                bytes_of(rows[survey.count - 1].name, rows[survey.count - 1].name_len);
        }
        if (!survey.more || survey.count == 0 || row_count(s) >= SNAPSHOT_ROWS)
            break;
        if (read >= ROWS_A_SLICE)
            st = ST_AGAIN;
    } while (st == ST_OK);
    mem_free(s->mem, rows);
    return st;
}

void
snapshot_abandon(struct snapshots *all, struct progress *progress)
{
    if (progress->snapshot == NULL)
        return;
    lock_acquire(&all->lock);
    all->building = false;
    lock_release(&all->lock);
    snapshot_free(progress->snapshot);
    progress->snapshot = NULL;
}

static void
publish(struct snapshots *all, struct progress *progress)
{
    struct snapshot *old;

    lock_acquire(&all->lock);
    old = all->present;
    all->present = progress->snapshot;
    all->building = false;
    lock_release(&all->lock);
    progress->snapshot = NULL;
    if (old != NULL)
        snapshot_release(old);
}

/* True if the snapshot is younger than this by both clocks. A test may stop or set that of the store. */
static bool
is_young(const struct snapshot *s, int64_t now_ms, int64_t real_ms, int64_t most_ms)
{
    return now_ms >= s->made_ms && now_ms - s->made_ms < most_ms &&
           real_ms >= s->made_real_ms && real_ms - s->made_real_ms < most_ms;
}

/* The present snapshot if it is young enough. NULL: the caller makes the next one. */
static struct snapshot *
find_present(struct snapshots *all, int64_t now_ms, int64_t real_ms)
{
    struct snapshot *found = NULL;

    lock_acquire(&all->lock);
    if (all->present != NULL &&
        is_young(all->present, now_ms, real_ms,
                 all->building ? SNAPSHOT_OLDEST_MS : SNAPSHOT_LIFE_MS)) {
        found = all->present;
        found->users++;
    } else {
        all->building = true;
    }
    lock_release(&all->lock);
    return found;
}

enum status
snapshot_use(struct snapshots *all, struct store *store, struct store_op *op,
             int64_t real_ms, struct progress *progress, struct snapshot **out)
{
    enum status st;

    if (progress->snapshot == NULL) {
        *out = find_present(all, op->now_ms, real_ms);
        if (*out != NULL)
            return ST_OK;
        progress->snapshot = snapshot_new(all, op->now_ms, real_ms);
        if (progress->snapshot == NULL) {
            lock_acquire(&all->lock);
            all->building = false;
            lock_release(&all->lock);
            return ST_NO_MEMORY;
        }
    }
    st = read_slice(progress->snapshot, store, op);
    if (st == ST_AGAIN)
        return st;
    if (st != ST_OK) {
        snapshot_abandon(all, progress);
        return st;
    }
    progress->snapshot->users++; /* that of the caller */
    *out = progress->snapshot;
    publish(all, progress);
    return ST_OK;
}

/* ------------------------------------------------------------------ reading */

int64_t
snapshot_ms(const struct snapshot *s)
{
    return s->made_ms;
}

uint64_t
snapshot_total(const struct snapshot *s, bool *complete)
{
    *complete = !s->more;
    return s->total;
}

/* A queue while it is sorted. Rows are by project and name, which breaks ties. */
struct sorted {
    uint64_t key;
    uint32_t row;
};

static int
compare_sorted(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

static void
add_population(struct store_population *sum, const struct store_population *one)
{
    sum->claimable += one->claimable;
    sum->claimed += one->claimed;
    sum->delayed += one->delayed;
    sum->dead_letters += one->dead_letters;
    sum->claims += one->claims;
    sum->bytes += one->bytes;
}

/* Selects queues into space for all. Returns their number. */
static size_t
select_rows(const struct snapshot *s, enum queue_sort sort, struct bytes project,
            struct bytes part, struct sorted *out, struct store_population *sum)
{
    size_t count = 0;

    for (size_t i = 0; i < row_count(s); i++) {
        const struct snapshot_row *row = row_at(s, i);

        if ((bytes_present(project) && !bytes_equal(row_project(s, row), project)) ||
            (bytes_present(part) && !bytes_contain(row_name(s, row), part)))
            continue;
        out[count++] = (struct sorted){
            queue_sort_key(sort, row->has_oldest, row->posted_ms, &row->here),
            (uint32_t)i};
        add_population(sum, &row->here);
    }
    if (sort != SORT_NAME)
        qsort(out, count, sizeof(*out), compare_sorted);
    return count;
}

/* NULL without memory. */
static struct selection *
selection_new(const struct snapshot *s, enum queue_sort sort, struct bytes project,
              struct bytes part)
{
    struct sorted *sorted = mem_alloc(s->mem, (row_count(s) + 1) * sizeof(*sorted));
    struct store_population sum = {.claims = 0};
    struct selection *made;
    size_t count;
    char *to;

    if (sorted == NULL)
        return NULL;
    count = select_rows(s, sort, project, part, sorted, &sum);
    made = mem_alloc(s->mem,
                     sizeof(*made) + count * sizeof(uint32_t) + project.len + part.len);
    if (made != NULL) {
        *made = (struct selection){.sort = sort, .view = {made->rows, count, sum}};
        for (size_t i = 0; i < count; i++)
            made->rows[i] = sorted[i].row;
        to = (char *)(made->rows + count);
        if (bytes_present(project))
            made->project = bytes_copy_to(&to, project);
        if (bytes_present(part))
            made->part = bytes_copy_to(&to, part);
    }
    mem_free(s->mem, sorted);
    return made;
}

static bool
same_text(struct bytes a, struct bytes b)
{
    return bytes_present(a) == bytes_present(b) &&
           (!bytes_present(a) || bytes_equal(a, b));
}

enum status
snapshot_select(struct snapshot *s, enum queue_sort sort, struct bytes project,
                struct bytes part, struct snapshot_selection *out)
{
    struct selection *made = NULL;

    lock_acquire(&s->lock);
    for (struct list *at = s->selections.next; at != &s->selections; at = at->next) {
        struct selection *one = container_of(at, struct selection, link);

        if (one->sort == sort && same_text(one->project, project) &&
            same_text(one->part, part))
            made = one;
    }
    lock_release(&s->lock);
    if (made == NULL) {
        made = selection_new(s, sort, project, part);
        if (made == NULL)
            return ST_NO_MEMORY;
        lock_acquire(&s->lock);
        list_add_before(&s->selections, &made->link);
        lock_release(&s->lock);
    }
    *out = made->view;
    return ST_OK;
}

void
snapshot_read(const struct snapshot *s, uint32_t i, struct store_queue_metrics *out)
{
    const struct snapshot_row *row = row_at(s, i);
    const char *text = s->texts.data + row->text;

    ENSURE(i < row_count(s));
    *out = (struct store_queue_metrics){.project_len = row->project_len,
                                        .name_len = row->name_len,
                                        .dead_letter_len = row->dead_letter_len,
                                        .paused = row->paused,
                                        .here = row->here,
                                        .has_oldest = row->has_oldest,
                                        .age_ms = row->age_ms,
                                        .posted_ms = row->posted_ms,
                                        .claimed_age_ms = row->claimed_age_ms,
                                        .waiters = row->waiters};
    memcpy(out->project, text, row->project_len);
    memcpy(out->name, text + row->project_len, row->name_len);
    memcpy(out->dead_letter, text + row->project_len + row->name_len,
           row->dead_letter_len);
}
