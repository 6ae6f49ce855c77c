/*
 * stats_scan: the metrics of queues on Redis. Redis has no sums, so claimd reads one
 * queue after the other when a client requests metrics, but at most once a second. It
 * reads the first `shown_queues` queues in the order of projects and names, which
 * /metrics lists one by one.
 *
 *   Threads  any. One thread scans. The others wait for its result, fibers on the thread
 *            pool
 *   Cost     of a scan: a script for each queue, and two for each project
 *   Memory   two results
 */
#include "claimd/base/invariant.h"
#include "redis/call.h"
#include "redis/outbox.h"
#include "redis/waiting.h"

enum {
    PAGE = 256,
    FRESH_MS = 1000,
    STUCK_MS = 5000,      /* the process of an older transfer may have ended */
    PROJECTS_MOST = 1024, /* projects with counted queues */
    TOTALS_MOST = 4096    /* queues that are summed up */
};

struct scan_result {
    uint64_t queues[2]; /* of the first projects, by kind */
    /* Sums of the queues in `shown`: */
    uint64_t subscriptions, feed_bytes;
    int64_t outbox_ms; /* age of the oldest transfer */
    size_t stuck;      /* 1 + index of a queue in `shown` with old transfers; 0: none */
    struct store_population all;
    struct store_queue_metrics *shown; /* owned */
    size_t count;
};

struct stats_scan {
    struct lock scanning; /* held during a scan; guards the next three */
    struct scan_result next;
    int64_t scanned_ms; /* end of the last scan, redis_clock_ms() */
    bool scanned;
    size_t resumed;   /* `stuck` of the last scan, so that each queue has its turn */
    struct lock lock; /* guards `last` */
    struct scan_result last;
};

/* ---------------------------------------------------------------------- walking */

/* Walks the names in the index: of the queues of a project, or of the projects. */
struct index_cursor {
    struct redis_store *store;
    const struct bytes *project; /* borrowed; NULL: the list of projects */
    enum store_kind kind;
    bool open;              /* there is a page */
    struct index_page page; /* owned: cursor_close() */
    size_t next;            /* entry of the page */
};

/* The next name, valid until the next call; absent: there are no more. */
static enum status
cursor_next(struct index_cursor *c, struct bytes *name)
{
    struct bytes marker = BYTES_NONE;
    struct index_page page;
    enum status st = ST_OK;

    *name = BYTES_NONE;
    if (!c->open || (c->next == PAGE && c->page.count == PAGE)) {
        if (c->open)
            marker = index_page_name(&c->page, PAGE - 1, NULL);
        st = queue_index_page(c->store, c->project, c->kind, marker, PAGE, &page);
        if (c->open)
            index_page_release(&c->page);
        c->page = page;
        c->open = true;
        c->next = 0;
    }
    ENSURE(c->next <= c->page.count);
    if (st == ST_OK && c->next < c->page.count)
        *name = index_page_name(&c->page, c->next++, NULL);
    return st;
}

static void
cursor_close(struct index_cursor *c)
{
    if (c->open)
        index_page_release(&c->page);
}

/* Called for each queue. Another status than ST_OK ends the walk. */
typedef enum status queue_fn(void *arg, struct redis_store *s, struct store_op *op,
                             const struct store_queue *where);

struct walk {
    struct redis_store *store;
    struct store_op *op;
    size_t left; /* queues to op at most */
    queue_fn *fn;
    void *arg;
};

static enum status
walk_project(struct walk *w, struct bytes project, enum store_kind kind)
{
    struct index_cursor names = {.store = w->store, .project = &project, .kind = kind};
    struct store_queue where = {.project = project, .kind = kind};
    enum status st = ST_OK;

    while (st == ST_OK && w->left > 0) {
        st = cursor_next(&names, &where.name);
        if (!bytes_present(where.name))
            break;
        w->left--;
        st = w->fn(w->arg, w->store, w->op, &where);
    }
    cursor_close(&names);
    return st;
}

/* Calls `fn` for at most `most` queues of the kinds up to `last`. */
static enum status
walk_queues(struct redis_store *s, struct store_op *op, enum store_kind last, size_t most,
            queue_fn *fn, void *arg)
{
    struct walk w = {.store = s, .op = op, .left = most, .fn = fn, .arg = arg};
    enum status st = ST_OK;

    for (int kind = STORE_QUEUE; st == ST_OK && kind <= (int)last; kind++) {
        struct index_cursor projects = {.store = s, .kind = (enum store_kind)kind};
        struct bytes project;

        while (st == ST_OK && w.left > 0) {
            st = cursor_next(&projects, &project);
            if (!bytes_present(project))
                break;
            st = walk_project(&w, project, (enum store_kind)kind);
        }
        cursor_close(&projects);
    }
    return st;
}

