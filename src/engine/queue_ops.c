/* The store's operations on queues. */
#include "engine/graveyard.h"
#include "engine/shard.h"

enum status
engine_queue_create(struct store *s, int64_t now_ms, const struct store_queue *where,
                    const struct store_metadata *metadata, bool *created)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    enum status st = ST_OK;
    struct queue *q;

    engine_pay(e, now_ms, 1, metadata == NULL ? 0 : metadata->json.len);
    (void)shard_enter(sh, now_ms); /* the time does not matter here */
    q = shard_find(sh, where, hash);
    if (q != NULL) {
        *created = false;
        goto out;
    }
    if (!mem_admits(e->mem, sizeof(*q) + (metadata == NULL ? 0 : metadata->json.len))) {
        st = ST_OVER_BUDGET;
        goto out;
    }
    q = queue_new(sh, where, metadata);
    if (q == NULL) {
        st = ST_NO_MEMORY;
        goto out;
    }
    st = queue_link(q, hash);
    if (st == ST_OK)
        *created = true;
    else
        queue_free(q);
out:
    shard_leave(sh);
    return st;
}

/* The metadata of a queue, pinned; NULL if there is no such queue. */
static struct metadata *
pinned_metadata(struct engine *e, int64_t now_ms, const struct store_queue *where,
                uint64_t *version)
{
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct metadata *md = NULL;
    struct queue *q;

    (void)shard_enter(sh, now_ms); /* metadata does not expire */
    q = shard_find(sh, where, hash);
    if (q != NULL) {
        md = metadata_pin(q->metadata);
        *version = q->version;
    }
    shard_leave(sh);
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
engine_queue_get(struct store *s, int64_t now_ms, const struct store_queue *where,
                 struct store_queues *out)
{
    struct engine *e = engine_of(s);
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_queue_view *view;
    struct metadata *md;
    uint64_t version = 0;
    char *name;

    view = mem_alloc(e->mem, sizeof(*view) + where->name.len);
    if (view == NULL)
        return ST_NO_MEMORY;
    md = pinned_metadata(e, now_ms, where, &version);
    if (md == NULL) {
        mem_free(e->mem, view);
        return ST_NOT_FOUND;
    }
    name = (char *)(view + 1);
    if (where->name.len > 0)
        memcpy(name, where->name.data, where->name.len);
    view->name = bytes_of(name, where->name.len);
    show_metadata(view, md, version);
    queues.store = s;
    queues.queues = view;
    queues.count = 1;
    *out = queues;
    return ST_OK;
}

enum status
engine_queue_update(struct store *s, int64_t now_ms, const struct store_queue *where,
                    uint64_t version, const struct store_metadata *metadata)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    enum status st = ST_OK;
    struct metadata *fresh, *old;
    struct queue *q;

    engine_pay(e, now_ms, 1, metadata->json.len);
    if (!mem_admits(e->mem, metadata->json.len))
        return ST_OVER_BUDGET;
    fresh = metadata_new(e->mem, metadata);
    if (fresh == NULL)
        return ST_NO_MEMORY;
    old = fresh;
    (void)shard_enter(sh, now_ms); /* metadata does not expire */
    q = shard_find(sh, where, hash);
    if (q == NULL) {
        st = ST_NOT_FOUND;
    } else if (q->version != version) {
        st = ST_CHANGED;
    } else {
        old = q->metadata;
        q->metadata = fresh;
        q->version = shard_number(sh);
    }
    shard_leave(sh);
    metadata_unpin(e->mem, old);
    return st;
}

enum status
engine_queue_delete(struct store *s, int64_t now_ms, const struct store_queue *where)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct queue *q;

    (void)shard_enter(sh, now_ms); /* all of it goes, due or not */
    q = shard_find(sh, where, hash);
    if (q != NULL)
        queue_bury(q);
    shard_leave(sh);
    return ST_OK;
}

enum status
engine_queue_purge(struct store *s, int64_t now_ms, const struct store_queue *where)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    enum status st = ST_OK;
    struct queue *q;

    (void)shard_enter(sh, now_ms); /* all of it goes, due or not */
    q = shard_find(sh, where, hash);
    if (q != NULL)
        st = queue_purge(q);
    shard_leave(sh);
    return st;
}

