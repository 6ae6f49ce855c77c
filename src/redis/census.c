#include "redis/census.h"

#include "redis/call.h"
#include "redis/key.h"
#include "redis/names.h"

enum {
    PAGE = 256,
    FRESH_MS = 1000,
    PROJECTS_MOST = 1024, /* whose queues are counted */
    TOTALS_MOST = 4096    /* queues that are asked one by one, for a sum */
};

/* ---------------------------------------------------------------------- walking */

struct walk {
    struct redis_store *store;
    struct store_visit *visit;
    size_t left; /* queues */
    census_fn *tell;
    void *arg;
    enum store_kind kind;
    uint64_t queues; /* counted, also those that are not told of */
};

/* Goes on with a list behind its last name; `each` is told of every name. */
static enum status
walk_list(struct walk *w, struct bytes key,
          enum status (*each)(struct walk *w, struct bytes project, struct bytes member),
          struct bytes project, size_t most)
{
    enum status st = ST_OK;
    bool more = true;
    struct buf from;

    buf_init(&from, w->store->config.mem);
    while (st == ST_OK && more && w->left > 0 && most > 0) {
        struct names names = {.store = w->store};

        if (from.failed) {
            st = ST_NO_MEMORY;
            break;
        }
        st = names_page(w->store, key, from.len == 0 ? BYTES_NONE : buf_view(&from), PAGE,
                        &names);
        for (size_t i = 0; st == ST_OK && i < names.count && w->left > 0 && most > 0;
             i++, most--)
            st = each(w, project, names_at(&names, i));
        more = st == ST_OK && names.count == PAGE;
        if (more) {
            buf_reset(&from, SIZE_MAX);
            buf_byte(&from, '(');
            buf_bytes(&from, names_at(&names, PAGE - 1));
        }
        names_release(&names);
    }
    buf_fini(&from);
    return st;
}

static enum status
each_queue(struct walk *w, struct bytes project, struct bytes member)
{
    const struct store_queue where = {
        .project = project, .name = bytes_cut(&member, '\0'), .kind = w->kind};

    w->left--;
    return w->tell(w->arg, w->store, w->visit, &where);
}

static enum status
each_project(struct walk *w, struct bytes unused, struct bytes project)
{
    enum status st = ST_NO_MEMORY;
    struct buf key;

    (void)unused;
    buf_init(&key, w->store->config.mem);
    key_of_names(&key, project, w->kind);
    if (!key.failed)
        st = walk_list(w, buf_view(&key), each_queue, project, SIZE_MAX);
    buf_fini(&key);
    return st;
}

static enum status
count_queues(struct walk *w, struct bytes unused, struct bytes project)
{
    uint64_t count;
    enum status st = names_count(w->store, project, w->kind, &count);

    (void)unused;
    w->queues += count;
    return st;
}

/* All projects of both kinds. */
static enum status
walk_projects(struct walk *w,
              enum status (*each)(struct walk *w, struct bytes project,
                                  struct bytes member),
              size_t most)
{
    enum status st = ST_OK;

    for (int kind = STORE_QUEUE; st == ST_OK && kind <= STORE_TOPIC; kind++) {
        struct buf key;

        w->kind = (enum store_kind)kind;
        buf_init(&key, w->store->config.mem);
        key_of_projects(&key, w->kind);
        st = key.failed ? ST_NO_MEMORY
                        : walk_list(w, buf_view(&key), each, BYTES_NONE, most);
        buf_fini(&key);
    }
    return st;
}

enum status
census_walk(struct redis_store *s, struct store_visit *visit, size_t most,
            census_fn *tell, void *arg)
{
    struct walk w = {.store = s, .visit = visit, .left = most, .tell = tell, .arg = arg};

    return walk_projects(&w, each_project, SIZE_MAX);
}

static enum status
count_all(struct redis_store *s, struct store_visit *visit, uint64_t *queues)
{
    struct walk w = {.store = s, .visit = visit, .left = SIZE_MAX};
    enum status st = walk_projects(&w, count_queues, PROJECTS_MOST);

    *queues = w.queues;
    return st;
}

/* ---------------------------------------------------------------------- one queue */

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
add_queue(void *arg, struct redis_store *s, struct store_visit *visit,
          const struct store_queue *where)
{
    struct tally *tally = arg;
    struct store_queue_figures *out = &tally->shown[tally->count];
    struct store_population *here = &out->here, *all = &tally->all;
    struct call c;
    enum status st;

    if (where->project.len > STORE_FIGURES_PROJECT ||
        where->name.len > STORE_FIGURES_NAME)
        return ST_OK;
    call_begin(&c, s, visit, where);
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
        tally->subscriptions += (uint64_t)call_integer(&c, SUBSCRIBED);
        tally->feed_bytes += (uint64_t)call_integer(&c, FEED_BYTES);
        if (call_integer(&c, OUTBOX) > tally->outbox_ms)
            tally->outbox_ms = call_integer(&c, OUTBOX);
        tally->count++;
    }
    call_end(&c);
    return st == ST_NOT_FOUND ? ST_OK : st;
}

