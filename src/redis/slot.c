#include "redis/slot.h"

/* CRC16-CCITT as XMODEM has it: polynomial 0x1021, nothing reflected, from 0. */
static uint16_t
crc16(struct bytes text)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < text.len; i++) {
        crc ^= (uint16_t)((uint8_t)text.data[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

uint16_t
slot_of(struct bytes key)
{
    const char *open = memchr(key.data, '{', key.len);
    const char *begin = open == NULL ? NULL : open + 1;
    const char *close = NULL;

    if (begin != NULL)
        close = memchr(begin, '}', key.len - (size_t)(begin - key.data));
    if (close != NULL && close > begin)
        key = bytes_of(begin, (size_t)(close - begin));
    return crc16(key) % SLOT_COUNT;
}
