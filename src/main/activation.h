/*
 * activation: listening sockets that a supervisor such as systemd has made, and handed on.
 *
 *     LISTEN_PID      whom they are for: they are taken only if that is us
 *     LISTEN_FDS      how many; the first is descriptor 3
 *     LISTEN_FDNAMES  what each is for, with colons in between (FileDescriptorName=)
 *
 * They take the place of the option `listen`. Since the supervisor keeps them open, whoever
 * connects while claimd is started again waits in the backlog, and is served then.
 */
#ifndef MAIN_ACTIVATION_H
#define MAIN_ACTIVATION_H

#include "claimd/base/status.h"
#include "claimd/http/listen.h"
#include "main/config.h"

/* True if there are sockets for us; nothing is looked at but the environment. */
bool activation_wanted(const struct config *config);

/*
 * Makes a list of them, checks that what is behind each is what it should be, and whom it
 * lets in (listen_policy.h), and takes the variables out of the environment. ST_BAD_VALUE after
 * error messages.
 */
enum status activation_take(const struct config *config, struct listen_list *out,
                            struct config_errors *errors);

#endif
