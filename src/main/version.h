/*
 * version: what `claimd --version` prints.
 *
 *     claimd 0.1.0                   the first line is for programs
 *     commit 4a2cfb0d1e2f            or "unknown", from a tree without its history
 *     libmicrohttpd 0.9.75           the libraries as they are now, not as they were built with
 */
#ifndef MAIN_VERSION_H
#define MAIN_VERSION_H

#include <stdio.h>

/* `commit` is what the program was built from. */
void version_print(const char *commit, FILE *to);

/*
 * That, of the program that it is linked to: a source that scripts/commit.cmake writes. Not of
 * the library, so that another commit is no reason to link every test again.
 */
extern const char version_commit[];

#endif
