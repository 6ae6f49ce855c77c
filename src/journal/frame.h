/*
 * frame: what a segment is made of (docs/journal.md, "Segments" and "Frames").
 *
 *     0      4096                                                           64 MiB
 *     | head | frame | frame | frame | ... zeros ...                            |
 *              |
 *              head, 64 bytes | records, a multiple of 8
 *
 * A frame is what one commit has written, or a part of it. It is whole if its checksum is
 * right and its nonce is that of its segment: nobody who posts messages knows the nonce, so
 * no body can look like a frame.
 */
#ifndef JOURNAL_FRAME_H
#define JOURNAL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SEGMENT_HEAD_BYTES = 4096,
    SEGMENT_VERSION = 1,
    FRAME_HEAD_BYTES = 64,
    FRAME_VERSION = 1,
    FRAME_BYTES_MAX = 16 << 20, /* with its head */
    NONCE_BYTES = 16
};

/* Features that a reader must know to read a segment. */
enum { SEGMENT_TEST_API = 1 }; /* made with a clock or faults of the test API */
#define SEGMENT_KNOWN_FEATURES ((uint64_t)SEGMENT_TEST_API)

struct segment_head {
    uint32_t version;
    uint64_t required, optional;  /* features */
    uint8_t journal[NONCE_BYTES]; /* the same in all segments of a journal */
    uint8_t nonce[NONCE_BYTES];
    uint64_t first_lsn; /* of its first record, and its name */
    uint64_t bytes;     /* of the file */
    int64_t made_ms;
};

void segment_head_write(uint8_t to[SEGMENT_HEAD_BYTES], const struct segment_head *head);

enum segment_verdict {
    SEGMENT_GOOD,
    SEGMENT_BROKEN, /* it is no head */
    SEGMENT_NEWER   /* whole, but of a version or with features that are not known here */
};

enum segment_verdict
segment_head_read(const uint8_t from[SEGMENT_HEAD_BYTES], struct segment_head *out);

/* Kinds of frames. */
enum {
    FRAME_SEAL = 1
}; /* empty: what stands before it was durable when it was written */

struct frame {
    uint16_t flags;
    uint64_t first_lsn;
    int64_t time_ms; /* the latest of its records' */
    uint32_t count;  /* of records */
    uint32_t length; /* of them in bytes */
};

/* Completes the frame whose records stand behind `to`. O(length): the checksum. */
void frame_seal(uint8_t *to, const struct frame *frame, const uint8_t nonce[NONCE_BYTES]);

/*
 * How long the frame is, with its head, whose FRAME_HEAD_BYTES stand there: as it says, if it
 * can be true. FRAME_HEAD_BYTES for what is none.
 */
size_t frame_size(const uint8_t *head);

/* The nonce that the frame whose head stands there has been sealed with, as it says. */
const uint8_t *frame_nonce(const uint8_t *head);

/* Reads the frame that stands there; false if it is not whole, or not with this nonce. */
bool frame_read(const uint8_t *from, size_t len, const uint8_t nonce[NONCE_BYTES],
                struct frame *out);

/*
 * The first whole frame at or behind an offset, a multiple of 8, with LSNs from
 * `least` on; len if there is none.
 */
size_t frame_search(const uint8_t *from, size_t len, size_t offset, uint64_t least,
                    const uint8_t nonce[NONCE_BYTES], struct frame *out);

#endif
