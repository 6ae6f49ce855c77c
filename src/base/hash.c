#include "claimd/base/hash.h"

#include <endian.h>

static inline uint64_t
rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline void
sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static inline void
absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

uint64_t
hash_bytes(const struct hash_key *key, struct bytes text)
{
    uint64_t v[4] = {key->k0 ^ 0x736f6d6570736575ULL, key->k1 ^ 0x646f72616e646f6dULL,
                     key->k0 ^ 0x6c7967656e657261ULL, key->k1 ^ 0x7465646279746573ULL};
    uint64_t last = (uint64_t)text.len << 56;
    size_t at = 0;

    for (; text.len - at >= 8; at += 8) {
        uint64_t word;

        memcpy(&word, text.data + at, sizeof(word));
        absorb(v, le64toh(word));
    }
    for (unsigned i = 0; at + i < text.len; i++)
        last |= (uint64_t)(uint8_t)text.data[at + i] << (8 * i);
    absorb(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
