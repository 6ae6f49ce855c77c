/*
 * hash: SipHash-1-3 (Aumasson & Bernstein 2012), a keyed hash for tables whose keys
 * clients choose. Without the secret a client cannot make names collide. One and three
 * rounds are the variant that language run-times use for their tables.
 */
#ifndef CLAIMD_BASE_HASH_H
#define CLAIMD_BASE_HASH_H

#include "claimd/base/bytes.h"

struct hash_key {
    uint64_t k0, k1;
};

uint64_t hash_bytes(const struct hash_key *key, struct bytes text);

/* A bijective mix of 64 bits (the finaliser of MurmurHash3), without a secret. */
static inline uint64_t
hash_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 33);
}

#endif
