#include "redis/queue_index.h"

/* Adds an entry to a project's list, or to that of projects (NULL), or removes it. */
static enum status
change_list(struct redis_store *s, const struct bytes *project, enum store_kind kind,
            struct bytes entry, enum script script)
{
    struct call c;
    struct buf key;

    buf_init(&key, s->config.mem);
    key_of_index(&key, project, kind);
    c = call_begin_key(s, &key);
    call_word(&c, entry);
    return call_finish(&c, script, CALL_CHANGES);
}

static enum status
change_project(struct redis_store *s, const struct store_queue *where, struct bytes tag,
               enum script script)
{
    enum status st = ST_NO_MEMORY;
    struct buf entry;

    buf_init(&entry, s->config.mem);
    buf_bytes(&entry, where->name);
    buf_byte(&entry, '\0');
    buf_bytes(&entry, tag);
    if (!entry.failed)
        st = change_list(s, &where->project, where->kind, buf_view(&entry), script);
    buf_fini(&entry);
    return st;
}

/* Removes the mark that the queue is not listed. *there: it exists. */
static enum status
mark_listed(struct redis_store *s, const struct store_visit *visit,
            const struct store_queue *where, struct bytes tag, bool *there)
{
    struct call c = call_begin(s, visit, where);
    enum status st;

    call_word(&c, tag);
    st = call_run(&c, SCRIPT_queue_listed, CALL_CHANGES);
    *there = call_integer(&c, 1) != 0;
    call_end(&c);
    return st;
}

enum status
queue_index_add(struct redis_store *s, const struct store_visit *visit,
                const struct store_queue *where, struct bytes tag)
{
    bool there;
    enum status st = change_project(s, where, tag, SCRIPT_index_add);

    /* Also if the project has other queues: the process that made those may have ended here. */
    if (st == ST_OK)
        st = change_list(s, NULL, where->kind, where->project, SCRIPT_index_add);
    if (st == ST_OK)
        st = mark_listed(s, visit, where, tag, &there);
    if (st != ST_OK)
        return ST_UNCONFIRMED;
    if (!there)
        return queue_index_remove(s, where, tag);
    counters_add(s, STORE_COUNT_QUEUES_MADE, 1);
    return ST_OK;
}

enum status
queue_index_remove(struct redis_store *s, const struct store_queue *where,
                   struct bytes tag)
{
    return change_project(s, where, tag, SCRIPT_index_remove);
}

/* Reads a page behind `marker`, followed by `behind`, in the order of ZRANGEBYLEX. */
static enum status
read_page(struct redis_store *s, const struct bytes *project, enum store_kind kind,
          struct bytes marker, struct bytes behind, size_t limit, struct index_page *out)
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
        buf_bytes(&from, behind);
    }
    c = call_begin_key(s, &key);
    call_buf(&c, &from);
    call_limit(&c, limit);
    st = call_run(&c, SCRIPT_index_page, CALL_LOOKS);
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
    const struct bytes behind = project == NULL ? bytes_str("") : bytes_of("\0\xff", 2);

    return read_page(s, project, kind, marker, behind, limit, out);
}

struct bytes
index_page_name(const struct index_page *page, size_t i, struct bytes *tag)
{
    const redisReply *entry = page->response->element[i + 2];
    struct bytes rest = bytes_of(entry->str, (size_t)entry->len);
    const struct bytes name = bytes_cut(&rest, '\0');

    if (tag != NULL)
        *tag = rest;
    return name;
}

void
index_page_release(struct index_page *page)
{
    wire_give_back(&page->store->cluster.wire, page->response);
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

enum status
queue_index_tidy(struct redis_store *s, const struct store_visit *visit,
                 const struct store_queue *where)
{
    enum { MOST = 16 };
    struct index_page page;
    enum status st = read_page(s, &where->project, where->kind, where->name,
                               bytes_of("\0", 1), MOST, &page);

    for (size_t i = 0; st == ST_OK && i < page.count; i++) {
        struct bytes tag;
        bool there;

        if (!bytes_equal(index_page_name(&page, i, &tag), where->name))
            break;
        st = mark_listed(s, visit, where, tag, &there);
        if (st == ST_OK && !there)
            st = queue_index_remove(s, where, tag);
    }
    index_page_release(&page);
    return st;
}
