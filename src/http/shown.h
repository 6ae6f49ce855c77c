/*
 * shown: the certificate that a client has shown in its handshake.
 *
 * libmicrohttpd 0.9.75 asks for one and never looks at it. So each connection's is verified
 * here, once: whether it is of an authority that we know, has not expired, and is made for
 * clients of TLS. Only of one that is good the names are read.
 *
 *   Bounds   SHOWN_BYTES of names; what is beyond, or has bytes that no line has, is left out
 *   Threads  any
 */
#ifndef HTTP_SHOWN_H
#define HTTP_SHOWN_H

#include "claimd/auth/certificates.h"
#include "claimd/base/mem.h"

#include <gnutls/gnutls.h>

enum { SHOWN_BYTES = 4096 };

/*
 * Writes what a certificate (DER) is called: "dns:worker1.example", "subject:CN=Pages" and so on,
 * a line each, without a line feed at the end. Returns how much that is.
 */
size_t shown_names(const gnutls_datum_t *der, char text[SHOWN_BYTES]);

/* After the handshake. Owned; NULL: none was shown. Without memory it is not good. */
struct certificate *shown_read(struct mem *mem, gnutls_session_t session);
void shown_free(struct mem *mem, struct certificate *shown);

#endif
