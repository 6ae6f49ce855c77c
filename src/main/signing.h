/*
 * signing: the keys of pre-signed URLs, from the file that the options name.
 */
#ifndef MAIN_SIGNING_H
#define MAIN_SIGNING_H

#include "claimd/auth/signer.h"
#include "main/config.h"

/*
 * Makes a signer with the keys of the file, owned; without any if none is named. ST_BAD_VALUE
 * after a complaint; ST_NO_MEMORY.
 */
enum status signing_open(const struct config *config, struct mem *mem,
                         struct signer **out, struct complaints *complaints);

#endif
