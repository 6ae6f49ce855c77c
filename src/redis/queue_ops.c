/* queue_ops: the operations of the store on queues, and the index of queues. */
#include "claimd/base/invariant.h"
#include "redis/call.h"
#include "redis/outbox.h"
#include "redis/waiting.h"

/* ---------------------------------------------------------------------- index */

/*
 * The index has a list of queues for each project, and a list of projects. A queue and
 * its list are in different slots, so they change one after the other:
 *
 *     create   1. make the queue, marked as not listed
 *              2. add the entry, with the tag of the queue
 *              3. remove the mark; if the queue was deleted meanwhile, remove the entry
 *     delete   1. delete the queue   2. remove the entry with its tag
 *
 * The list of projects also keeps projects without queues. If a process ends between the
 * steps, the name of a deleted queue may stay in the list. That has no effect on a new
 * queue of this name, which has another tag.
 */

/* Adds or removes an entry of the list of a project, or of the list of projects
 * (NULL). */
static enum status
index_change(struct redis_store *s, const struct bytes *project, enum store_kind kind,
             struct bytes entry, enum script script)
{
    struct call c;
    struct buf key;

    buf_init(&key, s->config.mem);
    key_of_index(&key, project, kind);
    c = call_begin_key(s, &key);
    call_word(&c, entry);
    return call_finish(&c, script, CALL_CHANGE);
}

static enum status
index_change_queue(struct redis_store *s, const struct store_queue *where,
                   struct bytes tag, enum script script)
{
    enum status st = ST_NO_MEMORY;
    struct buf entry;

    buf_init(&entry, s->config.mem);
    buf_bytes(&entry, where->name);
    buf_byte(&entry, '\0');
    buf_bytes(&entry, tag);
    if (!entry.failed)
        st = index_change(s, &where->project, where->kind, buf_view(&entry), script);
    buf_fini(&entry);
    return st;
}

/* Removes the mark that the queue is not listed. *exists: there is a queue with this
 * tag. */
static enum status
mark_listed(struct redis_store *s, const struct store_op *op,
            const struct store_queue *where, struct bytes tag, bool *exists)
{
    struct call c = call_begin(s, op, where);
    enum status st;

    call_word(&c, tag);
    st = call_run(&c, SCRIPT_queue_listed, CALL_CHANGE);
    *exists = call_integer(&c, 1) != 0;
    call_end(&c);
    return st;
}

/* Removes the entry of a deleted queue. */
static enum status
queue_index_remove(struct redis_store *s, const struct store_queue *where,
                   struct bytes tag)
{
    return index_change_queue(s, where, tag, SCRIPT_index_remove);
}

enum status
queue_index_add(struct redis_store *s, const struct store_op *op,
                const struct store_queue *where, struct bytes tag)
{
    bool exists;
    enum status st = index_change_queue(s, where, tag, SCRIPT_index_add);

    /* Also if the project has other queues, because the process that made those may have
     * ended here. */
    if (st == ST_OK)
        st = index_change(s, NULL, where->kind, where->project, SCRIPT_index_add);
    if (st == ST_OK)
        st = mark_listed(s, op, where, tag, &exists);
    if (st != ST_OK)
        return ST_UNCONFIRMED;
    if (!exists)
        return queue_index_remove(s, where, tag);
    counters_add(s, where, STORE_COUNT_QUEUES_MADE, 1);
    return ST_OK;
}

/* Reads a page of the entries after `marker` and `suffix`, one behind the other, in the
 * order of ZRANGEBYLEX. */
static enum status
index_read_page(struct redis_store *s, const struct bytes *project, enum store_kind kind,
                struct bytes marker, struct bytes suffix, size_t limit,
                struct index_page *out)
{
    enum { TOTAL = 1 };
    struct buf key, from;
    struct call c;
    enum status st;

    *out = (struct index_page){.store = s};
    buf_init(&key, s->config.mem);
    buf_init(&from, s->config.mem);
    key_of_index(&key, project, kind);
    buf_byte(&from, bytes_present(marker) ? '(' : '-');
    if (bytes_present(marker)) {
        buf_bytes(&from, marker);
        buf_bytes(&from, suffix);
    }
    c = call_begin_key(s, &key);
    call_buf(&c, &from);
    call_limit(&c, limit);
    st = call_run(&c, SCRIPT_index_page, CALL_READ);
    if (st == ST_OK) {
        out->total = (uint64_t)call_integer(&c, TOTAL);
        out->count = call_count(&c) - TOTAL - 1;
        out->response = call_take_response(&c);
    }
    call_end(&c);
    return st;
}

