/*
 * queue_ops: the store's operations on queues: creating, changing, purging and deleting
 * one, and listing them. Declared in txn.h. A listing copies names under the lock of the
 * directory, and then looks up each queue under the lock of its shard. Read directory.h
 * next.
 */
#include "engine/run_load.h"
#include "engine/subscription.h"

static size_t
document_bytes(const struct store_metadata *metadata)
{
    return metadata == NULL ? 0 : metadata->json.len;
}

enum status
engine_queue_create(struct store *s, struct store_op *op, const struct store_queue *where,
                    const struct store_metadata *metadata, bool *created)
{
    enum status st = ST_OK;
    struct txn t;

    housekeep_pay(engine_of(s), op->now_ms, 1, document_bytes(metadata));
    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING); /* which cannot fail */
    *created = t.queue == NULL;
    if (*created) {
        st = mem_admits(t.engine->core.mem,
                        sizeof(struct queue) + document_bytes(metadata))
                 ? txn_make_queue(&t, metadata)
                 : ST_OVER_BUDGET;
        if (st == ST_OK)
            st = txn_reserve_queue(&t);
        if (st == ST_OK && txn_link_queue(&t))
            changelog_queue(t.queue, STORE_CHANGE_QUEUE, t.now_ms);
    }
    txn_end(&t);
    return st;
}

/* Adds metadata to the views of names, and removes queues that do not exist any more. */
static void
add_metadata(struct store *s, struct store_op *op, struct bytes project,
             enum store_kind kind, struct store_queues *queues)
{
    struct store_queue where = {.project = project, .kind = kind};
    size_t kept = 0;

    for (size_t i = 0; i < queues->count; i++) {
        struct store_queue_view *view = &queues->queues[kept];
        struct txn t;

        where.name = queues->queues[i].name;
        (void)txn_begin(&t, s, op, &where, EXPIRE_NOTHING); /* it does not expire */
        if (t.queue != NULL) {
            *view = (struct store_queue_view){.name = where.name,
                                              .metadata = t.queue->metadata->document,
                                              .version = t.queue->version,
                                              .pin = metadata_pin(t.queue->metadata)};
            kept++;
        }
        txn_end(&t);
    }
    queues->count = kept;
}

enum status
engine_queue_get(struct store *s, struct store_op *op, const struct store_queue *where,
                 struct store_queues *out)
{
    struct store_queues queues = {.store = s, .count = 1};
    char *name;

    queues.queues =
        mem_alloc(engine_of(s)->core.mem, sizeof(*queues.queues) + where->name.len);
    if (queues.queues == NULL)
        return ST_NO_MEMORY;
    name = (char *)(queues.queues + 1);
    queues.queues->name = bytes_copy_to(&name, where->name);
    add_metadata(s, op, where->project, where->kind, &queues);
    if (queues.count == 0) {
        store_queues_release(&queues);
        return ST_NOT_FOUND;
    }
    *out = queues;
    return ST_OK;
}

/*
 * Reserves what new metadata needs. Metadata that is not larger than the old one is also
 * accepted when there is no space for more data: an operator must be able to resume a
 * paused queue then, because its workers free space.
 */
static enum status
update_reserve(const struct txn *t, const struct store_metadata *metadata)
{
    const struct store_metadata *old = &t->queue->metadata->document;
    const size_t bytes = queue_bytes(t->where, metadata);
    /* Without paused_by: an operator must be able to pause it then, too. */
    const bool grows = bytes - metadata->settings.paused_by.len >
                       queue_bytes(t->where, old) - old->settings.paused_by.len;
    enum status st;

    if (grows && !mem_admits(t->engine->core.mem, metadata->json.len))
        return ST_OVER_BUDGET;
    st = txn_reserve(t, STORE_CHANGE_META, 0, bytes);
    if (!grows && (st == ST_FULL || st == ST_JOURNAL_LIMIT))
        st = txn_reserve(t, STORE_CHANGE_RELEASE, 0, bytes); /* the space of changes
                                                                that free some */
    return st;
}

