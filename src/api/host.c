#include "claimd/api/host.h"

#include <arpa/inet.h>

/* Longest name of a host, and of an address. */
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

static bool
is_address(struct bytes name)
{
    const bool bracketed =
        name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']';
    char text[NAME_MOST + 1];
    struct in6_addr unused;

    if (bracketed)
        name = bytes_of(name.data + 1, name.len - 2);
    if (name.len > NAME_MOST)
        return false;
    memcpy(text, name.data, name.len);
    text[name.len] = '\0';
    return inet_pton(bracketed ? AF_INET6 : AF_INET, text, &unused) == 1;
}

bool
host_is_allowed(struct bytes host, struct bytes list)
{
    struct bytes name;

    if (!bytes_present(host) || host.len == 0)
        return true;
    name = cut_port(host);
    if (is_address(name) || bytes_equal_nocase(name, bytes_str("localhost")))
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
