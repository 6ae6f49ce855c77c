#include "claimd/http/proxies.h"

enum status
proxies_read(struct bytes list, struct proxies *out, struct reason *why)
{
    struct proxies p = {.count = 0};

    if (bytes_equal_str(list, "none"))
        list = BYTES_NONE;
    while (bytes_present(list)) {
        struct bytes item = bytes_trim(bytes_cut(&list, ','));

        if (bytes_equal_str(item, "unix")) {
            p.unix_sockets = true;
            continue;
        }
        if (p.count == PROXIES_MAX)
            return reason_give(why, ST_BAD_VALUE, "has more than %d addresses",
                               PROXIES_MAX);
        if (!address_block_read(item, &p.blocks[p.count]))
            return reason_give(
                why, ST_BAD_VALUE,
                "has \"%.*s\", but each item must be ADDRESS, ADDRESS/BITS or unix",
                (int)item.len, item.data);
        p.count++;
    }
    *out = p;
    return ST_OK;
}

bool
proxies_have(const struct proxies *p, const struct sockaddr *peer, socklen_t len)
{
    unsigned char address[ADDRESS_BYTES];

    if (peer->sa_family == AF_UNIX)
        return p->unix_sockets;
    return address_of_socket(peer, len, address) &&
           address_blocks_have(p->blocks, p->count, address);
}

/* ------------------------------------------------------------------ X-Forwarded-For */

/* Cuts the last item of a list. */
static struct bytes
cut_last(struct bytes *list)
{
    const char *comma = memrchr(list->data, ',', list->len);
    const size_t start = comma == NULL ? 0 : (size_t)(comma - list->data) + 1;
    const struct bytes last = bytes_of(list->data + start, list->len - start);

    *list = comma == NULL ? BYTES_NONE : bytes_of(list->data, start - 1);
    return bytes_trim(last);
}

/* Removes the brackets of "[::1]", and the port of "[::1]:80" and "192.0.2.1:80". */
static struct bytes
cut_port(struct bytes text)
{
    const char *colon = memchr(text.data, ':', text.len), *bracket;

    if (text.len > 0 && text.data[0] == '[') {
        bracket = memchr(text.data, ']', text.len);
        return bracket == NULL
                   ? BYTES_NONE
                   : bytes_of(text.data + 1, (size_t)(bracket - text.data) - 1);
    }
    if (colon == NULL || memrchr(text.data, ':', text.len) != colon)
        return text; /* an IPv6 address without brackets has no port */
    return bytes_of(text.data, (size_t)(colon - text.data));
}

bool
proxies_client(const struct proxies *p, struct bytes forwarded,
               char out[INET6_ADDRSTRLEN])
{
    unsigned char address[ADDRESS_BYTES];
    unsigned unused;

    do
        if (!address_read(cut_port(cut_last(&forwarded)), address, &unused))
            return false;
    while (bytes_present(forwarded) && address_blocks_have(p->blocks, p->count, address));
    address_write(address, out);
    return true;
}
