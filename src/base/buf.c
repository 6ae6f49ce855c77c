#include "claimd/base/buf.h"

#include <stdarg.h>
#include <stdio.h>

void
buf_init(struct buf *b, struct mem *mem)
{
    *b = (struct buf){.mem = mem};
}

void
buf_fini(struct buf *b)
{
    mem_free(b->mem, b->data);
    b->data = NULL;
    b->len = b->cap = 0;
    b->failed = false;
}

void
buf_ration(struct buf *b, size_t free_cap, enum mem_share share)
{
    b->free_cap = free_cap;
    b->share = share;
}

void
buf_reset(struct buf *b, size_t keep)
{
    if (b->cap > keep)
        buf_fini(b);
    b->len = 0;
    b->failed = false;
}

bool
buf_grow(struct buf *b, size_t n)
{
    size_t want = b->cap < 256 ? 256 : b->cap;
    char *grown = NULL;

    if (b->failed)
        return false;
    if (n <= b->cap - b->len)
        return true;
    while (want - b->len < n) {
        if (want > SIZE_MAX / 2) {
            b->failed = true;
            return false;
        }
        want *= 2;
    }
    if (b->share == MEM_FREE || want <= b->free_cap ||
        mem_admits_for(b->mem, want - b->cap, b->share))
        grown = mem_realloc(b->mem, b->data, want);
    if (grown == NULL) {
        b->failed = true;
        return false;
    }
    b->data = grown;
    b->cap = want;
    return true;
}

void
buf_u64(struct buf *b, uint64_t value)
{
    char digits[DECIMAL_CAP];

    buf_add(b, digits, decimal_write(digits, value));
}

void
buf_i64(struct buf *b, int64_t value)
{
    if (value < 0)
        buf_byte(b, '-');
    buf_u64(b, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void
buf_hex(struct buf *b, struct bytes bytes)
{
    if (!buf_reserve(b, 2 * bytes.len))
        return;
    (void)hex_write_bytes(b->data + b->len, bytes);
    b->len += 2 * bytes.len;
}

void
buf_uri(struct buf *b, struct bytes text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        const char escape[3] = {'%', digits[c >> 4], digits[c & 15]};

        if (is_unreserved(text.data[i]))
            buf_byte(b, text.data[i]);
        else
            buf_add(b, escape, sizeof(escape));
    }
}

void
buf_printf(struct buf *b, const char *format, ...)
{
    va_list args, again;
    int need;

    va_start(args, format);
    va_copy(again, args);
    need = vsnprintf(NULL, 0, format, args);
    if (need > 0 && buf_reserve(b, (size_t)need + 1)) {
        (void)vsnprintf(b->data + b->len, (size_t)need + 1, format, again);
        b->len += (size_t)need;
    }
    va_end(again);
    va_end(args);
}
