/*
 * cipher: HKDF-SHA-256 (RFC 5869) and AES-256-GCM, by GnuTLS.
 *
 * Several threads must not share a handle of GnuTLS. Making a handle costs less than a
 * lock or a pool of handles (docs/adr/0012-encryption.md), so each body uses a new one.
 *
 *   Threads  any
 *   Memory   that of GnuTLS for the time of a call, from malloc()
 */
#ifndef SEAL_CIPHER_H
#define SEAL_CIPHER_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"

enum { CIPHER_KEY = 32, CIPHER_NONCE = 12, CIPHER_TAG = 16 };

/* Derives `len` bytes by HKDF. ST_NO_MEMORY. */
enum status cipher_derive(struct bytes master, struct bytes salt, struct bytes info,
                          uint8_t *out, size_t len);

/* Writes text.len + CIPHER_TAG bytes. `authenticated` is not encrypted. ST_NO_MEMORY. */
enum status
cipher_encrypt(const uint8_t key[CIPHER_KEY], const uint8_t nonce[CIPHER_NONCE],
               struct bytes authenticated, struct bytes text, char *to);

/* Writes text.len - CIPHER_TAG bytes; zeros with an error. ST_DAMAGED: not encrypted with
 * these arguments. ST_NO_MEMORY. */
enum status
cipher_decrypt(const uint8_t key[CIPHER_KEY], const uint8_t nonce[CIPHER_NONCE],
               struct bytes authenticated, struct bytes text, char *to);

#endif
