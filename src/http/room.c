#include "http/room.h"

#include "claimd/api/api.h"

/*
 * Of libmicrohttpd 0.9.75: the size of a record; how much a read buffer that is full and must
 * grow may overshoot the head; its least alignment.
 */
enum { RECORD = 64, OVERSHOOT = 256, ALIGNMENT = 16 };

/*
 * What stands in an answer's head besides the API's headers: status line, date, length,
 * request id, connection, and the empty line; 190 bytes at most.
 */
enum { FRAME = 256 };

enum { ANSWER = RESPONSE_HEAD_MAX + FRAME };

size_t
room_block(size_t max_head, size_t max_lines)
{
    size_t behind = max_lines * RECORD + ANSWER;
    size_t whole = max_head + OVERSHOOT + behind;

    /* The read buffer begins with half of the block, which may be full of what comes next. */
    return whole > 2 * behind ? whole : 2 * behind;
}

bool
room_suffices(size_t block, const struct room_use *use)
{
    size_t read = use->head + OVERSHOOT > block / 2 ? use->head + OVERSHOOT : block / 2;
    size_t copy = use->cookies == 0 ? 0 : use->cookies + 1 + ALIGNMENT;

    return read + use->records * RECORD + copy + ANSWER <= block;
}
