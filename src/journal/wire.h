/*
 * wire: little-endian numbers at any address.
 */
#ifndef JOURNAL_WIRE_H
#define JOURNAL_WIRE_H

#include <assert.h> /* static_assert */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "numbers are copied as they are");

static inline uint16_t
wire_u16(const uint8_t *at)
{
    uint16_t v;

    memcpy(&v, at, sizeof(v));
    return v;
}

static inline uint32_t
wire_u32(const uint8_t *at)
{
    uint32_t v;

    memcpy(&v, at, sizeof(v));
    return v;
}

static inline uint64_t
wire_u64(const uint8_t *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof(v));
    return v;
}

static inline int64_t
wire_i64(const uint8_t *at)
{
    return (int64_t)wire_u64(at);
}

/* True if all bytes are zero. */
static inline bool
wire_blank(const uint8_t *at, size_t len)
{
    return len == 0 || (at[0] == 0 && memcmp(at, at + 1, len - 1) == 0);
}

/* These return the address behind the bytes that they wrote. */

static inline uint8_t *
wire_put_u16(uint8_t *at, uint16_t v)
{
    memcpy(at, &v, sizeof(v));
    return at + sizeof(v);
}

static inline uint8_t *
wire_put_u32(uint8_t *at, uint32_t v)
{
    memcpy(at, &v, sizeof(v));
    return at + sizeof(v);
}

static inline uint8_t *
wire_put_u64(uint8_t *at, uint64_t v)
{
    memcpy(at, &v, sizeof(v));
    return at + sizeof(v);
}

static inline uint8_t *
wire_put(uint8_t *at, const void *from, size_t len)
{
    if (len > 0)
        memcpy(at, from, len);
    return at + len;
}

#endif
