#include "claimd/base/base64.h"

static const char digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t
base64_write(char *out, const void *data, size_t len)
{
    const unsigned char *in = data;
    char *to = out;

    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        unsigned long group = (unsigned long)in[i] << 16 |
                              (left > 1 ? (unsigned long)in[i + 1] << 8 : 0) |
                              (left > 2 ? (unsigned long)in[i + 2] : 0);

        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        *to++ = left > 1 ? digits[group >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[group & 63] : '=';
    }
    return (size_t)(to - out);
}
