/*
 * guard: the addresses that notifications may go to.
 *
 * A subscriber chooses a URI, and the server connects to it. The server may reach hosts
 * that the subscriber cannot: a service on the same machine, the metadata service of a
 * cloud, a printer. So the guard allows only public addresses of the Internet, and the
 * addresses in a list of the operator:
 *
 *     10.1.0.0/16, 127.0.0.1, fd00:1::/32
 *
 * The guard checks the address that is passed to connect(), after name resolution. So if
 * a name server later returns another address, that has no effect. If an IPv6 address
 * stands for an IPv4 address (mapped, NAT64 64:ff9b::/96), the guard checks the IPv4
 * address. The guard denies addresses that tunnel to an IPv4 address (IPv4-compatible
 * addresses, 6to4, Teredo, 64:ff9b:1::/48).
 *
 *   Cost     a comparison with each of about twenty address blocks
 *   Memory   none
 *   Threads  any
 *   Source   the IANA registries of special-purpose addresses. The guard denies IPv6
 *            addresses outside of 2000::/3
 */
#ifndef CLAIMD_NOTIFY_GUARD_H
#define CLAIMD_NOTIFY_GUARD_H

#include "claimd/base/address_block.h"
#include "claimd/json/reason.h"

enum { GUARD_ALLOWED_MAX = 16 };

/* If it is all zero, the guard allows only public addresses. */
struct guard {
    size_t count;
    struct address_block allowed[GUARD_ALLOWED_MAX];
};

/* Reads a comma-separated list. "none" is the empty list. If the list is invalid, returns
 * ST_BAD_VALUE with a reason and leaves *out unchanged. */
enum status guard_read(struct bytes list, struct guard *out, struct reason *why);

/* True if the server may connect to the address. False for address families other than
 * IPv4 and IPv6. */
bool guard_allows(const struct guard *g, const struct sockaddr *address, socklen_t len);

#endif
