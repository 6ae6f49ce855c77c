/*
 * line_list: files with an entry a line, such as tokens, certificates, users and keys. Blank lines, and those that
 * begin with "#", are comments.
 *
 *   Threads  none: the caller sees to that
 */
#ifndef CLAIMD_JSON_LINE_LIST_H
#define CLAIMD_JSON_LINE_LIST_H

#include "claimd/json/reason.h"

#include <stdint.h>

/* Is it a comment? The line is trimmed. */
static inline bool
line_is_comment(struct bytes line)
{
    return line.len == 0 || line.data[0] == '#';
}

/* Takes an entry, which is trimmed. Another status than ST_OK ends the reading. */
typedef enum status line_fn(void *ctx, struct bytes line, struct reason *why);

/* Calls `take` for each entry. Its status; *bad_line is the number of its line then, else 0. */
enum status line_list_read(struct bytes list, line_fn *take, void *ctx, size_t *bad_line,
                           struct reason *why);

/* How many lines a text has, at most. */
size_t line_list_count(struct bytes list);

enum { KEY_RING_MAX = 8, KEY_MOST = 256 };

struct key_id {
    uint8_t bytes[8];
};

/* Secret keys, the one in use first. A copy is to be wiped. */
struct key_ring {
    size_t count; /* 0: no key */
    struct key {
        size_t len;
        struct key_id id; /* of a key that has one */
        char text[KEY_MOST];
    } keys[KEY_RING_MAX];
};

/* Reads an entry into *out, whose place is behind the keys of the ring. */
typedef enum status key_fn(const struct key_ring *ring, struct bytes line,
                           struct key *out, struct reason *why);

/* Reads a list of keys. ST_BAD_VALUE with a reason, also for too many or for none (*bad_line is 0 then); that of
 * `read`. *out is to be wiped in any case. */
enum status key_ring_read(struct bytes list, key_fn *read, struct key_ring *out,
                          size_t *bad_line, struct reason *why);

#endif
