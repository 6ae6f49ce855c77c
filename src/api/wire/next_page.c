#include "api/wire/next_page.h"

#include "api/uri.h"

void
next_page_begin(struct next_page *next, struct buf *out, struct bytes path)
{
    *next = (struct next_page){out, '?'};
    buf_str(out, ",\"links\":[{\"rel\":\"next\",\"href\":\"");
    buf_bytes(out, path);
}

static void
parameter(struct next_page *next, struct bytes name)
{
    buf_byte(next->out, next->mark);
    uri_write(next->out, name);
    buf_byte(next->out, '=');
    next->mark = '&';
}

void
next_page_number(struct next_page *next, const char *name, uint64_t value)
{
    parameter(next, bytes_str(name));
    buf_u64(next->out, value);
}

void
next_page_bool(struct next_page *next, const char *name, bool value)
{
    parameter(next, bytes_str(name));
    buf_str(next->out, value ? "true" : "false");
}

void
next_page_text(struct next_page *next, struct bytes name, struct bytes value)
{
    parameter(next, name);
    uri_write(next->out, value);
}

void
next_page_end(struct next_page *next)
{
    buf_str(next->out, "\"}]");
}

void
next_page_none(struct buf *out)
{
    buf_str(out, ",\"links\":[]");
}