enum status
engine_queue_update(struct store *s, struct store_op *op, const struct store_queue *where,
                    uint64_t version, const struct store_metadata *metadata)
{
    struct engine *e = engine_of(s);
    struct metadata *fresh, *old;
    enum status st;
    struct txn t;

    housekeep_pay(e, op->now_ms, 1, metadata->json.len);
    fresh = metadata_new(e->core.mem, metadata);
    if (fresh == NULL)
        return ST_NO_MEMORY;
    old = fresh;
    st = txn_begin(&t, s, op, where, EXPIRE_CLAIMS); /* by the old settings */
    if (st != ST_OK) {
        metadata_unpin(e->core.mem, fresh);
        return st;
    }
    if (t.queue == NULL)
        st = ST_NOT_FOUND;
    else if (t.queue->version != version)
        st = ST_CHANGED;
    else
        st = update_reserve(&t, metadata);
    if (st == ST_OK) {
        old = t.queue->metadata;
        t.queue->metadata = fresh;
        t.queue->version = ++t.shard->last_number;
        queue_wake_waiters(t.queue); /* claims may have been paused before */
        changelog_queue(t.queue, STORE_CHANGE_META, t.now_ms);
    }
    txn_end(&t);
    metadata_unpin(e->core.mem, old);
    return st;
}

enum status
engine_queue_delete(struct store *s, struct store_op *op, const struct store_queue *where)
{
    enum status st = ST_OK;
    struct txn t;

    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING); /* all of it goes */
    if (t.queue != NULL)
        st = txn_reserve(&t, STORE_CHANGE_QUEUE_GONE, 0, 0);
    if (t.queue != NULL && st == ST_OK) {
        changelog_queue(t.queue, STORE_CHANGE_QUEUE_GONE, t.now_ms);
        t.shard->gone_lsn = t.queue->lsn;
        metrics_count(&t.shard->metrics, STORE_COUNT_QUEUES_GONE, 1);
        metrics_count(&t.shard->metrics, STORE_COUNT_DROPPED,
                      backlog_live(t.queue->backlog));
        reclaim_queue(t.shard, t.queue);
        t.queue = NULL;
    }
    txn_end(&t);
    return st;
}

/* Does everything that can fail. *fresh will replace the backlog. */
static enum status
reserve_purge(struct txn *t, bool messages, bool subscriptions, struct backlog **fresh)
{
    enum status st = ST_OK;

    if (messages) {
        *fresh = backlog_new(t->engine->core.mem, &t->shard->alive);
        if (*fresh == NULL)
            return ST_NO_MEMORY;
        st = txn_reserve_messages(t, STORE_CHANGE_PURGE, 0, 0);
    }
    if (st == ST_OK && subscriptions)
        st = txn_reserve(t, STORE_CHANGE_UNSUBSCRIBED, 0, 0);
    return st;
}

static void
commit_purge(struct txn *t, struct backlog *fresh, bool subscriptions)
{
    if (fresh != NULL) {
        metrics_count(&t->shard->metrics, STORE_COUNT_DROPPED,
                      backlog_live(t->queue->backlog));
        reclaim_backlog(t->shard, t->queue, fresh);
        changelog_queue(t->queue, STORE_CHANGE_PURGE, t->now_ms);
    }
    if (!subscriptions)
        return;
    feed_detach_all(t->shard, t->queue);
    changelog_queue(t->queue, STORE_CHANGE_UNSUBSCRIBED, t->now_ms);
}

enum status
engine_queue_purge(struct store *s, struct store_op *op, const struct store_queue *where,
                   enum store_purge what)
{
    struct backlog *fresh = NULL;
    bool messages, subscriptions;
    enum status st;
    struct txn t;

    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING); /* all of it goes */
    messages = t.queue != NULL && what != STORE_PURGE_SUBSCRIPTIONS &&
               backlog_live(t.queue->backlog) > 0;
    subscriptions =
        t.queue != NULL && what != STORE_PURGE_MESSAGES && t.queue->feed != NULL;
    st = reserve_purge(&t, messages, subscriptions, &fresh);
    if (st == ST_OK)
        commit_purge(&t, fresh, subscriptions);
    else if (fresh != NULL)
        backlog_free(t.engine->core.mem, fresh);
    txn_end(&t);
    return st;
}

