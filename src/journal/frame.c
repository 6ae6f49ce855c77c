#include "journal/frame.h"

#include "claimd/base/crc32c.h"
#include "claimd/base/invariant.h"
#include "journal/wire.h"

/* Offsets in heads. */
enum {
    HEAD_VERSION = 8,
    HEAD_SIZE = 12,
    HEAD_REQUIRED = 16,
    HEAD_OPTIONAL = 24,
    HEAD_JOURNAL = 32,
    HEAD_NONCE = 48,
    HEAD_LSN = 64,
    HEAD_BYTES = 72,
    HEAD_MADE = 80,
    HEAD_BOOT = 88,
    HEAD_BOOT_OFFSET = 104,
    HEAD_CRC = SEGMENT_HEAD_BYTES - 4
};
enum {
    FRAME_KIND = 4, /* version and flags */
    FRAME_NONCE = 8,
    FRAME_LSN = 24,
    FRAME_TIME = 32,
    FRAME_COUNT = 40,
    FRAME_LENGTH = 44,
    FRAME_ALIGN = 48,
    FRAME_WALL_AHEAD = 52,
    FRAME_CRC = 60
};

enum { ALIGN = 8 }; /* of frames */

static const uint8_t segment_magic[8] = {'c', 'l', 'a', 'i', 'm', 'd', 'J', '\n'};
static const uint8_t frame_magic[4] = {'F', 'r', 'm', '\n'};

void
segment_head_write(uint8_t to[SEGMENT_HEAD_BYTES], const struct segment_head *head)
{
    memset(to, 0, SEGMENT_HEAD_BYTES);
    memcpy(to, segment_magic, sizeof(segment_magic));
    (void)wire_put_u32(to + HEAD_VERSION, head->version);
    (void)wire_put_u32(to + HEAD_SIZE, SEGMENT_HEAD_BYTES);
    (void)wire_put_u64(to + HEAD_REQUIRED, head->required);
    (void)wire_put_u64(to + HEAD_OPTIONAL, head->optional);
    (void)wire_put(to + HEAD_JOURNAL, head->journal, NONCE_BYTES);
    (void)wire_put(to + HEAD_NONCE, head->nonce, NONCE_BYTES);
    (void)wire_put_u64(to + HEAD_LSN, head->first_lsn);
    (void)wire_put_u64(to + HEAD_BYTES, head->bytes);
    (void)wire_put_u64(to + HEAD_MADE, (uint64_t)head->made_ms);
    (void)wire_put(to + HEAD_BOOT, head->boot_id, BOOT_ID_BYTES);
    (void)wire_put_u64(to + HEAD_BOOT_OFFSET, (uint64_t)head->boot_offset_ns);
    (void)wire_put_u32(to + HEAD_CRC, crc32c(0, to, HEAD_CRC));
}

enum segment_verdict
segment_head_read(const uint8_t from[SEGMENT_HEAD_BYTES], struct segment_head *out)
{
    if (memcmp(from, segment_magic, sizeof(segment_magic)) != 0 ||
        wire_u32(from + HEAD_CRC) != crc32c(0, from, HEAD_CRC))
        return SEGMENT_BROKEN;
    *out = (struct segment_head){.version = wire_u32(from + HEAD_VERSION),
                                 .required = wire_u64(from + HEAD_REQUIRED),
                                 .optional = wire_u64(from + HEAD_OPTIONAL),
                                 .first_lsn = wire_u64(from + HEAD_LSN),
                                 .bytes = wire_u64(from + HEAD_BYTES),
                                 .made_ms = wire_i64(from + HEAD_MADE),
                                 .boot_offset_ns = wire_i64(from + HEAD_BOOT_OFFSET)};
    memcpy(out->boot_id, from + HEAD_BOOT, BOOT_ID_BYTES);
    memcpy(out->journal, from + HEAD_JOURNAL, NONCE_BYTES);
    memcpy(out->nonce, from + HEAD_NONCE, NONCE_BYTES);
    if (out->version != SEGMENT_VERSION ||
        wire_u32(from + HEAD_SIZE) != SEGMENT_HEAD_BYTES ||
        (out->required & ~SEGMENT_KNOWN_FEATURES) != 0)
        return SEGMENT_NEWER;
    return SEGMENT_GOOD;
}

