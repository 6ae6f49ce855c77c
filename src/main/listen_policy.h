/*
 * listen_policy: the sockets that a supervisor such as systemd hands on, the group of a Unix socket,
 * and which clients an address may admit.
 *
 *     LISTEN_PID      the process that the sockets are for: claimd takes them only if that is itself
 *     LISTEN_FDS      how many there are; the first is descriptor 3
 *     LISTEN_FDNAMES  what each is for, with colons in between (FileDescriptorName=)
 *
 * They take the place of the option `listen`. Since the supervisor keeps them open, a client that
 * connects while claimd is started again waits in the backlog, and is served then.
 */
#ifndef MAIN_LISTEN_POLICY_H
#define MAIN_LISTEN_POLICY_H

#include "main/config.h"

/* True if there are sockets for this process; it reads nothing but the environment. */
bool activation_wanted(const struct config *config);

/*
 * Makes a list of them, checks what each is and which clients it admits, and takes the variables
 * out of the environment. ST_BAD_VALUE after error messages.
 */
enum status activation_take(const struct config *config, struct listen_list *out,
                            struct config_errors *errors);

/*
 * Finds the number of the group that socket_group names; -1 if it is "none". ST_BAD_VALUE
 * after an error message: there is no such group, or it cannot be looked up.
 */
enum status socket_group_find(const struct config *config, int64_t *out,
                              struct config_errors *errors);

/* True if only this machine can reach this listening address. */
bool listen_is_loopback(const char *address);

/*
 * Reports each address that other machines can reach although nothing keeps them out; `where` says
 * what has named the addresses ("/etc/claimd.conf:3").
 */
void listen_policy_check(const struct config *config, const struct listen_list *list,
                         const char *where, struct config_errors *errors);

#endif
