/*
 * frame: the format of a segment (docs/journal.md, "Segments" and "Frames").
 *
 *     0      4096                                                           64 MiB
 *     | head | frame | frame | frame | ... zeros ...                            |
 *              |
 *              head, 64 bytes | records, a multiple of 8
 *
 * A commit writes one or more frames. A frame is whole if its checksum is right and its
 * nonce is that of its segment. Clients do not know the nonce, so no body can look like a
 * frame.
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
    NONCE_BYTES = 16,
    BOOT_ID_BYTES = 16
};

/* Features of a segment that a reader must know. */
enum {
    SEGMENT_TEST_API = 1, /* made with a clock or faults of the test API */
    SEGMENT_BODIES = 2,   /* the journal has body files */
    SEGMENT_UNIQUE = 4,   /* details may have the key of a unique message, and there may
                           * be queues of schedules */
    SEGMENT_CAUSES = 8    /* details may have the cause of a dead letter, and queues their
                           * last pause */
};
#define SEGMENT_KNOWN_FEATURES                                                           \
    ((uint64_t)(SEGMENT_TEST_API | SEGMENT_BODIES | SEGMENT_UNIQUE | SEGMENT_CAUSES))

struct segment_head {
    uint32_t version;
    uint64_t required, optional;  /* features */
    uint8_t journal[NONCE_BYTES]; /* the same in all segments of a journal */
    uint8_t nonce[NONCE_BYTES];
    uint64_t first_lsn; /* of its first record, and its name */
    uint64_t bytes;     /* of the file */
    int64_t made_ms;

    /* The boot of the machine, and the time of the store less the nanoseconds since then.
     * boot_id all zeros: unknown. */
    uint8_t boot_id[BOOT_ID_BYTES];
    int64_t boot_offset_ns;
};

void segment_head_write(uint8_t to[SEGMENT_HEAD_BYTES], const struct segment_head *head);

enum segment_verdict {
    SEGMENT_GOOD,
    SEGMENT_BROKEN, /* no head */
    SEGMENT_NEWER   /* whole, but with an unknown version or features */
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
    int64_t time_ms;       /* of its latest record */
    int64_t wall_ahead_ms; /* the wall clock less the clock of the store */
    uint32_t count;        /* of records */
    uint32_t length;       /* of the records in bytes */
};

/* Writes the head of a frame, whose records stand behind it already. O(length): the
 * checksum. */
void frame_seal(uint8_t *to, const struct frame *frame, const uint8_t nonce[NONCE_BYTES]);

/* The size of a frame, as its head (FRAME_HEAD_BYTES) says, if that is possible; else
 * FRAME_HEAD_BYTES. */
size_t frame_size(const uint8_t *head);

/* The nonce in the head of a frame. */
const uint8_t *frame_nonce(const uint8_t *head);

/* Reads a frame; false if it is not whole, or has another nonce. */
bool frame_read(const uint8_t *from, size_t len, const uint8_t nonce[NONCE_BYTES],
                struct frame *out);

/* The offset of the first whole frame at or behind `offset` (a multiple of 8) with LSNs
 * from `least` on; len if there is none. */
size_t frame_search(const uint8_t *from, size_t len, size_t offset, uint64_t least,
                    const uint8_t nonce[NONCE_BYTES], struct frame *out);

#endif
