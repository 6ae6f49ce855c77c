/*
 * seal: bodies of messages that only who has a key can read (docs/adr/0012-encryption.md).
 *
 * A sealed body says itself how it is to be opened, so that whoever keeps it needs to know
 * nothing of it but its first byte, which no JSON text begins with:
 *
 *     mark 1 | key id 8 | salt 16 | number 8 | AES-256-GCM of the body | tag 16
 *
 * The key is HKDF-SHA-256 of one of the master keys and the salt; the nonce is the number, which
 * counts the bodies of the salt. A new salt is drawn at the start, with new keys, and every 2^30
 * bodies. What stands in front of the body, the project and the kind of what the message is in
 * are authenticated with it.
 *
 * Of several keys the first one seals and each opens. A key is 32 bytes:
 *
 *     # a line each
 *     64 hexadecimal digits, or 44 characters of base64
 *
 *   Cost     about a microsecond each way, and what AES takes for the bytes
 *   Threads  any, also while the keys are replaced. Its lock is held for a copy of one key; now
 *            and then for a salt
 *   Memory   of its own 6 KB; GnuTLS takes some for the time of a call, from malloc()
 *   Secrets  copies of keys are wiped
 */
#ifndef CLAIMD_SEAL_SEAL_H
#define CLAIMD_SEAL_SEAL_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"
#include "claimd/json/reason.h"

enum {
    SEAL_MARK = 1,
    SEAL_OVERHEAD = 1 + 8 + 16 + 8 + 16, /* by which a sealed body is longer */
    SEAL_KEYS_MAX = 8,
    SEAL_KEY_ID_DIGITS = 16,
    SEAL_PROJECT_MAX = 1024
};

/* What a body belongs to. It cannot be opened as that of anything else. */
struct seal_scope {
    struct bytes project; /* at most SEAL_PROJECT_MAX bytes */
    uint32_t kind;
};

/* ST_NO_KEY with the id of the key that is not there, once for each; ST_DAMAGED with the id of
 * the one that it does not open with, as often as the power of two goes up. Any thread. */
typedef void
seal_trouble_fn(void *arg, enum status st, const char key_id[SEAL_KEY_ID_DIGITS + 1],
                struct bytes project);

struct seal_config {
    struct mem *mem;          /* borrowed for its life */
    uint64_t bodies_per_salt; /* 0: 2^30 */
    seal_trouble_fn *trouble; /* NULL: nobody is told */
    void *arg;                /* of trouble, borrowed likewise */
};

struct seal; /* opaque */

/* Makes one without keys, owned. ST_NO_MEMORY. */
enum status seal_new(const struct seal_config *config, struct seal **out);
void seal_free(struct seal *s);

/*
 * Takes other keys, a text of lines. ST_BAD_VALUE: *bad_line cannot be taken, and *why says why
 * (a text without any key is one; its line is 0). Then all is as before. ST_NO_MEMORY likewise.
 */
enum status
seal_replace(struct seal *s, struct bytes list, size_t *bad_line, struct reason *why);

/* Gives each the keys of the other. */
void seal_swap(struct seal *s, struct seal *with);

/* True if there is a key to seal with. */
bool seal_ready(struct seal *s);

/*
 * Writes body.len + SEAL_OVERHEAD bytes. ST_NO_KEY: there is none; ST_NO_MEMORY;
 * ST_UNAVAILABLE: the system has no random bytes; ST_BAD_VALUE: the project is too long.
 */
enum status
seal_close(struct seal *s, const struct seal_scope *scope, struct bytes body, char *to);

static inline bool
seal_is_sealed(struct bytes body)
{
    return body.len > 0 && body.data[0] == SEAL_MARK;
}

/* What a sealed body has when it is open; 0 if it is too short to be one. */
static inline size_t
seal_open_len(struct bytes sealed)
{
    return sealed.len < SEAL_OVERHEAD ? 0 : sealed.len - SEAL_OVERHEAD;
}

/*
 * Writes seal_open_len() bytes. ST_NO_KEY: its key is not there; ST_DAMAGED: it is none of ours,
 * not all of it, or not of this scope: nothing is written then but zeros; ST_NO_MEMORY.
 */
enum status
seal_open(struct seal *s, const struct seal_scope *scope, struct bytes sealed, char *to);

/* What it has done so far. */
struct seal_figures {
    uint64_t sealed, opened, no_key, damaged;
    size_t keys; /* that there are now */
};
void seal_measure(struct seal *s, struct seal_figures *out);

/* Writes the ids of the keys, the one that seals first; returns how many. */
size_t seal_key_ids(struct seal *s, char ids[SEAL_KEYS_MAX][SEAL_KEY_ID_DIGITS + 1]);

#endif
