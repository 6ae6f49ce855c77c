/*
 * line_list: files with one entry per line, such as tokens, certificates, users and keys.
 * Blank lines, and lines that begin with "#", are comments.
 *
 *   Threads  the caller's
 */
#ifndef CLAIMD_JSON_LINE_LIST_H
#define CLAIMD_JSON_LINE_LIST_H

#include "claimd/json/reason.h"

#include <stdint.h>

/* True for a comment. The line is trimmed. */
static inline bool
line_is_comment(struct bytes line)
{
    return line.len == 0 || line.data[0] == '#';
}

/* Handles an entry, which is trimmed. A status other than ST_OK ends the reading. */
typedef enum status line_fn(void *ctx, struct bytes line, struct reason *why);

/* Calls `take` for each entry. Returns the status of `take`, and the number of the failed
 * line in *bad_line, else 0. */
enum status line_list_read(struct bytes list, line_fn *take, void *ctx, size_t *bad_line,
                           struct reason *why);

/* The number of lines of a text, or more. */
size_t line_list_count(struct bytes list);

enum { KEY_RING_MAX = 8, KEY_MOST = 256 };

struct key_id {
    uint8_t bytes[8];
};

/* Secret keys; the first one is in use. Wipe copies. */
struct key_ring {
    size_t count; /* 0: no key */
    struct key {
        size_t len;
        struct key_id id; /* of keys that have one */
        char text[KEY_MOST];
    } keys[KEY_RING_MAX];
};

/* Reads an entry into *out, which will be the next key of the ring. */
typedef enum status key_fn(const struct key_ring *ring, struct bytes line,
                           struct key *out, struct reason *why);

/* Reads a list of keys. ST_BAD_VALUE with a reason, also for too many keys or none
 * (*bad_line is 0 then); or the status of `read`. Wipe *out in any case. */
enum status key_ring_read(struct bytes list, key_fn *read, struct key_ring *out,
                          size_t *bad_line, struct reason *why);

#endif
