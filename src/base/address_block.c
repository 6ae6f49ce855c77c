#include "claimd/base/address_block.h"
#include "claimd/base/invariant.h"

#include <arpa/inet.h>

static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void
address_map_ipv4(const void *four, unsigned char out[ADDRESS_BYTES])
{
    memmove(out + sizeof(mapped), four, 4);
    memcpy(out, mapped, sizeof(mapped));
}

bool
address_is_ipv4(const unsigned char address[ADDRESS_BYTES])
{
    return memcmp(address, mapped, sizeof(mapped)) == 0;
}

bool
address_same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    unsigned mask = 0xffu << (8 - rest) & 0xff;

    return memcmp(a, b, whole) == 0 && (rest == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

bool
address_read(struct bytes text, unsigned char out[ADDRESS_BYTES], unsigned *bits)
{
    char copy[INET6_ADDRSTRLEN];
    struct in_addr four;

    if (text.len == 0 || text.len >= sizeof(copy) ||
        memchr(text.data, '\0', text.len) != NULL)
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    *bits = 128;
    if (inet_pton(AF_INET6, copy, out) == 1)
        return true;
    if (inet_pton(AF_INET, copy, &four) != 1)
        return false;
    address_map_ipv4(&four, out);
    *bits = 32;
    return true;
}

void
address_write(const unsigned char address[ADDRESS_BYTES], char out[INET6_ADDRSTRLEN])
{
    const bool ipv4 = address_is_ipv4(address);

    ENSURE(inet_ntop(ipv4 ? AF_INET : AF_INET6,
                     address + (ipv4 ? ADDRESS_MAPPED_BITS / 8 : 0), out,
                     INET6_ADDRSTRLEN) != NULL);
}

bool
address_of_socket(const struct sockaddr *from, socklen_t len,
                  unsigned char out[ADDRESS_BYTES])
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;

    if (len >= sizeof(six) && from->sa_family == AF_INET6) {
        memcpy(&six, from, sizeof(six));
        memcpy(out, &six.sin6_addr, ADDRESS_BYTES);
        return true;
    }
    if (len < sizeof(four) || from->sa_family != AF_INET)
        return false;
    memcpy(&four, from, sizeof(four));
    address_map_ipv4(&four.sin_addr, out);
    return true;
}

bool
address_block_read(struct bytes text, struct address_block *out)
{
    struct bytes first = bytes_cut(&text, '/');
    unsigned most;
    uint64_t bits;

    if (!address_read(first, out->bytes, &most))
        return false;
    bits = most;
    if (bytes_present(text) && (!bytes_to_u64(text, &bits) || bits > most))
        return false;
    out->bits = (unsigned)bits + (ADDRESS_BITS - most);
    return true;
}

bool
address_blocks_have(const struct address_block *blocks, size_t count,
                    const unsigned char address[ADDRESS_BYTES])
{
    for (size_t i = 0; i < count; i++)
        if (address_same_bits(address, blocks[i].bytes, blocks[i].bits))
            return true;
    return false;
}
