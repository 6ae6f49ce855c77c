#include "journal/buffer.h"

#include "claimd/base/invariant.h"

#include <assert.h> /* static_assert */
#include <string.h>
#include <sys/mman.h>

/* A head that splits what would be too long for a frame needs room, too. */
enum { SPLITS = 4096, KEEP_BYTES = 1 << 20 };

static const size_t mapped = BUFFER_ROOM + FRAME_BYTES_MAX + SPLITS;

static_assert(sizeof(struct frame) <= FRAME_HEAD_BYTES, "it stands there until the seal");

enum status
buffer_init(struct buffer *b)
{
    void *bytes = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    *b = (struct buffer){.bytes = NULL};
    if (bytes == MAP_FAILED)
        return ST_NO_MEMORY;
    b->bytes = bytes;
    return ST_OK;
}

void
buffer_fini(struct buffer *b)
{
    if (b->bytes != NULL)
        (void)munmap(b->bytes, mapped); /* fails only when misused */
    b->bytes = NULL;
}

static void
begin_frame(struct buffer *b, uint64_t lsn)
{
    b->head = b->used;
    b->open = (struct frame){.first_lsn = lsn};
    b->used += FRAME_HEAD_BYTES;
}

void
buffer_close(struct buffer *b)
{
    if (b->open.count == 0)
        return;
    memcpy(b->bytes + b->head, &b->open, sizeof(b->open));
    b->open.count = 0;
}

/* The record of `size` bytes that was written behind the used ones is in. */
static size_t
take_in(struct buffer *b, uint64_t lsn, size_t size, int64_t now_ms)
{
    if (b->open.count > 0 && b->used - b->head + size > b->frame_max) {
        const uint8_t *record = b->bytes + b->used;

        buffer_close(b); /* it begins another frame */
        begin_frame(b, lsn);
        memmove(b->bytes + b->used, record, size);
    }
    ENSURE(b->used - b->head + size <= b->frame_max && b->used + size <= mapped);
    b->used += size;
    b->open.length += (uint32_t)size;
    b->open.count++;
    if (b->open.time_ms < now_ms)
        b->open.time_ms = now_ms;
    return size;
}

size_t
buffer_append(struct buffer *b, uint64_t lsn, struct store_change *change)
{
    bool begun = b->open.count > 0;
    size_t size;

    if (!begun)
        begin_frame(b, lsn);
    size = record_write(b->bytes + b->used, change);
    if (size > 0)
        return take_in(b, lsn, size, change->now_ms);
    if (!begun)
        b->used = b->head;
    return 0;
}

size_t
buffer_append_mark(struct buffer *b, uint64_t lsn, const struct mark *mark,
                   int64_t now_ms)
{
    if (b->open.count == 0)
        begin_frame(b, lsn);
    return take_in(b, lsn, record_write_mark(b->bytes + b->used, mark, now_ms), now_ms);
}

void
buffer_reset(struct buffer *b)
{
    if (b->used > KEEP_BYTES)
        (void)madvise(b->bytes + KEEP_BYTES, mapped - KEEP_BYTES, MADV_DONTNEED);
    b->used = 0;
    b->open.count = 0;
}
