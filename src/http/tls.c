#include "claimd/http/tls.h"

#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"

#include <ctype.h>
#include <gnutls/x509.h>
#include <string.h>

struct tls {
    struct mem *mem;   /* borrowed */
    char *authorities; /* owned; NULL: there are none */
    struct lock lock;  /* guards pair */
    struct tls_pair *pair;
};

/* ------------------------------------------------------------------ reading */

/* The error of GnuTLS about a part. */
static enum status
gnutls_reason(struct reason *why, const char *what, int error)
{
    if (error == GNUTLS_E_MEMORY_ERROR)
        return ST_NO_MEMORY;
    return reason_give(why, ST_BAD_VALUE, "%s cannot be read: %s", what,
                       gnutls_strerror(error));
}

static gnutls_datum_t
as_datum(struct bytes text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text.data, (unsigned)text.len};
}

static enum status
read_times(struct tls_pair *p, struct reason *why)
{
    gnutls_x509_crt_t leaf;
    int error = gnutls_x509_crt_init(&leaf);

    if (error != 0)
        return ST_NO_MEMORY;
    error = gnutls_x509_crt_import(leaf, &p->chain[0].cert, GNUTLS_X509_FMT_DER);
    if (error == 0) {
        p->begins_ms = (int64_t)gnutls_x509_crt_get_activation_time(leaf) * 1000;
        p->ends_ms = (int64_t)gnutls_x509_crt_get_expiration_time(leaf) * 1000;
    }
    gnutls_x509_crt_deinit(leaf);
    return error == 0 ? ST_OK : gnutls_reason(why, "the certificate", error);
}

static enum status
read_chain(struct tls_pair *p, struct bytes chain, struct reason *why)
{
    gnutls_datum_t text = as_datum(chain);
    unsigned count = TLS_CHAIN_MAX;
    int error =
        gnutls_pcert_list_import_x509_raw(p->chain, &count, &text, GNUTLS_X509_FMT_PEM,
                                          GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED |
                                              GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);

    if (error == GNUTLS_E_SHORT_MEMORY_BUFFER)
        return reason_give(why, ST_BAD_VALUE, "the chain has more than %d certificates",
                           TLS_CHAIN_MAX);
    if (error == GNUTLS_E_CERTIFICATE_LIST_UNSORTED)
        return reason_give(
            why, ST_BAD_VALUE,
            "the chain is out of order. The certificate of the server must be the first, "
            "and each other one must have signed the one before it");
    if (error != 0)
        return gnutls_reason(why, "the certificate", error);
    p->count = count;
    return read_times(p, why);
}

