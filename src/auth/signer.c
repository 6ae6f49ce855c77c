#include "claimd/auth/signer.h"

#include "claimd/base/invariant.h"
#include "claimd/json/line_list.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIGEST_BYTES = SIGNATURE_DIGITS / 2 };

_Static_assert((int)SIGNER_KEYS_MAX == (int)KEY_RING_MAX &&
                   (int)SIGNER_KEY_MOST <= (int)KEY_MOST,
               "keys of a ring");

struct signer {
    struct mem *mem;
    struct shared_keys keys;
};

/* ------------------------------------------------------------------ keys */

enum status
signer_new(struct mem *mem, struct signer **out)
{
    struct signer *s = mem_calloc(mem, 1, sizeof(*s));

    if (s == NULL)
        return ST_NO_MEMORY;
    s->mem = mem;
    shared_keys_init(&s->keys, NULL);
    *out = s;
    return ST_OK;
}

void
signer_free(struct signer *s)
{
    if (s == NULL)
        return;
    shared_keys_fini(&s->keys);
    mem_free(s->mem, s);
}

static bool
is_printable(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    return true;
}

static enum status
read_key(const struct key_ring *ring, struct bytes line, struct key *out,
         struct reason *why)
{
    (void)ring;
    if (line.len < SIGNER_KEY_LEAST || line.len > SIGNER_KEY_MOST || !is_printable(line))
        return reason_give(why, ST_BAD_VALUE,
                           "a key must be %d to %d characters of ASCII", SIGNER_KEY_LEAST,
                           SIGNER_KEY_MOST);
    out->len = line.len;
    memcpy(out->text, line.data, line.len);
    return ST_OK;
}

enum status
signer_replace(struct signer *s, struct bytes list, size_t *bad_line, struct reason *why)
{
    return shared_keys_replace(&s->keys, list, read_key, bad_line, why);
}

void
signer_swap(struct signer *s, struct signer *with)
{
    shared_keys_swap(&s->keys, &with->keys);
}

/* ------------------------------------------------------------------ signed texts */

static int
compare_entries(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Writes the entries of a list, sorted by their bytes. The length stays the same. */
static enum status
write_sorted(struct bytes list, struct arena *arena, char *to)
{
    size_t most = 1, count = 0;
    struct bytes *entries;

    for (size_t i = 0; i < list.len; i++)
        most += list.data[i] == ',';
    entries = arena_array(arena, most, sizeof(*entries));
    if (entries == NULL)
        return ST_NO_MEMORY;
    while (bytes_present(list))
        entries[count++] = bytes_cut(&list, ',');
    qsort(entries, count, sizeof(*entries), compare_entries);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            *to++ = ',';
        memcpy(to, entries[i].data, entries[i].len);
        to += entries[i].len;
    }
    return ST_OK;
}

/* A backslash and an n, as in Zaqar, not a line feed. */
static const struct bytes separator = BYTES_LIT("\\n");

/* The text of a grant that is signed; absent: no memory. */
static struct bytes
write_grant(const struct grant *g, struct arena *arena)
{
    size_t len = g->paths.len + g->methods.len + g->project.len + g->expires.len +
                 3 * separator.len;
    char *text = arena_alloc(arena, len), *to = text;

    if (text == NULL || write_sorted(g->paths, arena, to) != ST_OK)
        return BYTES_NONE;
    to += g->paths.len;
    (void)bytes_copy_to(&to, separator);
    if (write_sorted(g->methods, arena, to) != ST_OK)
        return BYTES_NONE;
    to += g->methods.len;
    (void)bytes_copy_to(&to, separator);
    (void)bytes_copy_to(&to, g->project);
    (void)bytes_copy_to(&to, separator);
    (void)bytes_copy_to(&to, g->expires);
    return bytes_of(text, len);
}

/* ------------------------------------------------------------------ signatures */

static void
sign_text(const struct key *key, struct bytes text, char out[SIGNATURE_DIGITS + 1])
{
    uint8_t digest[DIGEST_BYTES];
    /* Fails for an unknown algorithm only. */
    int error = gnutls_hmac_fast(GNUTLS_MAC_SHA256, key->text, key->len, text.data,
                                 text.len, digest);

    ENSURE(error == 0);
    *hex_write_bytes(out, bytes_of((const char *)digest, sizeof(digest))) = '\0';
}

