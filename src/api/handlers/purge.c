#include "api/handlers/handlers.h"
#include "claimd/json/fault.h"
#include "claimd/json/scan.h"

/* What a purge removes. There are no subscriptions yet: they are asked for in vain. */
struct purge {
    bool messages, subscriptions;
};

static bool
is_text(const struct json_scan_value *value, const char *text)
{
    struct json_scan_name inside;

    if (value->kind != SCAN_STRING)
        return false;
    inside.text = bytes_of(value->text.data + 1, value->text.len - 2);
    inside.escaped = memchr(inside.text.data, '\\', inside.text.len) != NULL;
    return json_scan_name_is(&inside, text);
}

/* The last member resource_types of a valid document; absent: SCAN_NONE. */
static struct json_scan_value
find_types(struct bytes body)
{
    struct json_scan_value types = {.kind = SCAN_NONE};
    struct json_scan s;
    struct json_scan_name name;

    json_scan_begin(&s, body);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return types;
    while (json_scan_member(&s, &name))
        (void)json_scan_value(&s,
                              json_scan_name_is(&name, "resource_types") ? &types : NULL);
    return types;
}

static enum status
read_types(struct call *call, const struct json_scan_value *types, struct purge *out)
{
    struct json_scan s;

    json_scan_begin(&s, types->text);
    (void)json_scan_enter(&s, SCAN_ARRAY);
    while (json_scan_item(&s)) {
        struct json_scan_value item;

        (void)json_scan_value(&s, &item);
        if (is_text(&item, "messages"))
            out->messages = true;
        else if (is_text(&item, "subscriptions"))
            out->subscriptions = true;
        else
            return call_refuse(call, ST_BAD_VALUE,
                               "resource_types may name messages and subscriptions only");
    }
    return ST_OK;
}

static enum status
read_purge(struct call *call, struct purge *out)
{
    struct bytes body = call->req->body;
    struct json_scan_value types;
    struct reason why;
    enum status st =
        call_body_within(call, call->limits->max_queue_metadata, "max_queue_metadata");

    if (st != ST_OK)
        return st;
    *out = (struct purge){.messages = body.len == 0, .subscriptions = body.len == 0};
    if (body.len == 0)
        return ST_OK;
    if (json_fault(body, &why))
        return call_explain(call, ST_BAD_BODY, &why);
    types = find_types(body);
    if (types.kind == SCAN_NONE)
        return call_refuse(call, ST_BAD_VALUE,
                           "the body must be an object with the member resource_types");
    if (types.kind != SCAN_ARRAY)
        return call_refuse(call, ST_BAD_BODY, "resource_types must be an array");
    return read_types(call, &types, out);
}

/* POST .../queues/{queue}/purge */
enum status
handle_queue_purge(struct call *call)
{
    struct purge purge;
    enum status st = read_purge(call, &purge);

    if (st == ST_OK && purge.messages)
        st = store_queue_purge(call->store, call->req->now_ms, &call->queue);
    return st == ST_OK ? call_empty(call, 204) : st;
}
