/*
 * keystone_wire: Keystone as it is reached over HTTP, with libcurl.
 *
 *     GET URL/auth/tokens?nocatalog
 *     X-Auth-Token: the service token
 *     X-Subject-Token: the client's
 *
 * Redirects are not followed and proxies of the environment not used: both would give tokens
 * to somebody else. Certificates are verified.
 *
 *   Cost     a round trip; connections are kept, one for each thread that asks at a time
 *   Threads  any, once it is open
 */
#ifndef CLAIMD_AUTH_KEYSTONE_WIRE_H
#define CLAIMD_AUTH_KEYSTONE_WIRE_H

#include "claimd/auth/keystone.h"

struct keystone_wire_config {
    struct mem *mem; /* borrowed for the wire's life, as all pointers here */
    const char *url; /* with "/v3"; keystone_url_check() has seen it */
    const char *ca;  /* file of certificates to trust; NULL: those of the system */
    /*
     * Writes the service token as it is now, with a NUL behind it; asked for each question, so
     * that it can be renewed. ST_UNAVAILABLE: there is none, and *why says why.
     */
    enum status (*service_token)(void *ctx, char out[KEYSTONE_TOKEN_MAX + 1],
                                 struct reason *why);
    void *ctx;
};

/* True if it is http or https, a host, and a path that ends with /v3. */
bool keystone_url_check(struct bytes url);

/*
 * Loads libcurl. ST_UNAVAILABLE: it is not there, and *why says what to do; ST_NO_MEMORY.
 * Owned.
 */
enum status keystone_wire_open(const struct keystone_wire_config *config,
                               struct keystone_wire **out, struct reason *why);

/* Nobody asks any more. NULL is fine. */
void keystone_wire_close(struct keystone_wire *wire);

#endif
