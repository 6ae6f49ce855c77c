/*
 * buffer: records on their way to the disk, as the frames that they will be.
 *
 * There are two: changes are appended to one while the other is written. They are so large
 * that they need never grow (pages that were never touched take no memory); who may append
 * how much is the journal's business.
 *
 *   Threads  none: the journal's lock, or who writes it out
 */
#ifndef JOURNAL_BUFFER_H
#define JOURNAL_BUFFER_H

#include "journal/frame.h"
#include "journal/record.h"

/* Of changes that may be refused for want of room; the rest is for those that go on longer. */
#define BUFFER_POSTS ((size_t)64 << 20)
#define BUFFER_ROOM  ((size_t)96 << 20)

struct buffer {
    uint8_t *bytes; /* owned */
    size_t used;
    size_t frame_max;  /* bytes of a frame with its head, at most; the owner sets it */
    size_t head;       /* where the frame that is being filled has its head, */
    struct frame open; /* and what will stand in it; count == 0: none is begun */
};

/* ST_NO_MEMORY. */
enum status buffer_init(struct buffer *b);
void buffer_fini(struct buffer *b);

/*
 * Appends a change under this position; there must be room for it. Returns its size; 0: it
 * leaves nothing.
 */
size_t buffer_append(struct buffer *b, uint64_t lsn, struct store_change *change);
size_t buffer_append_mark(struct buffer *b, uint64_t lsn, const struct mark *mark,
                          int64_t now_ms);

/* No more comes. The buffer is frames then, each with its struct frame instead of its head. */
void buffer_close(struct buffer *b);

/* Empties it; keeps a little of its memory. */
void buffer_reset(struct buffer *b);

#endif