/* Counts the queues of the first PROJECTS_MOST projects of each kind. */
static enum status
count_queues(struct redis_store *s, uint64_t queues[2])
{
    enum status st = ST_OK;

    queues[STORE_QUEUE] = queues[STORE_TOPIC] = 0;
    for (int kind = STORE_QUEUE; st == ST_OK && kind <= STORE_TOPIC; kind++) {
        struct index_cursor projects = {.store = s, .kind = (enum store_kind)kind};
        struct bytes project;
        uint64_t count;

        for (int i = 0; st == ST_OK && i < PROJECTS_MOST; i++) {
            st = cursor_next(&projects, &project);
            if (!bytes_present(project))
                break;
            st = queue_index_count(s, project, (enum store_kind)kind, &count);
            queues[kind] += count;
        }
        cursor_close(&projects);
    }
    return st;
}

/* Words of the response of queue_metrics. */
enum {
    NOW = 1,
    READY,
    CLAIMED,
    DELAYED,
    DEAD_LETTERS,
    CLAIMS,
    BYTES,
    OLDEST_POSTED,
    SUBSCRIPTIONS,
    FEED_BYTES,
    OUTBOX,
    OLDEST_CLAIM,
    EXPIRED,
    EXPIRED_UNREAD,
    EXPIRED_DEAD_LETTERS,
    DEAD_LETTER_QUEUE,
    PAUSED,
    COUNTS /* as many as STORE_QUEUE_COUNTERS */
};

static void
text_copy(char *to, size_t *len, struct bytes from)
{
    if (from.len > 0)
        memcpy(to, from.data, from.len);
    to[from.len] = '\0';
    *len = from.len;
}

/* Fills in a row from the response of queue_metrics. */
static void
row_fill(const struct call *c, const struct store_queue *where,
         struct store_queue_metrics *out)
{
    const struct bytes dead_letter = call_item(c, DEAD_LETTER_QUEUE);

    *out = (struct store_queue_metrics){.kind = where->kind};
    text_copy(out->project, &out->project_len, where->project);
    text_copy(out->name, &out->name_len, where->name);
    if (dead_letter.len <= STORE_METRICS_NAME)
        text_copy(out->dead_letter, &out->dead_letter_len, dead_letter);
    out->here =
        (struct store_population){.ready = (uint64_t)call_integer(c, READY),
                                  .claimed = (uint64_t)call_integer(c, CLAIMED),
                                  .delayed = (uint64_t)call_integer(c, DELAYED),
                                  .dead_letters = (uint64_t)call_integer(c, DEAD_LETTERS),
                                  .claims = (uint64_t)call_integer(c, CLAIMS),
                                  .bytes = (uint64_t)call_integer(c, BYTES)};
    out->posted_ms = call_integer(c, OLDEST_POSTED);
    out->has_oldest = out->posted_ms > 0;
    if (out->has_oldest)
        out->age_ms = call_integer(c, NOW) - out->posted_ms;
    if (call_integer(c, OLDEST_CLAIM) > 0)
        out->claimed_age_ms = call_integer(c, NOW) - call_integer(c, OLDEST_CLAIM);
    out->paused = (unsigned)call_integer(c, PAUSED);
    out->waiters = waiting_count(c->store, where);
    out->subscriptions = (uint64_t)call_integer(c, SUBSCRIPTIONS);
    out->expired = (struct store_expired){
        .messages = (uint64_t)call_integer(c, EXPIRED),
        .unread = (uint64_t)call_integer(c, EXPIRED_UNREAD),
        .dead_letters = (uint64_t)call_integer(c, EXPIRED_DEAD_LETTERS)};
    for (size_t i = 0; i < STORE_QUEUE_COUNTERS; i++)
        out->counts[i] = (uint64_t)call_integer(c, COUNTS + i);
}

/* Calls the script for a queue. Dead letters of expired claims move first, some at a
 * time. The caller ends the call. */
