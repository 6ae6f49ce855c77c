/*
 * guard: the addresses that notifications may go to.
 *
 * A subscriber chooses a URI, and the server connects to it. The server may reach hosts that the subscriber
 * cannot (a service on its own machine, the metadata of a cloud, a printer). So only addresses of the public Internet are, unless a list allows more:
 *
 *     10.1.0.0/16, 127.0.0.1, fd00:1::/32
 *
 * An address is judged as it is handed to connect(), after names have been resolved, so
 * nothing that a name server says later counts. An IPv4 address inside an IPv6 one is judged
 * as itself where that is what is reached (mapped ones, NAT64 64:ff9b::/96). What tunnels to
 * an IPv4 address, or to one that cannot be seen (compatible ones, 6to4, Teredo,
 * 64:ff9b:1::/48), is refused.
 *
 *   Cost     a comparison for each row of a table of some twenty
 *   Memory   none
 *   Source   IANA's registries of special-purpose addresses; of IPv6 what is not 2000::/3 is
 *            refused anyway
 */
#ifndef CLAIMD_NOTIFY_GUARD_H
#define CLAIMD_NOTIFY_GUARD_H

#include "claimd/base/bytes.h"
#include "claimd/json/reason.h"

#include <sys/socket.h>

enum { GUARD_ALLOWED_MAX = 16 };

/* Addresses with the same first bits. */
struct address_block {
    unsigned char bytes[16]; /* IPv4: as a mapped address */
    unsigned bits;           /* likewise: 96 and more */
};

/* Zero: nothing is allowed that is not public. */
struct guard {
    size_t count;
    struct address_block allowed[GUARD_ALLOWED_MAX];
};

/*
 * Reads a list, separated by commas; "none" is the empty one. ST_BAD_VALUE: *why says what
 * cannot be read; *out is as it was.
 */
enum status guard_read(struct bytes list, struct guard *out, struct reason *why);

/* True if it may be connected to; never for what is neither IPv4 nor IPv6. */
bool guard_admits(const struct guard *g, const struct sockaddr *address, socklen_t len);

#endif
