#include "claimd/seal/seal.h"

#include "claimd/base/entropy.h"
#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/json/line_list.h"
#include "seal/cipher.h"

#include <assert.h> /* static_assert */
#include <gnutls/gnutls.h>

enum { SALT = 16, NUMBER = 8, HEAD = 1 + sizeof(struct key_id) + SALT + NUMBER };

static_assert(HEAD + CIPHER_TAG == SEAL_OVERHEAD, "by which a body grows");

/*
 * AES-GCM is no longer safe when a nonce comes twice under a key, and wears out with the blocks
 * of a key: 2^30 bodies of 256 KB are 2^44 blocks, which leaves a chance of 2^-40.
 */
static const uint64_t bodies_per_salt = UINT64_C(1) << 30;

/* CACHED: salts whose keys are remembered; MISSING: ids of keys that were told of. */
enum { CACHED = 64, MISSING = 16 };

/* What one body is sealed with. */
struct ticket {
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
    struct lock lock; /* guards what is behind it */
    struct key_ring ring;
    uint64_t generation;   /* of the ring */
    struct ticket present; /* the next one, if `drawn` */
    bool drawn;
    struct ticket cache[CACHED]; /* by salt; with a number of 0 it is empty */
    struct key_id missing[MISSING];
    size_t missing_count;
    struct seal_figures figures;
    struct entropy entropy;
};

/* ------------------------------------------------------------------ keys */

enum { HEX_DIGITS = 2 * CIPHER_KEY, BASE64_DIGITS = 44 };

static void
key_id_write(const struct key_id *id, char out[SEAL_KEY_ID_DIGITS + 1])
{
    for (size_t i = 0; i < sizeof(id->bytes); i++)
        hex_write(out + 2 * i, id->bytes[i], 2);
    out[SEAL_KEY_ID_DIGITS] = '\0';
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

/* A key is named by what HKDF makes of it, which tells nothing of it. */
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
    lock_init(&s->lock);
    entropy_init_system(&s->entropy);
    *out = s;
    return ST_OK;
}

void
seal_free(struct seal *s)
{
    if (s == NULL)
        return;
    lock_fini(&s->lock);
    explicit_bzero(&s->ring, sizeof(s->ring));
    explicit_bzero(&s->present, sizeof(s->present));
    explicit_bzero(s->cache, sizeof(s->cache));
    mem_free(s->mem, s);
}

/* Drops all that was derived from the keys before. */
static void
set_keys(struct seal *s, const struct key_ring *ring)
{
    lock_acquire(&s->lock);
    s->ring = *ring;
    s->generation++;
    s->drawn = false;
    s->missing_count = 0;
    explicit_bzero(&s->present, sizeof(s->present));
    explicit_bzero(s->cache, sizeof(s->cache));
    lock_release(&s->lock);
}

static void
copy_keys(struct seal *s, struct key_ring *out)
{
    lock_acquire(&s->lock);
    *out = s->ring;
    lock_release(&s->lock);
}

enum status
seal_replace(struct seal *s, struct bytes list, size_t *bad_line, struct reason *why)
{
    struct key_ring ring = {.count = 0};
    enum status st = key_ring_read(list, read_key, &ring, bad_line, why);

    if (st == ST_OK)
        set_keys(s, &ring);
    explicit_bzero(&ring, sizeof(ring));
    return st;
}

void
seal_swap(struct seal *s, struct seal *with)
{
    struct key_ring mine, others;

    copy_keys(s, &mine);
    copy_keys(with, &others);
    set_keys(s, &others);
    set_keys(with, &mine);
    explicit_bzero(&mine, sizeof(mine));
    explicit_bzero(&others, sizeof(others));
}

bool
seal_ready(struct seal *s)
{
    bool ready;

    lock_acquire(&s->lock);
    ready = s->ring.count > 0;
    lock_release(&s->lock);
    return ready;
}