static enum status
run_queue_metrics(struct redis_store *s, const struct store_op *op,
                  const struct store_queue *where, struct call *c)
{
    enum { MOVES = 16 };
    enum status st = ST_AGAIN;

    for (int i = 0; st == ST_AGAIN && i <= MOVES; i++) {
        if (i > 0)
            call_end(c);
        *c = call_begin(s, op, where);
        call_number(c, i == MOVES);
        st = call_run(c, SCRIPT_queue_metrics, CALL_READ);
    }
    return st;
}

/* A queue_fn: adds a queue to a result. */
static enum status
scan_add_queue(void *arg, struct redis_store *s, struct store_op *op,
               const struct store_queue *where)
{
    struct scan_result *result = arg;
    struct store_population *all = &result->all;
    struct call c;
    enum status st;

    ENSURE(result->count < s->config.shown_queues);
    if (where->project.len > STORE_METRICS_PROJECT ||
        where->name.len > STORE_METRICS_NAME)
        return ST_OK;
    st = run_queue_metrics(s, op, where, &c);
    if (st == ST_OK) {
        struct store_queue_metrics *row = &result->shown[result->count];
        const struct store_population *here = &row->here;

        row_fill(&c, where, row);
        all->ready += here->ready;
        all->claimed += here->claimed;
        all->delayed += here->delayed;
        all->dead_letters += here->dead_letters;
        all->claims += here->claims;
        all->bytes += here->bytes;
        result->subscriptions += row->subscriptions;
        result->feed_bytes += (uint64_t)call_integer(&c, FEED_BYTES);
        if (call_integer(&c, OUTBOX) > result->outbox_ms)
            result->outbox_ms = call_integer(&c, OUTBOX);
        result->count++;
        if (result->stuck == 0 && call_integer(&c, OUTBOX) >= STUCK_MS &&
            result->count > s->stats_scan->resumed)
            result->stuck = result->count;
    }
    call_end(&c);
    return st == ST_NOT_FOUND ? ST_OK : st;
}

/* ---------------------------------------------------------------------- metrics */

struct scan_job {
    struct redis_store *store;
    struct store_op *op;
};

/* Sends old transfers of a queue that the scan has found. */
static void
resume_stuck(struct redis_store *s, const struct store_op *op,
             const struct store_queue_metrics *queue)
{
    const struct store_queue where = {.project =
                                          bytes_of(queue->project, queue->project_len),
                                      .name = bytes_of(queue->name, queue->name_len),
                                      .kind = queue->kind};

    outbox_resume(s, op, &where);
}

/* Scans unless the last scan is fresh. If Redis does not respond, the scan ends early. */
static void
scan_if_old(void *arg)
{
    const struct scan_job *job = arg;
    struct redis_store *s = job->store;
    struct stats_scan *scan = s->stats_scan;
    const int64_t now_ms = redis_clock_ms(s, job->op->now_ms);
    struct store_queue_metrics stuck;
    bool found = false;

    lock_acquire(&scan->scanning);
    if (!scan->scanned || s->config.test_clock || now_ms - scan->scanned_ms >= FRESH_MS) {
        struct scan_result *next = &scan->next, last;
        struct store_queue_metrics *shown = next->shown;

        if (shown == NULL)
            shown = mem_calloc(s->config.mem, s->config.shown_queues + 1, sizeof(*shown));
        *next = (struct scan_result){.shown = shown};
        if (shown != NULL && count_queues(s, next->queues) == ST_OK)
            (void)walk_queues(s, job->op, STORE_TOPIC, s->config.shown_queues,
                              scan_add_queue, next);
        scan->resumed = next->stuck;
        found = next->stuck > 0;
        if (found)
            stuck = shown[next->stuck - 1];
        lock_acquire(&scan->lock);
        last = scan->last;
        scan->last = scan->next;
        lock_release(&scan->lock);
        scan->next = last;
        scan->scanned = true;
        /* The end: after a slow scan, the threads that waited for it must not scan
         * again. */
        scan->scanned_ms = redis_clock_ms(s, job->op->now_ms);
    }
    lock_release(&scan->scanning);
    if (found)
        resume_stuck(s, job->op, &stuck);
}