enum status
queue_index_page(struct redis_store *s, const struct bytes *project, enum store_kind kind,
                 struct bytes marker, size_t limit, struct index_page *out)
{
    const struct bytes suffix = project == NULL ? bytes_str("") : bytes_of("\0\xff", 2);

    return index_read_page(s, project, kind, marker, suffix, limit, out);
}

struct bytes
index_page_name(const struct index_page *page, size_t i, struct bytes *tag)
{
    struct bytes rest = reply_text(reply_word(page->response, i + 2));
    const struct bytes name = bytes_cut(&rest, '\0');

    ENSURE(i < page->count);

    if (tag != NULL)
        *tag = rest;
    return name;
}

void
index_page_release(struct index_page *page)
{
    wire_free_response(&page->store->cluster.wire, page->response);
    *page = (struct index_page){.store = page->store};
}

enum status
queue_index_count(struct redis_store *s, struct bytes project, enum store_kind kind,
                  uint64_t *count)
{
    struct index_page page;
    enum status st = queue_index_page(s, &project, kind, BYTES_NONE, 0, &page);

    *count = page.total;
    index_page_release(&page);
    return st;
}

/* Removes the entries of deleted queues of this name. */
static enum status
queue_index_tidy(struct redis_store *s, const struct store_op *op,
                 const struct store_queue *where)
{
    enum { MOST = 16 };
    struct index_page page;
    enum status st = index_read_page(s, &where->project, where->kind, where->name,
                                     bytes_of("\0", 1), MOST, &page);

    for (size_t i = 0; st == ST_OK && i < page.count; i++) {
        struct bytes tag;
        bool exists;

        if (!bytes_equal(index_page_name(&page, i, &tag), where->name))
            break;
        st = mark_listed(s, op, where, tag, &exists);
        if (st == ST_OK && !exists)
            st = queue_index_remove(s, where, tag);
    }
    index_page_release(&page);
    return st;
}

/* ---------------------------------------------------------------------- changes */

enum status
redis_queue_create(struct store *store, struct store_op *op,
                   const struct store_queue *where, const struct store_metadata *metadata,
                   bool *created)
{
    enum { NEW = 1, NEW_TAG, UNLISTED };
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);
    enum status st;

    call_random_digits(&c, TAG_DIGITS);
    call_metadata(&c, metadata);
    st = call_run(&c, SCRIPT_queue_create, CALL_CHANGE);
    if (st == ST_OK) {
        *created = call_integer(&c, NEW) != 0;
        if (call_integer(&c, UNLISTED) != 0)
            st = queue_index_add(s, op, where, call_item(&c, NEW_TAG));
    }
    call_end(&c);
    return st;
}

static enum status
queue_update_by(struct redis_store *s, const struct store_op *op,
                const struct store_queue *where, uint64_t version,
                const struct store_metadata *metadata, enum script script)
{
    struct call c = call_begin(s, op, where);

    call_number(&c, (int64_t)version);
    call_metadata(&c, metadata);
    return call_finish(&c, script, CALL_CHANGE);
}

/* If Redis is full, an operator can still resume a paused queue, because its workers free
 * space. */
enum status
redis_queue_update(struct store *store, struct store_op *op,
                   const struct store_queue *where, uint64_t version,
                   const struct store_metadata *metadata)
{
    struct redis_store *s = redis_of(store);
    enum status st =
        queue_update_by(s, op, where, version, metadata, SCRIPT_queue_update);

    if (st == ST_OVER_BUDGET)
        st = queue_update_by(s, op, where, version, metadata, SCRIPT_queue_update_full);
    waiting_wake(s, op, where); /* claims may have been paused before */
    return st == ST_TOO_LARGE ? ST_OVER_BUDGET : st;
}

/* ---------------------------------------------------------------------- views */

/* Makes a view that owns its texts: name, metadata, dead-letter queue and last pause.
 * `c`: the response of queue_get; NULL: without metadata. */
