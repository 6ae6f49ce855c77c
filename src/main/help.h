/*
 * help: what `claimd --help` and `claimd COMMAND --help` print, out of the tables.
 *
 * Texts are plain; `text in backquotes` is a name that stands somewhere exactly so.
 */
#ifndef MAIN_HELP_H
#define MAIN_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct command;

/* A name, and what help and manual say of it. */
struct help_entry {
    const char *name, *text;
};

/* What there is besides options and commands. Each ends with a row without a name. */
extern const struct help_entry help_arguments[]; /* that are no options */
extern const struct help_entry help_signals[];
extern const struct help_entry help_exits[]; /* what the exit statuses mean */
extern const struct help_entry help_variables[];
extern const struct help_entry help_files[];

/*
 * Prints how to use the program: in short (NULL), all of it ("all"), or the options of a group. False:
 * there is no such group, and nothing was printed.
 */
bool help_print(const char *topic, FILE *to);

/* Prints a line or two with the names of the groups. */
void help_print_groups(FILE *to);

/* Prints how to use a command. */
void help_print_command(const struct command *command, FILE *to);

/*
 * Prints a text word by word, in lines of at most 79 columns if no word is longer. `before` begins
 * each line but the first, whose first word stands at the column `at`. An empty line stays one.
 */
void help_fill(const char *text, size_t at, const char *before, FILE *to);

#endif
