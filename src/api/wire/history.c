#include "api/wire/history.h"

#include "claimd/base/clock.h"
#include "claimd/json/string.h"

static void
member(struct buf *out, const char *name, struct bytes value)
{
    if (!bytes_present(value))
        return;
    buf_printf(out, ",\"%s\":", name);
    json_string_write(out, value);
}

static void
write_queue(struct buf *out, const struct history_entry *e)
{
    if (!bytes_present(e->queue.name))
        return;
    member(out, "project", e->queue.project);
    member(out, e->queue.kind == STORE_TOPIC ? "topic" : "queue", e->queue.name);
    if (e->event == HISTORY_DEAD_LETTER)
        member(out, "to", e->target.name);
}

/* Ids have nothing that would have to be escaped. */
static void
write_ids(struct buf *out, struct bytes ids)
{
    bool first = true;

    buf_str(out, ",\"ids\":[");
    while (ids.len > 0) {
        struct bytes id = bytes_cut(&ids, ' ');

        buf_str(out, first ? "\"" : ",\"");
        buf_bytes(out, id);
        buf_byte(out, '"');
        first = false;
    }
    buf_byte(out, ']');
}

void
history_write(struct buf *out, const struct history_entry *e)
{
    char at[CLOCK_TEXT_CAP];

    clock_text(e->at_ms, at);
    buf_str(out, "{\"number\":");
    buf_u64(out, e->number);
    buf_printf(out,
               ",\"event\":\"%s\",\"at\":\"%s\",\"at_ms\":", history_event_name(e->event),
               at);
    buf_i64(out, e->at_ms);
    write_queue(out, e);
    member(out, "client", e->client);
    if (e->action != NULL)
        member(out, "action", bytes_str(e->action));
    member(out, "claim", e->claim);
    if (e->ends_ms != 0) {
        buf_str(out, ",\"ends_ms\":");
        buf_i64(out, e->ends_ms);
    }
    if (e->status != 0)
        buf_printf(out, ",\"status\":%d", e->status);
    member(out, "text", e->text);
    if (e->count > 0) {
        buf_str(out, ",\"messages\":");
        buf_u64(out, e->count);
        write_ids(out, e->ids);
    }
    buf_byte(out, '}');
}

bool
history_read_events(struct bytes text, uint32_t *out)
{
    uint32_t set = 0;

    while (bytes_present(text)) {
        struct bytes name = bytes_trim(bytes_cut(&text, ','));
        unsigned i = 0;

        while (i < HISTORY_EVENTS && !bytes_equal_str(name, history_event_name(i)))
            i++;
        if (i == HISTORY_EVENTS)
            return false;
        set |= UINT32_C(1) << i;
    }
    *out = set;
    return true;
}