static enum status
read_key(struct tls_pair *p, struct bytes key, struct reason *why)
{
    gnutls_datum_t text = as_datum(key);
    int error = gnutls_privkey_init(&p->key);

    if (error != 0)
        return ST_NO_MEMORY;
    error = gnutls_privkey_import_x509_raw(p->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (error == GNUTLS_E_DECRYPTION_FAILED)
        return reason_give(why, ST_BAD_VALUE,
                           "the key is encrypted, but claimd cannot ask for its "
                           "password. Store the key unencrypted");
    return error == 0 ? ST_OK : gnutls_reason(why, "the key", error);
}

enum { ID_BYTES = 32 };

static enum status
check_key_matches(const struct tls_pair *p, struct reason *why)
{
    unsigned char of_key[ID_BYTES], of_certificate[ID_BYTES];
    size_t len = ID_BYTES;
    gnutls_pubkey_t public;
    int error = gnutls_pubkey_init(&public);

    if (error == 0) {
        error = gnutls_pubkey_import_privkey(public, p->key, 0, 0);
        if (error == 0)
            error =
                gnutls_pubkey_get_key_id(public, GNUTLS_KEYID_USE_SHA256, of_key, &len);
        gnutls_pubkey_deinit(public);
    }
    len = ID_BYTES;
    if (error == 0)
        error = gnutls_pubkey_get_key_id(p->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256,
                                         of_certificate, &len);
    if (error != 0)
        return gnutls_reason(why, "the key", error);
    if (memcmp(of_key, of_certificate, ID_BYTES) != 0)
        return reason_give(
            why, ST_BAD_VALUE,
            "the key does not belong to the first certificate of the chain");
    return ST_OK;
}

enum status
tls_pair_read(struct mem *mem, struct bytes chain, struct bytes key,
              struct tls_pair **out, struct reason *why)
{
    struct tls_pair *p = mem_calloc(mem, 1, sizeof(*p));
    enum status st;

    if (p == NULL)
        return ST_NO_MEMORY;
    p->mem = mem;
    atomic_init(&p->pins, 1);
    st = read_chain(p, chain, why);
    if (st == ST_OK)
        st = read_key(p, key, why);
    if (st == ST_OK)
        st = check_key_matches(p, why);
    if (st != ST_OK) {
        tls_pair_drop(p);
        return st;
    }
    *out = p;
    return ST_OK;
}

void
tls_pair_drop(struct tls_pair *pair)
{
    unsigned pins;

    if (pair == NULL)
        return;
    pins = atomic_fetch_sub_explicit(&pair->pins, 1, memory_order_acq_rel);
    ENSURE(pins > 0);
    if (pins > 1)
        return;
    for (unsigned i = 0; i < pair->count; i++)
        gnutls_pcert_deinit(&pair->chain[i]);
    if (pair->key != NULL)
        gnutls_privkey_deinit(pair->key);
    mem_free(pair->mem, pair);
}

/* ------------------------------------------------------------------ the pair in force */

/* Checks and copies the authorities, if there are any. */
static enum status
copy_authorities(struct tls *t, struct bytes authorities, struct reason *why)
{
    gnutls_datum_t text = as_datum(authorities);
    gnutls_x509_crt_t *list = NULL;
    unsigned count = 0;
    int error;

    if (!bytes_present(authorities))
        return ST_OK;
    error = gnutls_x509_crt_list_import2(&list, &count, &text, GNUTLS_X509_FMT_PEM, 0);
    if (error < 0)
        return gnutls_reason(why, "the authorities", error);
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(list[i]);
    gnutls_free(list);
    t->authorities = mem_alloc(t->mem, authorities.len + 1);
    if (t->authorities == NULL)
        return ST_NO_MEMORY;
    memcpy(t->authorities, authorities.data, authorities.len);
    t->authorities[authorities.len] = '\0';
    return ST_OK;
}

enum status
tls_new(struct mem *mem, struct tls_pair *pair, struct bytes authorities,
        struct tls **out, struct reason *why)
{
    struct tls *t = mem_calloc(mem, 1, sizeof(*t));
    enum status st;

    if (t == NULL) {
        tls_pair_drop(pair);
        return ST_NO_MEMORY;
    }
    t->mem = mem;
    t->pair = pair;
    lock_init(&t->lock);
    st = copy_authorities(t, authorities, why);
    if (st != ST_OK) {
        tls_free(t);
        return st;
    }
    *out = t;
    return ST_OK;
}

void
tls_free(struct tls *t)
{
    if (t == NULL)
        return;
    tls_pair_drop(t->pair);
    mem_free(t->mem, t->authorities);
    lock_fini(&t->lock);
    mem_free(t->mem, t);
}

void
tls_replace(struct tls *t, struct tls_pair *pair)
{
    struct tls_pair *before;

    lock_acquire(&t->lock);
    before = t->pair;
    t->pair = pair;
    lock_release(&t->lock);
    tls_pair_drop(before);
}

const char *
tls_authorities(const struct tls *t)
{
    return t->authorities;
}

struct tls_pair *
tls_pin(struct tls *t)
{
    struct tls_pair *pair;
    unsigned pins;

    lock_acquire(&t->lock);
    pair = t->pair;
    pins = atomic_fetch_add_explicit(&pair->pins, 1, memory_order_relaxed);
    ENSURE(pins > 0); /* at least that of t */
    lock_release(&t->lock);
    return pair;
}

/* ----------------------------------------------------------- certificates of clients */

/* A certificate that failed the checks, or for which there is no memory. */
static struct certificate unverified = {.good = false};

/* A text of up to TLS_CLIENT_CERT_BYTES. */
struct name_lines {
    char *text;
    size_t len;
};

/* Adds "kind:value" as a line, unless it is too long or has control characters. */
static void
add_name(struct name_lines *n, const char *kind, const char *value, size_t len)
{
    size_t kind_len = strlen(kind), whole = kind_len + len + (n->len > 0 ? 1 : 0);

    if (len == 0 || len > TLS_CLIENT_CERT_BYTES || n->len + whole > TLS_CLIENT_CERT_BYTES)
        return;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
            return;
    if (n->len > 0)
        n->text[n->len++] = '\n';
    memcpy(n->text + n->len, kind, kind_len);
    memcpy(n->text + n->len + kind_len, value, len);
    n->len += kind_len + len;
}

static void
add_alternatives(struct name_lines *n, gnutls_x509_crt_t crt)
{
    for (unsigned i = 0;; i++) {
        char value[TLS_CLIENT_CERT_BYTES];
        size_t len = sizeof(value);
        int type = gnutls_x509_crt_get_subject_alt_name(crt, i, value, &len, NULL);

        if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE ||
            (type < 0 && type != GNUTLS_E_SHORT_MEMORY_BUFFER))
            return; /* the end, or an error for all further names */
        for (size_t k = 0; type == GNUTLS_SAN_DNSNAME && k < len; k++)
            value[k] = (char)tolower((unsigned char)value[k]);
        if (type == GNUTLS_SAN_DNSNAME)
            add_name(n, "dns:", value, len);
        else if (type == GNUTLS_SAN_RFC822NAME)
            add_name(n, "email:", value, len);
        else if (type == GNUTLS_SAN_URI)
            add_name(n, "uri:", value, len);
    }
}

