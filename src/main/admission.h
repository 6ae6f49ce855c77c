/*
 * admission: who may come in, from the files that the options name.
 */
#ifndef MAIN_ADMISSION_H
#define MAIN_ADMISSION_H

#include "claimd/auth/access.h"
#include "main/config.h"

/* Words of the option `auth`, in the order of the enum. */
#define AUTH_WORDS "none|tokens|certificates"

enum auth_kind { AUTH_BY_NONE, AUTH_BY_TOKENS, AUTH_BY_CERTIFICATES };

/*
 * Makes an access, owned; NULL in *out if everybody may come in. ST_BAD_VALUE after complaints
 * about the files; ST_NO_MEMORY.
 */
enum status admission_open(const struct config *config, struct mem *mem,
                           struct access **out, struct complaints *complaints);

/* Reads the files again. ST_BAD_VALUE after complaints: then all is as before. */
enum status admission_reload(const struct config *config, struct mem *mem,
                             struct access *access, struct complaints *complaints);

#endif
