/*
 * text: texts of servers on a terminal, output of commands, and times for people.
 *
 *   Encoding  UTF-8, whatever the locale. The widths of characters need LC_CTYPE of a
 *             UTF-8 locale
 *   Threads   one
 */
#ifndef CLIENT_TEXT_H
#define CLIENT_TEXT_H

#include "claimd/base/buf.h"

/* Columns that an escaped text needs on a terminal. */
size_t text_width(struct bytes text);

/*
 * Appends a text in exactly `width` columns: cut, with "…" at its end, or filled with
 * spaces, at its left if `right`.
 */
void text_fit(struct buf *out, struct bytes text, size_t width, bool right);

/*
 * Appends a line of block characters, one for each value, from a space for 0 to a full
 * block for the largest one.
 */
void sparkline_write(struct buf *out, const int64_t *values, size_t count);

/* Appends a line with a label and a text of the server. NULL: no line. */
void fact_write(struct buf *out, const char *label, const char *text);

/* ------------------------------------------------------------------ output */

/*
 * Print a text, or a document as one line of JSON, on standard output, and free it.
 * Return an exit status.
 */
int print_text(struct buf *text);
int print_json(struct buf *document);

/* ------------------------------------------------------------------ times */

/* Appends a time in seconds: "7s", "3m07s", "2h05m", "4d02h". */
void duration_write(struct buf *out, int64_t seconds);

/*
 * Reads a whole number of seconds, or with one of the units s, m, h, d. False: it is
 * something else, or out of range.
 */
bool duration_read(struct bytes text, int64_t least, int64_t most, int64_t *seconds);

#endif