size_t
tls_client_cert_names(const gnutls_datum_t *der, char text[TLS_CLIENT_CERT_BYTES])
{
    struct name_lines names = {.text = text};
    gnutls_datum_t dn = {NULL, 0};
    gnutls_x509_crt_t crt;

    if (gnutls_x509_crt_init(&crt) != 0)
        return 0;
    if (gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) == 0) {
        add_alternatives(&names, crt);
        if (gnutls_x509_crt_get_dn3(crt, &dn, 0) == 0) {
            add_name(&names, "subject:", (const char *)dn.data, dn.size);
            gnutls_free(dn.data);
        }
    }
    gnutls_x509_crt_deinit(crt);
    return names.len;
}

struct certificate *
tls_client_cert_read(struct mem *mem, gnutls_session_t session)
{
    unsigned char client[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = client};
    unsigned count = 0, wrong = 0;
    const gnutls_datum_t *peers = gnutls_certificate_get_peers(session, &count);
    char text[TLS_CLIENT_CERT_BYTES];
    struct certificate *cert;
    size_t len;

    if (peers == NULL || count == 0)
        return NULL;
    if (gnutls_certificate_verify_peers(session, &purpose, 1, &wrong) != 0 || wrong != 0)
        return &unverified;
    len = tls_client_cert_names(&peers[0], text);
    cert = mem_alloc(mem, sizeof(*cert) + len);
    if (cert == NULL)
        return &unverified;
    memcpy(cert + 1, text, len);
    *cert = (struct certificate){.good = true,
                                 .names = bytes_of((const char *)(cert + 1), len)};
    return cert;
}

void
tls_client_cert_free(struct mem *mem, struct certificate *cert)
{
    if (cert != &unverified)
        mem_free(mem, cert);
}
