/*
 * md5: the digest of RFC 1321, for clients that compare checksums (docs/api.md 8.9). It
 * protects nothing.
 *
 *   Cost     about 2 ns per byte
 *   Memory   none
 */
#ifndef CLAIMD_BASE_MD5_H
#define CLAIMD_BASE_MD5_H

#include "claimd/base/bytes.h"

#define MD5_LEN 16

void md5(struct bytes text, uint8_t digest[MD5_LEN]);

#endif
