/*
 * seal_bench: what it costs to seal a body and to open it, in nanoseconds. Not a test: it
 * asserts nothing, because machines differ. The metrics in docs/adr/0012-encryption.md
 * come from here.
 */
#include "claimd/seal/seal.h"
#include "seal/cipher.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

enum { MOST = 1 << 18, BYTES = 1 << 28, ROUNDS_MOST = 200000 };

static const struct seal_scope scope = {.project = BYTES_LIT("bench")};
static char body[MOST], sealed[MOST + SEAL_OVERHEAD];

static int64_t
now_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
report(const char *what, size_t len, int64_t since_ns, size_t count)
{
    printf("%-8s %8zu bytes %10.0f ns\n", what, len,
           (double)(now_ns() - since_ns) / (double)count);
}

static void
must(bool good)
{
    if (!good)
        abort();
}

static void
measure(struct seal *s, size_t len)
{
    size_t rounds = BYTES / len < ROUNDS_MOST ? BYTES / len : ROUNDS_MOST;
    const struct bytes text = bytes_of(body, len);
    int64_t since = now_ns();

    for (size_t i = 0; i < rounds; i++)
        must(seal_close(s, &scope, text, sealed) == ST_OK);
    report("seal", len, since, rounds);
    since = now_ns();
    for (size_t i = 0; i < rounds; i++)
        must(seal_open(s, &scope, bytes_of(sealed, len + SEAL_OVERHEAD), body) == ST_OK);
    report("open", len, since, rounds);
}

/* The cost of each body. */
static void
measure_handle(void)
{
    static unsigned char key[CIPHER_KEY];
    const gnutls_datum_t secret = {key, sizeof(key)};
    int64_t since = now_ns();

    for (size_t i = 0; i < ROUNDS_MOST; i++) {
        gnutls_aead_cipher_hd_t cipher;

        must(gnutls_aead_cipher_init(&cipher, GNUTLS_CIPHER_AES_256_GCM, &secret) == 0);
        gnutls_aead_cipher_deinit(cipher);
    }
    report("handle", 0, since, ROUNDS_MOST);
}

static void
measure_derivation(void)
{
    static uint8_t master[CIPHER_KEY], out[CIPHER_KEY];
    int64_t since = now_ns();

    for (size_t i = 0; i < ROUNDS_MOST; i++)
        must(cipher_derive(bytes_of((const char *)master, sizeof(master)),
                           bytes_str("0123456789abcdef"), bytes_str("bench"), out,
                           sizeof(out)) == ST_OK);
    report("derive", 0, since, ROUNDS_MOST);
}

int
main(void)
{
    struct seal_config config = {.mem = mem_new(0)};
    struct seal *s = NULL;
    struct reason why;
    size_t line;

    must(config.mem != NULL && seal_new(&config, &s) == ST_OK);
    must(seal_replace(s, bytes_str(KEY), &line, &why) == ST_OK);
    for (size_t len = 64; len <= MOST; len *= 8)
        measure(s, len);
    measure_handle();
    measure_derivation();
    seal_free(s);
    mem_destroy(config.mem);
    return 0;
}
