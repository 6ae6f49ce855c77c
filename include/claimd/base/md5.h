/*
 * md5: the digest of RFC 1321. Only clients that compare checksums need it (docs/api.md
 * 8.9); it protects nothing.
 *
 *   Cost     about 2 ns a byte
 *   Memory   none
 */
#ifndef CLAIMD_BASE_MD5_H
#define CLAIMD_BASE_MD5_H

#include "claimd/base/bytes.h"

#define MD5_LEN 16

void md5(struct bytes text, uint8_t digest[MD5_LEN]);

#endif
