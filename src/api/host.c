#include "claimd/api/host.h"

#include <ctype.h>

/* Longest name of a host. */
enum { NAME_MOST = 253 };

/* The host without its port. */
static struct bytes
cut_port(struct bytes host)
{
    const char *bracket =
        host.len > 0 && host.data[0] == '[' ? memchr(host.data, ']', host.len) : NULL;
    size_t skip = bracket == NULL ? 0 : (size_t)(bracket - host.data) + 1;
    const char *colon = memchr(host.data + skip, ':', host.len - skip);

    if (bracket != NULL && colon != bracket + 1)
        return host;
    return colon == NULL ? host : bytes_of(host.data, (size_t)(colon - host.data));
}

/*
 * No name of the DNS consists of digits and dots, or has brackets. So a host that does is an
 * address to a browser, or nothing. This one may have a port.
 */
static bool
is_ipv4(struct bytes host)
{
    size_t i = 0;

    while (i < host.len &&
           ((host.data[i] >= '0' && host.data[i] <= '9') || host.data[i] == '.'))
        i++;
    return i > 0 && (i == host.len || host.data[i] == ':');
}

/* Without a port. */
static bool
is_ipv6(struct bytes name)
{
    if (name.len <= 2 || name.data[0] != '[' || name.data[name.len - 1] != ']')
        return false;
    for (size_t i = 1; i < name.len - 1; i++)
        if (name.data[i] != '.' && name.data[i] != ':' &&
            !isxdigit((unsigned char)name.data[i]))
            return false;
    return true;
}

bool
host_is_allowed(struct bytes host, struct bytes list)
{
    struct bytes name;

    if (!bytes_present(host) || host.len == 0 || is_ipv4(host))
        return true;
    name = cut_port(host);
    if (is_ipv6(name) || bytes_equal_nocase(name, bytes_str("localhost")))
        return true;
    while (bytes_present(list))
        if (bytes_equal_nocase(bytes_trim(bytes_cut(&list, ',')), name))
            return true;
    return false;
}

static bool
is_name(struct bytes name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

    for (size_t i = 0; i < name.len; i++)
        if (memchr(allowed, name.data[i], sizeof(allowed) - 1) == NULL)
            return false;
    return name.len > 0 && name.len <= NAME_MOST;
}

bool
host_list_is_valid(struct bytes list)
{
    while (bytes_present(list))
        if (!is_name(bytes_trim(bytes_cut(&list, ','))))
            return false;
    return true;
}
