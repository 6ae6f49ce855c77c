/*
 * guard: the addresses that notifications may go to.
 *
 * A subscriber chooses a URI, and the server connects to it. The server may reach hosts that the subscriber
 * cannot: a service on the same machine, the metadata service of a cloud, a printer. So only public addresses
 * of the Internet are allowed, and those in a list:
 *
 *     10.1.0.0/16, 127.0.0.1, fd00:1::/32
 *
 * The guard checks the address that is passed to connect(), after name resolution. So later responses of a name
 * server have no effect. An IPv6 address that stands for an IPv4 address (mapped, NAT64 64:ff9b::/96) is
 * checked as the IPv4 address. Addresses that tunnel to an IPv4 address (compatible ones, 6to4, Teredo,
 * 64:ff9b:1::/48) are denied.
 *
 *   Cost     a comparison with each of some twenty blocks
 *   Memory   none
 *   Threads  any
 *   Source   the registries of special-purpose addresses by IANA. IPv6 addresses outside of 2000::/3 are denied
 */
#ifndef CLAIMD_NOTIFY_GUARD_H
#define CLAIMD_NOTIFY_GUARD_H

#include "claimd/base/bytes.h"
#include "claimd/json/reason.h"

#include <sys/socket.h>

enum { GUARD_ALLOWED_MAX = 16 };

/* All addresses with the same first bits. */
struct address_block {
    unsigned char bytes[16]; /* IPv4: a mapped address */
    unsigned bits;           /* IPv4: 96 or more */
};

/* Zero: only public addresses are allowed. */
struct guard {
    size_t count;
    struct address_block allowed[GUARD_ALLOWED_MAX];
};

/* Reads a list, separated by commas. "none" is the empty list. ST_BAD_VALUE with a reason. *out is unchanged
 * then. */
enum status guard_read(struct bytes list, struct guard *out, struct reason *why);

/* True if the server may connect to the address. Never true for families other than IPv4 and IPv6. */
bool guard_allows(const struct guard *g, const struct sockaddr *address, socklen_t len);

#endif
