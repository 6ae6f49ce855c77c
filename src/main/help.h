/*
 * help: prints `claimd --help` and `claimd COMMAND --help` from the tables of options and commands, and the
 * tables themselves (`claimd tables`).
 *
 * Texts are plain. A `text in backquotes` is a name in its exact spelling.
 */
#ifndef MAIN_HELP_H
#define MAIN_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct command;

/* A name and its description in help and manual. */
struct help_entry {
    const char *name, *text;
};

/*
 * Prints the usage with the common options (NULL), with everything ("all"), or the options of a group.
 * False if there is no such group; then nothing was printed.
 */
bool help_print(const char *topic, FILE *to);

/* Prints the names of the groups. */
void help_print_groups(FILE *to);

/* Prints the help of a command. */
void help_print_command(const struct command *command, FILE *to);

#endif
