/*
 * stats_scan: metrics of all queues on Redis, or of those that /metrics lists one by one: the first ones in
 * the order of projects and names. Redis has no sum of them, so claimd asks for them one after the other when
 * a client wants to know, but at most once a second.
 *
 *   Threads  any; one scans, the others wait for its result (fibers on the thread pool)
 *   Cost     a script for each queue, and two commands for each project
 */
#include "redis/call.h"

enum {
    PAGE = 256,
    FRESH_MS = 1000,
    PROJECTS_MOST = 1024, /* whose queues are counted */
    TOTALS_MOST = 4096    /* queues that are asked one by one, for a sum */
};

struct scan_result {
    uint64_t queues; /* of the first projects */
    uint64_t subscriptions, feed_bytes;
    int64_t outbox_ms;                 /* age of the oldest dead letter in transfer */
    struct store_population all;       /* of those that are shown */
    struct store_queue_figures *shown; /* owned */
    size_t count;
};

struct stats_scan {
    struct lock scanning; /* held while claimd asks Redis; of: */
    struct scan_result next;
    int64_t taken_ms; /* redis_clock_ms() */
    bool taken;
    struct lock lock; /* of: */
    struct scan_result last;
};

/* ---------------------------------------------------------------------- walking */

/* Called for each queue. Another status than ST_OK ends the walk. */
typedef enum status queue_fn(void *arg, struct redis_store *s, struct store_op *op,
                             const struct store_queue *where);

struct walk {
    struct redis_store *store;
    struct store_op *op;
    size_t left; /* queues */
    queue_fn *visit_queue;
    void *arg;
    enum store_kind kind;
    uint64_t queues; /* counted, not visited */
};

/* Called for each name of a list. */
typedef enum status
name_fn(struct walk *w, const struct bytes *project, struct bytes name);

static enum status
walk_list(struct walk *w, const struct bytes *project, name_fn *each, size_t most)
{
    enum status st = ST_OK;
    bool more = true;
    struct buf last;

    buf_init(&last, w->store->config.mem);
    while (st == ST_OK && more && w->left > 0 && most > 0) {
        struct index_page page;

        st = queue_index_page(w->store, project, w->kind,
                              last.len == 0 ? BYTES_NONE : buf_view(&last), PAGE, &page);
        for (size_t i = 0; st == ST_OK && i < page.count && w->left > 0 && most > 0;
             i++, most--)
            st = each(w, project, index_page_name(&page, i, NULL));
        more = st == ST_OK && page.count == PAGE;
        if (more) {
            buf_reset(&last, SIZE_MAX);
            buf_bytes(&last, index_page_name(&page, PAGE - 1, NULL));
            st = last.failed ? ST_NO_MEMORY : ST_OK;
        }
        index_page_release(&page);
    }
    buf_fini(&last);
    return st;
}

static enum status
visit_queue(struct walk *w, const struct bytes *project, struct bytes name)
{
    const struct store_queue where = {.project = *project, .name = name, .kind = w->kind};

    w->left--;
    return w->visit_queue(w->arg, w->store, w->op, &where);
}

static enum status
walk_project(struct walk *w, const struct bytes *unused, struct bytes project)
{
    (void)unused;
    return walk_list(w, &project, visit_queue, SIZE_MAX);
}

static enum status
count_project(struct walk *w, const struct bytes *unused, struct bytes project)
{
    uint64_t count;
    enum status st = queue_index_count(w->store, project, w->kind, &count);

    (void)unused;
    w->queues += count;
    return st;
}

/* All projects of both kinds. */
static enum status
walk_projects(struct walk *w, name_fn *each, size_t most)
{
    enum status st = ST_OK;

    for (int kind = STORE_QUEUE; st == ST_OK && kind <= STORE_TOPIC; kind++) {
        w->kind = (enum store_kind)kind;
        st = walk_list(w, NULL, each, most);
    }
    return st;
}

/* Visits all queues, `most` at most. */
static enum status
walk_queues(struct redis_store *s, struct store_op *op, size_t most, queue_fn *fn,
            void *arg)
{
    struct walk w = {.store = s, .op = op, .left = most, .visit_queue = fn, .arg = arg};

    return walk_projects(&w, walk_project, SIZE_MAX);
}

static enum status
count_queues(struct redis_store *s, struct store_op *op, uint64_t *queues)
{
    struct walk w = {.store = s, .op = op, .left = SIZE_MAX};
    enum status st = walk_projects(&w, count_project, PROJECTS_MOST);

    *queues = w.queues;
    return st;
}

/* Words of the answer of queue_figures. */
enum {
    NOW = 1,
    READY,
    HELD,
    DELAYED,
    LETTERS,
    CLAIMS,
    BYTES,
    OLDEST,
    SUBSCRIBED,
    FEED_BYTES,
    OUTBOX,
    CREATED,
    EXPIRED,
    UNREAD,
    EXPIRED_LETTERS
};

static void
copy_text(char *to, size_t *len, struct bytes from)
{
    if (from.len > 0)
        memcpy(to, from.data, from.len);
    to[from.len] = '\0';
    *len = from.len;
}

