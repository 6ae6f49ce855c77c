#include "redis/key.h"

static void
add_escaped(struct buf *out, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.data[i];

        if (c <= ' ' || c >= 0x7f || strchr("{}/%", c) != NULL)
            buf_printf(out, "%%%02X", c);
        else
            buf_byte(out, (char)c);
    }
}

void
key_of_queue(struct buf *out, const struct store_queue *queue)
{
    buf_str(out, KEY_PREFIX "{");
    add_escaped(out, queue->project);
    buf_str(out, queue->kind == STORE_TOPIC ? "//" : "/");
    add_escaped(out, queue->name);
    buf_str(out, "}:");
}

static const char *
suffix(enum store_kind kind)
{
    return kind == STORE_TOPIC ? ":t" : ":n";
}

void
key_of_names(struct buf *out, struct bytes project, enum store_kind kind)
{
    buf_str(out, KEY_PREFIX "{");
    add_escaped(out, project);
    buf_str(out, "}");
    buf_str(out, suffix(kind));
}

void
key_of_projects(struct buf *out, enum store_kind kind)
{
    buf_str(out, KEY_PREFIX "projects");
    buf_str(out, suffix(kind));
}

void
key_of_due(struct buf *out, unsigned part)
{
    buf_printf(out, KEY_PREFIX "due:%u", part);
}