enum status
redis_metrics(struct store *store, struct store_op *op, struct store_metrics *out)
{
    struct redis_store *s = redis_of(store);
    struct scan_job job = {s, op};
    struct stats_scan *scan = s->stats_scan;

    *out = (struct store_metrics){.queues = 0};
    (void)fiber_offload(scan_if_old, &job); /* if this fails, the last result is used */
    lock_acquire(&scan->lock);
    out->all = scan->last.all;
    out->queues = scan->last.queues[STORE_QUEUE] + scan->last.queues[STORE_TOPIC];
    out->subscriptions = scan->last.subscriptions;
    out->feed_bytes = scan->last.feed_bytes;
    lock_release(&scan->lock);
    for (size_t i = 0; i < STORE_COUNTERS; i++)
        out->counts[i] += counter_read(&s->counters.counts[i]);
    for (size_t i = 0; i < STORE_SPANS; i++)
        buckets_merge(&out->spans[i], &s->counters.spans[i]);
    return ST_OK;
}

enum status
redis_queue_metrics(struct store *store, struct store_op *op, size_t *at,
                    struct store_queue_metrics *out)
{
    struct redis_store *s = redis_of(store);
    struct scan_job job = {s, op};
    struct stats_scan *scan = s->stats_scan;
    enum status st = ST_NOT_FOUND;

    if (*at == 0)
        (void)fiber_offload(scan_if_old, &job);
    lock_acquire(&scan->lock);
    if (*at < scan->last.count) {
        *out = scan->last.shown[(*at)++];
        st = ST_OK;
    }
    lock_release(&scan->lock);
    return st;
}

/* ---------------------------------------------------------------------- survey */

/* Adds the row of a queue. */
static enum status
survey_add_queue(struct redis_store *s, struct store_op *op, struct store_survey *survey,
                 const struct store_queue *where)
{
    struct store_queue_metrics *row = &survey->rows[survey->count];
    struct call c;
    enum status st = run_queue_metrics(s, op, where, &c);

    if (st == ST_OK)
        row_fill(&c, where, row);
    call_end(&c);
    if (st == ST_NOT_FOUND) {
        *row = (struct store_queue_metrics){.kind = where->kind, .gone = true};
        text_copy(row->project, &row->project_len, where->project);
        text_copy(row->name, &row->name_len, where->name);
        st = ST_OK;
    }
    survey->count += st == ST_OK;
    return st;
}

/* Adds queues of a project behind a name until the survey is full. */
static enum status
survey_add_project(struct redis_store *s, struct store_op *op,
                   struct store_survey *survey, struct bytes project, struct bytes after)
{
    struct store_queue where = {.project = project, .kind = STORE_QUEUE};
    /* One more, so that a full page says whether there are more. A name may have two
     * entries. */
    const size_t limit = survey->limit - survey->count + 1;
    struct bytes last = after;
    struct index_page page;
    enum status st = queue_index_page(s, &project, STORE_QUEUE, after, limit, &page);

    if (bytes_present(survey->project))
        survey->total = page.total;
    for (size_t i = 0; st == ST_OK && i < page.count; i++) {
        where.name = index_page_name(&page, i, NULL);
        if (bytes_present(last) && bytes_equal(last, where.name))
            continue;
        survey->more = survey->count == survey->limit;
        if (survey->more)
            break;
        last = where.name;
        if (project.len <= STORE_METRICS_PROJECT && last.len <= STORE_METRICS_NAME)
            st = survey_add_queue(s, op, survey, &where);
    }
    survey->more = survey->more || page.count == limit;
    index_page_release(&page);
    return st;
}

static enum status
survey_all_projects(struct redis_store *s, struct store_op *op,
                    struct store_survey *survey)
{
    struct bytes marker = survey->after_project;
    struct index_page page = {.store = s};
    enum status st = ST_OK;

    if (bytes_present(marker))
        st = survey_add_project(s, op, survey, marker, survey->after_name);
    while (st == ST_OK && !survey->more) {
        struct index_page next;

        st = queue_index_page(s, NULL, STORE_QUEUE, marker, PAGE, &next);
        index_page_release(&page); /* which has the marker */
        page = next;
        for (size_t i = 0; st == ST_OK && !survey->more && i < page.count; i++)
            st = survey_add_project(s, op, survey, index_page_name(&page, i, NULL),
                                    BYTES_NONE);
        if (st != ST_OK || page.count < PAGE)
            break;
        marker = index_page_name(&page, PAGE - 1, NULL);
    }
    index_page_release(&page);
    return st;
}

/* True if the row is behind the place where the survey begins. */
static bool
survey_includes(const struct store_survey *survey, const struct store_queue_metrics *row)
{
    const struct store_queue where = store_queue_metrics_address(row);
    int order;

    if (where.kind != STORE_QUEUE)
        return false;
    if (!bytes_present(survey->after_project))
        return true;
    order = bytes_compare(where.project, survey->after_project);
    return order > 0 ||
           (order == 0 && (!bytes_present(survey->after_name) ||
                           bytes_compare(where.name, survey->after_name) > 0));
}