static enum status
queue_view_fill(struct redis_store *s, struct store_queue_view *view, struct bytes name,
                const struct call *c)
{
    enum { VERSION = 1, METADATA };
    struct store_metadata found = {.settings = STORE_SETTINGS_INIT};
    size_t size;
    char *text;

    if (c != NULL)
        call_read_metadata(c, METADATA, &found);
    size = name.len + found.json.len + found.settings.dead_letter.len +
           found.settings.paused_by.len + 1;
    text = mem_alloc(s->config.mem, size);
    if (text == NULL)
        return ST_NO_MEMORY;
    *view = (struct store_queue_view){.pin = text, .metadata = found};
    view->name = bytes_copy_to(&text, name);
    if (c == NULL)
        return ST_OK;
    view->version = (uint64_t)call_integer(c, VERSION);
    view->metadata.json = bytes_copy_to(&text, found.json);
    if (bytes_present(found.settings.dead_letter))
        view->metadata.settings.dead_letter =
            bytes_copy_to(&text, found.settings.dead_letter);
    if (bytes_present(found.settings.paused_by))
        view->metadata.settings.paused_by =
            bytes_copy_to(&text, found.settings.paused_by);
    ENSURE(text < (char *)view->pin + size);
    return ST_OK;
}

static enum status
queues_open(struct redis_store *s, size_t limit, struct store_queues *out)
{
    struct store_queue_view *views = mem_calloc(s->config.mem, limit + 1, sizeof(*views));

    if (views == NULL)
        return ST_NO_MEMORY;
    *out = (struct store_queues){.store = &s->store, .queues = views};
    return ST_OK;
}

void
redis_queues_release(const struct store *store, struct store_queues *queues)
{
    struct redis_store *s = redis_of((struct store *)(uintptr_t)store);

    for (size_t i = 0; i < queues->count; i++)
        mem_free(s->config.mem, queues->queues[i].pin);
    mem_free(s->config.mem, queues->queues);
}

/* Adds a queue with its metadata. ST_NOT_FOUND: there is no such queue. */
static enum status
queues_add(struct redis_store *s, struct store_op *op, const struct store_queue *where,
           struct store_queues *out)
{
    struct call c = call_begin(s, op, where);
    enum status st;

    st = call_run(&c, SCRIPT_queue_get, CALL_READ);
    if (st == ST_OK)
        st = queue_view_fill(s, &out->queues[out->count], where->name, &c);
    out->count += st == ST_OK;
    call_end(&c);
    return st;
}

enum status
redis_queue_get(struct store *store, struct store_op *op, const struct store_queue *where,
                struct store_queues *out)
{
    struct redis_store *s = redis_of(store);
    enum status st = queues_open(s, 1, out);

    if (st == ST_OK) {
        st = queues_add(s, op, where, out);
        if (st != ST_OK)
            store_queues_release(out);
    }
    return st;
}

/* ---------------------------------------------------------------------- listing */

/* Adds the queue of an entry, unless it was deleted. */
static enum status
queues_add_listed(struct redis_store *s, struct store_op *op,
                  const struct store_page *page, const struct index_page *listed,
                  size_t i, struct store_queues *out)
{
    struct store_queue where = {.project = page->project, .kind = page->kind};
    struct bytes tag;
    enum status st;

    where.name = index_page_name(listed, i, &tag);
    if (out->count > 0 && bytes_equal(out->queues[out->count - 1].name, where.name))
        return ST_OK; /* an entry of a deleted queue of the same name */
    if (page->with_metadata) {
        st = queues_add(s, op, &where, out);
        if (st != ST_NOT_FOUND)
            return st;
        (void)queue_index_remove(s, &where, tag);
        return ST_OK;
    }
    st = queue_view_fill(s, &out->queues[out->count], where.name, NULL);
    out->count += st == ST_OK;
    return st;
}

enum status
redis_queue_list(struct store *store, struct store_op *op, const struct store_page *page,
                 struct store_queues *out)
{
    struct redis_store *s = redis_of(store);
    enum status st = queues_open(s, page->limit, out);
    struct index_page listed;

    if (st != ST_OK)
        return st;
    st = queue_index_page(s, &page->project, page->kind, page->marker, page->limit,
                          &listed);
    for (size_t i = 0; st == ST_OK && i < listed.count; i++)
        st = queues_add_listed(s, op, page, &listed, i, out);
    if (st == ST_OK) {
        out->total = listed.total;
        out->more = listed.count == page->limit;
    } else {
        store_queues_release(out);
    }
    index_page_release(&listed);
    return st;
}

