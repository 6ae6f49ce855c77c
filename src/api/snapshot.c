/*
 * snapshot: builds the tables of queues that the viewers of a page share. Declared in
 * snapshot.h.
 *
 *     1. snapshot_use() returns the present snapshot if it is young enough
 *        (find_present()).
 *     2. Otherwise the first request becomes the builder. While it builds, others use an
 *        older snapshot, up to SNAPSHOT_OLDEST_MS. Without one, they wait (ST_WAIT), or
 *        ask again in each turn if they must not wait (ST_AGAIN).
 *     3. build_slice() reads some hundred queues (store_queue_survey()) into the build
 *        of the table. Then it returns ST_AGAIN, so that other requests have their turn.
 *     4. table_publish() makes the build the present snapshot after the last slice, and
 *        wakes all waiters. tables_trim() drops tables that no viewer needs.
 *     5. snapshot_leave() ends the part of a request. If the builder leaves early, one
 *        waiter is woken and continues the build. Without a waiter the build is freed.
 *     6. snapshot_release() frees a snapshot with its last user.
 */
#include "api/snapshot.h"
#include "claimd/base/buf.h"
#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/ds/list.h"
#include "claimd/store/store.h"
#include "claimd/store/waitqueue.h"

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
    struct notice_summary notices[NOTICES];
    uint32_t rows[];
};

struct snapshot {
    struct mem *mem;
    struct snapshots *all;
    size_t users;    /* of `all`'s lock; that of a table has one of its own */
    int64_t made_ms; /* by the clock of the store */
    int64_t made_real_ms;
    uint64_t total;
    bool more;       /* queues behind the last row */
    struct buf rows; /* of struct snapshot_row, by project and name */
    struct buf texts;
    struct lock lock; /* for the selections */
    struct list selections;
    size_t selection_count;
};

/* The snapshots of a project, or of all projects. */
struct snapshot_table {
    struct list link;               /* in the order of their latest snapshots */
    struct bytes project;           /* behind this structure; absent: all projects */
    struct snapshot *present;       /* NULL: none yet */
    struct snapshot *build;         /* the next one; NULL: none */
    const struct progress *builder; /* of the request that builds; NULL: none */
    size_t users;                   /* requests that build or wait */
    struct list waiters;            /* struct progress; those that were not woken */
    uint64_t made;                  /* number of snapshots so far */
    char text[];
};

struct snapshots {
    struct mem *mem;
    struct sampler *sampler; /* NULL: there is none */
    struct lock lock;        /* guards the tables */
    struct list tables;
    size_t table_count;
};

enum { ROWS_A_CALL = 64, ROWS_A_SLICE = 512, SELECTIONS_KEPT = 32 };

/*
 * While a request builds the next snapshot, others use one of this age, but none that is
 * left from earlier viewers. BUILD_WAIT_MS: then a request takes turns until the build
 * ends.
 */
enum { SNAPSHOT_OLDEST_MS = 5 * SNAPSHOT_LIFE_MS, BUILD_WAIT_MS = 30000 };

static bool
same_text(struct bytes a, struct bytes b)
{
    return bytes_present(a) == bytes_present(b) &&
           (!bytes_present(a) || bytes_equal(a, b));
}

uint64_t
queue_sort_key(enum queue_sort sort, bool has_oldest, int64_t posted_ms,
               const struct store_population *here)
{
    switch (sort) {
    case SORT_OLDEST_READY:
        return has_oldest ? (uint64_t)posted_ms : UINT64_MAX;
    case SORT_READY:
        return UINT64_MAX - here->ready;
    case SORT_CLAIMED:
        return UINT64_MAX - here->claimed;
    default:
        return 0;
    }
}

/* ------------------------------------------------------------------ life */

enum status
snapshots_new(struct mem *mem, struct sampler *sampler, struct snapshots **out)
{
    struct snapshots *all = mem_calloc(mem, 1, sizeof(*all));

    if (all == NULL)
        return ST_NO_MEMORY;
    all->mem = mem;
    all->sampler = sampler;
    lock_init(&all->lock);
    list_init(&all->tables);
    *out = all;
    return ST_OK;
}

static struct snapshot_table *
table_of(struct list *link)
{
    return container_of(link, struct snapshot_table, link);
}

static void
table_free(struct snapshots *all, struct snapshot_table *table)
{
    ENSURE(table->users == 0 && table->build == NULL);
    if (table->present != NULL)
        snapshot_release(table->present);
    mem_free(all->mem, table);
}

