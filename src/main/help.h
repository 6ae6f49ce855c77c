/*
 * help: what `claimd --help` and `claimd COMMAND --help` print, out of the tables.
 */
#ifndef MAIN_HELP_H
#define MAIN_HELP_H

#include "main/command.h"

#include <stdio.h>

/*
 * How to use the program: in short (NULL), all of it ("all"), or the options of a group. False:
 * there is no such group, and nothing was printed.
 */
bool help_print(const char *topic, FILE *to);

/* A line or two with the names of the groups. */
void help_print_groups(FILE *to);

/*
 * Prints a text word by word, in lines of at most 79 columns if no word is longer. `before` begins
 * each line but the first, whose first word stands at the column `at`. An empty line stays one.
 */
void help_fill(const char *text, size_t at, const char *before, FILE *to);

/* How to use one of its commands. */
void help_print_command(const struct command *command, FILE *to);

#endif
