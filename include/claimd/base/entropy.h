/*
 * entropy: random bytes from a pool, which a simulation can replay.
 *
 * Ids of claims are capabilities, so the system source is the kernel's generator. It is
 * read a pool at a time, because a system call for each id costs a third of a request.
 *
 *   Threads  each shard has its own, under its lock
 */
#ifndef CLAIMD_BASE_ENTROPY_H
#define CLAIMD_BASE_ENTROPY_H

#include "claimd/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Writes len random bytes; ST_UNAVAILABLE if the source fails. */
typedef enum status entropy_fill_fn(void *ctx, void *out, size_t len);

struct entropy {
    entropy_fill_fn *fill; /* NULL: the seeded stream */
    void *ctx;             /* borrowed by fill */
    uint64_t seed;         /* state of the seeded stream */
    size_t left;           /* unused bytes at the end of pool */
    uint8_t pool[512];
};

void entropy_init_system(struct entropy *e);

/* Repeatable bytes from a seed, for tests and simulation only. */
void entropy_init_seeded(struct entropy *e, uint64_t seed);

/* Makes sure that the next entropy_take() of up to len <= 64 bytes cannot fail.
 * ST_UNAVAILABLE. */
enum status entropy_reserve(struct entropy *e, size_t len);

/* Takes len reserved bytes. */
void entropy_take(struct entropy *e, void *out, size_t len);

/* Writes len <= 64 bytes of the system, such as the key of a hash table.
 * ST_UNAVAILABLE. */
enum status entropy_make_key(void *out, size_t len);

/* Writes a fresh UUID (libuuid) in canonical form, 36 characters and a NUL. */
void uid_text(char out[37]);

#endif
