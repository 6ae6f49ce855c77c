/*
 * text_file: a small file that the configuration names, read as a whole.
 */
#ifndef MAIN_TEXT_FILE_H
#define MAIN_TEXT_FILE_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"
#include "claimd/base/status.h"
#include "main/config_errors.h"

#include <stdbool.h>

struct text_file {
    const char *path;   /* borrowed */
    const char *option; /* that names it: what errors begin with */
    size_t most;        /* bytes that it may have */
    const char *hint;   /* what to do if it is not there; NULL: whoever reads knows */
    bool secret;        /* others must not be able to read it */
    bool once;          /* nobody reads it a second time: it may be a pipe */
};

/*
 * Reads it into memory of the account, owned: mem_free(mem, (void *)out->data). Unless it is
 * for once it waits for nobody. ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status text_file_read(const struct text_file *file, struct mem *mem,
                           struct bytes *out, struct config_errors *errors);

#endif
