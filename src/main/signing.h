/*
 * signing: keys that sign, those of pre-signed URLs and those of web hooks, from the files that
 * the options name.
 */
#ifndef MAIN_SIGNING_H
#define MAIN_SIGNING_H

#include "claimd/auth/signer.h"
#include "main/config_errors.h"

/*
 * Makes a signer with the keys of the file that this option names, owned; without any for "none".
 * ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status signing_open(const char *option, const char *path, struct mem *mem,
                         struct signer **out, struct config_errors *errors);

#endif
