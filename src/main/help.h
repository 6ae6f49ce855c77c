/*
 * help: what `claimd --help` prints, out of the tables.
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

#endif
