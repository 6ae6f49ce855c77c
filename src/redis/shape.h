/*
 * shape: what the response of a script may look like, and the one place where that is checked.
 *
 * A response is a list: a status (enum script_answer), the lead, and groups of words. With a status
 * other than OK it may be the status alone. Each word has a kind:
 *
 *     i  a whole number of 2^53 at most, either sign; also as a text
 *     n  the same, not negative
 *     2  the same, 2 at most
 *     t  a text
 *     k  an id of 24 bytes, or an empty text
 *     h  the head of a message (message_head.h)
 *     c  a claim as queue_image.lua packs it, or an empty text
 *
 * The bounds of numbers are those of Lua, and they are such that sums and differences of two fit an
 * int64_t.
 *
 *   Cost     O(words)
 */
#ifndef REDIS_SHAPE_H
#define REDIS_SHAPE_H

#include "claimd/base/bytes.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>

/* The statuses of responses, as lib/queue.lua has them. */
enum script_answer {
    ANSWER_OK,
    ANSWER_AGAIN,
    ANSWER_NOT_FOUND,
    ANSWER_CHANGED,
    ANSWER_CLAIMED,
    ANSWER_NOT_CLAIMED,
    ANSWER_NO_ROOM,
    ANSWER_TOO_LARGE,
    ANSWER_NOT_SEALED,
    ANSWER_SEALED,
    ANSWER_CONFLICT,
    ANSWER_FEED,  /* it needs S and U, */
    ANSWER_FENCE, /* or F: lib/queue.lua */
    ANSWER_SETTLE /* as ANSWER_AGAIN, and queue_settle must be called before */
};

enum { SHAPE_CLAIM_SIZE = 40 }; /* of the kind c */

/* The request says how many groups there may be. Or any number of them: the reader takes what room it
 * needs from the response. */
#define SHAPE_ASKED (SIZE_MAX - 1)
#define SHAPE_ANY   SIZE_MAX

struct shape {
    const char *lead; /* kinds of its words; it may end at a '|' */
    const char *
        group; /* kinds of the words of a group; behind a '|': of those that follow, behind an
                          empty text */
    size_t most; /* groups of the first kind, SHAPE_ASKED or SHAPE_ANY */
};

/* Does the response have this shape? `asked`: groups, for SHAPE_ASKED. */
bool shape_check(const redisReply *response, const struct shape *shape, size_t asked);

/* The whole number that a word is. False: it is none. */
bool shape_integer(const redisReply *word, int64_t *out);

#endif
