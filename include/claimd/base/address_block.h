/*
 * address_block: addresses of IPv4 and IPv6, and blocks of them: "10.0.0.7",
 * "10.0.0.0/8", "2001:db8::/32".
 *
 * All addresses have 16 bytes. IPv4 addresses are mapped: ::ffff:0:0/96.
 *
 *   Memory   none
 *   Threads  any
 */
#ifndef CLAIMD_BASE_ADDRESS_BLOCK_H
#define CLAIMD_BASE_ADDRESS_BLOCK_H

#include "claimd/base/bytes.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { ADDRESS_BYTES = 16, ADDRESS_BITS = 128, ADDRESS_MAPPED_BITS = 96 };

/* All addresses with the same first bits. */
struct address_block {
    unsigned char bytes[ADDRESS_BYTES];
    unsigned bits; /* IPv4: ADDRESS_MAPPED_BITS or more */
};

/* Reads an address. *bits: the bits of an address of its family, 32 or 128. */
bool address_read(struct bytes text, unsigned char out[ADDRESS_BYTES], unsigned *bits);

/* Writes an address, an IPv4 one in its own form. */
void
address_write(const unsigned char address[ADDRESS_BYTES], char out[INET6_ADDRSTRLEN]);

/* The address of a socket. False: the family is neither IPv4 nor IPv6. */
bool address_of_socket(const struct sockaddr *from, socklen_t len,
                       unsigned char out[ADDRESS_BYTES]);

/* Maps the 4 bytes of an IPv4 address, which may be a part of `out`. */
void address_map_ipv4(const void *four, unsigned char out[ADDRESS_BYTES]);

/* True for a mapped IPv4 address. Its 4 bytes are the last ones. */
bool address_is_ipv4(const unsigned char address[ADDRESS_BYTES]);

/* True if the first bits are the same. */
bool address_same_bits(const unsigned char *a, const unsigned char *b, unsigned bits);

/* Reads "ADDRESS" or "ADDRESS/BITS". */
bool address_block_read(struct bytes text, struct address_block *out);

/* True if one of the blocks has the address. */
bool address_blocks_have(const struct address_block *blocks, size_t count,
                         const unsigned char address[ADDRESS_BYTES]);

#endif