size_t
seal_key_ids(struct seal *s, char ids[SEAL_KEYS_MAX][SEAL_KEY_ID_DIGITS + 1])
{
    size_t count;

    lock_acquire(&s->lock);
    count = s->ring.count;
    for (size_t i = 0; i < count; i++)
        key_id_write(&s->ring.keys[i].id, ids[i]);
    lock_release(&s->lock);
    return count;
}

void
seal_measure(struct seal *s, struct seal_figures *out)
{
    lock_acquire(&s->lock);
    *out = s->figures;
    out->opened = atomic_load_explicit(&s->opened, memory_order_relaxed);
    out->keys = s->ring.count;
    lock_release(&s->lock);
}

/* The key for bodies with this salt. */
static enum status
derive(const struct key *master, const uint8_t salt[SALT], uint8_t out[CIPHER_KEY])
{
    static const struct bytes info = BYTES_LIT("claimd body");

    return cipher_derive(bytes_of(master->text, master->len),
                         bytes_of((const char *)salt, SALT), info, out, CIPHER_KEY);
}

/* ------------------------------------------------------------------ the bytes */

/* What is authenticated besides the body: head, kind, project. */
struct context {
    uint8_t bytes[HEAD + 4 + SEAL_PROJECT_MAX];
    size_t len;
};

static void
describe(const uint8_t head[HEAD], const struct seal_scope *scope, struct context *out)
{
    memcpy(out->bytes, head, HEAD);
    for (size_t i = 0; i < 4; i++)
        out->bytes[HEAD + i] = (uint8_t)(scope->kind >> (8 * i));
    if (scope->project.len > 0)
        memcpy(out->bytes + HEAD + 4, scope->project.data, scope->project.len);
    out->len = HEAD + 4 + scope->project.len;
}

static struct bytes
context_bytes(const struct context *c)
{
    return bytes_of((const char *)c->bytes, c->len);
}

/* The number, and zeros in front of it. */
static void
write_nonce(const uint8_t head[HEAD], uint8_t out[CIPHER_NONCE])
{
    memset(out, 0, CIPHER_NONCE - NUMBER);
    memcpy(out + CIPHER_NONCE - NUMBER, head + HEAD - NUMBER, NUMBER);
}

/* ------------------------------------------------------------------ sealing */

/* Draws a salt for the bodies to come. */
static enum status
draw_salt(struct seal *s)
{
    struct ticket *t = &s->present;
    enum status st = entropy_reserve(&s->entropy, SALT);

    if (st != ST_OK)
        return st;
    entropy_take(&s->entropy, t->salt, SALT);
    t->id = s->ring.keys[0].id;
    t->number = 0;
    st = derive(&s->ring.keys[0], t->salt, t->key);
    s->drawn = st == ST_OK;
    return st;
}

/* A number that no other body of the salt has. */
static enum status
take_ticket(struct seal *s, struct ticket *out)
{
    enum status st = ST_OK;

    lock_acquire(&s->lock);
    if (s->ring.count == 0)
        st = ST_NO_KEY;
    else if (!s->drawn || s->present.number == s->most)
        st = draw_salt(s);
    if (st == ST_OK) {
        s->present.number++;
        *out = s->present;
        s->figures.sealed++;
    }
    lock_release(&s->lock);
    return st;
}

enum status
seal_close(struct seal *s, const struct seal_scope *scope, struct bytes body, char *to)
{
    uint8_t head[HEAD], nonce[CIPHER_NONCE];
    struct context context;
    struct ticket ticket;
    enum status st;

    if (scope->project.len > SEAL_PROJECT_MAX)
        return ST_BAD_VALUE;
    st = take_ticket(s, &ticket);
    if (st != ST_OK)
        return st;
    head[0] = SEAL_MARK;
    memcpy(head + 1, ticket.id.bytes, sizeof(ticket.id.bytes));
    memcpy(head + 1 + sizeof(ticket.id.bytes), ticket.salt, SALT);
    for (size_t i = 0; i < NUMBER; i++)
        head[HEAD - NUMBER + i] = (uint8_t)(ticket.number >> (8 * i));
    describe(head, scope, &context);
    write_nonce(head, nonce);
    memcpy(to, head, HEAD);
    st = cipher_encrypt(ticket.key, nonce, context_bytes(&context), body, to + HEAD);
    explicit_bzero(&ticket, sizeof(ticket));
    return st;
}

