#include "claimd/base/md5.h"

#define BLOCK 64

/* The 64 sines of RFC 1321, section 3.4: floor(2^32 * |sin(i + 1)|). */
static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
    0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
    0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
    0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
    0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
    0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
    0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
    0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
    0xeb86d391,
};

/* Rotations of the four rounds. */
static const uint8_t rotations[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

/* The auxiliary function of step i, and the index of the word that it uses. */
static uint32_t
mix(unsigned i, const uint32_t s[4], unsigned *word)
{
    switch (i / 16) {
    case 0:
        *word = i;
        return (s[1] & s[2]) | (~s[1] & s[3]);
    case 1:
        *word = (5 * i + 1) % 16;
        return (s[1] & s[3]) | (s[2] & ~s[3]);
    case 2:
        *word = (3 * i + 5) % 16;
        return s[1] ^ s[2] ^ s[3];
    default:
        *word = 7 * i % 16;
        return s[2] ^ (s[1] | ~s[3]);
    }
}

static void
absorb(uint32_t state[4], const uint8_t *block)
{
    uint32_t words[16], s[4] = {state[0], state[1], state[2], state[3]};

    for (unsigned i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] | (uint32_t)block[4 * i + 1] << 8 |
                   (uint32_t)block[4 * i + 2] << 16 | (uint32_t)block[4 * i + 3] << 24;
    for (unsigned i = 0; i < 64; i++) {
        unsigned word;
        uint32_t f = mix(i, s, &word);
        uint32_t sum = s[0] + f + sines[i] + words[word];
        unsigned by = rotations[i / 16][i % 4];
        uint32_t b = s[1] + (sum << by | sum >> (32 - by));

        s[0] = s[3];
        s[3] = s[2];
        s[2] = s[1];
        s[1] = b;
    }
    for (unsigned i = 0; i < 4; i++)
        state[i] += s[i];
}

/* The rest of the data, the bit that ends it, zeros, and the length in bits: one or two
 * blocks. */
static void
absorb_tail(uint32_t state[4], struct bytes tail, uint64_t length)
{
    uint8_t blocks[2 * BLOCK] = {0};
    size_t size = tail.len + 9 <= BLOCK ? BLOCK : 2 * BLOCK;

    if (tail.len > 0)
        memcpy(blocks, tail.data, tail.len);
    blocks[tail.len] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        blocks[size - 8 + i] = (uint8_t)(length * 8 >> (8 * i));
    for (size_t at = 0; at < size; at += BLOCK)
        absorb(state, blocks + at);
}

void
md5(struct bytes text, uint8_t digest[MD5_LEN])
{
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    size_t at = 0;

    for (; text.len - at >= BLOCK; at += BLOCK)
        absorb(state, (const uint8_t *)text.data + at);
    absorb_tail(state,
                text.len == at ? BYTES_NONE : bytes_of(text.data + at, text.len - at),
                text.len);
    for (unsigned i = 0; i < MD5_LEN; i++)
        digest[i] = (uint8_t)(state[i / 4] >> (8 * (i % 4)));
}
