/*
 * roff: texts of the tables in the language of man(7), on standard output.
 *
 * `what stands so` becomes bold; hyphens stay hyphens, that a line can be copied.
 */
#ifndef MAIN_MANUAL_ROFF_H
#define MAIN_MANUAL_ROFF_H

#include "main/command.h"

/* Without the end of the line. */
void roff_text(const char *text);

/* A name, and what is to be said of it. */
void roff_entry(const char *name, const char *what);

/* The head of an entry: before and name bold, the value in italics between two texts. */
void roff_option(const char *before, const char *name, const char *between,
                 const char *value, const char *behind);

/* Those of a text that an empty line parts. */
void roff_paragraphs(const char *text);

/* "log DIR [--from POSITION]": capitals are what the caller puts in. */
void roff_usage(const char *usage);

#endif
