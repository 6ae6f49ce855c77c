/* The store's operations on queues. */
#include "engine/subscription.h"
#include "engine/visit.h"

static size_t
document_bytes(const struct store_metadata *metadata)
{
    return metadata == NULL ? 0 : metadata->json.len;
}

enum status
engine_queue_create(struct store *s, struct store_visit *outer,
                    const struct store_queue *where,
                    const struct store_metadata *metadata, bool *created)
{
    enum status st = ST_OK;
    struct visit v;

    housekeep_pay(engine_of(s), outer->now_ms, 1, document_bytes(metadata));
    (void)visit_enter(&v, s, outer, where, EXPIRE_NOTHING); /* which cannot fail */
    *created = v.queue == NULL;
    if (*created) {
        st = mem_admits(v.engine->core.mem,
                        sizeof(struct queue) + document_bytes(metadata))
                 ? visit_make_queue(&v, metadata)
                 : ST_OVER_BUDGET;
        if (st == ST_OK)
            st = visit_reserve_queue(&v);
        if (st == ST_OK && visit_link_queue(&v))
            changelog_queue(v.queue, STORE_CHANGE_QUEUE, v.now_ms);
    }
    visit_leave(&v);
    return st;
}

/* The metadata of a queue, pinned; NULL if there is no such queue. */
static struct metadata *
pinned_metadata(struct store *s, struct store_visit *outer,
                const struct store_queue *where, uint64_t *version)
{
    struct metadata *md = NULL;
    struct visit v;

    (void)visit_enter(&v, s, outer, where, EXPIRE_NOTHING); /* it does not expire */
    if (v.queue != NULL) {
        md = metadata_pin(v.queue->metadata);
        *version = v.queue->version;
    }
    visit_leave(&v);
    return md;
}

static void
show_metadata(struct store_queue_view *view, struct metadata *md, uint64_t version)
{
    view->metadata = md->document;
    view->version = version;
    view->pin = md;
}

enum status
engine_queue_get(struct store *s, struct store_visit *outer,
                 const struct store_queue *where, struct store_queues *out)
{
    struct mem *mem = engine_of(s)->core.mem;
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_queue_view *view;
    struct metadata *md;
    uint64_t version = 0;
    char *name;

    view = mem_alloc(mem, sizeof(*view) + where->name.len);
    if (view == NULL)
        return ST_NO_MEMORY;
    md = pinned_metadata(s, outer, where, &version);
    if (md == NULL) {
        mem_free(mem, view);
        return ST_NOT_FOUND;
    }
    name = (char *)(view + 1);
    view->name = bytes_lay(&name, where->name);
    show_metadata(view, md, version);
    queues.store = s;
    queues.queues = view;
    queues.count = 1;
    *out = queues;
    return ST_OK;
}

enum status
engine_queue_update(struct store *s, struct store_visit *outer,
                    const struct store_queue *where, uint64_t version,
                    const struct store_metadata *metadata)
{
    struct engine *e = engine_of(s);
    struct metadata *fresh, *old;
    enum status st = ST_OK;
    struct visit v;

    housekeep_pay(e, outer->now_ms, 1, metadata->json.len);
    if (!mem_admits(e->core.mem, metadata->json.len))
        return ST_OVER_BUDGET;
    fresh = metadata_new(e->core.mem, metadata);
    if (fresh == NULL)
        return ST_NO_MEMORY;
    old = fresh;
    (void)visit_enter(&v, s, outer, where, EXPIRE_NOTHING); /* it does not expire */
    if (v.queue == NULL)
        st = ST_NOT_FOUND;
    else if (v.queue->version != version)
        st = ST_CHANGED;
    else
        st = visit_reserve(&v, STORE_CHANGE_META, 0, queue_bytes(v.where, metadata));
    if (st == ST_OK) {
        old = v.queue->metadata;
        v.queue->metadata = fresh;
        v.queue->version = ++v.shard->last_number;
        changelog_queue(v.queue, STORE_CHANGE_META, v.now_ms);
    }
    visit_leave(&v);
    metadata_unpin(e->core.mem, old);
    return st;
}

enum status
engine_queue_delete(struct store *s, struct store_visit *outer,
                    const struct store_queue *where)
{
    enum status st = ST_OK;
    struct visit v;

    (void)visit_enter(&v, s, outer, where, EXPIRE_NOTHING); /* all of it goes */
    if (v.queue != NULL)
        st = visit_reserve(&v, STORE_CHANGE_QUEUE_GONE, 0, 0);
    if (v.queue != NULL && st == ST_OK) {
        changelog_queue(v.queue, STORE_CHANGE_QUEUE_GONE, v.now_ms);
        v.shard->gone_position = v.queue->position;
        figures_count(&v.shard->figures, STORE_COUNT_QUEUES_GONE, 1);
        figures_count(&v.shard->figures, STORE_COUNT_DROPPED,
                      v.queue->backlog->messages.live);
        reclaim_queue(v.shard, v.queue);
        v.queue = NULL;
    }
    visit_leave(&v);
    return st;
}

/* Whatever can fail, fails here; *fresh takes the place of the backlog. */
static enum status
reserve_purge(struct visit *v, bool messages, bool subscriptions, struct backlog **fresh)
{
    enum status st = ST_OK;

    if (messages) {
        *fresh = backlog_new(v->engine->core.mem, &v->shard->alive);
        if (*fresh == NULL)
            return ST_NO_MEMORY;
        st = visit_reserve_messages(v, STORE_CHANGE_PURGE, 0, 0);
    }
    if (st == ST_OK && subscriptions)
        st = visit_reserve(v, STORE_CHANGE_UNSUBSCRIBED, 0, 0);
    return st;
}

