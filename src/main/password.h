/*
 * password: a password in a file of its own, which others cannot read.
 */
#ifndef MAIN_PASSWORD_H
#define MAIN_PASSWORD_H

#include "claimd/base/mem.h"
#include "main/config.h"
#include "main/config_errors.h"

/*
 * Reads the file that an option of this name is about, without the blanks around the password;
 * *out is NULL if its path is "none", else owned: password_free(). ST_BAD_VALUE after an error message;
 * ST_NO_MEMORY.
 */
enum status password_read(const char *option, const char *path, struct mem *mem,
                          char **out, struct config_errors *errors);

/* NULL is fine. */
void password_free(struct mem *mem, char *password);

#endif
