/*
 * token_file: the file of tokens, changed by one process at a time and in one step.
 *
 * The text is replaced as a whole: another file is written beside it, synced, and takes its
 * name. So whoever reads it sees it as it was or as it is. Owner and mode stay, and so do
 * symbolic links that lead to it.
 */
#ifndef MAIN_TOKEN_FILE_H
#define MAIN_TOKEN_FILE_H

#include "claimd/base/bytes.h"

#include <limits.h>

struct token_file {
    char path[PATH_MAX]; /* where it is: without links */
    int fd;              /* locked; -1: not open */
};

/*
 * Opens it and waits for its lock; with `make` a file that is not there is made, for its owner
 * only, or by root for the group of a folder that is closed to others (/etc/claimd of the
 * package), which may read it. What is no file at all, such as a device, is not taken. 0 or an errno.
 */
int token_file_open(struct token_file *f, const char *path, bool make);

/* Replaces the text. 0 or an errno: then it is as before. */
int token_file_replace(const struct token_file *f, struct bytes text);

void token_file_close(struct token_file *f);

#endif
