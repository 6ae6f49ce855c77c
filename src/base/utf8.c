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

static void
escape(struct buf *out, struct bytes text, bool json)
{
    while (text.len > 0) {
        uint32_t point = 0;
        size_t len = utf8_next(text, &point);

        if (len == 0) {
            buf_printf(out, "\\x%02x", (unsigned)(unsigned char)text.data[0]);
            len = 1;
        } else if (!utf8_is_control(point)) {
            buf_add(out, text.data, len);
        } else if (point == '\n' || point == '\t' || point == '\r') {
            if (json) { /* between values, because strings cannot have it */
                buf_byte(out, ' ');
                text = bytes_of(text.data + 1, text.len - 1);
                continue;
            }
            buf_byte(out, '\\');
            buf_byte(out, point == '\n' ? 'n' : point == '\t' ? 't' : 'r');
        } else {
            buf_printf(out, "\\u%04x", (unsigned)point);
        }
        text = bytes_of(text.data + len, text.len - len);
    }
}

void
utf8_escape(struct buf *out, struct bytes text)
{
    escape(out, text, false);
}

void
utf8_escape_json(struct buf *out, struct bytes document)
{
    escape(out, document, true);
}
