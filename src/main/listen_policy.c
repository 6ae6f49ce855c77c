/*
 * The sockets that a supervisor such as systemd passes to claimd, the group of a Unix
 * socket, and the addresses that claimd serves without authentication.
 *
 *     LISTEN_PID      the process that must use the sockets
 *     LISTEN_FDS      the number of sockets; the first is descriptor 3
 *     LISTEN_FDNAMES  the use of each, with colons in between (FileDescriptorName=)
 *
 * The sockets replace the option `listen`. The supervisor keeps them open, so a client
 * that connects during a restart waits in the backlog.
 */
#include "main/option.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
listen_is_loopback(const char *address)
{
    static const char *const starts[] = {"unix:", "[::1]:", "localhost:"};
    char host[INET_ADDRSTRLEN];
    struct in_addr ip;

    /* 127.0.0.0/8 in any notation. A name is not in it, not even 127.example.org. */
    (void)snprintf(host, sizeof(host), "%.*s", (int)strcspn(address, ":"), address);
    if (strcspn(address, ":") < sizeof(host) && inet_aton(host, &ip) != 0 &&
        ntohl(ip.s_addr) >> 24 == 127)
        return true;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (strncmp(address, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

void
listen_policy_check(const struct config *config, const struct listen_list *list,
                    const char *where, struct config_errors *errors)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *address = list->entries[i].address;

        if (listen_is_loopback(address))
            continue;
        if (config->ci && !config->ci_anywhere)
            config_error(
                errors,
                "ci lets every client move the clock and delete everything, so it serves "
                "loopback addresses and Unix sockets only, not %s (%s). To allow other "
                "addresses, set ci_anywhere",
                address, where);
        if (config->identity_stub && !config->identity_stub_anywhere)
            config_error(
                errors,
                "identity_stub gives a token to every client, so it serves loopback "
                "addresses only,"
                " not %s (%s). To allow other addresses, set identity_stub_anywhere",
                address, where);
        if (config->auth == AUTH_BY_NONE && config->limits.ui &&
            list->entries[i].kind != LISTEN_METRICS)
            config_error(
                errors,
                "ui lets every client that reaches %s (%s) act on all queues. Set "
                "auth, or listen on a loopback address or a Unix socket",
                address, where);
        if (config->auth == AUTH_BY_NONE && !config->insecure_listen &&
            !config->identity_stub && !config->ci)
            config_error(
                errors,
                "every client that reaches %s (%s) could do everything. Set auth, listen "
                "on a loopback address or a Unix socket, or set insecure_listen if a "
                "firewall or proxy protects the address",
                address, where);
    }
}

enum { FIRST_FD = 3 };

static const struct {
    struct bytes name;
    enum listen_kind kind;
} names[] = {
    {BYTES_LIT("api"), LISTEN_API},
    {BYTES_LIT("claimd.socket"), LISTEN_API}, /* default name of systemd */
    {BYTES_LIT("unknown"), LISTEN_API},
    {BYTES_LIT(""), LISTEN_API},
    {BYTES_LIT("tls"), LISTEN_TLS},
    {BYTES_LIT("metrics"), LISTEN_METRICS},
};

static bool
read_number(const char *text, uint64_t *out)
{
    return text != NULL && bytes_to_u64(bytes_str(text), out);
}

bool
activation_wanted(const struct config *config)
{
    uint64_t pid, count;

    if (read_number(config->listen_fds, &count) && count == 0)
        return false;
    return config->listen_fds != NULL && read_number(config->listen_pid, &pid) &&
           pid == (uint64_t)getpid();
}

static void
activation_add(int fd, struct bytes name, struct listen_list *out,
               struct config_errors *errors)
{
    size_t i = 0;
    const char *why;

    while (i < sizeof(names) / sizeof(names[0]) && !bytes_equal(names[i].name, name))
        i++;
    if (i == sizeof(names) / sizeof(names[0]))
        config_error(errors,
                     "LISTEN_FDNAMES: descriptor %d is called %.*s. It must be api, tls "
                     "or metrics (FileDescriptorName)",
                     fd, (int)(name.len & 0xff), name.data);
    else if (!listen_inherit(fd, names[i].kind, &out->entries[out->count], &why))
        config_error(errors, "LISTEN_FDS: descriptor %d %s", fd, why);
    else
        out->count++;
}

enum status
activation_read(const struct config *config, struct listen_list *out,
                struct config_errors *errors)
{
    struct bytes rest =
        config->listen_names == NULL ? BYTES_NONE : bytes_str(config->listen_names);
    size_t before = errors->count;
    uint64_t count;

    out->count = 0;
    /* Processes that claimd starts must not use the sockets. */
    (void)unsetenv("LISTEN_PID"); /* cannot fail */
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    if (!read_number(config->listen_fds, &count) || count > LISTEN_MAX) {
        config_error(errors, "LISTEN_FDS is \"%.20s\". It must be 0 to %d",
                     config->listen_fds, LISTEN_MAX);
        return ST_BAD_VALUE;
    }
    if (config->ready_fd >= FIRST_FD && config->ready_fd < FIRST_FD + (int64_t)count)
        config_error(
            errors, "ready_fd is %d, which is a descriptor of LISTEN_FDS. Choose another",
            (int)config->ready_fd);
    for (int i = 0; i < (int)count; i++) {
        struct bytes name =
            bytes_present(rest) ? bytes_cut(&rest, ':') : bytes_str("unknown");

        activation_add(FIRST_FD + i, name, out, errors);
    }
    listen_policy_check(config, out, "socket activation", errors);
    return errors->count == before ? ST_OK : ST_BAD_VALUE;
}
/* Sizes of the buffer for a group record, which contains all members. */
enum { RECORD_FIRST = 1024, RECORD_MAX = 16 * 1024 * 1024 };

/* No group has the number (gid_t)-1. */
#define GROUP_MAX (INT64_C(4294967295) - 1)

/* Looks up a group. Returns 0 with its number in *out, -1 if it is unknown, or an
 * errno. */
static int
group_find(const char *name, int64_t *out)
{
    int failed = ERANGE;

    *out = -1;
    for (size_t size = RECORD_FIRST; failed == ERANGE && size <= RECORD_MAX; size *= 4) {
        struct group group, *found = NULL;
        char *record = malloc(size);

        if (record == NULL)
            return ENOMEM;
        do
            failed = getgrnam_r(name, &group, record, size, &found);
        while (failed == EINTR);
        if (failed == 0 && found != NULL)
            *out = (int64_t)group.gr_gid;
        free(record);
    }
    /* Some sources return these for an unknown name. */
    return failed == ENOENT || failed == ESRCH || failed == EBADF || failed == EPERM
               ? 0
               : failed;
}

enum status
socket_group_find(const struct config *config, int64_t *out, struct config_errors *errors)
{
    const char *name = config->socket_group;
    struct config_place where;
    uint64_t number;
    int failed;

    *out = -1;
    if (!config_has(name))
        return ST_OK;
    if (bytes_to_u64(bytes_str(name), &number) && number <= GROUP_MAX) {
        *out = (int64_t)number;
        return ST_OK;
    }
    failed = group_find(name, out);
    if (failed == 0 && *out >= 0)
        return ST_OK;
    where = config_where(config, option_find(bytes_str("socket_group")));
    if (failed == 0)
        config_error(errors, "socket_group: there is no group %s (%s)", name, where.text);
    else
        config_error(errors, "socket_group: the group %s (%s) cannot be looked up: %s",
                     name, where.text, strerror(failed));
    return ST_BAD_VALUE;
}