static void
fill_stats_end(struct store_end *out, const struct message *m, uint32_t tag,
               int64_t now_ms)
{
    ident_write(&out->id, message_ident(m, tag));
    out->age_s = (now_ms - m->posted_ms) / 1000;
    out->created_ms = m->posted_ms;
}

/* Loads the oldest and the newest message. */
static enum status
load_ends(struct txn *t)
{
    const struct backlog *b = t->queue->backlog;
    const struct run *last;
    uint64_t seq = 0, block = 0;
    enum status st = txn_load_from(t, 0, 1);

    if (st != ST_OK)
        return st;
    (void)seqmap_last(&b->messages, &seq);
    if (backlog_next_unloaded(b, seq) == RUN_NONE)
        return ST_OK;
    last = seqmap_last(&b->runs, &block); /* its newest message is the newest one */
    return txn_load_from(t, last->first + 63 - (uint64_t)__builtin_clzll(last->unloaded),
                         1);
}

enum status
engine_queue_stats(struct store *s, struct store_op *op, const struct store_queue *where,
                   struct store_stats *out)
{
    struct txn t;
    enum status st;

    *out = (struct store_stats){0};
    st = txn_begin(&t, s, op, where, EXPIRE_ALL);
    if (st != ST_OK)
        return st;
    if (t.queue == NULL)
        st = ST_NOT_FOUND;
    else if (backlog_live(t.queue->backlog) > 0) {
        const struct backlog *b = t.queue->backlog;
        uint64_t seq = 0;

        st = load_ends(&t);
        if (st != ST_OK)
            goto out;
        out->total = backlog_live(b);
        out->claimed = b->claimed;
        fill_stats_end(&out->oldest, seqmap_next_live(&b->messages, &seq), t.queue->tag,
                       t.now_ms);
        fill_stats_end(&out->newest, seqmap_last(&b->messages, &seq), t.queue->tag,
                       t.now_ms);
    }
out:
    txn_end(&t);
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

/* A page of names, without metadata. */
static enum status
list_names(struct store *s, struct store_op *op, const struct store_page *wanted,
           bool projects, struct store_queues *out)
{
    struct engine *e = engine_of(s);
    struct store_queues queues;
    enum status st = directory_page(&e->core.directory, wanted, projects, &queues);

    if (st != ST_OK)
        return st;
    /*
     * The queues may have changed in any shard. A queue is in the directory before its
     * creation has an LSN, but only while its shard is locked. So the LSNs are read after
     * the directory.
     */
    for (size_t i = 0; has_log(&e->core) && i < e->shard_count; i++) {
        struct shard *sh = &e->shards[i];

        (void)shard_enter(sh, op->now_ms);
        if (op->lsn < sh->lsn)
            op->lsn = sh->lsn;
        shard_leave(sh);
    }
    queues.more = queues.count == wanted->limit;
    if (queues.count > 0)
        queues.store = s;
    *out = queues;
    return ST_OK;
}

enum status
engine_queue_list(struct store *s, struct store_op *op, const struct store_page *wanted,
                  struct store_queues *out)
{
    struct store_queues queues;
    enum status st = list_names(s, op, wanted, false, &queues);

    if (st != ST_OK)
        return st;
    if (wanted->with_metadata)
        add_metadata(s, op, wanted->project, wanted->kind, &queues);
    *out = queues;
    return ST_OK;
}

enum status
engine_project_list(struct store *s, struct store_op *op, const struct store_page *wanted,
                    struct store_queues *out)
{
    return list_names(s, op, wanted, true, out);
}
