/*
 * help: prints `claimd --help` and `claimd COMMAND --help` from the tables of options and commands.
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

/* Other topics of the help. Each list ends with a row without a name. */
extern const struct help_entry help_arguments[]; /* arguments that are no options */
extern const struct help_entry help_signals[];
extern const struct help_entry help_exits[];
extern const struct help_entry help_variables[];
extern const struct help_entry help_files[];

/*
 * Prints the usage with the common options (NULL), with everything ("all"), or the options of a group.
 * False if there is no such group; then nothing was printed.
 */
bool help_print(const char *topic, FILE *to);

/* Prints the names of the groups. */
void help_print_groups(FILE *to);

/* Prints the help of a command. */
void help_print_command(const struct command *command, FILE *to);

/*
 * Prints a text in lines of at most 79 columns, unless a word is longer. The first word is at column
 * `at`. `before` begins each further line. Empty lines remain.
 */
void help_fill(const char *text, size_t at, const char *before, FILE *to);

/* Prints a manual page from its frame (manual.c). Returns an exit status. */
int manual_print(const char *frame_path);

#endif
