#include "engine/run.h"

uint64_t
run_bytes(const struct run *r, uint64_t bits)
{
    uint64_t bytes = 0;

    for (; bits != 0; bits &= bits - 1)
        bytes += r->outlines[run_lowest(bits)].length;
    return bytes;
}

void
run_record(const struct run *r, struct store_outline *packed,
           struct store_run_record *out)
{
    size_t count = 0;

    for (uint64_t rest = r->stored; rest != 0; rest &= rest - 1)
        packed[count++] = r->outlines[run_lowest(rest)];
    *out = (struct store_run_record){
        .first = r->first,
        .stored = r->stored,
        .unread = r->unread & r->stored,
        .sealed = r->sealed & r->stored,
        .posted_ms = r->posted_ms,
        .expires_ms = r->expires_ms,
        .outlines = bytes_of((const char *)packed, count * sizeof(*packed)),
        .place = r->place,
    };
}

struct run *
run_of_record(struct mem *mem, const struct store_run_record *record)
{
    struct run *r = mem_calloc(mem, 1, sizeof(*r));
    const char *at = record->outlines.data;

    if (r == NULL)
        return NULL;
    r->first = record->first;
    r->stored = record->stored;
    r->unread = record->unread;
    r->sealed = record->sealed;
    r->posted_ms = record->posted_ms;
    r->expires_ms = record->expires_ms;
    r->place = record->place;
    for (uint64_t rest = r->stored; rest != 0; rest &= rest - 1) {
        memcpy(&r->outlines[run_lowest(rest)], at, sizeof(r->outlines[0]));
        at += sizeof(r->outlines[0]);
    }
    return r;
}