static void
show_end(struct store_end *out, const struct message *m, uint32_t tag, int64_t now_ms)
{
    struct ident own = {tag, m->seq};

    ident_write(&out->id, m->foreign == NULL ? own : m->foreign->id);
    out->age_s = (now_ms - m->posted_ms) / 1000;
    out->created_ms = m->posted_ms;
}

enum status
engine_queue_stats(struct store *s, int64_t now_ms, const struct store_queue *where,
                   struct store_stats *out)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    const struct message *m;
    struct queue *q;
    uint64_t seq = 0;
    enum status st;

    *out = (struct store_stats){0};
    st = shard_settle(sh, &now_ms, SETTLE_ALL);
    if (st != ST_OK)
        return st;
    q = shard_find(sh, where, hash);
    if (q != NULL) {
        out->total = q->backlog->messages.live;
        out->claimed = q->backlog->claimed;
        m = seqmap_next_live(&q->backlog->messages, &seq);
        if (m != NULL)
            show_end(&out->oldest, m, q->tag, now_ms);
        m = seqmap_last(&q->backlog->messages, &seq);
        if (m != NULL)
            show_end(&out->newest, m, q->tag, now_ms);
    }
    shard_leave(sh);
    return q == NULL ? ST_NOT_FOUND : ST_OK;
}

void
engine_queues_release(const struct store *s, struct store_queues *queues)
{
    struct mem *mem = ((const struct engine *)s)->mem;

    for (size_t i = 0; i < queues->count; i++)
        if (queues->queues[i].pin != NULL)
            metadata_unpin(mem, queues->queues[i].pin);
    mem_free(mem, queues->queues);
}

/* Views of a page's names, with the texts copied behind them; NULL without memory. */
static struct store_queue_view *
copy_page(struct mem *mem, const struct directory_page *page)
{
    struct store_queue_view *views;
    size_t text_bytes = 0;
    char *text;

    for (size_t i = 0; i < page->count; i++)
        text_bytes += page->names[i].len;
    views = mem_calloc(mem, 1, page->count * sizeof(*views) + text_bytes);
    if (views == NULL)
        return NULL;
    text = (char *)(views + page->count);
    for (size_t i = 0; i < page->count; i++) {
        memcpy(text, page->names[i].data, page->names[i].len);
        views[i].name = bytes_of(text, page->names[i].len);
        text += page->names[i].len;
    }
    return views;
}

/* Fills in the metadata of the views; drops queues that have gone since they were named.
 */
static void
add_metadata(struct engine *e, int64_t now_ms, struct bytes project,
             struct store_queues *queues)
{
    size_t kept = 0;

    for (size_t i = 0; i < queues->count; i++) {
        struct store_queue_view *view = &queues->queues[kept];
        struct store_queue where = {project, queues->queues[i].name};
        uint64_t version = 0;
        struct metadata *md = pinned_metadata(e, now_ms, &where, &version);

        if (md == NULL)
            continue;
        view->name = where.name;
        show_metadata(view, md, version);
        kept++;
    }
    queues->count = kept;
}

enum status
engine_queue_list(struct store *s, int64_t now_ms, struct bytes project,
                  struct bytes marker, size_t limit, bool with_metadata,
                  struct store_queues *out)
{
    struct engine *e = engine_of(s);
    struct store_queues queues = STORE_QUEUES_INIT;
    struct directory_page page;
    enum status st;

    st = directory_page(&e->directory, project, marker, limit, &page);
    if (st != ST_OK)
        return st;
    queues.total = page.total;
    queues.more = page.count == limit;
    if (page.count > 0) {
        queues.queues = copy_page(e->mem, &page);
        mem_free(e->mem, page.names);
        if (queues.queues == NULL)
            return ST_NO_MEMORY;
        queues.store = s;
        queues.count = page.count;
        if (with_metadata)
            add_metadata(e, now_ms, project, &queues);
    }
    *out = queues;
    return ST_OK;
}
