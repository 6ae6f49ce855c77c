#include "claimd/notify/guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum { MAPPED_BITS = 96 };

/* All addresses have 16 bytes. IPv4 addresses are mapped: ::ffff:0:0/96. */
static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
/* A translator turns such an address into the IPv4 address at its end (RFC 6052). */
static const unsigned char nat64[12] = {0, 0x64, 0xff, 0x9b};

/* ------------------------------------------------------------------ addresses that are not public */

struct block_row {
    unsigned char bytes[4];
    unsigned bits;
};

static const struct block_row refused_ipv4[] = {
    {{0, 0, 0, 0}, 8},       /* this network */
    {{10, 0, 0, 0}, 8},      /* private */
    {{100, 64, 0, 0}, 10},   /* shared by customers of a provider */
    {{127, 0, 0, 0}, 8},     /* loopback */
    {{169, 254, 0, 0}, 16},  /* link-local; metadata of clouds */
    {{172, 16, 0, 0}, 12},   /* private */
    {{192, 0, 0, 0}, 24},    /* protocols */
    {{192, 0, 2, 0}, 24},    /* documents */
    {{192, 88, 99, 0}, 24},  /* relays of 6to4 */
    {{192, 168, 0, 0}, 16},  /* private */
    {{198, 18, 0, 0}, 15},   /* benchmarks */
    {{198, 51, 100, 0}, 24}, /* documents */
    {{203, 0, 113, 0}, 24},  /* documents */
    {{224, 0, 0, 0}, 4},     /* multicast */
    {{240, 0, 0, 0}, 4},     /* reserved, broadcast */
};

/* Within 2000::/3. No address outside of it is public. */
static const struct block_row refused_ipv6[] = {
    {{0x20, 0x01, 0x00, 0x00}, 23}, /* protocols: Teredo, benchmarks, ORCHID */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documents */
    {{0x20, 0x02, 0x00, 0x00}, 16}, /* 6to4 */
    {{0x3f, 0xff, 0x00, 0x00}, 20}, /* documents */
};

static bool
same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    unsigned mask = 0xffu << (8 - rest) & 0xff;

    return memcmp(a, b, whole) == 0 && (rest == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

static bool
block_list_contains(const unsigned char *bytes, const struct block_row *rows,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (same_bits(bytes, rows[i].bytes, rows[i].bits))
            return true;
    return false;
}

#define IN_BLOCK_LIST(bytes, rows)                                                       \
    block_list_contains((bytes), (rows), sizeof(rows) / sizeof((rows)[0]))

static bool
is_public(const unsigned char *a)
{
    static const unsigned char global[] = {0x20};

    if (same_bits(a, mapped, MAPPED_BITS))
        return !IN_BLOCK_LIST(a + sizeof(mapped), refused_ipv4);
    return same_bits(a, global, 3) && !IN_BLOCK_LIST(a, refused_ipv6);
}

/* ------------------------------------------------------------------ the list */

static void
map_ipv4(const void *four, unsigned char out[16])
{
    memmove(out + sizeof(mapped), four, 4); /* `four` may point into `out` */
    memcpy(out, mapped, sizeof(mapped));
}

/* Reads an address. *bits: its number of bits. */
static bool
read_address(struct bytes text, unsigned char out[16], unsigned *bits)
{
    char copy[INET6_ADDRSTRLEN];
    struct in_addr four;

    if (text.len >= sizeof(copy) || memchr(text.data, '\0', text.len) != NULL)
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *bits = 128;
    if (inet_pton(AF_INET6, copy, out) == 1)
        return true;
    if (inet_pton(AF_INET, copy, &four) != 1)
        return false;
    map_ipv4(&four, out);
    *bits = 32;
    return true;
}

/* Reads "ADDRESS" or "ADDRESS/BITS". */
static bool
read_block(struct bytes text, struct address_block *out)
{
    struct bytes first = bytes_cut(&text, '/');
    unsigned most;
    uint64_t bits;

    if (!read_address(first, out->bytes, &most))
        return false;
    bits = most;
    if (bytes_present(text) && (!bytes_to_u64(text, &bits) || bits > most))
        return false;
    out->bits = (unsigned)bits + (128 - most);
    return true;
}

enum status
guard_read(struct bytes list, struct guard *out, struct reason *why)
{
    struct guard g = {.count = 0};

    if (bytes_equal_str(list, "none"))
        list = BYTES_NONE;
    while (bytes_present(list)) {
        struct bytes item = bytes_trim(bytes_cut(&list, ','));

        if (g.count == GUARD_ALLOWED_MAX)
            return reason_give(why, ST_BAD_VALUE, "has more than %d addresses",
                               GUARD_ALLOWED_MAX);
        if (!read_block(item, &g.allowed[g.count]))
            return reason_give(why, ST_BAD_VALUE,
                               "has %.*s, but each item must be ADDRESS or ADDRESS/BITS",
                               (int)item.len, item.data);
        g.count++;
    }
    *out = g;
    return ST_OK;
}

/* Reads the address that a connection would reach. False: the family is neither IPv4 nor IPv6. */
static bool
read_socket_address(const struct sockaddr *from, socklen_t len, unsigned char out[16])
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;

    if (len >= sizeof(six) && from->sa_family == AF_INET6) {
        memcpy(&six, from, sizeof(six));
        memcpy(out, &six.sin6_addr, 16);
        if (same_bits(out, nat64, MAPPED_BITS))
            map_ipv4(out + sizeof(nat64), out);
        return true;
    }
    if (len < sizeof(four) || from->sa_family != AF_INET)
        return false;
    memcpy(&four, from, sizeof(four));
    map_ipv4(&four.sin_addr, out);
    return true;
}

bool
guard_allows(const struct guard *g, const struct sockaddr *address, socklen_t len)
{
    unsigned char a[16];

    if (!read_socket_address(address, len, a))
        return false;
    for (size_t i = 0; i < g->count; i++)
        if (same_bits(a, g->allowed[i].bytes, g->allowed[i].bits))
            return true;
    return is_public(a);
}
