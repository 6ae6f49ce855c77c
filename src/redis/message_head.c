#include "redis/message_head.h"

enum {
    POSTED_AT = 0,
    EXPIRES_AT = 8,
    READY_AT = 16,
    COUNT_AT = 32,
    FLAGS_AT = 40,
    CLIENT_AT = 41,
    HEAD_SIZE = 49,
    ID_SIZE = 24
};

enum { FLAG_SUM = 1, FLAG_FOREIGN = 2 };

bool
message_time_read(struct bytes text, size_t at, int64_t *ms)
{
    static const double MOST = 9007199254740992.0; /* 2^53 */
    double value;

    if (text.len < sizeof(value) || at > text.len - sizeof(value))
        return false;
    memcpy(&value, text.data + at, sizeof(value)); /* little-endian, as here */
    if (!(value >= -MOST && value <= MOST))
        return false; /* nor is NaN one */
    *ms = (int64_t)value;
    return true;
}

bool
message_head_read(struct bytes text, struct message_head *out)
{
    struct message_head head = {.checksum = NULL};
    size_t size = HEAD_SIZE;
    unsigned flags;

    if (text.len < HEAD_SIZE || !message_time_read(text, POSTED_AT, &head.posted_ms) ||
        !message_time_read(text, EXPIRES_AT, &head.expires_ms) ||
        !message_time_read(text, READY_AT, &head.ready_ms))
        return false;
    flags = (unsigned char)text.data[FLAGS_AT];
    memcpy(&head.claim_count, text.data + COUNT_AT, sizeof(head.claim_count));
    memcpy(&head.client, text.data + CLIENT_AT, sizeof(head.client));
    if ((flags & FLAG_SUM) != 0) {
        head.checksum = (const struct store_checksum *)(text.data + size);
        size += sizeof(struct store_checksum);
    }
    if ((flags & FLAG_FOREIGN) != 0) {
        head.id = bytes_of(text.data + size, ID_SIZE);
        size += ID_SIZE;
    }
    if (text.len != size)
        return false;
    *out = head;
    return true;
}