enum status
signer_sign(struct signer *s, const struct grant *grant, struct arena *arena,
            char out[SIGNATURE_DIGITS + 1])
{
    struct arena_mark before = arena_mark(arena);
    struct bytes text = write_grant(grant, arena);
    enum status st = bytes_present(text) ? ST_OK : ST_NO_MEMORY;
    struct key_ring keys;

    shared_keys_copy(&s->keys, &keys);
    if (st == ST_OK && keys.count == 0)
        st = ST_NOT_FOUND;
    if (st == ST_OK)
        sign_text(&keys.keys[0], text, out);
    explicit_bzero(&keys, sizeof(keys));
    arena_rewind(arena, before);
    return st;
}

enum status
signer_verify(struct signer *s, const struct grant *grant, struct bytes signature,
              struct arena *arena)
{
    struct arena_mark before = arena_mark(arena);
    struct bytes text = write_grant(grant, arena);
    char right[SIGNATURE_DIGITS + 1];
    bool good = false;
    struct key_ring keys;

    if (!bytes_present(text)) {
        arena_rewind(arena, before);
        return ST_NO_MEMORY;
    }
    shared_keys_copy(&s->keys, &keys);
    for (size_t i = 0; i < keys.count; i++) {
        sign_text(&keys.keys[i], text, right);
        good |= bytes_equal_secret(bytes_str(right), signature);
    }
    explicit_bzero(&keys, sizeof(keys));
    explicit_bzero(right, sizeof(right));
    arena_rewind(arena, before);
    return good ? ST_OK : ST_NO_PATH;
}

/* ------------------------------------------------------------------ web hooks */

/* The HMAC of all pieces, one after the other. */
static enum status
digest_pieces(const void *key, size_t key_len, const struct bytes *pieces, size_t count,
              uint8_t out[DIGEST_BYTES])
{
    gnutls_hmac_hd_t hmac;
    enum status st = ST_OK;

    if (gnutls_hmac_init(&hmac, GNUTLS_MAC_SHA256, key, key_len) != 0)
        return ST_NO_MEMORY;
    for (size_t i = 0; st == ST_OK && i < count; i++)
        if (pieces[i].len > 0 && gnutls_hmac(hmac, pieces[i].data, pieces[i].len) != 0)
            st = ST_NO_MEMORY;
    gnutls_hmac_deinit(hmac, out);
    return st;
}

static enum status
sign_webhook(const struct key *key, const struct webhook *webhook,
             uint8_t out[DIGEST_BYTES])
{
    const struct bytes project_label[] = {BYTES_LIT("claimd-webhook:"), webhook->project};
    uint8_t secret[DIGEST_BYTES];
    char sent[32];
    struct bytes pieces[] = {webhook->id, BYTES_NONE, webhook->body};
    int len = snprintf(sent, sizeof(sent), ".%" PRId64 ".", webhook->sent_s);
    enum status st = digest_pieces(key->text, key->len, project_label, 2, secret);

    pieces[1] = bytes_of(sent, (size_t)len);
    if (st == ST_OK)
        st = digest_pieces(secret, sizeof(secret), pieces, 3, out);
    explicit_bzero(secret, sizeof(secret));
    return st;
}

enum status
signer_sign_webhook(struct signer *s, const struct webhook *webhook,
                    char out[WEBHOOK_SIGNATURES_CAP])
{
    static const struct bytes version = BYTES_LIT("v1,");
    enum status st = ST_OK;
    struct key_ring keys;
    char *to = out;

    shared_keys_copy(&s->keys, &keys);
    if (keys.count == 0)
        st = ST_NOT_FOUND;
    for (size_t i = 0; st == ST_OK && i < keys.count; i++) {
        uint8_t digest[DIGEST_BYTES];

        st = sign_webhook(&keys.keys[i], webhook, digest);
        if (i > 0)
            *to++ = ' ';
        (void)bytes_copy_to(&to, version);
        base64_encode_raw(to, sizeof(digest), digest);
        to += BASE64_ENCODE_RAW_LENGTH(sizeof(digest));
    }
    *to = '\0';
    explicit_bzero(&keys, sizeof(keys));
    return st;
}
