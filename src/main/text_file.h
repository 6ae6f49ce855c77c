/* text_file: reads small files that options name. */
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
    const char *option; /* the option that names the file; errors begin with it */
    size_t most;        /* maximum size, bytes */
    const char *hint;   /* advice if the file does not exist; NULL: none */
    bool secret;        /* refuse the file if other users can read it */
    bool once;          /* claimd never reads it again, so it may be a pipe */
};

/*
 * Reads a file into memory, owned: free it by text_file_drop(). Refuses pipes without waiting for a
 * writer, unless file->once. ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status text_file_read(const struct text_file *file, struct mem *mem,
                           struct bytes *out, struct config_errors *errors);

/* Overwrites the text, which may be a secret, and frees the memory. */
void text_file_drop(struct mem *mem, struct bytes text);

/*
 * Reads a file and calls `parse` with its text. If `parse` returns ST_BAD_VALUE, it sets the reason and
 * the line (0: none) for the error message "OPTION: PATH:LINE: WHY". Other statuses as text_file_read().
 */
typedef enum status text_file_parser(void *ctx, struct mem *mem, struct bytes text,
                                     size_t *line, struct reason *why);
enum status
text_file_parse(const struct text_file *file, struct mem *mem, text_file_parser *parse,
                void *ctx, struct config_errors *errors);

/*
 * Reads a secret without the blanks around it, as a string, owned: free it by text_file_drop_word().
 * Statuses as text_file_read().
 */
enum status text_file_word(const struct text_file *file, struct mem *mem, char **out,
                           struct config_errors *errors);

/* Overwrites and frees a secret. NULL is fine. */
void text_file_drop_word(struct mem *mem, char *word);

/* Reads the password of an option as text_file_word() does. *out is NULL if the path is "none". */
enum status password_read(const char *option, const char *path, struct mem *mem,
                          char **out, struct config_errors *errors);

#endif
