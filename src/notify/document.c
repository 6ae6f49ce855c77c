#include "notify/document.h"

#include "claimd/json/string.h"
#include "notify/wishes.h"

void
document_message(struct buf *out, const struct store_delivery *d)
{
    buf_str(out, "{\"body\":");
    buf_bytes(out, d->body);
    buf_str(out, ",\"ttl\":");
    buf_i64(out, d->ttl_s);
    if (d->delay_s > 0) {
        buf_str(out, ",\"delay\":");
        buf_i64(out, d->delay_s);
    }
    buf_str(out, ",\"queue_name\":");
    json_string_write(out, d->queue.name);
    buf_str(out, ",\"Message_Type\":\"Notification\"}");
}

/* The next place of the part, NULL if there is none. */
static const char *
find(struct bytes text, struct bytes part)
{
    return text.len < part.len ? NULL : memmem(text.data, text.len, part.data, part.len);
}

bool
document_fill(struct buf *out, struct bytes inside, struct bytes document)
{
    static const struct bytes mark = BYTES_LIT("\"$zaqar_message$\"");
    size_t most = out->len + document.len + FILLED_MOST;
    struct buf text;
    struct bytes rest;
    const char *at;

    buf_init(&text, out->mem);
    wish_write(&text, inside);
    rest = buf_view(&text);
    while (out->len <= most && (at = find(rest, mark)) != NULL) {
        buf_add(out, rest.data, (size_t)(at - rest.data));
        buf_bytes(out, document);
        rest.len -= (size_t)(at - rest.data) + mark.len;
        rest.data = at + mark.len;
    }
    buf_bytes(out, rest);
    out->failed = out->failed || text.failed;
    buf_fini(&text);
    return out->len <= most;
}

void
document_sentence(struct buf *out, const struct invitation *i)
{
    buf_str(out, i->again ? "You have been unsubscribed from the queue: "
                          : "You are about to be subscribed to the queue: ");
    buf_bytes(out, i->queue);
    buf_str(out, " of the project: ");
    buf_bytes(out, i->project);
    buf_str(out, i->again ? ". To subscribe again" : ". To confirm this");
}

static void
member(struct buf *out, const char *name, struct bytes value)
{
    buf_printf(out, ",\"%s\":", name);
    json_string_write(out, value);
}

static void
write_sentence(struct buf *out, const struct invitation *i)
{
    struct buf text;

    buf_init(&text, out->mem);
    document_sentence(&text, i);
    buf_str(&text,
            ", send SubscribeBody with PUT to URL-Paths, with the headers URL-Signature,"
            " URL-Methods, URL-Paths, URL-Expires and X-Project-ID as given here.");
    member(out, "Message", buf_view(&text));
    out->failed = out->failed || text.failed;
    buf_fini(&text);
}

void
document_invitation(struct buf *out, const struct invitation *i)
{
    buf_str(out, "{\"Message_Type\":");
    json_string_write(out, bytes_str(i->again ? "UnsubscribeConfirmation"
                                              : "SubscriptionConfirmation"));
    write_sentence(out, i);
    member(out, "URL-Signature", i->signature);
    member(out, "URL-Methods", bytes_str("PUT"));
    member(out, "URL-Paths", i->path);
    member(out, "X-Project-ID", i->project);
    member(out, "URL-Expires", i->expires);
    buf_str(out, ",\"SubscribeBody\":{\"confirmed\":true}"
                 ",\"UnsubscribeBody\":{\"confirmed\":false}");
    member(out, "queue_name", i->queue);
    if (bytes_present(i->url)) {
        buf_str(out, ",\"WSGISubscribeURL\":\"");
        buf_bytes(out,
                  i->url); /* an option that was checked, and a path without escapes */
        buf_bytes(out, i->path);
        buf_byte(out, '"');
    }
    buf_byte(out, '}');
}
