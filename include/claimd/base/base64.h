/*
 * base64: bytes as text (RFC 4648, 4), with padding.
 */
#ifndef CLAIMD_BASE_BASE64_H
#define CLAIMD_BASE_BASE64_H

#include <stddef.h>

/* Characters of len encoded bytes. */
#define BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Encodes without a NUL. Returns the number of characters. */
size_t base64_write(char *out, const void *data, size_t len);

#endif
