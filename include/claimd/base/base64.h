/*
 * base64: bytes as text (RFC 4648, 4), with padding.
 */
#ifndef CLAIMD_BASE_BASE64_H
#define CLAIMD_BASE_BASE64_H

#include <stddef.h>

/* How many characters len bytes become. */
#define BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Writes them, no NUL; returns how many. */
size_t base64_write(char *out, const void *data, size_t len);

#endif
