/*
 * listen_policy: refuses addresses that other machines can reach while nothing protects claimd.
 */
#ifndef MAIN_LISTEN_POLICY_H
#define MAIN_LISTEN_POLICY_H

#include "claimd/http/listen.h"
#include "main/config.h"

/* True if only this machine can reach this listening address. */
bool listen_is_loopback(const char *address);

/*
 * Complains about each of the addresses that strangers can reach although nothing keeps
 * them out; `where` says what has named the addresses ("/etc/claimd.conf:3").
 */
void listen_policy_check(const struct config *config, const struct listen_list *list,
                         const char *where, struct config_errors *errors);

#endif
