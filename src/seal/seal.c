#include "claimd/seal/seal.h"

#include "claimd/base/entropy.h"
#include "claimd/base/invariant.h"
#include "claimd/ds/list.h"
#include "claimd/json/line_list.h"
#include "seal/cipher.h"

#include <assert.h> /* static_assert */
#include <gnutls/gnutls.h>

enum { SALT = 16, NUMBER = 8, HEAD = 1 + sizeof(struct key_id) + SALT + NUMBER };

static_assert(HEAD + CIPHER_TAG == SEAL_OVERHEAD, "by which a body grows");

/*
 * AES-GCM is not safe if a key encrypts two texts with the same nonce, and less safe the
 * more blocks a key encrypts: with 2^30 bodies of 256 KB (2^44 blocks) the chance of an
 * attack is 2^-40.
 */
static const uint64_t bodies_per_salt = UINT64_C(1) << 30;

/* CACHED: derived keys. REPORTED_MOST: ids of missing keys. */
enum { CACHED = 64, REPORTED_MOST = 16 };

/* The key and the number of one body. */
struct body_key {
    struct key_id id;
    uint8_t salt[SALT];
    uint8_t key[CIPHER_KEY];
    uint64_t number; /* of the body */
};

static_assert((int)SEAL_KEYS_MAX == (int)KEY_RING_MAX &&
                  SEAL_KEY_ID_DIGITS == 2 * sizeof(struct key_id),
              "seal.h repeats these for its callers");

struct seal {
    struct mem *mem;
    uint64_t most; /* bodies of a salt */
    seal_trouble_fn *trouble;
    void *arg;
    _Atomic uint64_t opened;
    struct shared_keys keys; /* its lock guards all that follows */
    uint64_t generation;     /* of the keys */
    struct body_key current; /* of the latest body */
    bool current_valid;
    struct body_key cache[CACHED];         /* by salt; number 0: empty */
    struct key_id reported[REPORTED_MOST]; /* missing keys */
    size_t reported_count;
    struct seal_metrics metrics;
    struct entropy entropy;
};

/* ------------------------------------------------------------------ keys */

enum { HEX_DIGITS = 2 * CIPHER_KEY, BASE64_DIGITS = 44 };

static void
key_id_write(const struct key_id *id, char out[SEAL_KEY_ID_DIGITS + 1])
{
    *hex_write_bytes(out, bytes_of((const char *)id->bytes, sizeof(id->bytes))) = '\0';
}

