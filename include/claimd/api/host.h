/*
 * host: the names by which a server on the loopback may be asked.
 *
 * A page of any site can have its own name lead to 127.0.0.1 (DNS rebinding). Its browser then
 * takes claimd for that site, and sends the site's name in Host. A program of this machine
 * sends an IP address or localhost.
 */
#ifndef CLAIMD_API_HOST_H
#define CLAIMD_API_HOST_H

#include "claimd/base/bytes.h"

/*
 * True for a Host header with an IP address, with localhost, or with a name of the list, each
 * with or without a port. An absent or empty header is allowed, too: browsers always send one.
 */
bool host_is_allowed(struct bytes host, struct bytes list);

/* True for a list of one name or more, joined by commas, without ports. Blanks do not matter. */
bool host_list_is_valid(struct bytes list);

#endif
