/*
 * proxies: the proxies whose X-Forwarded headers claimd uses.
 *
 *     127.0.0.0/8, ::1, unix, 10.0.0.7
 *
 * Commas separate the items. An item is an address, a block of addresses, or "unix" for
 * all clients of Unix sockets. "none" is the empty list.
 *
 *   Cost     proxies_have() a comparison with each item, for each connection.
 *            proxies_client() the length of the header, for each line of the log about a
 *            request of a proxy
 *   Memory   none
 *   Threads  any
 */
#ifndef CLAIMD_HTTP_PROXIES_H
#define CLAIMD_HTTP_PROXIES_H

#include "claimd/base/address_block.h"
#include "claimd/json/reason.h"

#include <netinet/in.h>

enum { PROXIES_MAX = 16 };

/* If it is all zero, there is no proxy. */
struct proxies {
    size_t count;
    struct address_block blocks[PROXIES_MAX];
    bool unix_sockets;
};

/* Reads a list. ST_BAD_VALUE, with a reason that continues the name of the option, and
 * *out unchanged. */
enum status proxies_read(struct bytes list, struct proxies *out, struct reason *why);

/* True if the peer of a connection is a proxy of the list. */
bool proxies_have(const struct proxies *p, const struct sockaddr *peer, socklen_t len);

/*
 * Writes the address of the client, from the value of X-Forwarded-For. Each proxy appends
 * the address of its own client. So the last address that is not in the list counts, or
 * the first one if all are. False, if something there is not an address.
 */
bool proxies_client(const struct proxies *p, struct bytes forwarded,
                    char out[INET6_ADDRSTRLEN]);

#endif