static bool
key_id_equal(const struct key_id *a, const struct key_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* NULL: none. */
static const struct key *
find_key(const struct key_ring *ring, const struct key_id *id)
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

/* The id of a key is derived from it by HKDF, so it reveals nothing about the key. */
static enum status
read_key(const struct key_ring *ring, struct bytes line, struct key *out,
         struct reason *why)
{
    static const struct bytes info = BYTES_LIT("claimd key id");
    uint8_t *secret = (uint8_t *)out->text;
    enum status st;

    if (!read_hex(line, secret) && !read_base64(line, secret))
        return reason_give(
            why, ST_BAD_VALUE,
            "a key must be %d bytes, as %d hexadecimal digits or %d characters of base64",
            CIPHER_KEY, HEX_DIGITS, BASE64_DIGITS);
    out->len = CIPHER_KEY;
    st = cipher_derive(bytes_of(out->text, out->len), BYTES_NONE, info, out->id.bytes,
                       sizeof(out->id.bytes));
    if (st == ST_OK && find_key(ring, &out->id) != NULL)
        return reason_give(why, ST_BAD_VALUE, "the file has this key twice");
    return st;
}

/* Called when the keys are replaced: wipes all that was derived from the former keys. */
static void
forget_derived(struct shared_keys *keys)
{
    struct seal *s = container_of(keys, struct seal, keys);

    lock_assert_held(&keys->lock);
    s->generation++;
    s->current_valid = false;
    s->reported_count = 0;
    explicit_bzero(&s->current, sizeof(s->current));
    explicit_bzero(s->cache, sizeof(s->cache));
}

enum status
seal_new(const struct seal_config *config, struct seal **out)
{
    struct seal *s = mem_calloc(config->mem, 1, sizeof(*s));

    if (s == NULL)
        return ST_NO_MEMORY;
    s->mem = config->mem;
    s->most = config->bodies_per_salt != 0 ? config->bodies_per_salt : bodies_per_salt;
    s->trouble = config->trouble;
    s->arg = config->arg;
    shared_keys_init(&s->keys, forget_derived);
    entropy_init_system(&s->entropy);
    *out = s;
    return ST_OK;
}

void
seal_free(struct seal *s)
{
    if (s == NULL)
        return;
    shared_keys_fini(&s->keys);
    explicit_bzero(&s->current, sizeof(s->current));
    explicit_bzero(s->cache, sizeof(s->cache));
    mem_free(s->mem, s);
}

enum status
seal_replace(struct seal *s, struct bytes list, size_t *bad_line, struct reason *why)
{
    return shared_keys_replace(&s->keys, list, read_key, bad_line, why);
}

void
seal_swap(struct seal *s, struct seal *with)
{
    shared_keys_swap(&s->keys, &with->keys);
}

bool
seal_ready(struct seal *s)
{
    bool ready;

    lock_acquire(&s->keys.lock);
    ready = s->keys.ring.count > 0;
    lock_release(&s->keys.lock);
    return ready;
}

size_t
seal_key_ids(struct seal *s, char ids[SEAL_KEYS_MAX][SEAL_KEY_ID_DIGITS + 1])
{
    size_t count;

    lock_acquire(&s->keys.lock);
    count = s->keys.ring.count;
    for (size_t i = 0; i < count; i++)
        key_id_write(&s->keys.ring.keys[i].id, ids[i]);
    lock_release(&s->keys.lock);
    return count;
}

void
seal_measure(struct seal *s, struct seal_metrics *out)
{
    lock_acquire(&s->keys.lock);
    *out = s->metrics;
    out->opened = atomic_load_explicit(&s->opened, memory_order_relaxed);
    out->keys = s->keys.ring.count;
    lock_release(&s->keys.lock);
}

/* Derives the key of bodies with this salt. */
static enum status
derive_body_key(const struct key *master, const uint8_t salt[SALT],
                uint8_t out[CIPHER_KEY])
{
    static const struct bytes info = BYTES_LIT("claimd body");

    return cipher_derive(bytes_of(master->text, master->len),
                         bytes_of((const char *)salt, SALT), info, out, CIPHER_KEY);
}

/* ------------------------------------------------------------------ format */

/* The authenticated data besides the body: head, kind, project. */
struct body_context {
    uint8_t bytes[HEAD + 4 + SEAL_PROJECT_MAX];
    size_t len;
};

static void
context_init(const uint8_t head[HEAD], const struct seal_scope *scope,
             struct body_context *out)
{
    memcpy(out->bytes, head, HEAD);
    for (size_t i = 0; i < 4; i++)
        out->bytes[HEAD + i] = (uint8_t)(scope->kind >> (8 * i));
    if (scope->project.len > 0)
        memcpy(out->bytes + HEAD + 4, scope->project.data, scope->project.len);
    out->len = HEAD + 4 + scope->project.len;
}

static struct bytes
context_bytes(const struct body_context *c)
{
    return bytes_of((const char *)c->bytes, c->len);
}

/* The nonce is the number, after zeros. */
static void
write_nonce(const uint8_t head[HEAD], uint8_t out[CIPHER_NONCE])
{
    memset(out, 0, CIPHER_NONCE - NUMBER);
    memcpy(out + CIPHER_NONCE - NUMBER, head + HEAD - NUMBER, NUMBER);
}

/* ------------------------------------------------------------------ sealing */

/* Draws a new salt for the following bodies. */
static enum status
draw_salt(struct seal *s)
{
    struct body_key *t = &s->current;
    enum status st = entropy_reserve(&s->entropy, SALT);

    lock_assert_held(&s->keys.lock);
    if (st != ST_OK)
        return st;
    entropy_take(&s->entropy, t->salt, SALT);
    t->id = s->keys.ring.keys[0].id;
    t->number = 0;
    st = derive_body_key(&s->keys.ring.keys[0], t->salt, t->key);
    s->current_valid = st == ST_OK;
    return st;
}

/* The key of the next body, with a number that no other body of the salt has. */
static enum status
next_body_key(struct seal *s, struct body_key *out)
{
    enum status st = ST_OK;

    lock_acquire(&s->keys.lock);
    if (s->keys.ring.count == 0)
        st = ST_NO_KEY;
    else if (!s->current_valid || s->current.number == s->most)
        st = draw_salt(s);
    if (st == ST_OK) {
        s->current.number++;
        *out = s->current;
        s->metrics.sealed++;
    }
    lock_release(&s->keys.lock);
    return st;
}

enum status
seal_close(struct seal *s, const struct seal_scope *scope, struct bytes body, char *to)
{
    uint8_t head[HEAD], nonce[CIPHER_NONCE];
    struct body_context context;
    struct body_key body_key;
    enum status st;

    if (scope->project.len > SEAL_PROJECT_MAX)
        return ST_BAD_VALUE;
    st = next_body_key(s, &body_key);
    if (st != ST_OK)
        return st;
    head[0] = SEAL_MARK;
    memcpy(head + 1, body_key.id.bytes, sizeof(body_key.id.bytes));
    memcpy(head + 1 + sizeof(body_key.id.bytes), body_key.salt, SALT);
    for (size_t i = 0; i < NUMBER; i++)
        head[HEAD - NUMBER + i] = (uint8_t)(body_key.number >> (8 * i));
    context_init(head, scope, &context);
    write_nonce(head, nonce);
    memcpy(to, head, HEAD);
    st = cipher_encrypt(body_key.key, nonce, context_bytes(&context), body, to + HEAD);
    explicit_bzero(&body_key, sizeof(body_key));
    return st;
}

/* ------------------------------------------------------------------ opening */

/* Counts a failure. True if it must be reported. */
static bool
count_failure(struct seal *s, enum status st, const struct key_id *id)
{
    lock_assert_held(&s->keys.lock);
    if (st == ST_DAMAGED) {
        uint64_t count = ++s->metrics.damaged;

        return (count & (count - 1)) == 0;
    }
    s->metrics.no_key++;
    for (size_t i = 0; i < s->reported_count; i++)
        if (key_id_equal(&s->reported[i], id))
            return false;
    if (s->reported_count == REPORTED_MOST)
        return false;
    s->reported[s->reported_count++] = *id;
    return true;
}

/* Counts and reports a failure. Returns its status. */
static enum status
report_failure(struct seal *s, enum status st, const struct key_id *id,
               struct bytes project)
{
    char text[SEAL_KEY_ID_DIGITS + 1];
    bool report;

    lock_acquire(&s->keys.lock);
    report = count_failure(s, st, id);
    lock_release(&s->keys.lock);
    key_id_write(id, text);
    if (report && s->trouble != NULL)
        s->trouble(s->arg, st, text, project);
    return st;
}

/*
 * Finds the key of a body by id and salt. *derived: it was cached. Else *master is the
 * key to derive it from. False: that key is missing.
 */
static bool
body_key_find(struct seal *s, struct body_key *t, struct key *master, bool *derived,
              uint64_t *generation)
{
    const struct body_key *kept = &s->cache[t->salt[0] % CACHED];
    const struct key *key;
    bool found;

    lock_acquire(&s->keys.lock);
    *generation = s->generation;
    *derived = kept->number != 0 && key_id_equal(&kept->id, &t->id) &&
               memcmp(kept->salt, t->salt, SALT) == 0;
    key = *derived ? NULL : find_key(&s->keys.ring, &t->id);
    found = *derived || key != NULL;
    if (*derived)
        memcpy(t->key, kept->key, CIPHER_KEY);
    else if (found)
        *master = *key;
    lock_release(&s->keys.lock);
    return found;
}

static enum status
set_body_key(struct seal *s, struct body_key *t)
{
    struct key master;
    uint64_t generation;
    bool derived;
    enum status st;

    if (!body_key_find(s, t, &master, &derived, &generation))
        return ST_NO_KEY;
    if (derived)
        return ST_OK;
    st = derive_body_key(&master, t->salt, t->key);
    explicit_bzero(&master, sizeof(master));
    lock_acquire(&s->keys.lock);
    if (st == ST_OK && generation == s->generation) {
        s->cache[t->salt[0] % CACHED] = *t;
        s->cache[t->salt[0] % CACHED].number = 1;
    }
    lock_release(&s->keys.lock);
    return st;
}

static enum status
seal_decrypt(struct seal *s, const struct body_key *t, const struct seal_scope *scope,
             struct bytes sealed, char *to)
{
    const uint8_t *head = (const uint8_t *)sealed.data;
    uint8_t nonce[CIPHER_NONCE];
    struct body_context context;
    enum status st;

    context_init(head, scope, &context);
    write_nonce(head, nonce);
    st = cipher_decrypt(t->key, nonce, context_bytes(&context),
                        bytes_of(sealed.data + HEAD, sealed.len - HEAD), to);
    if (st == ST_OK)
        atomic_fetch_add_explicit(&s->opened, 1, memory_order_relaxed);
    return st;
}

enum status
seal_open(struct seal *s, const struct seal_scope *scope, struct bytes sealed, char *to)
{
    struct body_key t = {.number = 0};
    enum status st;

    if (!seal_is_sealed(sealed) || sealed.len < SEAL_OVERHEAD ||
        scope->project.len > SEAL_PROJECT_MAX)
        return report_failure(s, ST_DAMAGED, &t.id, scope->project);
    memcpy(t.id.bytes, sealed.data + 1, sizeof(t.id.bytes));
    memcpy(t.salt, sealed.data + 1 + sizeof(t.id.bytes), SALT);
    st = set_body_key(s, &t);
    if (st == ST_OK)
        st = seal_decrypt(s, &t, scope, sealed, to);
    explicit_bzero(t.key, sizeof(t.key));
    return st == ST_NO_KEY || st == ST_DAMAGED
               ? report_failure(s, st, &t.id, scope->project)
               : st;
}
