/*
 * certificates: whom the certificates of clients stand for (docs/api.md 15.3).
 *
 *     NAME     ROLE    PROJECTS         WHAT THE CERTIFICATE SAYS
 *     worker1  worker  billing,archive  dns:worker1.example
 *     pages    admin   *                subject:CN=Pages,O=Example
 *
 * are lines of a file, separated by blanks; "#" begins a comment line. The last field goes
 * to the end of the line: an alternative name of the certificate (dns:, email:, uri:) or its
 * whole subject as RFC 4514 has it. Whether a certificate is good is found out elsewhere; here it is only
 * looked up.
 *
 *   Cost     looking up: a hash and a comparison for each name of a certificate
 *   Threads  any: nothing changes after it was read
 */
#ifndef CLAIMD_AUTH_CERTIFICATES_H
#define CLAIMD_AUTH_CERTIFICATES_H

#include "claimd/auth/policy.h"
#include "claimd/base/mem.h"

/* What somebody has shown, once it was looked at. */
struct certificate {
    bool good; /* of an authority we know, not expired, made for clients */
    struct bytes
        names; /* good: lines in the form of the last field, dns: in small letters */
};

/* The texts are borrowed from the line. */
struct certificate_line {
    struct bytes name; /* as that of a token */
    enum role role;
    struct bytes projects;
    struct bytes subject; /* what the certificate says */
};

/* Reads a line that is not blank. ST_BAD_VALUE: *why says what is wrong with it. */
enum status certificate_line_read(struct bytes line, struct certificate_line *out,
                                  struct reason *why);

struct certificates; /* opaque */

/*
 * Reads a list of lines, owned. ST_BAD_VALUE: *bad_line cannot be taken, and *why says why
 * (two lines for the same certificates, too); ST_NO_MEMORY.
 */
enum status
certificates_read(struct mem *mem, struct bytes list, struct certificates **out,
                  size_t *bad_line, struct reason *why);
void certificates_free(struct certificates *c);

size_t certificates_count(const struct certificates *c);

/* The first line of the list for any of the names; NULL: there is none. */
const struct certificate_line *
certificates_find(const struct certificates *c, const struct certificate *shown);

#endif
