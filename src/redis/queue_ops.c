/* The store's operations on queues. */
#include "redis/queue_index.h"
#include "redis/waiting.h"

enum status
redis_queue_create(struct store *store, struct store_visit *visit,
                   const struct store_queue *where, const struct store_metadata *metadata,
                   bool *created)
{
    enum { NEW = 1, ITS_TAG, UNLISTED };
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, visit, where);
    enum status st;

    call_digits(&c, TAG_DIGITS);
    call_metadata(&c, metadata);
    st = call_run(&c, SCRIPT_queue_create, CALL_CHANGES);
    if (st == ST_OK) {
        *created = call_integer(&c, NEW) != 0;
        if (call_integer(&c, UNLISTED) != 0)
            st = queue_index_add(s, visit, where, call_item(&c, ITS_TAG));
    }
    call_end(&c);
    return st;
}

enum status
redis_queue_update(struct store *store, struct store_visit *visit,
                   const struct store_queue *where, uint64_t version,
                   const struct store_metadata *metadata)
{
    struct call c = call_begin(redis_of(store), visit, where);

    call_number(&c, (int64_t)version);
    call_metadata(&c, metadata);
    return call_finish(&c, SCRIPT_queue_update, CALL_CHANGES);
}

/* ---------------------------------------------------------------------- views */

/* A view with a text of its own: name, metadata, dead letter queue, one behind the other. */
static enum status
fill_view(struct redis_store *s, struct store_queue_view *view, struct bytes name,
          const struct call *c)
{
    enum { VERSION = 1, METADATA };
    struct store_metadata found = {.settings = STORE_SETTINGS_INIT};
    char *text;

    if (c != NULL)
        call_read_metadata(c, METADATA, &found);
    text = mem_alloc(s->config.mem,
                     name.len + found.json.len + found.settings.dead_letter.len + 1);
    if (text == NULL)
        return ST_NO_MEMORY;
    *view = (struct store_queue_view){.pin = text, .metadata = found};
    view->name = bytes_lay(&text, name);
    if (c == NULL)
        return ST_OK;
    view->version = (uint64_t)call_integer(c, VERSION);
    view->metadata.json = bytes_lay(&text, found.json);
    if (bytes_present(found.settings.dead_letter))
        view->metadata.settings.dead_letter =
            bytes_lay(&text, found.settings.dead_letter);
    return ST_OK;
}

static enum status
open_queues(struct redis_store *s, size_t limit, struct store_queues *out)
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

/* Adds a queue with its metadata. ST_NOT_FOUND. */
static enum status
add_queue(struct redis_store *s, struct store_visit *visit,
          const struct store_queue *where, struct store_queues *out)
{
    struct call c = call_begin(s, visit, where);
    enum status st;

    st = call_run(&c, SCRIPT_queue_get, CALL_LOOKS);
    if (st == ST_OK)
        st = fill_view(s, &out->queues[out->count], where->name, &c);
    out->count += st == ST_OK;
    call_end(&c);
    return st;
}

enum status
redis_queue_get(struct store *store, struct store_visit *visit,
                const struct store_queue *where, struct store_queues *out)
{
    struct redis_store *s = redis_of(store);
    enum status st = open_queues(s, 1, out);

    if (st == ST_OK) {
        st = add_queue(s, visit, where, out);
        if (st != ST_OK)
            store_queues_release(out);
    }
    return st;
}

/* ---------------------------------------------------------------------- listing */

/* Adds a listed queue, unless it was deleted. */
static enum status
add_listed(struct redis_store *s, struct store_visit *visit,
           const struct store_page *page, const struct index_page *listed, size_t i,
           struct store_queues *out)
{
    struct store_queue where = {.project = page->project, .kind = page->kind};
    struct bytes tag;
    enum status st;

    where.name = index_page_name(listed, i, &tag);
    if (out->count > 0 && bytes_equal(out->queues[out->count - 1].name, where.name))
        return ST_OK; /* the entry of its predecessor is still there */
    if (page->with_metadata) {
        st = add_queue(s, visit, &where, out);
        if (st != ST_NOT_FOUND)
            return st;
        (void)queue_index_remove(s, &where, tag);
        return ST_OK;
    }
    st = fill_view(s, &out->queues[out->count], where.name, NULL);
    out->count += st == ST_OK;
    return st;
}

enum status
redis_queue_list(struct store *store, struct store_visit *visit,
                 const struct store_page *page, struct store_queues *out)
{
    struct redis_store *s = redis_of(store);
    enum status st = open_queues(s, page->limit, out);
    struct index_page listed;

    if (st != ST_OK)
        return st;
    st = queue_index_page(s, &page->project, page->kind, page->marker, page->limit,
                          &listed);
    for (size_t i = 0; st == ST_OK && i < listed.count; i++)
        st = add_listed(s, visit, page, &listed, i, out);
    if (st == ST_OK) {
        out->total = listed.total;
        out->more = listed.count == page->limit;
    } else {
        store_queues_release(out);
    }
    index_page_release(&listed);
    return st;
}

