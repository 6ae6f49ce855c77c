/*
 * help: prints `claimd --help` from the tables of options and commands, and the tables
 * themselves (`claimd tables`).
 */
#ifndef MAIN_HELP_H
#define MAIN_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Prints the usage with the common options (NULL), with everything ("all"), or the
 * options of a group. False if there is no such group; then nothing was printed.
 */
bool help_print(const char *topic, FILE *to);

/* Prints the names of the groups. */
void help_print_groups(FILE *to);

/* Prints the tables of options and commands (`claimd tables`). */
void help_print_tables(void);

#endif
