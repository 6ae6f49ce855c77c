/*
 * admission: access of clients, from the files and the Keystone server that the options name.
 */
#ifndef MAIN_ADMISSION_H
#define MAIN_ADMISSION_H

#include "claimd/auth/access.h"
#include "claimd/auth/auth.h"
#include "claimd/base/log.h"
#include "main/config.h"

/* It must stay where it is while it is open. */
struct admission {
    const struct config *config; /* borrowed */
    struct mem *mem;             /* borrowed */
    const struct log *log;       /* borrowed; NULL: it logs nothing */
    struct access *access;       /* NULL: every client has access */
    /* With keystone, else NULL: */
    struct keystone_wire *wire;
    struct executor *executor;
    struct keystone *keystone;
};

/*
 * Opens one, to be closed in any case. ST_BAD_VALUE after error messages about the files, or what
 * is missing; ST_NO_MEMORY.
 */
enum status
admission_open(struct admission *a, const struct config *config, struct mem *mem,
               const struct log *log, struct config_errors *errors);

/* No request may be in progress. */
void admission_close(struct admission *a);

/*
 * Reads the files that *config names now, and clears the cache of Keystone. ST_BAD_VALUE
 * after error messages: then all is as before.
 */
enum status admission_reload(struct admission *a, const struct config *config,
                             struct config_errors *errors);

/*
 * Makes the auth of the identity stub, owned; NULL in *out if the stub is off. config is borrowed for
 * its life. ST_BAD_VALUE after error messages about the list of users. The list is read once: it may
 * be a pipe.
 */
enum status identity_open(const struct config *config, struct mem *mem, struct auth **out,
                          struct config_errors *errors);

#endif
