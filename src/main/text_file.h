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
    const char *path;   /* borrowed; NULL: the option names no file */
    const char *option; /* the option that names the file; errors begin with it */
    size_t most;        /* maximum size, bytes */
    const char *hint;   /* advice if the file does not exist; NULL: none */
    bool secret;        /* refuse the file if other users can read it */
    bool once;          /* claimd never reads it again, so it may be a pipe */
};

/*
 * The file that an option of the server names, with its properties from one table. The
 * path is NULL for a word such as "none".
 */
struct text_file option_file(const struct config *config, const char *option);

/*
 * Reads a file into memory, owned: free it by text_file_drop(). Without a path, *out is
 * absent. Refuses pipes without waiting for a writer, unless file->once. ST_BAD_VALUE
 * after an error message; ST_NO_MEMORY.
 */
enum status text_file_read(const struct text_file *file, struct mem *mem,
                           struct bytes *out, struct config_errors *errors);

/* Overwrites the text, which may be a secret, and frees the memory. */
void text_file_drop(struct mem *mem, struct bytes text);

/*
 * Reads the file of an option and calls `parse` with its text. Does nothing if the option
 * names no file. If `parse` returns ST_BAD_VALUE, it sets the reason and the line (0:
 * none) for the error message "OPTION: PATH:LINE: WHY". Other statuses as
 * text_file_read().
 */
typedef enum status text_file_parser(void *ctx, struct mem *mem, struct bytes text,
                                     size_t *line, struct reason *why);
enum status
option_file_parse(const struct config *config, const char *option, struct mem *mem,
                  text_file_parser *parse, void *ctx, struct config_errors *errors);

/*
 * Reads a secret without the blanks around it, as a string, owned: free it by
 * text_file_drop_word(). Without a path, *out is NULL. Statuses as text_file_read().
 */
enum status text_file_word(const struct text_file *file, struct mem *mem, char **out,
                           struct config_errors *errors);

/* Overwrites and frees a secret. NULL is fine. */
void text_file_drop_word(struct mem *mem, char *word);

#endif
