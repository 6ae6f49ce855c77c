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

/* False: it is none. */
bool message_head_read(struct bytes text, struct message_head *out);

#endif