static void
commit_purge(struct visit *v, struct backlog *fresh, bool subscriptions)
{
    if (fresh != NULL) {
        figures_count(&v->shard->figures, STORE_COUNT_DROPPED,
                      v->queue->backlog->messages.live);
        reclaim_backlog(v->shard, v->queue, fresh);
        changelog_queue(v->queue, STORE_CHANGE_PURGE, v->now_ms);
    }
    if (!subscriptions)
        return;
    feed_detach_all(v->shard, v->queue);
    changelog_queue(v->queue, STORE_CHANGE_UNSUBSCRIBED, v->now_ms);
}

enum status
engine_queue_purge(struct store *s, struct store_visit *outer,
                   const struct store_queue *where, enum store_purge what)
{
    struct backlog *fresh = NULL;
    bool messages, subscriptions;
    enum status st;
    struct visit v;

    (void)visit_enter(&v, s, outer, where, EXPIRE_NOTHING); /* all of it goes */
    messages = v.queue != NULL && what != STORE_PURGE_SUBSCRIPTIONS &&
               v.queue->backlog->messages.live > 0;
    subscriptions =
        v.queue != NULL && what != STORE_PURGE_MESSAGES && v.queue->feed != NULL;
    st = reserve_purge(&v, messages, subscriptions, &fresh);
    if (st == ST_OK)
        commit_purge(&v, fresh, subscriptions);
    else if (fresh != NULL)
        backlog_free(v.engine->core.mem, fresh);
    visit_leave(&v);
    return st;
}

static void
show_end(struct store_end *out, const struct message *m, uint32_t tag, int64_t now_ms)
{
    ident_write(&out->id, message_ident(m, tag));
    out->age_s = (now_ms - m->posted_ms) / 1000;
    out->created_ms = m->posted_ms;
}

enum status
engine_queue_stats(struct store *s, struct store_visit *outer,
                   const struct store_queue *where, struct store_stats *out)
{
    struct visit v;
    enum status st;

    *out = (struct store_stats){0};
    st = visit_enter(&v, s, outer, where, EXPIRE_ALL);
    if (st != ST_OK)
        return st;
    if (v.queue == NULL)
        st = ST_NOT_FOUND;
    else if (v.queue->backlog->messages.live > 0) {
        const struct backlog *b = v.queue->backlog;
        uint64_t seq = 0;

        out->total = b->messages.live;
        out->claimed = b->claimed;
        show_end(&out->oldest, seqmap_next_live(&b->messages, &seq), v.queue->tag,
                 v.now_ms);
        show_end(&out->newest, seqmap_last(&b->messages, &seq), v.queue->tag, v.now_ms);
    }
    visit_leave(&v);
    return st;
}

void
engine_queues_release(const struct store *s, struct store_queues *queues)
{
    struct mem *mem = ((const struct engine *)s)->core.mem;

    for (size_t i = 0; i < queues->count; i++)
        if (queues->queues[i].pin != NULL)
            metadata_unpin(mem, queues->queues[i].pin);
    mem_free(mem, queues->queues);
}

/* Fills in the metadata of the views; drops queues that have gone since they were named.
 */
static void
add_metadata(struct store *s, struct store_visit *outer, const struct store_page *page,
             struct store_queues *queues)
{
    struct store_queue where = {.project = page->project, .kind = page->kind};
    size_t kept = 0;

    for (size_t i = 0; i < queues->count; i++) {
        struct store_queue_view *view = &queues->queues[kept];
        uint64_t version = 0;
        struct metadata *md;

        where.name = queues->queues[i].name;
        md = pinned_metadata(s, outer, &where, &version);
        if (md == NULL)
            continue;
        view->name = where.name;
        show_metadata(view, md, version);
        kept++;
    }
    queues->count = kept;
}

/* A page of names, without metadata. */
static enum status
list_names(struct store *s, struct store_visit *outer, const struct store_page *wanted,
           bool projects, struct store_queues *out)
{
    struct engine *e = engine_of(s);
    struct store_queues queues;
    enum status st = directory_page(&e->core.directory, wanted, projects, &queues);

    if (st != ST_OK)
        return st;
    /*
     * The queues may have changed in any shard. A queue is in the directory before its change has an
     * LSN, but not without its shard's lock. So the shards come after the directory.
     */
    for (size_t i = 0; has_log(&e->core) && i <= e->shard_mask; i++) {
        struct shard *sh = &e->shards[i];

        (void)shard_enter(sh, outer->now_ms);
        if (outer->position < sh->position)
            outer->position = sh->position;
        shard_leave(sh);
    }
    queues.more = queues.count == wanted->limit;
    if (queues.count > 0)
        queues.store = s;
    *out = queues;
    return ST_OK;
}

enum status
engine_queue_list(struct store *s, struct store_visit *outer,
                  const struct store_page *wanted, struct store_queues *out)
{
    struct store_queues queues;
    enum status st = list_names(s, outer, wanted, false, &queues);

    if (st != ST_OK)
        return st;
    if (wanted->with_metadata)
        add_metadata(s, outer, wanted, &queues);
    *out = queues;
    return ST_OK;
}

enum status
engine_project_list(struct store *s, struct store_visit *outer,
                    const struct store_page *wanted, struct store_queues *out)
{
    return list_names(s, outer, wanted, true, out);
}
