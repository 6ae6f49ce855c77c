/*
 * help_text: texts of help for people, and records of tables for the generators of
 * documents.
 *
 *   Threads  one
 */
#ifndef CLAIMD_BASE_HELP_TEXT_H
#define CLAIMD_BASE_HELP_TEXT_H

#include <stddef.h>
#include <stdio.h>

enum { HELP_COLUMNS = 79, HELP_INDENT = 8 };

/*
 * Prints a text in lines of at most HELP_COLUMNS columns, unless a word is longer. The
 * first word is at column `at`. `before` begins each further line. Empty lines remain.
 */
void help_print_filled(const char *text, size_t at, const char *before, FILE *to);

/* Prints a text behind a label, indented by HELP_INDENT columns. */
void help_print_below(const char *label, const char *text, FILE *to);

/* Prints a name, and a text below it. */
void help_print_entry(const char *name, const char *text, FILE *to);

/* Prints a record: a line of texts with tabs in between. A line feed in a text becomes
 * "\n". A text may be NULL, which is an empty one. */
void help_print_record(const char *const *texts, size_t count, FILE *to);

#define HELP_TEXTS(...) ((const char *const[]){__VA_ARGS__})
#define HELP_PRINT_RECORD(...)                                                           \
    help_print_record(HELP_TEXTS(__VA_ARGS__),                                           \
                      sizeof(HELP_TEXTS(__VA_ARGS__)) / sizeof(char *), stdout)

#endif
