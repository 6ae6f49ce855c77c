/* Pairs of certificate and key: what is taken, and that one lives as long as it is
 * needed. */
#include "claimd/http/tls.h"

#include "support/check_main.h"

#include <gnutls/x509.h>
#include <pthread.h>
#include <string.h>

enum { PEM_CAP = 8192, DAY_S = 24 * 3600, NOW_S = 1700000000 };

struct pem {
    char chain[PEM_CAP], key[PEM_CAP];
};

static void
fine(int error)
{
    ck_assert_msg(error >= 0, "%s", gnutls_strerror(error));
}

/* Makes a certificate that is good for one day, signed by itself. */
static void
make(struct pem *out)
{
    size_t chain_len = sizeof(out->chain), key_len = sizeof(out->key);
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t crt;

    fine(gnutls_x509_privkey_init(&key));
    fine(gnutls_x509_privkey_generate(
        key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    fine(gnutls_x509_crt_init(&crt));
    fine(gnutls_x509_crt_set_version(crt, 3));
    fine(gnutls_x509_crt_set_serial(crt, "1", 1));
    fine(gnutls_x509_crt_set_activation_time(crt, NOW_S));
    fine(gnutls_x509_crt_set_expiration_time(crt, NOW_S + DAY_S));
    fine(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, "test", 4));
    fine(gnutls_x509_crt_set_key(crt, key));
    fine(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0));
    fine(gnutls_x509_crt_export(crt, GNUTLS_X509_FMT_PEM, out->chain, &chain_len));
    fine(gnutls_x509_privkey_export(key, GNUTLS_X509_FMT_PEM, out->key, &key_len));
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
}

static struct tls_pair *
read_pair(struct mem *mem, const struct pem *pem)
{
    struct reason why = {""};
    struct tls_pair *pair;

    ck_assert_msg(tls_pair_read(mem, bytes_str(pem->chain), bytes_str(pem->key), &pair,
                                &why) == ST_OK,
                  "%s", why.text);
    return pair;
}

static void
is_refused(struct mem *mem, const char *chain, const char *key, const char *because)
{
    struct reason why = {""};
    struct tls_pair *pair;

    ck_assert_int_eq(tls_pair_read(mem, bytes_str(chain), bytes_str(key), &pair, &why),
                     ST_BAD_VALUE);
    ck_assert_msg(strstr(why.text, because) != NULL, "%s", why.text);
}

START_TEST(a_pair_that_fits_is_taken)
{
    struct mem *mem = mem_new(0);
    struct tls_pair *pair;
    struct pem pem;

    make(&pem);
    pair = read_pair(mem, &pem);
    ck_assert_int_eq(pair->begins_ms, INT64_C(1000) * NOW_S);
    ck_assert_int_eq(pair->ends_ms, INT64_C(1000) * (NOW_S + DAY_S));
    ck_assert_uint_eq(pair->count, 1);
    ck_assert_ptr_nonnull(pair->key);
    tls_pair_drop(pair);
    mem_destroy(mem); /* asserts that nothing is left */
}

#define TLS_TEST(id) MADE_TEST(id, struct mem, mem, mem_new(0), mem_destroy(mem))

TLS_TEST(mismatched_or_empty_pairs_are_refused)
{
    static char many[TLS_CHAIN_MAX * PEM_CAP];
    struct pem one, other;

    make(&one);
    make(&other);
    is_refused(mem, one.chain, other.key,
               "the key does not belong to the first certificate");
    is_refused(mem, "", one.key, "the certificate cannot be read");
    is_refused(mem, "nonsense", one.key, "the certificate cannot be read");
    is_refused(mem, one.key, one.key, "the certificate cannot be read");
    is_refused(mem, one.chain, "", "the key cannot be read");
    is_refused(mem, one.chain, one.chain, "the key cannot be read");
    for (int i = 0; i <= TLS_CHAIN_MAX; i++)
        strcat(many, one.chain);
    is_refused(mem, many, one.key, "the chain has more than 16 certificates");
    one.chain[strlen(one.chain) / 2] = '\0';
    is_refused(mem, one.chain, one.key, "the certificate cannot be read");
}

TLS_TEST(without_memory_nothing_is_left_behind)
{
    struct tls_pair *pair = NULL;
    struct tls *tls = NULL;
    struct reason why = {""};
    struct pem pem;

    make(&pem);
    mem_fail_from(mem, 1);
    ck_assert_int_eq(
        tls_pair_read(mem, bytes_str(pem.chain), bytes_str(pem.key), &pair, &why),
        ST_NO_MEMORY);
    mem_fail_from(mem, 0);
    pair = read_pair(mem, &pem);
    mem_fail_from(mem, 1);
    ck_assert_int_eq(tls_new(mem, pair, BYTES_NONE, &tls, &why),
                     ST_NO_MEMORY); /* it takes the pin anyway */
    mem_fail_from(mem, 0);
}

TLS_TEST(a_pinned_old_pair_stays_valid)
{
    struct tls_pair *before, *after;
    struct reason why = {""};
    struct tls *tls;
    struct pem pem;

    make(&pem);
    ck_assert_int_eq(tls_new(mem, read_pair(mem, &pem), BYTES_NONE, &tls, &why), ST_OK);
    before = tls_pin(tls);
    make(&pem);
    tls_replace(tls, read_pair(mem, &pem));
    after = tls_pin(tls);
    ck_assert_ptr_ne(before, after);
    ck_assert_ptr_nonnull(before->chain[0].pubkey);
    tls_free(tls);
    tls_pair_drop(before);
    tls_pair_drop(after);
}

enum { THREADS = 4, PINS = 2000, TURNS = 200 };

/* A handshake: it signs with what it has pinned. */
static void *
pin_and_drop(void *arg)
{
    for (int i = 0; i < PINS; i++) {
        struct tls_pair *pair = tls_pin(arg);

        ck_assert_uint_eq(pair->count, 1);
        ck_assert_int_eq(gnutls_privkey_get_pk_algorithm(pair->key, NULL),
                         GNUTLS_PK_ECDSA);
        tls_pair_drop(pair);
    }
    return NULL;
}

TLS_TEST(handshakes_and_replacements_do_not_disturb_each_other)
{
    pthread_t threads[THREADS];
    struct reason why = {""};
    struct tls *tls;
    struct pem pem;

    make(&pem);
    ck_assert_int_eq(tls_new(mem, read_pair(mem, &pem), BYTES_NONE, &tls, &why), ST_OK);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, pin_and_drop, tls), 0);
    for (int i = 0; i < TURNS; i++)
        tls_replace(tls, read_pair(mem, &pem));
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    tls_free(tls);
}
