/*
 * buf: a growing buffer of bytes, for building responses.
 *
 * Appending never returns a status. After a failed allocation the buffer is `failed`,
 * later appends have no effect, and the owner checks once at the end.
 *
 *   Cost     amortised O(1) per byte
 *   Threads  one
 */
#ifndef CLAIMD_BASE_BUF_H
#define CLAIMD_BASE_BUF_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"

struct buf {
    struct mem *mem;
    char *data; /* owned; NULL before the first append */
    size_t len;
    size_t cap;
    size_t free_cap; /* see buf_ration() */
    enum mem_share share;
    bool failed; /* an append failed without memory */
};

void buf_init(struct buf *b, struct mem *mem);
void buf_fini(struct buf *b);

/* Makes the buffer fail if it would grow beyond free_cap bytes and its account does not
 * admit that for this share. For buffers that clients can make large, and keep. */
void buf_ration(struct buf *b, size_t free_cap, enum mem_share share);

/* Empties the buffer, and clears the failure. Keeps at most `keep` bytes of memory. */
void buf_reset(struct buf *b, size_t keep);

/* The rare part of buf_reserve(). */
bool buf_grow(struct buf *b, size_t n);

/* Reserves n more bytes. False, and `failed`, without memory. */
static inline bool
buf_reserve(struct buf *b, size_t n)
{
    return n <= b->cap - b->len && !b->failed ? true : buf_grow(b, n);
}

static inline void
buf_add(struct buf *b, const void *data, size_t len)
{
    if (len == 0 || !buf_reserve(b, len))
        return;
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

static inline void
buf_byte(struct buf *b, char c)
{
    if (!buf_reserve(b, 1))
        return;
    b->data[b->len++] = c;
}

void buf_u64(struct buf *b, uint64_t value);
void buf_i64(struct buf *b, int64_t value);

/* Adds two lower-case hexadecimal digits for each byte. */
void buf_hex(struct buf *b, struct bytes bytes);

/* Adds a text for a URI: percent-encodes all but unreserved characters (RFC 3986, 2.3).
 */
void buf_uri(struct buf *b, struct bytes text);
void
buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void
buf_bytes(struct buf *b, struct bytes text)
{
    buf_add(b, text.data, text.len);
}

static inline void
buf_str(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

static inline struct bytes
buf_view(const struct buf *b)
{
    return bytes_of(b->data == NULL ? "" : b->data, b->len);
}

#endif