/* ------------------------------------------------------------------ opening */

/* Counts what cannot be opened; true if it is to be told. The lock is held. */
static bool
count_trouble(struct seal *s, enum status st, const struct key_id *id)
{
    if (st == ST_DAMAGED) {
        uint64_t count = ++s->figures.damaged;

        return (count & (count - 1)) == 0;
    }
    s->figures.no_key++;
    for (size_t i = 0; i < s->missing_count; i++)
        if (key_id_equal(&s->missing[i], id))
            return false;
    if (s->missing_count == MISSING)
        return false;
    s->missing[s->missing_count++] = *id;
    return true;
}

/* Counts, and tells of it. */
static enum status
fail(struct seal *s, enum status st, const struct key_id *id, struct bytes project)
{
    char text[SEAL_KEY_ID_DIGITS + 1];
    bool tell;

    lock_acquire(&s->lock);
    tell = count_trouble(s, st, id);
    lock_release(&s->lock);
    key_id_write(id, text);
    if (tell && s->trouble != NULL)
        s->trouble(s->arg, st, text, project);
    return st;
}

/*
 * The ticket's key, from its id and salt: a remembered one, or *master is set to what it is made
 * of. False: the key is not there.
 */
static bool
look_up(struct seal *s, struct ticket *t, struct key *master, bool *derived,
        uint64_t *generation)
{
    const struct ticket *kept = &s->cache[t->salt[0] % CACHED];
    const struct key *key;
    bool found;

    lock_acquire(&s->lock);
    *generation = s->generation;
    *derived = kept->number != 0 && key_id_equal(&kept->id, &t->id) &&
               memcmp(kept->salt, t->salt, SALT) == 0;
    key = *derived ? NULL : find_key(&s->ring, &t->id);
    found = *derived || key != NULL;
    if (*derived)
        memcpy(t->key, kept->key, CIPHER_KEY);
    else if (found)
        *master = *key;
    lock_release(&s->lock);
    return found;
}

static enum status
set_ticket_key(struct seal *s, struct ticket *t)
{
    struct key master;
    uint64_t generation;
    bool derived;
    enum status st;

    if (!look_up(s, t, &master, &derived, &generation))
        return ST_NO_KEY;
    if (derived)
        return ST_OK;
    st = derive(&master, t->salt, t->key);
    explicit_bzero(&master, sizeof(master));
    lock_acquire(&s->lock);
    if (st == ST_OK && generation == s->generation) {
        s->cache[t->salt[0] % CACHED] = *t;
        s->cache[t->salt[0] % CACHED].number = 1;
    }
    lock_release(&s->lock);
    return st;
}

static enum status
decrypt(struct seal *s, const struct ticket *t, const struct seal_scope *scope,
        struct bytes sealed, char *to)
{
    const uint8_t *head = (const uint8_t *)sealed.data;
    uint8_t nonce[CIPHER_NONCE];
    struct context context;
    enum status st;

    describe(head, scope, &context);
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
    struct ticket t = {.number = 0};
    enum status st;

    if (!seal_is_sealed(sealed) || sealed.len < SEAL_OVERHEAD ||
        scope->project.len > SEAL_PROJECT_MAX)
        return fail(s, ST_DAMAGED, &t.id, scope->project);
    memcpy(t.id.bytes, sealed.data + 1, sizeof(t.id.bytes));
    memcpy(t.salt, sealed.data + 1 + sizeof(t.id.bytes), SALT);
    st = set_ticket_key(s, &t);
    if (st == ST_OK)
        st = decrypt(s, &t, scope, sealed, to);
    explicit_bzero(t.key, sizeof(t.key));
    return st == ST_NO_KEY || st == ST_DAMAGED ? fail(s, st, &t.id, scope->project) : st;
}
