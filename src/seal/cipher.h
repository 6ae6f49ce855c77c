/*
 * cipher: HKDF-SHA-256 (RFC 5869) and AES-256-GCM, by GnuTLS.
 *
 * A handle of GnuTLS is not for several threads at once, and making one costs less than the lock
 * or the pool that would be needed to keep some (docs/adr/0012-encryption.md): so each body has
 * its own.
 */
#ifndef SEAL_CIPHER_H
#define SEAL_CIPHER_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"

enum { CIPHER_KEY = 32, CIPHER_NONCE = 12, CIPHER_TAG = 16 };

/* ST_NO_MEMORY. */
enum status cipher_derive(struct bytes master, struct bytes salt, struct bytes info,
                          uint8_t *out, size_t len);

/* Writes text.len + CIPHER_TAG bytes. ST_NO_MEMORY. */
enum status
cipher_encrypt(const uint8_t key[CIPHER_KEY], const uint8_t nonce[CIPHER_NONCE],
               struct bytes authenticated, struct bytes text, char *to);

/* Writes text.len - CIPHER_TAG bytes, zeros unless it is ST_OK. ST_DAMAGED, ST_NO_MEMORY. */
enum status
cipher_decrypt(const uint8_t key[CIPHER_KEY], const uint8_t nonce[CIPHER_NONCE],
               struct bytes authenticated, struct bytes text, char *to);

#endif