/* Adds the projects of a page of the list that have queues. */
static enum status
add_projects(struct redis_store *s, const struct store_page *page,
             const struct index_page *listed, struct store_queues *out)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < listed->count; i++) {
        const struct bytes project = index_page_name(listed, i, NULL);
        uint64_t count;

        st = queue_index_count(s, project, page->kind, &count);
        if (st != ST_OK || count == 0)
            continue;
        st = fill_view(s, &out->queues[out->count], project, NULL);
        out->count += st == ST_OK;
    }
    return st;
}

/* Reads the list until there are enough projects with queues. */
enum status
redis_project_list(struct store *store, struct store_visit *visit,
                   const struct store_page *page, struct store_queues *out)
{
    struct redis_store *s = redis_of(store);
    struct bytes marker = page->marker;
    enum status st = open_queues(s, page->limit, out);
    struct buf last;

    (void)visit; /* queues do not expire */
    if (st != ST_OK)
        return st;
    buf_init(&last, s->config.mem);
    out->more = true;
    while (st == ST_OK && out->more && (out->count < page->limit || page->limit == 0)) {
        const size_t wanted = page->limit - out->count;
        struct index_page listed;

        st = queue_index_page(s, NULL, page->kind, marker, wanted, &listed);
        out->total = listed.total;
        if (st == ST_OK)
            st = add_projects(s, page, &listed, out);
        out->more = listed.count == wanted && wanted > 0;
        if (st == ST_OK && out->more) {
            buf_reset(&last, SIZE_MAX);
            buf_bytes(&last, index_page_name(&listed, wanted - 1, NULL));
            marker = buf_view(&last);
            st = last.failed ? ST_NO_MEMORY : ST_OK;
        }
        index_page_release(&listed);
    }
    if (st != ST_OK)
        store_queues_release(out);
    buf_fini(&last);
    return st;
}

enum status
redis_queue_stats(struct store *store, struct store_visit *visit,
                  const struct store_queue *where, struct store_stats *out)
{
    enum { NOW = 1, TAG, HELD, TOTAL, OLD, OLD_HEAD, NEW, NEW_HEAD };
    struct call c = call_begin(redis_of(store), visit, where);
    enum status st;

    *out = (struct store_stats){0};
    st = call_run(&c, SCRIPT_queue_stats, CALL_LOOKS);
    if (st == ST_OK && call_has(&c, NEW_HEAD)) {
        const int64_t now_ms = call_integer(&c, NOW);

        out->claimed = (uint64_t)call_integer(&c, HELD);
        out->total = (uint64_t)call_integer(&c, TOTAL);
        for (int i = 0; i < 2; i++) {
            struct store_end *end = i == 0 ? &out->oldest : &out->newest;
            const size_t at = i == 0 ? OLD : NEW;
            const struct message_head head = call_head(&c, at + 1);

            write_message_id(call_item(&c, TAG), (uint64_t)call_integer(&c, at), head.id,
                             &end->id);
            end->created_ms = head.posted_ms;
            end->age_s = (now_ms - end->created_ms) / 1000;
        }
    }
    call_end(&c);
    return st;
}

enum status
redis_queue_delete(struct store *store, struct store_visit *visit,
                   const struct store_queue *where)
{
    enum { TAG = 1, LETTERS, ROUNDS = 16 };
    struct redis_store *s = redis_of(store);
    enum status st = ST_AGAIN;

    for (int round = 0; st == ST_AGAIN && round < ROUNDS; round++) {
        struct call c = call_begin_all(s, visit, where);

        st = call_run(&c, SCRIPT_queue_delete, CALL_CHANGES);
        if (st == ST_AGAIN) {
            st = outbox_deliver(&c, LETTERS, visit, where);
            st = st == ST_OK ? ST_AGAIN : st;
        } else if (st == ST_OK && call_has(&c, TAG)) {
            st = queue_index_remove(s, where, call_item(&c, TAG));
            counters_add(s, STORE_COUNT_QUEUES_GONE, 1);
            waiting_notify(s, where, true);
        } else if (st == ST_OK) {
            st = queue_index_tidy(s, visit,
                                  where); /* an earlier deletion may have failed there */
        }
        call_end(&c);
    }
    return st == ST_AGAIN ? ST_UNAVAILABLE : st;
}

enum status
redis_queue_purge(struct store *store, struct store_visit *visit,
                  const struct store_queue *where, enum store_purge what)
{
    struct call c = call_begin(redis_of(store), visit, where);

    call_number(&c, (int64_t)what);
    return call_finish(&c, SCRIPT_queue_purge, CALL_CHANGES);
}
