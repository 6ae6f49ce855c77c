/*
 * config_errors: what is wrong with a configuration, reported line by line.
 *
 * Code that reads or checks an option reports an error here and goes on, so that one start reports
 * all errors. Each line names an option, a variable, or a file and line.
 */
#ifndef MAIN_CONFIG_ERRORS_H
#define MAIN_CONFIG_ERRORS_H

#include <stddef.h>
#include <stdio.h>

enum { CONFIG_ERROR_LINE = 1024 };

struct config_errors {
    FILE *to;                     /* borrowed; NULL: errors are only counted, and kept */
    size_t count;                 /* so far */
    char last[CONFIG_ERROR_LINE]; /* the latest, without "claimd: "; empty: none */
    char first[CONFIG_ERROR_LINE];
};

/* Writes "claimd: " and the text as one line. What is too long for a line is cut, and
 * control characters become question marks. */
void __attribute__((format(printf, 2, 3)))
config_error(struct config_errors *c, const char *format, ...);

#endif
