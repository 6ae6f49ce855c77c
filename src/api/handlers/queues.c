#include "api/caller.h"
#include "api/handlers/handlers.h"
#include "api/wire/metadata.h"
#include "api/wire/patch.h"
#include "claimd/base/clock.h"

/* ------------------------------------------------------------------ create, delete */

static enum status
read_metadata(struct call *call, struct store_metadata *out)
{
    const struct request *req = call->req;
    struct reason why;
    enum status st;

    *out = (struct store_metadata){BYTES_NONE, STORE_SETTINGS_INIT};
    if (!call->version->puts_metadata)
        return ST_OK;
    st = call_body_within(call, call->limits->max_queue_metadata, "max_queue_metadata");
    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = metadata_decode(req->body, call->limits, req->arena, out, &why);
    return st == ST_OK ? ST_OK : call_explain(call, st, &why);
}

/* PUT .../queues/{queue} */
enum status
handle_queue_create(struct call *call)
{
    struct store_metadata metadata;
    bool created = false;
    enum status st = read_metadata(call, &metadata);

    if (st != ST_OK)
        return st;
    st = call_location(call, "", BYTES_NONE);
    if (st != ST_OK)
        return st;
    st = store_queue_create(call->store, call->req->now_ms, &call->queue, &metadata,
                            &created);
    return st == ST_OK ? call_empty(call, created ? 201 : 204) : st;
}

/* DELETE .../queues/{queue} */
enum status
handle_queue_delete(struct call *call)
{
    enum status st = store_queue_delete(call->store, call->req->now_ms, &call->queue);

    return st == ST_OK ? call_empty(call, 204) : st;
}

/* ------------------------------------------------------------------ show */

enum status
queue_write_metadata(struct call *call, const struct store_metadata *metadata)
{
    if (call->version->metadata_defaults)
        return metadata_show(metadata, call->limits, &call->res->body);
    metadata_plain(metadata, &call->res->body);
    return ST_OK;
}

/* GET .../queues/{queue}: a queue that does not exist looks like one without metadata. */
enum status
handle_queue_show(struct call *call)
{
    const struct store_metadata nothing = {BYTES_NONE, STORE_SETTINGS_INIT};
    struct store_queues found = STORE_QUEUES_INIT;
    enum status st =
        store_queue_get(call->store, call->req->now_ms, &call->queue, &found);

    if (st == ST_OK)
        st = queue_write_metadata(call, &found.queues[0].metadata);
    else if (st == ST_NOT_FOUND && call->version->queues_must_exist)
        st = call_refuse_queue(call);
    else if (st == ST_NOT_FOUND)
        st = queue_write_metadata(call, &nothing);
    store_queues_release(&found);
    return st == ST_OK ? call_json(call, 200) : st;
}

/* ------------------------------------------------------------------ patch */

/*
 * One attempt: what the patch makes of the metadata as it is now. The answer is written
 * before the store is changed, so that nothing can fail afterwards.
 */
static enum status
patch_once(struct call *call, const struct patch *patch, struct reason *why)
{
    struct store_queues found = STORE_QUEUES_INIT;
    struct store_metadata changed;
    enum status st =
        store_queue_get(call->store, call->req->now_ms, &call->queue, &found);

    if (st == ST_OK)
        st = patch_apply(patch, &found.queues[0].metadata, call->limits, call->req->arena,
                         &changed, why);
    if (st == ST_OK) {
        call->res->body.len = 0;
        st = metadata_show(&changed, call->limits, &call->res->body);
    }
    if (st == ST_OK)
        st = call->res->body.failed
                 ? ST_NO_MEMORY
                 : store_queue_update(call->store, call->req->now_ms, &call->queue,
                                      found.queues[0].version, &changed);
    store_queues_release(&found);
    return st;
}

/* PATCH .../queues/{queue} */
enum status
handle_queue_patch(struct call *call)
{
    enum { ATTEMPTS = 16 }; /* that many other writers in a row are not plausible */
    const struct request *req = call->req;
    struct patch patch = PATCH_INIT;
    struct reason why;
    enum status st = caller_patch_type(req->headers[API_HEADER_CONTENT_TYPE]);

    if (st != ST_OK)
        return st;
    if (call_body_within(call, call->limits->max_queue_metadata, "max_queue_metadata") !=
        ST_OK)
        return ST_BAD_BODY; /* unlike for other requests, but explained as there */
    reason_init(&why);
    st = patch_read(req->body, call->limits, req->arena, &patch, &why);
    if (st == ST_OK) {
        st = ST_CHANGED;
        for (int i = 0; i < ATTEMPTS && st == ST_CHANGED; i++)
            st = patch_once(call, &patch, &why);
    }
    patch_fini(&patch);
    if (st == ST_NOT_FOUND)
        return call_refuse_queue(call);
    return st == ST_OK ? call_json(call, 200) : call_explain(call, st, &why);
}

/* ------------------------------------------------------------------ statistics */

static void
write_end(struct call *call, const char *name, const struct store_end *end)
{
    struct buf *out = &call->res->body;
    char created[CLOCK_TEXT_CAP];

    clock_text(end->created_ms, created);
    buf_printf(out, ",\"%s\":{\"age\":%lld,\"created\":\"%s\",\"href\":\"%s/queues/",
               name, (long long)end->age_s, created, call->base.data);
    buf_bytes(out, call->queue.name);
    buf_printf(out, "/messages/%s\"}", end->id.text);
}

/* GET .../queues/{queue}/stats */
enum status
handle_queue_stats(struct call *call)
{
    struct store_stats stats = {.total = 0};
    enum status st =
        store_queue_stats(call->store, call->req->now_ms, &call->queue, &stats);

    if (st == ST_NOT_FOUND && call->version->queues_must_exist)
        return call_refuse_queue(call);
    if (st != ST_OK && st != ST_NOT_FOUND)
        return st;
    buf_printf(&call->res->body,
               "{\"messages\":{\"claimed\":%llu,\"free\":%llu,\"total\":%llu",
               (unsigned long long)stats.claimed,
               (unsigned long long)(stats.total - stats.claimed),
               (unsigned long long)stats.total);
    if (stats.total > 0) {
        write_end(call, "oldest", &stats.oldest);
        write_end(call, "newest", &stats.newest);
    }
    buf_str(&call->res->body, "}}");
    return call_json(call, 200);
}
