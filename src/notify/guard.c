#include "claimd/notify/guard.h"

/* A translator turns such an address into the IPv4 address at its end (RFC 6052). */
static const unsigned char nat64[12] = {0, 0x64, 0xff, 0x9b};

/* ----------------------------------------------------- addresses that are not public */

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
block_list_contains(const unsigned char *bytes, const struct block_row *rows,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (address_same_bits(bytes, rows[i].bytes, rows[i].bits))
            return true;
    return false;
}

#define IN_BLOCK_LIST(bytes, rows)                                                       \
    block_list_contains((bytes), (rows), sizeof(rows) / sizeof((rows)[0]))

static bool
is_public(const unsigned char *a)
{
    static const unsigned char global[] = {0x20};

    if (address_is_ipv4(a))
        return !IN_BLOCK_LIST(a + ADDRESS_MAPPED_BITS / 8, refused_ipv4);
    return address_same_bits(a, global, 3) && !IN_BLOCK_LIST(a, refused_ipv6);
}

/* ------------------------------------------------------------------ the list */

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
        if (!address_block_read(item, &g.allowed[g.count]))
            return reason_give(why, ST_BAD_VALUE,
                               "has %.*s, but each item must be ADDRESS or ADDRESS/BITS",
                               (int)item.len, item.data);
        g.count++;
    }
    *out = g;
    return ST_OK;
}

bool
guard_allows(const struct guard *g, const struct sockaddr *address, socklen_t len)
{
    unsigned char a[ADDRESS_BYTES];

    if (!address_of_socket(address, len, a))
        return false;
    if (address_same_bits(a, nat64, ADDRESS_MAPPED_BITS))
        address_map_ipv4(a + sizeof(nat64), a);
    return address_blocks_have(g->allowed, g->count, a) || is_public(a);
}
