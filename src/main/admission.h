/*
 * admission: opens the access control of clients, with the files and the Keystone server of the options.
 */
#ifndef MAIN_ADMISSION_H
#define MAIN_ADMISSION_H

#include "claimd/auth/access.h"
#include "claimd/auth/auth.h"
#include "claimd/base/log.h"
#include "main/config.h"

/* Must not move in memory while it is open. */
struct admission {
    const struct config *config; /* borrowed */
    struct mem *mem;             /* borrowed */
    const struct log *log;       /* borrowed; NULL: no log */
    struct access *access;       /* owned; NULL: every client has access */
    /* Owned; NULL without Keystone. */
    struct keystone_wire *wire;
    struct executor *executor;
    struct keystone *keystone;
};

/*
 * Opens the access control. Call admission_close() in any case. ST_BAD_VALUE after error messages;
 * ST_NO_MEMORY.
 */
enum status
admission_open(struct admission *a, const struct config *config, struct mem *mem,
               const struct log *log, struct config_errors *errors);

/* No request may be in progress. */
void admission_close(struct admission *a);

/*
 * Reads the files that *config names, and clears the cache of Keystone. ST_BAD_VALUE after error
 * messages, and nothing is changed.
 */
enum status admission_reload(struct admission *a, const struct config *config,
                             struct config_errors *errors);

/*
 * Makes the auth of the identity stub, owned; *out is NULL if the stub is off. config is borrowed for
 * its life. The list of users is read only once, so it may be a pipe. ST_BAD_VALUE after error messages
 * about the list; ST_NO_MEMORY.
 */
enum status identity_open(const struct config *config, struct mem *mem, struct auth **out,
                          struct config_errors *errors);

#endif