void
snapshots_free(struct snapshots *all)
{
    struct list *link;

    if (all == NULL)
        return;
    while ((link = list_pop(&all->tables)) != NULL)
        table_free(all, table_of(link));
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
read_slice(struct snapshot *s, struct bytes project, struct store *store,
           struct store_op *op)
{
    struct store_queue_metrics *rows = mem_alloc(s->mem, ROWS_A_CALL * sizeof(*rows));
    struct store_survey survey = {
        .project = project, .whole = true, .rows = rows, .limit = ROWS_A_CALL};
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

/* True if the snapshot is younger than this by both clocks. A test may stop or set that
 * of the store. */
static bool
is_young(const struct snapshot *s, int64_t now_ms, int64_t real_ms, int64_t most_ms)
{
    return now_ms >= s->made_ms && now_ms - s->made_ms < most_ms &&
           real_ms >= s->made_real_ms && real_ms - s->made_real_ms < most_ms;
}

/* ------------------------------------------------------------------ tables */

/* Moves tables that no request uses to a list: those with an old snapshot, and the oldest
 * ones that are too many. */
static void
tables_trim(struct snapshots *all, int64_t now_ms, int64_t real_ms, struct list *out)
{
    struct list *link = all->tables.next;

    list_init(out);
    lock_assert_held(&all->lock);
    while (link != &all->tables) {
        struct snapshot_table *table = table_of(link);

        link = link->next;
        if (table->users > 0 ||
            (all->table_count <= SNAPSHOT_TABLES && table->present != NULL &&
             is_young(table->present, now_ms, real_ms, SNAPSHOT_OLDEST_MS)))
            continue;
        list_remove(&table->link);
        list_add_before(out, &table->link);
        all->table_count--;
    }
}

/* NULL without memory. */
static struct snapshot_table *
table_find(struct snapshots *all, struct bytes project)
{
    struct snapshot_table *table;

    lock_assert_held(&all->lock);
    for (struct list *link = all->tables.prev; link != &all->tables; link = link->prev)
        if (same_text(table_of(link)->project, project))
            return table_of(link);
    table = mem_calloc(all->mem, 1, sizeof(*table) + project.len);
    if (table == NULL)
        return NULL;
    if (project.len > 0)
        memcpy(table->text, project.data, project.len);
    if (bytes_present(project))
        table->project = bytes_of(table->text, project.len);
    list_init(&table->waiters);
    list_add_before(&all->tables, &table->link);
    all->table_count++;
    return table;
}

/* Wakes the request that has waited longest. It calls snapshot_use() or
 * snapshot_leave(). */
static void
table_wake_one(struct snapshot_table *table, struct wakeups *wakeups)
{
    struct list *link = list_pop(&table->waiters);

    if (link != NULL) {
        struct progress *p = container_of(link, struct progress, snapshot.link);

        wakeups_defer(wakeups,
                      p->snapshot.listener->notify(p->snapshot.listener, STORE_READY));
    }
}

void
snapshot_leave(struct snapshots *all, struct progress *progress)
{
    struct snapshot_table *table = progress->snapshot.table;
    struct snapshot *dropped = NULL;
    struct wakeups wakeups = {.count = 0};

    if (table == NULL)
        return;
    lock_acquire(&all->lock);
    progress->snapshot.table = NULL;
    progress->snapshot.builds = false;
    if (list_linked(&progress->snapshot.link))
        list_remove(&progress->snapshot.link);
    if (table->builder == progress)
        table->builder = NULL;
    table->users--;
    if (table->builder == NULL && table->users == 0) {
        dropped = table->build;
        table->build = NULL;
    } else if (table->builder == NULL) {
        table_wake_one(table, &wakeups);
    }
    lock_release(&all->lock);
    wakeups_fire(&wakeups);
    if (dropped != NULL)
        snapshot_free(dropped);
}

/* ------------------------------------------------------------------ builds */

/* The build is complete. */
static void
table_publish(struct snapshots *all, struct snapshot_table *table, struct store_op *op,
              int64_t real_ms)
{
    struct snapshot *old;
    struct wakeups wakeups = {.count = 0};
    struct list trimmed, *link;

    lock_acquire(&all->lock);
    old = table->present;
    table->present = table->build;
    table->build = NULL;
    table->made++;
    list_remove(&table->link);
    list_add_before(&all->tables, &table->link);
    while (!list_empty(&table->waiters))
        table_wake_one(table, &wakeups);
    tables_trim(all, op->now_ms, real_ms, &trimmed);
    lock_release(&all->lock);
    wakeups_fire(&wakeups);
    if (old != NULL)
        snapshot_release(old);
    while ((link = list_pop(&trimmed)) != NULL)
        table_free(all, table_of(link));
}

/* A request that builds, or waits for a build. */
static void
table_enter(struct snapshot_table *table, struct progress *progress)
{
    progress->snapshot.table = table;
    progress->snapshot.seen = table->made;
    table->users++;
}

/*
 * The present snapshot if it is young enough, or newer than the wait of this request.
 * Otherwise the request builds the next one: ST_OK without a snapshot. ST_WAIT, ST_AGAIN:
 * another one builds. ST_NO_MEMORY.
 */
static enum status
find_present(struct snapshots *all, struct bytes project, int64_t now_ms, int64_t real_ms,
             struct progress *progress, struct waiting *waiting, struct snapshot **out)
{
    const bool may_wait = waiting != NULL && waiting->end == WAITING_ON;
    struct snapshot_table *table = progress->snapshot.table;
    const bool waited = table != NULL;
    enum status st = ST_OK;

    lock_acquire(&all->lock);
    if (table == NULL)
        table = table_find(all, project);
    if (table == NULL) {
        st = ST_NO_MEMORY;
    } else if (table->present != NULL &&
               ((waited && table->made > progress->snapshot.seen) ||
                is_young(table->present, now_ms, real_ms,
                         table->builder != NULL ? SNAPSHOT_OLDEST_MS
                                                : SNAPSHOT_LIFE_MS))) {
        *out = table->present;
        table->present->users++;
    } else {
        if (!waited)
            table_enter(table, progress);
        if (table->builder == NULL) {
            table->builder = progress;
            progress->snapshot.builds = true;
        } else if (may_wait) {
            progress->snapshot.listener = &waiting->listener;
            waiting->wait_ms = BUILD_WAIT_MS;
            if (!list_linked(&progress->snapshot.link))
                list_add_before(&table->waiters, &progress->snapshot.link);
            st = ST_WAIT;
        } else {
            st = ST_AGAIN;
        }
        if (progress->snapshot.builds && list_linked(&progress->snapshot.link))
            list_remove(&progress->snapshot.link);
    }
    lock_release(&all->lock);
    return st;
}

bool
snapshot_may_wait(const struct request *req)
{
    static const char path[] = "/claimd/queues";

    return req->path.len == sizeof(path) - 1 && req->query.len > 0 &&
           memcmp(req->path.data, path, sizeof(path) - 1) == 0 &&
           memmem(req->query.data, req->query.len, "offset", 6) != NULL;
}

/* Reads a slice of the build of this request. ST_AGAIN: there are more. */
static enum status
build_slice(struct snapshots *all, struct store *store, struct store_op *op,
            int64_t real_ms, struct progress *progress, struct snapshot **out)
{
    struct snapshot_table *table = progress->snapshot.table;
    enum status st;

    if (table->build == NULL)
        table->build = snapshot_new(all, op->now_ms, real_ms);
    if (table->build == NULL)
        return ST_NO_MEMORY;
    st = read_slice(table->build, table->project, store, op);
    if (st == ST_AGAIN)
        return st;
    if (st != ST_OK) { /* the next one begins anew */
        snapshot_free(table->build);
        table->build = NULL;
        return st;
    }
    table->build->users++; /* that of the caller */
    *out = table->build;
    table_publish(all, table, op, real_ms);
    return ST_OK;
}

enum status
snapshot_use(struct snapshots *all, struct store *store, struct store_op *op,
             int64_t real_ms, struct bytes project, struct progress *progress,
             struct waiting *waiting, struct snapshot **out)
{
    enum status st = ST_OK;

    *out = NULL;
    if (!progress->snapshot.builds)
        st = find_present(all, project, op->now_ms, real_ms, progress, waiting, out);
    if (st == ST_OK && *out == NULL)
        st = build_slice(all, store, op, real_ms, progress, out);
    if (st != ST_AGAIN && st != ST_WAIT)
        snapshot_leave(all, progress);
    return st;
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
    sum->ready += one->ready;
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

static void
add_notices(const struct snapshot *s, uint32_t at, struct notice_summary *summaries)
{
    const struct snapshot_row *row = row_at(s, at);
    const struct store_queue where = {row_project(s, row), row_name(s, row), STORE_QUEUE};
    const bool empty = notices_is_empty(&row->here);
    struct store_rates rates;
    const bool rated = !empty && s->all->sampler != NULL &&
                       sampler_rates(s->all->sampler, &where, &rates);
    const struct notice_facts facts = {.here = &row->here,
                                       .ready_age_ms = row->age_ms,
                                       .claim_age_ms = row->claimed_age_ms,
                                       .waiters = row->waiters,
                                       .paused = row->paused,
                                       .rates = rated ? &rates : NULL};

    if (!empty || row->paused != 0)
        notices_add(summaries, &facts, at);
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
        *made = (struct selection){
            .sort = sort, .view = {.rows = made->rows, .count = count, .sum = sum}};
        for (size_t i = 0; i < count; i++)
            made->rows[i] = sorted[i].row;
        for (size_t i = 0; i < count && !bytes_present(part); i++)
            add_notices(s, sorted[i].row, made->notices);
        if (!bytes_present(part))
            made->view.notices = made->notices;
        to = (char *)(made->rows + count);
        if (bytes_present(project))
            made->project = bytes_copy_to(&to, project);
        if (bytes_present(part))
            made->part = bytes_copy_to(&to, part);
    }
    mem_free(s->mem, sorted);
    return made;
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
        if (s->selection_count < SELECTIONS_KEPT) {
            s->selection_count++;
            list_add_before(&s->selections, &made->link);
        } else {
            made->view.own = made;
        }
        lock_release(&s->lock);
    }
    *out = made->view;
    return ST_OK;
}

void
snapshot_selection_end(struct snapshot *s, struct snapshot_selection *selection)
{
    mem_free(s->mem, selection->own);
    selection->own = NULL;
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
