/*
 * admission: who may come in, from the files and the server that the options name.
 */
#ifndef MAIN_ADMISSION_H
#define MAIN_ADMISSION_H

#include "claimd/auth/access.h"
#include "claimd/base/log.h"
#include "main/config.h"

/* Words of the option `auth`, in the order of the enum. */
#define AUTH_WORDS "none|tokens|certificates|keystone"

enum auth_kind { AUTH_BY_NONE, AUTH_BY_TOKENS, AUTH_BY_CERTIFICATES, AUTH_BY_KEYSTONE };

/* It must stay where it is while it is open. */
struct admission {
    const struct config *config; /* borrowed */
    struct mem *mem;             /* borrowed */
    const struct log *log;       /* borrowed; NULL: nobody is told */
    struct access *access;       /* NULL: everybody may come in */
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

/* Nobody asks any more, and nobody waits. */
void admission_close(struct admission *a);

/*
 * Reads the files that *config names now, and forgets what Keystone has said. ST_BAD_VALUE
 * after error messages: then all is as before.
 */
enum status admission_reload(struct admission *a, const struct config *config,
                             struct config_errors *errors);

/* Complains about options that cannot be taken, if they matter. */
void admission_check(const struct config *config, struct config_errors *errors);

#endif