enum status
redis_queue_survey(struct store *store, struct store_op *op, struct store_survey *survey)
{
    struct redis_store *s = redis_of(store);
    struct scan_job job = {s, op};
    struct stats_scan *scan = s->stats_scan;

    survey->count = 0;
    survey->more = false;
    if (bytes_present(survey->project))
        return survey_add_project(
            s, op, survey, survey->project,
            bytes_present(survey->after_project) ? survey->after_name : BYTES_NONE);
    (void)fiber_offload(scan_if_old, &job);
    lock_acquire(&scan->lock);
    survey->total = scan->last.queues[STORE_QUEUE];
    for (size_t i = 0; survey->whole && !survey->more && i < scan->last.count; i++) {
        if (!survey_includes(survey, &scan->last.shown[i]))
            continue;
        survey->more = survey->count == survey->limit;
        if (!survey->more)
            survey->rows[survey->count++] = scan->last.shown[i];
    }
    lock_release(&scan->lock);
    return survey->whole ? ST_OK : survey_all_projects(s, op, survey);
}

int64_t
stats_scan_outbox_ms(const struct redis_store *s)
{
    struct stats_scan *scan = s->stats_scan;
    int64_t outbox_ms;

    lock_acquire(&scan->lock);
    outbox_ms = scan->last.outbox_ms;
    lock_release(&scan->lock);
    return outbox_ms;
}

static enum status
totals_add_queue(void *arg, struct redis_store *s, struct store_op *op,
                 const struct store_queue *where)
{
    struct store_totals *out = arg;
    struct store_stats stats;
    enum status st = redis_queue_stats(&s->store, op, where, &stats);

    if (st == ST_OK) {
        out->messages += stats.total;
        out->claimed += stats.claimed;
    }
    return st == ST_NOT_FOUND ? ST_OK : st;
}

enum status
redis_totals(struct store *store, struct store_op *op, struct store_totals *out)
{
    struct redis_store *s = redis_of(store);
    uint64_t queues[2];
    enum status st;

    *out = (struct store_totals){0};
    st = count_queues(s, queues);
    out->queues = queues[STORE_QUEUE] + queues[STORE_TOPIC];
    return st == ST_OK
               ? walk_queues(s, op, STORE_TOPIC, TOTALS_MOST, totals_add_queue, out)
               : st;
}

static enum status
audit_one_queue(void *arg, struct redis_store *s, struct store_op *op,
                const struct store_queue *where)
{
    struct reason *why = arg;
    struct call c = call_begin(s, op, where);
    enum status st;

    st = call_run(&c, SCRIPT_queue_audit, CALL_READ);
    if (st == ST_OK && bytes_present(call_item(&c, 1)))
        st = reason_give(why, ST_CONFLICT, "%.*s: %.*s", (int)where->name.len,
                         where->name.data, (int)call_item(&c, 1).len,
                         call_item(&c, 1).data);
    call_end(&c);
    return st == ST_NOT_FOUND ? ST_OK : st;
}

bool
redis_audit(struct store *store)
{
    struct redis_store *s = redis_of(store);
    struct store_op op = {.now_ms = 0}; /* expires nothing */
    struct reason why;

    reason_init(&why);
    if (walk_queues(s, &op, STORE_SCHEDULES, SIZE_MAX, audit_one_queue, &why) == ST_OK)
        return true;
    if (s->config.warn != NULL)
        s->config.warn(s->config.warn_arg, why.text);
    return false;
}

enum status
stats_scan_open(struct redis_store *s)
{
    struct stats_scan *scan = mem_calloc(s->config.mem, 1, sizeof(*scan));

    if (scan == NULL)
        return ST_NO_MEMORY;
    lock_init(&scan->scanning);
    lock_init(&scan->lock);
    s->stats_scan = scan;
    return ST_OK;
}

void
stats_scan_close(struct redis_store *s)
{
    struct stats_scan *scan = s->stats_scan;

    if (scan == NULL)
        return;
    mem_free(s->config.mem, scan->next.shown);
    mem_free(s->config.mem, scan->last.shown);
    lock_fini(&scan->lock);
    lock_fini(&scan->scanning);
    mem_free(s->config.mem, scan);
}
