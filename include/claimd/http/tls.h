/*
 * tls: the certificate that a server shows, and its key; both can be replaced while
 * connections come in.
 *
 * A handshake pins the pair that is in force when it begins. So after a replacement new
 * handshakes have the new pair, those under way end with the one they began with, and
 * the last dropped pin frees it.
 *
 *   Protocol  TLS 1.2 and 1.3, with forward secrecy and authenticated encryption only
 *             (TLS_PRIORITIES; docs/adr/0009-tls.md)
 *   Threads   any; the lock is held for a pointer and a count
 *   Memory    GnuTLS's own, beside the budget
 */
#ifndef CLAIMD_HTTP_TLS_H
#define CLAIMD_HTTP_TLS_H

#include "claimd/auth/token_line.h"
#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"
#include "claimd/json/reason.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#define TLS_PRIORITIES                                                                   \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:"        \
    "-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD"

/* So many certificates a chain may have. */
enum { TLS_CHAIN_MAX = 16 };

struct tls; /* opaque */

/* A chain of certificates and the key of its first one. Does not change. */
struct tls_pair {
    struct mem *mem; /* borrowed */
    _Atomic unsigned pins;
    gnutls_pcert_st chain[TLS_CHAIN_MAX]; /* owned, as the key is */
    unsigned count;
    gnutls_privkey_t key;       /* NULL: not there yet */
    int64_t begins_ms, ends_ms; /* validity of the first certificate; real time */
};

/*
 * Reads a chain (the server's certificate first) and its key, both PEM. The pair is pinned
 * once, for the caller. ST_BAD_VALUE: *why says what is wrong, which of the two is meant
 * first ("the key is not that of the certificate"); ST_NO_MEMORY.
 */
enum status tls_pair_read(struct mem *mem, struct bytes chain, struct bytes key,
                          struct tls_pair **out, struct reason *why);

/* Drops a pin. NULL is fine. */
void tls_pair_drop(struct tls_pair *pair);

/*
 * Makes a tls, owned, that has the pair; takes the caller's pin. authorities: PEM of those whose
 * certificates clients are asked for; absent: they are not asked. ST_BAD_VALUE: *why says
 * what is wrong with the authorities; ST_NO_MEMORY. The pin is taken in any case.
 */
enum status tls_new(struct mem *mem, struct tls_pair *pair, struct bytes authorities,
                    struct tls **out, struct reason *why);

/* Frees it; pairs that are pinned elsewhere live on. NULL is fine. */
void tls_free(struct tls *t);

/* Another pair for new handshakes; takes the caller's pin. */
void tls_replace(struct tls *t, struct tls_pair *pair);

/* The authorities, ending with a NUL; NULL: there are none. */
const char *tls_authorities(const struct tls *t);

/* Pins the pair in force. */
struct tls_pair *tls_pin(struct tls *t);

/* ------------------------------------------------------------------ certificates of clients */

/* Longest names of a certificate. Longer ones, and those with control characters, are left out. */
enum { TLS_CLIENT_CERT_BYTES = 4096 };

/*
 * Writes the names of a certificate (DER): "dns:worker1.example", "subject:CN=Pages" and so on,
 * a line each, without a line feed at the end. Returns their length.
 */
size_t tls_client_cert_names(const gnutls_datum_t *der, char text[TLS_CLIENT_CERT_BYTES]);

/*
 * The certificate that a client has sent in its handshake. libmicrohttpd 0.9.75 asks for one and
 * never looks at it. So it is verified here: whether it is of a known authority, has not expired,
 * and is made for clients of TLS. Only a good one has names. Owned; NULL: none was sent. Without
 * memory it is not good.
 */
struct certificate *tls_client_cert_read(struct mem *mem, gnutls_session_t session);
void tls_client_cert_free(struct mem *mem, struct certificate *cert);

#endif
