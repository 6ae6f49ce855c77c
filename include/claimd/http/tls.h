/*
 * tls: the certificate of a server and its key, which can be replaced while connections
 * come in.
 *
 * A pair is a chain of certificates and its key. A handshake pins the pair in force when
 * it begins. After a replacement, new handshakes use the new pair, and those under way
 * end with the old one. A pair is freed with its last pin.
 *
 *   Protocol  TLS 1.2 and 1.3, with forward secrecy and authenticated encryption only
 *             (TLS_PRIORITIES; docs/adr/0009-tls.md)
 *   Threads   any; the lock is held for a pointer and a count
 *   Memory    GnuTLS's own, beside the budget
 *   Errors    ST_BAD_VALUE with a reason that names the part ("the key ...");
 *             ST_NO_MEMORY
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

enum { TLS_CHAIN_MAX = 16 }; /* certificates of a chain */

struct tls; /* opaque */

/* Immutable but for the pins. */
struct tls_pair {
    struct mem *mem; /* borrowed */
    _Atomic unsigned pins;
    gnutls_pcert_st chain[TLS_CHAIN_MAX]; /* owned, as the key is */
    unsigned count;
    gnutls_privkey_t key;       /* of the first certificate; NULL: not read yet */
    int64_t begins_ms, ends_ms; /* validity of the first certificate; wall clock */
};

/*
 * Reads a chain (the server's certificate first) and its key, both PEM. The caller gets a
 * pin of the new pair.
 */
enum status tls_pair_read(struct mem *mem, struct bytes chain, struct bytes key,
                          struct tls_pair **out, struct reason *why);

/* Drops a pin. NULL is fine. */
void tls_pair_drop(struct tls_pair *pair);

/*
 * Makes a tls with the pair. It takes over the caller's pin, also after a failure.
 * authorities: PEM of the authorities that sign certificates of clients; absent: claimd
 * asks clients for no certificate.
 */
enum status tls_new(struct mem *mem, struct tls_pair *pair, struct bytes authorities,
                    struct tls **out, struct reason *why);

/* Frees a tls. A pair with other pins lives on. NULL is fine. */
void tls_free(struct tls *t);

/* Sets the pair for new handshakes. Takes over the caller's pin. */
void tls_replace(struct tls *t, struct tls_pair *pair);

/* The authorities, ending with a NUL. NULL: there are none. */
const char *tls_authorities(const struct tls *t);

/* Pins the pair in force. The caller drops the pin. */
struct tls_pair *tls_pin(struct tls *t);

/* ----------------------------------------------------------- certificates of clients */

/* Maximum length of all names together. Names that do not fit, and names with control
 * characters, are left out. */
enum { TLS_CLIENT_CERT_BYTES = 4096 };

/*
 * Writes the names of a certificate (DER), one a line: "dns:worker1.example",
 * "subject:CN=Pages". The last line has no line feed. Returns the length.
 */
size_t tls_client_cert_names(const gnutls_datum_t *der, char text[TLS_CLIENT_CERT_BYTES]);

/*
 * Reads the certificate that a client sent in its handshake. libmicrohttpd 0.9.75 asks
 * for a certificate and does not verify it. So this function checks the authority, the
 * validity and the purpose (TLS client). If a check fails, or without memory, `good` is
 * false and there are no names. The caller frees the result. NULL: the client sent none.
 */
struct certificate *tls_client_cert_read(struct mem *mem, gnutls_session_t session);
void tls_client_cert_free(struct mem *mem, struct certificate *cert);

#endif