/* ---------------------------------------------------------------------- figures */

/* What cannot be asked for is not shown. */
static void
count(struct redis_store *s, struct store_visit *visit, struct tally *t)
{
    struct store_queue_figures *shown = t->shown;

    if (shown == NULL)
        shown = mem_calloc(s->config.mem, s->config.shown_queues + 1, sizeof(*shown));
    *t = (struct tally){.shown = shown};
    if (shown != NULL && count_all(s, visit, &t->queues) == ST_OK)
        (void)census_walk(s, visit, s->config.shown_queues, add_queue, t);
}

/* One who wants to know, and holds no lock that others need. */
struct census_visit {
    struct redis_store *store;
    struct store_visit *visit;
};

static void
take(void *arg)
{
    const struct census_visit *v = arg;
    struct redis_store *s = v->store;
    struct census *c = &s->census;
    const int64_t now_ms = redis_clock_ms(s, v->visit->now_ms);

    lock_acquire(&c->counting);
    if (!c->taken || s->config.test_clock || now_ms - c->taken_ms >= FRESH_MS) {
        struct tally last;

        c->taken = true;
        c->taken_ms = now_ms;
        count(s, v->visit, &c->next);
        lock_acquire(&c->lock);
        last = c->last;
        c->last = c->next;
        lock_release(&c->lock);
        c->next = last;
    }
    lock_release(&c->counting);
}

/* If nobody is free to count, what was counted last has to do. */
static void
look(struct redis_store *s, struct store_visit *visit)
{
    struct census_visit v = {s, visit};

    (void)fiber_detour(take, &v);
}

enum status
redis_figures(struct store *store, struct store_visit *visit, struct store_figures *out)
{
    struct redis_store *s = redis_of(store);
    struct census *c = &s->census;

    *out = (struct store_figures){.queues = 0};
    look(s, visit);
    lock_acquire(&c->lock);
    out->all = c->last.all;
    out->queues = c->last.queues;
    out->subscriptions = c->last.subscriptions;
    out->feed_bytes = c->last.feed_bytes;
    lock_release(&c->lock);
    done_read(&s->done, out);
    return ST_OK;
}

enum status
redis_queue_figures(struct store *store, struct store_visit *visit, size_t *at,
                    struct store_queue_figures *out)
{
    struct redis_store *s = redis_of(store);
    struct census *c = &s->census;
    enum status st = ST_NOT_FOUND;

    if (*at == 0)
        look(s, visit);
    lock_acquire(&c->lock);
    if (*at < c->last.count) {
        *out = c->last.shown[(*at)++];
        st = ST_OK;
    }
    lock_release(&c->lock);
    return st;
}

int64_t
census_outbox_ms(struct census *c)
{
    int64_t outbox_ms;

    lock_acquire(&c->lock);
    outbox_ms = c->last.outbox_ms;
    lock_release(&c->lock);
    return outbox_ms;
}

/* ---------------------------------------------------------------------- totals */

static enum status
add_total(void *arg, struct redis_store *s, struct store_visit *visit,
          const struct store_queue *where)
{
    struct store_totals *out = arg;
    struct store_stats stats;
    enum status st = redis_queue_stats(&s->store, visit, where, &stats);

    if (st == ST_OK) {
        out->messages += stats.total;
        out->claimed += stats.claimed;
    }
    return st == ST_NOT_FOUND ? ST_OK : st;
}

enum status
redis_totals(struct store *store, struct store_visit *visit, struct store_totals *out)
{
    struct redis_store *s = redis_of(store);
    enum status st;

    *out = (struct store_totals){0};
    st = count_all(s, visit, &out->queues);
    return st == ST_OK ? census_walk(s, visit, TOTALS_MOST, add_total, out) : st;
}

/* ---------------------------------------------------------------------- audit */

static enum status
audit_queue(void *arg, struct redis_store *s, struct store_visit *visit,
            const struct store_queue *where)
{
    struct reason *why = arg;
    struct call c;
    enum status st;

    call_begin(&c, s, visit, where);
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
    struct store_visit visit = {.now_ms = 0}; /* no time passes for it */
    struct reason why;

    reason_init(&why);
    if (census_walk(s, &visit, SIZE_MAX, audit_queue, &why) == ST_OK)
        return true;
    if (s->config.warn != NULL)
        s->config.warn(s->config.warn_arg, why.text);
    return false;
}

/* ---------------------------------------------------------------------- life */

void
census_init(struct census *c)
{
    *c = (struct census){.taken = false};
    lock_init(&c->counting);
    lock_init(&c->lock);
}

void
census_fini(struct redis_store *s)
{
    mem_free(s->config.mem, s->census.next.shown);
    mem_free(s->config.mem, s->census.last.shown);
    lock_fini(&s->census.lock);
    lock_fini(&s->census.counting);
}
