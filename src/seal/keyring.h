/*
 * keyring: the master keys, and their names. A key is named by what HKDF makes of it, which
 * tells nothing of it.
 *
 *   Threads  none: whoever has it sees to that
 */
#ifndef SEAL_KEYRING_H
#define SEAL_KEYRING_H

#include "claimd/json/reason.h"
#include "seal/cipher.h"

enum { KEYRING_KEYS = 8, KEY_ID_DIGITS = 16 }; /* SEAL_KEYS_MAX, SEAL_KEY_ID_DIGITS */

struct key_id {
    uint8_t bytes[8];
};

struct master_key {
    struct key_id id;
    uint8_t secret[CIPHER_KEY];
};

struct keyring {
    size_t count; /* 0: there is none */
    struct master_key keys[KEYRING_KEYS];
};

static inline bool
key_id_equal(const struct key_id *a, const struct key_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void key_id_write(const struct key_id *id, char out[KEY_ID_DIGITS + 1]);

/* As seal_replace(); what is in *out is to be wiped whatever comes of it. */
enum status keyring_read(struct bytes list, struct keyring *out, size_t *bad_line,
                         struct reason *why);

/* NULL: it is not there. */
const struct master_key *
keyring_find(const struct keyring *ring, const struct key_id *id);

#endif
