#include "claimd/base/utf8.h"

size_t
utf8_next(struct bytes text, uint32_t *point)
{
    const unsigned char *at = (const unsigned char *)text.data;
    const unsigned char *end = text.len == 0 ? NULL : utf8_pass(at, at + text.len);
    size_t len;

    if (end == NULL)
        return 0;
    len = (size_t)(end - at);
    /* The first byte of a sequence of n carries 7 - n bits, each other one 6. */
    *point = len == 1 ? at[0] : at[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++)
        *point = *point << 6 | (at[i] & 0x3fu);
    return len;
}

bool
utf8_is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x061c ||
           (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2060 && point <= 0x206f) || point == 0xfeff ||
           (point >= 0xfff9 && point <= 0xfffb);
}
