#include "seal/cipher.h"

#include "claimd/base/invariant.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

static gnutls_datum_t
datum(struct bytes text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text.data, (unsigned)text.len};
}

enum status
cipher_derive(struct bytes master, struct bytes salt, struct bytes info, uint8_t *out,
              size_t len)
{
    uint8_t middle[CIPHER_KEY];
    const gnutls_datum_t secret = datum(master), with = datum(salt), of = datum(info),
                         key = {middle, sizeof(middle)};
    int error = gnutls_hkdf_extract(GNUTLS_MAC_SHA256, &secret, &with, middle);

    if (error == 0)
        error = gnutls_hkdf_expand(GNUTLS_MAC_SHA256, &key, &of, out, len);
    explicit_bzero(middle, sizeof(middle));
    return error == 0 ? ST_OK : ST_NO_MEMORY; /* GnuTLS has these algorithms */
}

static enum status
cipher_open(const uint8_t key[CIPHER_KEY], gnutls_aead_cipher_hd_t *out)
{
    const gnutls_datum_t secret = {(unsigned char *)(uintptr_t)key, CIPHER_KEY};

    return gnutls_aead_cipher_init(out, GNUTLS_CIPHER_AES_256_GCM, &secret) == 0
               ? ST_OK
               : ST_NO_MEMORY;
}

enum status
cipher_encrypt(const uint8_t key[CIPHER_KEY], const uint8_t nonce[CIPHER_NONCE],
               struct bytes authenticated, struct bytes text, char *to)
{
    size_t len = text.len + CIPHER_TAG;
    gnutls_aead_cipher_hd_t cipher;
    enum status st = cipher_open(key, &cipher);
    int error;

    if (st != ST_OK)
        return st;
    error = gnutls_aead_cipher_encrypt(cipher, nonce, CIPHER_NONCE, authenticated.data,
                                       authenticated.len, CIPHER_TAG, text.data, text.len,
                                       to, &len);
    gnutls_aead_cipher_deinit(cipher);
    ENSURE(error != 0 || len == text.len + CIPHER_TAG);
    return error == 0 ? ST_OK : ST_NO_MEMORY; /* the only possible error */
}

enum status
cipher_decrypt(const uint8_t key[CIPHER_KEY], const uint8_t nonce[CIPHER_NONCE],
               struct bytes authenticated, struct bytes text, char *to)
{
    size_t plain_len = text.len - CIPHER_TAG, len = plain_len;
    gnutls_aead_cipher_hd_t cipher;
    enum status st = cipher_open(key, &cipher);
    int error;

    if (st != ST_OK)
        return st;
    error = gnutls_aead_cipher_decrypt(cipher, nonce, CIPHER_NONCE, authenticated.data,
                                       authenticated.len, CIPHER_TAG, text.data, text.len,
                                       to, &len);
    gnutls_aead_cipher_deinit(cipher);
    if (error == 0)
        return ST_OK;
    memset(to, 0, plain_len); /* the unauthenticated text must not be used */
    return error == GNUTLS_E_MEMORY_ERROR ? ST_NO_MEMORY : ST_DAMAGED;
}
