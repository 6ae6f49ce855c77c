/*
 * text_fill: lays out the texts of a help.
 */
#ifndef MAIN_TEXT_FILL_H
#define MAIN_TEXT_FILL_H

#include <stddef.h>
#include <stdio.h>

enum { TEXT_COLUMNS = 79, TEXT_INDENT = 8 };
extern const char text_indent[TEXT_INDENT + 1]; /* blanks */

/*
 * Prints a text word by word, in lines of at most 79 columns if no word is longer. `before` begins
 * each line but the first, whose first word stands at the column `at`. An empty line stays one.
 */
void text_fill(const char *text, size_t at, const char *before, FILE *to);

/* A name, and below it a text. */
void text_entry(const char *name, const char *what, FILE *to);

#endif
