/*
 * line_list: files with an entry a line, such as tokens, certificates, users and keys.
 * Blank lines and lines that begin with "#" are comments. It also has the rings of secret
 * keys that are read from such files (struct key_ring), and those that threads share
 * (struct shared_keys).
 *
 *   Threads  shared_keys: any. The rest: one at a time
 */
#ifndef CLAIMD_JSON_LINE_LIST_H
#define CLAIMD_JSON_LINE_LIST_H

#include "claimd/base/lock.h"
#include "claimd/json/reason.h"

#include <stdint.h>

/* True if a trimmed line is a comment. */
static inline bool
line_is_comment(struct bytes line)
{
    return line.len == 0 || line.data[0] == '#';
}

/* Reads an entry, which is trimmed. Another status than ST_OK ends the reading. */
typedef enum status line_fn(void *ctx, struct bytes line, struct reason *why);

/* Calls `read` for each entry. Returns its status. *bad_line is the number of the line if
 * that is an error, else 0. */
enum status line_list_read(struct bytes list, line_fn *read, void *ctx, size_t *bad_line,
                           struct reason *why);

/* The number of lines, at most. */
size_t line_list_count(struct bytes list);

/* ------------------------------------------------------------------ keys */

enum { KEY_RING_MAX = 8, KEY_MOST = 256 };

struct key_id {
    uint8_t bytes[8];
};

/* Secret keys. The first one is in use, the others are for what was made with them.
 * Copies must be wiped. */
struct key_ring {
    size_t count;
    struct key {
        size_t len;
        struct key_id id; /* of a key that has an id */
        char text[KEY_MOST];
    } keys[KEY_RING_MAX];
};

/* Reads an entry into *out, which is the place after the keys of the ring. */
typedef enum status key_fn(const struct key_ring *ring, struct bytes line,
                           struct key *out, struct reason *why);

/* Keys that threads use while others replace them. Zero has no keys. */
struct shared_keys {
    struct lock lock;
    struct key_ring ring; /* guarded by the lock */
    /* Called after the ring was replaced, with the lock held; or NULL. */
    void (*replaced)(struct shared_keys *keys);
};

void
shared_keys_init(struct shared_keys *keys, void (*replaced)(struct shared_keys *keys));

/* Wipes the keys. */
void shared_keys_fini(struct shared_keys *keys);

/* Copies the keys. The caller wipes *out. */
void shared_keys_copy(struct shared_keys *keys, struct key_ring *out);

/*
 * Replaces the keys by those of a list. ST_BAD_VALUE with a reason, also for too many or
 * no keys (*bad_line is 0 then); other errors of `read`. With an error the keys are
 * unchanged.
 */
enum status shared_keys_replace(struct shared_keys *keys, struct bytes list, key_fn *read,
                                size_t *bad_line, struct reason *why);

/* Exchanges the keys of both. */
void shared_keys_swap(struct shared_keys *keys, struct shared_keys *with);

#endif
