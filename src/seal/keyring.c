#include "seal/keyring.h"

#include <gnutls/gnutls.h>

enum { HEX_DIGITS = 2 * CIPHER_KEY, BASE64_DIGITS = 44 };

void
key_id_write(const struct key_id *id, char out[KEY_ID_DIGITS + 1])
{
    for (size_t i = 0; i < sizeof(id->bytes); i++)
        hex_write(out + 2 * i, id->bytes[i], 2);
    out[KEY_ID_DIGITS] = '\0';
}

const struct master_key *
keyring_find(const struct keyring *ring, const struct key_id *id)
{
    for (size_t i = 0; i < ring->count; i++)
        if (key_id_equal(&ring->keys[i].id, id))
            return &ring->keys[i];
    return NULL;
}

static bool
read_hex(struct bytes line, uint8_t out[CIPHER_KEY])
{
    const gnutls_datum_t text = {(unsigned char *)(uintptr_t)line.data,
                                 (unsigned)line.len};
    size_t len = CIPHER_KEY;

    return line.len == HEX_DIGITS && gnutls_hex_decode(&text, out, &len) == 0 &&
           len == CIPHER_KEY;
}

static bool
read_base64(struct bytes line, uint8_t out[CIPHER_KEY])
{
    const gnutls_datum_t text = {(unsigned char *)(uintptr_t)line.data,
                                 (unsigned)line.len};
    gnutls_datum_t raw;
    bool good;

    if (line.len != BASE64_DIGITS || gnutls_base64_decode2(&text, &raw) != 0)
        return false;
    good = raw.size == CIPHER_KEY;
    if (good)
        memcpy(out, raw.data, CIPHER_KEY);
    explicit_bzero(raw.data, raw.size);
    gnutls_free(raw.data);
    return good;
}

static enum status
name_key(struct master_key *key)
{
    static const struct bytes info = BYTES_LIT("claimd key id");

    return cipher_derive(bytes_of((const char *)key->secret, sizeof(key->secret)),
                         BYTES_NONE, info, key->id.bytes, sizeof(key->id.bytes));
}

static enum status
read_key(struct bytes line, struct keyring *ring, struct reason *why)
{
    struct master_key *key = &ring->keys[ring->count];
    enum status st;

    if (line.len == 0 || line.data[0] == '#')
        return ST_OK;
    if (ring->count == KEYRING_KEYS)
        return reason_give(why, ST_BAD_VALUE, "the file has more than %d keys",
                           KEYRING_KEYS);
    if (!read_hex(line, key->secret) && !read_base64(line, key->secret))
        return reason_give(
            why, ST_BAD_VALUE,
            "a key must be %d bytes, as %d hexadecimal digits or %d characters of base64",
            CIPHER_KEY, HEX_DIGITS, BASE64_DIGITS);
    st = name_key(key);
    if (st == ST_OK && keyring_find(ring, &key->id) != NULL)
        return reason_give(why, ST_BAD_VALUE, "the file has this key twice");
    if (st == ST_OK)
        ring->count++;
    return st;
}

enum status
keyring_read(struct bytes list, struct keyring *out, size_t *bad_line, struct reason *why)
{
    enum status st = ST_OK;

    *bad_line = 0;
    out->count = 0;
    for (size_t line = 1; st == ST_OK && bytes_present(list); line++) {
        st = read_key(bytes_trim(bytes_cut(&list, '\n')), out, why);
        if (st != ST_OK)
            *bad_line = line;
    }
    if (st == ST_OK && out->count == 0)
        return reason_give(why, ST_BAD_VALUE, "the file has no key");
    return st;
}
