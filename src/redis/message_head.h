/*
 * message_head: what the scripts keep of a message besides its body, as they pack it (scripts/lib/queue.lua):
 * little-endian, no gaps.
 */
#ifndef REDIS_MESSAGE_HEAD_H
#define REDIS_MESSAGE_HEAD_H

#include "claimd/store/types.h"

struct message_head {
    int64_t posted_ms, expires_ms;
    int64_t ready_ms; /* when its delay is over; 0: it has none, or it is over */
    uint32_t claim_count;
    uint64_t client;
    const struct store_checksum *checksum; /* in the text; NULL: none */
    struct bytes id;                       /* that it came with; absent: none */
};

/* A time that Lua has packed as a double. False: the text is too short, or it is no time. */
bool message_time_read(struct bytes text, size_t at, int64_t *ms)
    __attribute__((warn_unused_result));

/* False: it is none; then *out is as it was. */
bool message_head_read(struct bytes text, struct message_head *out)
    __attribute__((warn_unused_result));

#endif
