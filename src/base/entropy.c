#include "claimd/base/entropy.h"

#include "claimd/base/hash.h"
#include "claimd/base/invariant.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <uuid/uuid.h>

static enum status
fill_system(void *ctx, void *out, size_t len)
{
    uint8_t *at = out;

    (void)ctx; /* the kernel needs no state */
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ST_UNAVAILABLE;
        at += n;
        len -= (size_t)n;
    }
    return ST_OK;
}

void
entropy_init_system(struct entropy *e)
{
    memset(e, 0, sizeof(*e));
    e->fill = fill_system;
}

void
entropy_init_seeded(struct entropy *e, uint64_t seed)
{
    memset(e, 0, sizeof(*e));
    e->seed = seed;
}

enum status
entropy_reserve(struct entropy *e, size_t len)
{
    enum status st = ST_OK;
    uint64_t word;

    ENSURE(len <= 64);
    if (e->left >= len)
        return ST_OK;
    if (e->fill != NULL)
        st = e->fill(e->ctx, e->pool, sizeof(e->pool));
    /* The seeded stream: a counter, scrambled (SplitMix64). */
    for (size_t i = 0; e->fill == NULL && i < sizeof(e->pool); i += sizeof(word)) {
        e->seed += 0x9e3779b97f4a7c15ULL;
        word = hash_mix(e->seed);
        memcpy(e->pool + i, &word, sizeof(word));
    }
    if (st == ST_OK)
        e->left = sizeof(e->pool);
    return st;
}

void
entropy_take(struct entropy *e, void *out, size_t len)
{
    uint8_t *from = e->pool + sizeof(e->pool) - e->left;

    ENSURE(e->left >= len); /* entropy_reserve() comes first */
    memcpy(out, from, len);
    memset(from, 0, len);
    e->left -= len;
}

enum status
entropy_make_key(void *out, size_t len)
{
    struct entropy entropy;
    enum status st;

    entropy_init_system(&entropy);
    st = entropy_reserve(&entropy, len);
    if (st == ST_OK)
        entropy_take(&entropy, out, len);
    return st;
}

void
uid_text(char out[37])
{
    uuid_t id;

    uuid_generate_random(id);
    uuid_unparse_lower(id, out);
}