/* Adds those projects of a page that have queues. */
static enum status
queues_add_projects(struct redis_store *s, const struct store_page *page,
                    const struct index_page *listed, struct store_queues *out)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < listed->count; i++) {
        const struct bytes project = index_page_name(listed, i, NULL);
        uint64_t count;

        st = queue_index_count(s, project, page->kind, &count);
        if (st != ST_OK || count == 0)
            continue;
        st = queue_view_fill(s, &out->queues[out->count], project, NULL);
        out->count += st == ST_OK;
    }
    return st;
}

/* Reads the list until there are enough projects with queues. */
enum status
redis_project_list(struct store *store, struct store_op *op,
                   const struct store_page *page, struct store_queues *out)
{
    struct redis_store *s = redis_of(store);
    struct index_page listed = {.store = s}, next;
    struct bytes marker = page->marker;
    enum status st = queues_open(s, page->limit, out);

    (void)op; /* queues do not expire */
    if (st != ST_OK)
        return st;
    out->more = true;
    while (st == ST_OK && out->more && (out->count < page->limit || page->limit == 0)) {
        const size_t wanted = page->limit - out->count;

        st = queue_index_page(s, NULL, page->kind, marker, wanted, &next);
        index_page_release(&listed); /* which has the marker */
        listed = next;
        out->total = listed.total;
        if (st == ST_OK)
            st = queues_add_projects(s, page, &listed, out);
        out->more = listed.count == wanted && wanted > 0;
        if (out->more)
            marker = index_page_name(&listed, wanted - 1, NULL);
    }
    if (st != ST_OK)
        store_queues_release(out);
    index_page_release(&listed);
    return st;
}

enum status
redis_queue_stats(struct store *store, struct store_op *op,
                  const struct store_queue *where, struct store_stats *out)
{
    enum { NOW = 1, TAG, CLAIMED, TOTAL, OLD, OLD_HEAD, NEW, NEW_HEAD };
    struct call c = call_begin(redis_of(store), op, where);
    enum status st;

    *out = (struct store_stats){0};
    st = call_run(&c, SCRIPT_queue_stats, CALL_READ);
    if (st == ST_OK && call_has(&c, NEW_HEAD)) {
        const int64_t now_ms = call_integer(&c, NOW);

        out->claimed = (uint64_t)call_integer(&c, CLAIMED);
        out->total = (uint64_t)call_integer(&c, TOTAL);
        for (int i = 0; i < 2; i++) {
            struct store_end *end = i == 0 ? &out->oldest : &out->newest;
            const size_t at = i == 0 ? OLD : NEW;
            const struct message_head head = call_head(&c, at + 1);

            message_id_write(call_item(&c, TAG), (uint64_t)call_integer(&c, at),
                             head.original_id, &end->id);
            end->created_ms = head.posted_ms;
            end->age_s = (now_ms - end->created_ms) / 1000;
        }
    }
    call_end(&c);
    return st;
}

enum status
redis_queue_delete(struct store *store, struct store_op *op,
                   const struct store_queue *where)
{
    enum { TAG = 1, DEAD_LETTERS, ROUNDS = 16 };
    struct redis_store *s = redis_of(store);
    enum status st = ST_AGAIN;

    for (int round = 0; st == ST_AGAIN && round < ROUNDS; round++) {
        struct call c = call_begin_all(s, op, where);

        st = call_run(&c, SCRIPT_queue_delete, CALL_CHANGE);
        if (st == ST_AGAIN) {
            st = outbox_deliver(&c, DEAD_LETTERS, op, where);
            st = st == ST_OK ? ST_AGAIN : st;
        } else if (st == ST_OK && call_has(&c, TAG)) {
            st = queue_index_remove(s, where, call_item(&c, TAG));
            counters_add(s, where, STORE_COUNT_QUEUES_GONE, 1);
            waiting_notify(s, where, true);
        } else if (st == ST_OK) {
            st = queue_index_tidy(s, op, where); /* an earlier deletion may have failed */
        }
        call_end(&c);
    }
    return st == ST_AGAIN ? ST_UNAVAILABLE : st;
}

enum status
redis_queue_purge(struct store *store, struct store_op *op,
                  const struct store_queue *where, enum store_purge what)
{
    struct call c = call_begin(redis_of(store), op, where);

    call_number(&c, (int64_t)what);
    return call_finish(&c, SCRIPT_queue_purge, CALL_CHANGE);
}
