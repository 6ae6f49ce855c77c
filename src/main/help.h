/*
 * help: what `claimd --help` and `claimd COMMAND --help` print, out of the tables.
 */
#ifndef MAIN_HELP_H
#define MAIN_HELP_H

#include "main/command.h"

#include <stdio.h>

/* How to use the program. */
void help_print(FILE *to);

/* How to use one of its commands. */
void help_print_command(const struct command *command, FILE *to);

#endif
