#include "main/listen_policy.h"

#include "main/admission.h"

#include <arpa/inet.h>
#include <string.h>

/* 127.0.0.0/8, in any of the ways to write it; a name never is, 127.example.org neither. */
static bool
is_loopback_ipv4(const char *text)
{
    char host[INET_ADDRSTRLEN];
    size_t len = strcspn(text, ":");
    struct in_addr address;

    if (len >= sizeof(host))
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    return inet_aton(host, &address) != 0 && ntohl(address.s_addr) >> 24 == 127;
}

bool
listen_is_loopback(const char *address)
{
    static const char *const starts[] = {"unix:", "[::1]:", "localhost:"};

    if (is_loopback_ipv4(address))
        return true;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (strncmp(address, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* The stub's tokens are for whoever asks. */
static void
check_stub(const struct config *config, const char *address, const char *where,
           struct config_errors *errors)
{
    if (!config->identity_stub || config->identity_stub_anywhere)
        return;
    config_error(errors,
                 "identity_stub gives a token to every client, so it serves loopback "
                 "addresses only,"
                 " not %s (%s). To allow other addresses, set identity_stub_anywhere",
                 address, where);
}

/* Who only has to reach the address may do everything: that must be meant. */
static void
check_open(const struct config *config, const char *address, const char *where,
           struct config_errors *errors)
{
    if (config->auth != AUTH_BY_NONE || config->insecure_listen ||
        config->identity_stub || config->ci)
        return; /* of the last two the checks above have told */
    config_error(
        errors,
        "every client that reaches %s (%s) could do everything. Set auth, listen on a "
        "loopback address or a Unix socket, or set insecure_listen if a firewall or "
        "proxy "
        "protects the address",
        address, where);
}

/* Every client can move the clock, and delete everything. */
static void
check_tests(const struct config *config, const char *address, const char *where,
            struct config_errors *errors)
{
    if (config->ci && !config->ci_anywhere)
        config_error(
            errors,
            "ci lets every client move the clock and delete everything, so it serves "
            "loopback addresses and Unix sockets only, not %s (%s). To allow other "
            "addresses, set ci_anywhere",
            address, where);
}

void
listen_policy_check(const struct config *config, const struct listen_list *list,
                    const char *where, struct config_errors *errors)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *address = list->entries[i].address;

        if (listen_is_loopback(address))
            continue;
        check_tests(config, address, where, errors);
        check_stub(config, address, where, errors);
        check_open(config, address, where, errors);
    }
}
