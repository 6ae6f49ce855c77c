/*
 * queue_list: lists the queues or topics of a project, page by page (docs/api.md 7.6).
 * Declared in handlers.h. With filters on names or metadata it reads many queues for a
 * page, so it does that in slices: write_queues() keeps the last name in the progress of
 * the request and returns ST_AGAIN. Read wire/query.h for the parameters and filters of
 * a listing.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/wire/metadata.h"
#include "api/wire/query.h"
#include "claimd/base/invariant.h"
#include "claimd/json/string.h"

/* Queues of one call of the store for a listing with filters. */
enum { QUEUES_A_CALL = 32 };

/*
 * The cost of a slice, some hundred microseconds: QUEUE_COST for each queue, and the
 * bytes of metadata that filters read.
 */
enum { SLICE_COST = 32768, QUEUE_COST = 64 };

/* The parameters and the progress of a listing. */
struct queue_listing {
    struct listing parameters; /* with filters on metadata */
    size_t limit;
    bool detailed, with_count;
    struct bytes name; /* a part of the wanted names; absent: any */
    /* Progress. */
    struct bytes marker; /* the last queue that was read */
    struct bytes last;   /* the marker of the next page; absent: the page is empty */
    size_t shown;
    size_t cost; /* of this slice so far */
    uint64_t total;
};

/* A parameter that is not one of the listing is a filter on metadata. */
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

/* Topics are not counted. */
static bool
is_topic_filter(struct bytes name)
{
    return is_filter(name) || bytes_equal_str(name, "with_count");
}

static enum status
read_listing(struct context *ctx, struct queue_listing *out)
{
    const struct api_limits *l = ctx->limits;
    const struct progress *p = ctx->progress;
    const bool topics = ctx->queue.kind == STORE_TOPIC,
               filters = ctx->version->queue_filters;
    const struct query *q = &ctx->query;
    struct parameter *more = &out->parameters.parameters[2];
    enum status st;

    /* The first slice begins behind the client's marker, and others where the last one
     * ended. */
    *out = (struct queue_listing){
        .parameters.parameters = {{"limit", .limit = &out->limit,
                                   .most = l->max_queues_per_page,
                                   .option = "max_queues_per_page"},
                                  {"detailed", .flag = &out->detailed}},
        .limit = (size_t)limits_page(l, l->max_queues_per_page),
        .marker = p->begun ? bytes_of(p->name, p->name_len) : query_get(q, "marker")};
    if (filters && !topics)
        *more++ = (struct parameter){"with_count", .flag = &out->with_count};
    if (filters)
        *more = (struct parameter){"name", .text = &out->name};
    st = context_read_listing(ctx, &out->parameters);
    return st == ST_OK && filters
               ? filters_make(q, topics ? is_topic_filter : is_filter, ctx->req->arena,
                              &out->parameters.filters)
               : st;
}

/* True if a queue matches the parameters. Counts the cost. */
static bool
is_wanted(struct queue_listing *l, const struct store_queue_view *queue)
{
    l->cost += QUEUE_COST;
    if (bytes_present(l->name) && !bytes_contain(queue->name, l->name))
        return false;
    if (l->parameters.filters.wanted == 0)
        return true;
    l->cost += queue->metadata.json.len;
    return filters_match(&l->parameters.filters, queue->metadata.json);
}

static enum status
write_queue(struct context *ctx, const struct queue_listing *l,
            const struct store_queue_view *queue)
{
    struct buf *out = &ctx->res->body;
    enum status st = ST_OK;

    json_write_comma(out);
    buf_str(out, "{\"name\":\"");
    buf_bytes(out, queue->name); /* names need no escapes */
    buf_str(out, "\",\"href\":\"");
    buf_bytes(out, ctx->base);
    buf_str(out, ctx->queue.kind == STORE_TOPIC ? "/topics/" : "/queues/");
    buf_bytes(out, queue->name);
    buf_byte(out, '"');
    if (l->detailed) {
        json_write_name(out, "metadata");
        st = queue_write_metadata(ctx, &queue->metadata);
    }
    buf_byte(out, '}');
    return st;
}

static bool
is_filtered(const struct queue_listing *l)
{
    return l->parameters.filters.wanted > 0 || bytes_present(l->name);
}

static bool
slice_is_used_up(const struct queue_listing *l)
{
    return is_filtered(l) && l->cost >= SLICE_COST;
}

/* Writes the matching ones of some queues, and updates the progress. */
static enum status
write_some(struct context *ctx, struct queue_listing *l, const struct store_queues *some)
{
    const struct store_queue_view *last = NULL;
    enum status st = ST_OK;
    size_t i;

    for (i = 0;
         i < some->count && l->shown < l->limit && !slice_is_used_up(l) && st == ST_OK;
         i++) {
        if (!is_wanted(l, &some->queues[i]))
            continue;
        last = &some->queues[i];
        st = write_queue(ctx, l, last);
        l->shown++;
    }
    if (st != ST_OK || i == 0)
        return st;
    l->marker = arena_copy(ctx->req->arena, some->queues[i - 1].name);
    if (last != NULL)
        l->last = arena_copy(ctx->req->arena, last->name);
    return bytes_present(l->marker) && (last == NULL || bytes_present(l->last))
               ? ST_OK
               : ST_NO_MEMORY;
}

/*
 * Reads queues of the store until the page is full. If the slice is used up before, a
 * page that is not empty ends early, and an empty one continues in the next slice.
 */
static enum status
write_queues(struct context *ctx, struct queue_listing *l)
{
    struct store_page page = {.project = ctx->queue.project,
                              .kind = ctx->queue.kind,
                              .limit = is_filtered(l) ? QUEUES_A_CALL : l->limit,
                              .with_metadata =
                                  l->detailed || l->parameters.filters.wanted > 0};
    struct progress *p = ctx->progress;
    bool more;
    enum status st;

    do {
        struct store_queues some = STORE_QUEUES_INIT;

        page.marker = l->marker;
        st = store_queue_list(ctx->store, &ctx->op, &page, &some);
        if (st == ST_OK)
            st = write_some(ctx, l, &some);
        more = some.more && some.count > 0;
        l->total = some.total;
        store_queues_release(&some);
    } while (st == ST_OK && l->shown < l->limit && more && !slice_is_used_up(l));
    if (st != ST_OK || !slice_is_used_up(l))
        return st;
    if (l->shown > 0) {
        l->last = l->marker; /* the next page skips queues that do not match */
        return ST_OK;
    }
    ENSURE(l->marker.len <= sizeof(p->name)); /* it is the name of a queue */
    memcpy(p->name, l->marker.data, l->marker.len);
    p->name_len = l->marker.len;
    p->begun = true;
    return ST_AGAIN;
}

/* GET .../queues, .../topics */
enum status
handle_queue_list(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    struct queue_listing l;
    struct bytes path;
    enum status st = read_listing(ctx, &l);

    if (st != ST_OK)
        return st;
    buf_printf(out, "{\"%ss\":[", context_noun(ctx));
    st = write_queues(ctx, &l);
    if (st != ST_OK)
        return st;
    if (l.shown == 0 && ctx->version->empty_is_204)
        return response_empty(ctx, 204);
    path = arena_printf(ctx->req->arena, "%s/%ss", ctx->base.data, context_noun(ctx));
    if (!bytes_present(path))
        return ST_NO_MEMORY;
    buf_byte(out, ']');
    next_page_write(out, path, &ctx->query, &l.parameters, l.last);
    if (l.with_count)
        json_write_u64(out, "count", l.total);
    buf_byte(out, '}');
    return response_json(ctx, 200);
}
