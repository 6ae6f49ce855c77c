#include "api/link.h"

#include "api/uri.h"

void
link_begin(struct link *link, struct buf *out, struct bytes path)
{
    *link = (struct link){out, '?'};
    buf_str(out, ",\"links\":[{\"rel\":\"next\",\"href\":\"");
    buf_bytes(out, path);
}

static void
parameter(struct link *link, struct bytes name)
{
    buf_byte(link->out, link->mark);
    uri_write(link->out, name);
    buf_byte(link->out, '=');
    link->mark = '&';
}

void
link_number(struct link *link, const char *name, uint64_t value)
{
    parameter(link, bytes_str(name));
    buf_u64(link->out, value);
}

void
link_bool(struct link *link, const char *name, bool value)
{
    parameter(link, bytes_str(name));
    buf_str(link->out, value ? "true" : "false");
}

void
link_text(struct link *link, struct bytes name, struct bytes value)
{
    parameter(link, name);
    uri_write(link->out, value);
}

void
link_end(struct link *link)
{
    buf_str(link->out, "\"}]");
}

void
link_none(struct buf *out)
{
    buf_str(out, ",\"links\":[]");
}
