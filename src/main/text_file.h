/* text_file: a small file that the configuration names, read as a whole. */
#ifndef MAIN_TEXT_FILE_H
#define MAIN_TEXT_FILE_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"
#include "claimd/base/status.h"
#include "claimd/json/reason.h"
#include "main/config.h"

#include <stdbool.h>

struct text_file {
    const char *path;   /* borrowed */
    const char *option; /* that names it: what errors begin with */
    size_t most;        /* bytes that it may have */
    const char *hint;   /* what to do if it is not there; NULL: no hint */
    bool secret;        /* others must not be able to read it */
    bool once;          /* claimd never reads it again: it may be a pipe */
};

/*
 * Reads it into memory of the account, owned: text_file_drop(). Unless it is for once it never waits
 * for a writer. ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status text_file_read(const struct text_file *file, struct mem *mem,
                           struct bytes *out, struct config_errors *errors);

/* Overwrites the text, which may be a secret, and frees it. */
void text_file_drop(struct mem *mem, struct bytes text);

/*
 * Reads it and gives the text to `parse`, which for ST_BAD_VALUE says why and in which line (0: in
 * none). That becomes an error message "OPTION: PATH:LINE: WHY". Otherwise as text_file_read().
 */
typedef enum status text_file_parser(void *ctx, struct mem *mem, struct bytes text,
                                     size_t *line, struct reason *why);
enum status
text_file_parse(const struct text_file *file, struct mem *mem, text_file_parser *parse,
                void *ctx, struct config_errors *errors);

/*
 * Reads a secret without the blanks around it. It ends with NUL and is owned: text_file_drop_word().
 * Otherwise as text_file_read().
 */
enum status text_file_word(const struct text_file *file, struct mem *mem, char **out,
                           struct config_errors *errors);

/* NULL is fine. */
void text_file_drop_word(struct mem *mem, char *word);

/* The same for the password of an option; *out is NULL if the path is "none". */
enum status password_read(const char *option, const char *path, struct mem *mem,
                          char **out, struct config_errors *errors);

#endif
