/*
 * identity: the identity stub's auth, made from the options.
 */
#ifndef MAIN_IDENTITY_H
#define MAIN_IDENTITY_H

#include "claimd/auth/auth.h"
#include "main/config.h"

/*
 * Makes an auth, owned; NULL in *out if the stub is off. config is borrowed for the
 * auth's life. ST_BAD_VALUE after error messages about the list of users: it is missing, or
 * lines of it cannot be understood. The list is read once: it may be a pipe.
 */
enum status identity_open(const struct config *config, struct mem *mem, struct auth **out,
                          struct config_errors *errors);

/* True if the list of users is a file, and not just anybody. */
bool identity_has_list(const struct config *config);

#endif
