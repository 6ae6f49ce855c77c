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

static int64_t
read_ms(struct bytes text, size_t at)
{
    double value;

    memcpy(&value, text.data + at, sizeof(value)); /* as here */
    return (int64_t)value;
}

bool
message_head_read(struct bytes text, struct message_head *out)
{
    size_t size = HEAD_SIZE;
    unsigned flags;

    *out = (struct message_head){.posted_ms = 0};
    if (text.len < HEAD_SIZE)
        return false;
    flags = (unsigned char)text.data[FLAGS_AT];
    out->posted_ms = read_ms(text, POSTED_AT);
    out->expires_ms = read_ms(text, EXPIRES_AT);
    out->ready_ms = read_ms(text, READY_AT);
    memcpy(&out->claim_count, text.data + COUNT_AT, sizeof(out->claim_count));
    memcpy(&out->client, text.data + CLIENT_AT, sizeof(out->client));
    if ((flags & FLAG_SUM) != 0) {
        out->checksum = (const struct store_checksum *)(text.data + size);
        size += sizeof(struct store_checksum);
    }
    if ((flags & FLAG_FOREIGN) != 0) {
        out->id = bytes_of(text.data + size, ID_SIZE);
        size += ID_SIZE;
    }
    return text.len == size;
}
