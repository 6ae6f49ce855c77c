#include "claimd/base/crc32c.h"

#include <stdbool.h>
#include <string.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

enum { NIBBLE = 16 };

/* For four bits at a time; small enough for the cache and for readers. */
static const uint32_t table[NIBBLE] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
    0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
    0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t
crc32c_portable(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *at = data;

    crc = ~crc;
    while (len-- > 0) {
        crc ^= *at++;
        crc = crc >> 4 ^ table[crc & (NIBBLE - 1)];
        crc = crc >> 4 ^ table[crc & (NIBBLE - 1)];
    }
    return ~crc;
}

/* Machines whose processors may have the instruction: step_8() and step_1() use it, after
 * has_instruction() has found it. The state has 32 bits, in a register of 64. */
#if defined(__x86_64__)

#define INSTRUCTION __attribute__((target("sse4.2")))

static bool
has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

static inline uint64_t INSTRUCTION
step_8(uint64_t state, uint64_t eight)
{
    return __builtin_ia32_crc32di(state, eight);
}

static inline uint64_t INSTRUCTION
step_1(uint64_t state, uint8_t one)
{
    return __builtin_ia32_crc32qi((uint32_t)state, one);
}

#elif defined(__aarch64__)

#define INSTRUCTION

static bool
has_instruction(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

/* GCC and clang have different intrinsics, and some versions only if all code may use
 * them. */
static inline uint64_t
step_8(uint64_t state, uint64_t eight)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(eight));
    return state;
}

static inline uint64_t
step_1(uint64_t state, uint8_t one)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(one));
    return state;
}

#endif

#ifdef INSTRUCTION

static uint32_t INSTRUCTION
by_instruction(uint32_t crc, const uint8_t *at, size_t len)
{
    uint64_t state = (uint32_t)~crc, eight;

    for (; len >= sizeof(eight); len -= sizeof(eight), at += sizeof(eight)) {
        memcpy(&eight, at, sizeof(eight));
        state = step_8(state, eight);
    }
    while (len-- > 0)
        state = step_1(state, *at++);
    return ~(uint32_t)state;
}

uint32_t
crc32c(uint32_t crc, const void *data, size_t len)
{
    return has_instruction() ? by_instruction(crc, data, len)
                             : crc32c_portable(crc, data, len);
}

#else

uint32_t
crc32c(uint32_t crc, const void *data, size_t len)
{
    return crc32c_portable(crc, data, len);
}

#endif