/* Adds a queue to those that are shown. */
static enum status
add_queue(void *arg, struct redis_store *s, struct store_op *op,
          const struct store_queue *where)
{
    struct scan_result *result = arg;
    struct store_queue_figures *out = &result->shown[result->count];
    struct store_population *here = &out->here, *all = &result->all;
    struct call c;
    enum status st;

    if (where->project.len > STORE_FIGURES_PROJECT ||
        where->name.len > STORE_FIGURES_NAME)
        return ST_OK;
    c = call_begin(s, op, where);
    st = call_run(&c, SCRIPT_queue_figures, CALL_LOOKS);
    if (st == ST_OK) {
        *out = (struct store_queue_figures){.kind = where->kind};
        copy_text(out->project, &out->project_len, where->project);
        copy_text(out->name, &out->name_len, where->name);
        *here =
            (struct store_population){.claimable = (uint64_t)call_integer(&c, READY),
                                      .claimed = (uint64_t)call_integer(&c, HELD),
                                      .delayed = (uint64_t)call_integer(&c, DELAYED),
                                      .dead_letters = (uint64_t)call_integer(&c, LETTERS),
                                      .claims = (uint64_t)call_integer(&c, CLAIMS),
                                      .bytes = (uint64_t)call_integer(&c, BYTES)};
        out->has_oldest = call_integer(&c, OLDEST) > 0;
        if (out->has_oldest)
            out->age_ms = call_integer(&c, NOW) - call_integer(&c, OLDEST);
        if (call_integer(&c, CREATED) > 0)
            out->claimed_age_ms = call_integer(&c, NOW) - call_integer(&c, CREATED);
        out->expired = (struct store_expired){
            .messages = (uint64_t)call_integer(&c, EXPIRED),
            .unread = (uint64_t)call_integer(&c, UNREAD),
            .dead_letters = (uint64_t)call_integer(&c, EXPIRED_LETTERS)};
        all->claimable += here->claimable;
        all->claimed += here->claimed;
        all->delayed += here->delayed;
        all->dead_letters += here->dead_letters;
        all->claims += here->claims;
        all->bytes += here->bytes;
        result->subscriptions += (uint64_t)call_integer(&c, SUBSCRIBED);
        result->feed_bytes += (uint64_t)call_integer(&c, FEED_BYTES);
        if (call_integer(&c, OUTBOX) > result->outbox_ms)
            result->outbox_ms = call_integer(&c, OUTBOX);
        result->count++;
    }
    call_end(&c);
    return st == ST_NOT_FOUND ? ST_OK : st;
}

/* ---------------------------------------------------------------------- figures */

struct scan_job {
    struct redis_store *store;
    struct store_op *op;
};

/* Asks for all that is shown. Queues that cannot be asked for are omitted. */
static void
scan_if_old(void *arg)
{
    const struct scan_job *job = arg;
    struct redis_store *s = job->store;
    struct stats_scan *scan = s->stats_scan;
    const int64_t now_ms = redis_clock_ms(s, job->op->now_ms);

    lock_acquire(&scan->scanning);
    if (!scan->taken || s->config.test_clock || now_ms - scan->taken_ms >= FRESH_MS) {
        struct scan_result *next = &scan->next, last;
        struct store_queue_figures *shown = next->shown;

        scan->taken = true;
        scan->taken_ms = now_ms;
        if (shown == NULL)
            shown = mem_calloc(s->config.mem, s->config.shown_queues + 1, sizeof(*shown));
        *next = (struct scan_result){.shown = shown};
        if (shown != NULL && count_queues(s, job->op, &next->queues) == ST_OK)
            (void)walk_queues(s, job->op, s->config.shown_queues, add_queue, next);
        lock_acquire(&scan->lock);
        last = scan->last;
        scan->last = scan->next;
        lock_release(&scan->lock);
        scan->next = last;
    }
    lock_release(&scan->scanning);
}

enum status
redis_figures(struct store *store, struct store_op *op, struct store_figures *out)
{
    struct redis_store *s = redis_of(store);
    struct scan_job job = {s, op};
    struct stats_scan *scan = s->stats_scan;

    *out = (struct store_figures){.queues = 0};
    (void)fiber_detour(scan_if_old, &job); /* or the last result is shown */
    lock_acquire(&scan->lock);
    out->all = scan->last.all;
    out->queues = scan->last.queues;
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
redis_queue_figures(struct store *store, struct store_op *op, size_t *at,
                    struct store_queue_figures *out)
{
    struct redis_store *s = redis_of(store);
    struct scan_job job = {s, op};
    struct stats_scan *scan = s->stats_scan;
    enum status st = ST_NOT_FOUND;

    if (*at == 0)
        (void)fiber_detour(scan_if_old, &job);
    lock_acquire(&scan->lock);
    if (*at < scan->last.count) {
        *out = scan->last.shown[(*at)++];
        st = ST_OK;
    }
    lock_release(&scan->lock);
    return st;
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
add_total(void *arg, struct redis_store *s, struct store_op *op,
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
    enum status st;

    *out = (struct store_totals){0};
    st = count_queues(s, op, &out->queues);
    return st == ST_OK ? walk_queues(s, op, TOTALS_MOST, add_total, out) : st;
}

static enum status
audit_queue(void *arg, struct redis_store *s, struct store_op *op,
            const struct store_queue *where)
{
    struct reason *why = arg;
    struct call c = call_begin(s, op, where);
    enum status st;

    st = call_run(&c, SCRIPT_queue_audit, CALL_LOOKS);
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
    struct store_op op = {.now_ms = 0}; /* no time passes for it */
    struct reason why;

    reason_init(&why);
    if (walk_queues(s, &op, SIZE_MAX, audit_queue, &why) == ST_OK)
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
