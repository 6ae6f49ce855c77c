/*
 * complaints: what is wrong with a configuration, told line by line.
 *
 * Whoever reads or checks an option complains here and goes on, so that everything that
 * is wrong is told at once. Each line names an option, a variable, or a file and line.
 */
#ifndef MAIN_COMPLAINTS_H
#define MAIN_COMPLAINTS_H

#include <stddef.h>
#include <stdio.h>

enum { COMPLAINT_CAP = 1024 };

struct complaints {
    FILE *to;                 /* borrowed; NULL: complaints are only counted, and kept */
    size_t count;             /* so far */
    char last[COMPLAINT_CAP]; /* the latest, without "claimd: "; empty: none */
    char first[COMPLAINT_CAP];
};

/* Writes "claimd: " and the text as one line. What is too long for a line is cut, and
 * control characters become question marks. */
void __attribute__((format(printf, 2, 3)))
complain(struct complaints *c, const char *format, ...);

#endif
