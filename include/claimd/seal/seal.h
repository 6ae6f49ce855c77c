/*
 * seal: encrypts and decrypts the bodies of messages (docs/adr/0012-encryption.md).
 *
 * An encrypted (sealed) body contains all that is needed to decrypt it, except the key. A
 * store needs to know only its first byte, with which no JSON text begins:
 *
 *     mark 1 | key id 8 | salt 16 | number 8 | AES-256-GCM of the body | tag 16
 *
 * The key of a body is HKDF-SHA-256 of a master key and the salt. The nonce is the
 * number, which counts the bodies of the salt. A new salt is drawn at the start, with new
 * keys, and after 2^30 bodies. The fields before the body, the project, and the kind of
 * the queue are authenticated.
 *
 * The first of several master keys encrypts, and all of them decrypt. A master key has 32
 * bytes:
 *
 *     # a key on each line
 *     64 hexadecimal digits, or 44 characters of base64
 *
 *   Cost     about a microsecond, and the time of AES for the bytes
 *   Threads  any. The lock is held for a copy of a key, and sometimes to draw a salt
 *   Memory   6 KB; GnuTLS uses some during a call, from malloc()
 *   Secrets  copies of keys are wiped
 */
#ifndef CLAIMD_SEAL_SEAL_H
#define CLAIMD_SEAL_SEAL_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"
#include "claimd/json/reason.h"

enum {
    SEAL_MARK = 1,
    SEAL_OVERHEAD = 1 + 8 + 16 + 8 + 16, /* extra bytes of a sealed body */
    SEAL_KEYS_MAX = 8,
    SEAL_KEY_ID_DIGITS = 16,
    SEAL_PROJECT_MAX = 1024
};

/* The scope of a body. The body cannot be decrypted in another scope. */
struct seal_scope {
    struct bytes project; /* at most SEAL_PROJECT_MAX bytes */
    uint32_t kind;
};

/*
 * Reports failures, from any thread. ST_NO_KEY: the key with this id is missing, once for
 * each. ST_DAMAGED: the body could not be decrypted with this key; the 1st, 2nd, 4th, 8th
 * ... time.
 */
typedef void
seal_trouble_fn(void *arg, enum status st, const char key_id[SEAL_KEY_ID_DIGITS + 1],
                struct bytes project);

struct seal_config {
    struct mem *mem;          /* borrowed for the life of the seal */
    uint64_t bodies_per_salt; /* 0: 2^30 */
    seal_trouble_fn *trouble; /* NULL: failures are not reported */
    void *arg;                /* of `trouble`, borrowed likewise */
};

struct seal; /* opaque */

/* Makes a seal without keys, owned. ST_NO_MEMORY. */
enum status seal_new(const struct seal_config *config, struct seal **out);
void seal_free(struct seal *s);

/* Replaces the keys by those of a text of lines. ST_BAD_VALUE: *bad_line is invalid (0:
 * there is no key), with a reason. ST_NO_MEMORY. With an error the keys are unchanged. */
enum status
seal_replace(struct seal *s, struct bytes list, size_t *bad_line, struct reason *why);

/* Exchanges the keys of both. */
void seal_swap(struct seal *s, struct seal *with);

/* True if there is a key. */
bool seal_ready(struct seal *s);

/*
 * Encrypts a body: writes body.len + SEAL_OVERHEAD bytes. ST_NO_KEY: there is no key.
 * ST_UNAVAILABLE: the system has no random bytes. ST_BAD_VALUE: the project is too long.
 * ST_NO_MEMORY.
 */
enum status
seal_close(struct seal *s, const struct seal_scope *scope, struct bytes body, char *to);

static inline bool
seal_is_sealed(struct bytes body)
{
    return body.len > 0 && body.data[0] == SEAL_MARK;
}

/* The length of the decrypted body; 0: the text is too short to be a sealed body. */
static inline size_t
seal_open_len(struct bytes sealed)
{
    return sealed.len < SEAL_OVERHEAD ? 0 : sealed.len - SEAL_OVERHEAD;
}

/*
 * Decrypts a body: writes seal_open_len() bytes. ST_NO_KEY: its key is missing.
 * ST_DAMAGED: the body was changed, truncated, or is of another scope; only zeros are
 * written. ST_NO_MEMORY.
 */
enum status
seal_open(struct seal *s, const struct seal_scope *scope, struct bytes sealed, char *to);

/* Numbers of bodies since the start, and the current number of keys. */
struct seal_metrics {
    uint64_t sealed, opened, no_key, damaged;
    size_t keys;
};
void seal_measure(struct seal *s, struct seal_metrics *out);

/* Writes the ids of the keys, in order. Returns their number. */
size_t seal_key_ids(struct seal *s, char ids[SEAL_KEYS_MAX][SEAL_KEY_ID_DIGITS + 1]);

#endif