/* The checksum over the head without its checksum field, and over the records. */
static uint32_t
checksum(const uint8_t *frame, size_t length)
{
    return crc32c(crc32c(0, frame, FRAME_CRC), frame + FRAME_HEAD_BYTES, length);
}

void
frame_seal(uint8_t *to, const struct frame *frame, const uint8_t nonce[NONCE_BYTES])
{
    ENSURE(frame->length % ALIGN == 0);
    memset(to, 0, FRAME_HEAD_BYTES);
    memcpy(to, frame_magic, sizeof(frame_magic));
    (void)wire_put_u16(to + FRAME_KIND, FRAME_VERSION);
    (void)wire_put_u16(to + FRAME_KIND + 2, frame->flags);
    (void)wire_put(to + FRAME_NONCE, nonce, NONCE_BYTES);
    (void)wire_put_u64(to + FRAME_LSN, frame->first_lsn);
    (void)wire_put_u64(to + FRAME_TIME, (uint64_t)frame->time_ms);
    (void)wire_put_u32(to + FRAME_COUNT, frame->count);
    (void)wire_put_u32(to + FRAME_LENGTH, frame->length);
    (void)wire_put_u32(to + FRAME_ALIGN, ALIGN);
    (void)wire_put_u64(to + FRAME_WALL_AHEAD, (uint64_t)frame->wall_ahead_ms);
    (void)wire_put_u32(to + FRAME_CRC, checksum(to, frame->length));
}

size_t
frame_size(const uint8_t *head)
{
    size_t length = wire_u32(head + FRAME_LENGTH);

    return memcmp(head, frame_magic, sizeof(frame_magic)) != 0 ||
                   length > FRAME_BYTES_MAX - FRAME_HEAD_BYTES
               ? FRAME_HEAD_BYTES
               : FRAME_HEAD_BYTES + length;
}

const uint8_t *
frame_nonce(const uint8_t *head)
{
    return head + FRAME_NONCE;
}

bool
frame_read(const uint8_t *from, size_t len, const uint8_t nonce[NONCE_BYTES],
           struct frame *out)
{
    size_t length;

    if (len < FRAME_HEAD_BYTES || memcmp(from, frame_magic, sizeof(frame_magic)) != 0 ||
        memcmp(from + FRAME_NONCE, nonce, NONCE_BYTES) != 0)
        return false;
    length = wire_u32(from + FRAME_LENGTH);
    if (wire_u16(from + FRAME_KIND) != FRAME_VERSION ||
        length > FRAME_BYTES_MAX - FRAME_HEAD_BYTES || length > len - FRAME_HEAD_BYTES ||
        length % ALIGN != 0 || wire_u32(from + FRAME_CRC) != checksum(from, length))
        return false;
    *out = (struct frame){.flags = wire_u16(from + FRAME_KIND + 2),
                          .first_lsn = wire_u64(from + FRAME_LSN),
                          .time_ms = wire_i64(from + FRAME_TIME),
                          .wall_ahead_ms = wire_i64(from + FRAME_WALL_AHEAD),
                          .count = wire_u32(from + FRAME_COUNT),
                          .length = (uint32_t)length};
    return true;
}

size_t
frame_search(const uint8_t *from, size_t len, size_t offset, uint64_t least,
             const uint8_t nonce[NONCE_BYTES], struct frame *out)
{
    for (; offset + FRAME_HEAD_BYTES <= len; offset += ALIGN)
        if (frame_read(from + offset, len - offset, nonce, out) &&
            out->first_lsn >= least)
            return offset;
    return len;
}
