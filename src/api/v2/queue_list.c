#include "api/link.h"
#include "api/metadata.h"
#include "api/v2/handlers.h"

/* Queues looked at by one call of the store while filters are applied. */
enum { FILTER_SLICE = 32 };

/* The parameters of a listing and how far it has come. */
struct listing {
    size_t limit;
    bool detailed, with_count;
    bool filtered;
    struct bytes name; /* part of the names wanted; absent: any */
    /* Progress. */
    struct bytes marker; /* go on behind this name */
    struct bytes last;   /* name shown last; absent: none yet */
    size_t shown;
    uint64_t total;
};

/* Whatever is not a parameter of the listing is a filter on metadata. */
static bool
is_filter(struct bytes name)
{
    static const char *const known[] = {"limit", "marker", "detailed", "name",
                                        "with_count"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (bytes_equal_str(name, known[i]))
            return false;
    return true;
}

static bool
has_filters(const struct query *q)
{
    for (size_t i = 0; i < q->count; i++)
        if (is_filter(q->pairs[i].name))
            return true;
    return false;
}

static enum status
read_listing(struct call *call, struct listing *out)
{
    const struct query *q = &call->query;
    enum status st;

    *out = (struct listing){.limit = (size_t)call->limits->default_page,
                            .marker = query_get(q, "marker")};
    st = call_limit(call, "limit", call->limits->max_queues_per_page, &out->limit);
    if (st != ST_OK)
        return st;
    st = call_bool(call, "detailed", &out->detailed);
    if (st != ST_OK || !call->version->queue_filters)
        return st;
    out->name = query_get(q, "name");
    out->filtered = has_filters(q);
    return call_bool(call, "with_count", &out->with_count);
}

static bool
is_wanted(const struct call *call, const struct listing *l,
          const struct store_queue_view *queue)
{
    const struct query *q = &call->query;

    if (bytes_present(l->name) && !bytes_contain(queue->name, l->name))
        return false;
    for (size_t i = 0; l->filtered && i < q->count; i++)
        if (is_filter(q->pairs[i].name) && query_counts(q, i) &&
            !metadata_matches(&queue->metadata, q->pairs[i].name, q->pairs[i].value))
            return false;
    return true;
}

static enum status
write_queue(struct call *call, const struct listing *l,
            const struct store_queue_view *queue)
{
    struct buf *out = &call->res->body;
    enum status st = ST_OK;

    buf_str(out, l->shown == 0 ? "{\"name\":\"" : ",{\"name\":\"");
    buf_bytes(out, queue->name); /* names have nothing to escape */
    buf_str(out, "\",\"href\":\"");
    buf_bytes(out, call->base);
    buf_str(out, "/queues/");
    buf_bytes(out, queue->name);
    buf_byte(out, '"');
    if (l->detailed) {
        buf_str(out, ",\"metadata\":");
        st = v2_queue_write_metadata(call, &queue->metadata);
    }
    buf_byte(out, '}');
    return st;
}

/* Shows what is wanted of one slice, and notes where the next begins. */
static enum status
write_slice(struct call *call, struct listing *l, const struct store_queues *slice)
{
    const struct store_queue_view *last = NULL;
    enum status st = ST_OK;
    size_t i;

    for (i = 0; i < slice->count && l->shown < l->limit && st == ST_OK; i++) {
        if (!is_wanted(call, l, &slice->queues[i]))
            continue;
        last = &slice->queues[i];
        st = write_queue(call, l, last);
        l->shown++;
    }
    if (st != ST_OK || i == 0)
        return st;
    l->marker = arena_copy(call->req->arena, slice->queues[i - 1].name);
    if (last != NULL)
        l->last = arena_copy(call->req->arena, last->name);
    return bytes_present(l->marker) && (last == NULL || bytes_present(l->last))
               ? ST_OK
               : ST_NO_MEMORY;
}

/* Pages through the store until the page is full: filters count before it is cut. */
static enum status
write_queues(struct call *call, struct listing *l)
{
    bool picky = l->filtered || bytes_present(l->name);
    size_t ask = picky ? FILTER_SLICE : l->limit, got;
    enum status st;

    do {
        struct store_queues slice = STORE_QUEUES_INIT;

        st = store_queue_list(call->store, call->req->now_ms, call->queue.project,
                              l->marker, ask, l->detailed || l->filtered, &slice);
        if (st == ST_OK)
            st = write_slice(call, l, &slice);
        got = slice.count;
        l->total = slice.total;
        store_queues_release(&slice);
    } while (st == ST_OK && l->shown < l->limit && got == ask);
    return st;
}

static void
repeat_filters(struct link *link, const struct query *q)
{
    for (size_t i = 0; i < q->count; i++)
        if (is_filter(q->pairs[i].name) && query_counts(q, i))
            link_text(link, q->pairs[i].name, q->pairs[i].value);
}

static enum status
write_link(struct call *call, const struct listing *l)
{
    const struct query *q = &call->query;
    bool filters = call->version->queue_filters;
    struct bytes path = arena_printf(call->req->arena, "%s/queues", call->base.data);
    struct link link;

    if (!bytes_present(path))
        return ST_NO_MEMORY;
    link_begin(&link, &call->res->body, path);
    if (bytes_present(query_get(q, "limit")))
        link_number(&link, "limit", l->limit);
    if (bytes_present(query_get(q, "detailed")))
        link_bool(&link, "detailed", l->detailed);
    if (filters && bytes_present(query_get(q, "with_count")))
        link_bool(&link, "with_count", l->with_count);
    if (bytes_present(l->name))
        link_text(&link, bytes_str("name"), l->name);
    if (filters)
        repeat_filters(&link, q);
    link_text(&link, bytes_str("marker"), l->last);
    link_end(&link);
    return ST_OK;
}

/* GET .../queues */
enum status
v2_queue_list(struct call *call)
{
    struct buf *out = &call->res->body;
    struct listing l;
    enum status st = read_listing(call, &l);

    if (st != ST_OK)
        return st;
    buf_str(out, "{\"queues\":[");
    st = write_queues(call, &l);
    if (st != ST_OK)
        return st;
    if (l.shown == 0 && call->version->empty_is_204)
        return call_empty(call, 204);
    buf_byte(out, ']');
    if (l.shown == 0)
        link_none(out);
    else
        st = write_link(call, &l);
    if (l.with_count) {
        buf_str(out, ",\"count\":");
        buf_u64(out, l.total);
    }
    buf_byte(out, '}');
    return st == ST_OK ? call_json(call, 200) : st;
}
