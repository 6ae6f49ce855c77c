/*
 * ask: questions before a command changes much, and its progress, on the terminal of
 * standard error.
 */
#ifndef CLIENT_ASK_H
#define CLIENT_ASK_H

#include <stdbool.h>
#include <stdint.h>

struct command_args;

/*
 * Asks a question, unless `yes`. Returns COMMAND_GOOD for a yes, COMMAND_FAILED for a no,
 * and COMMAND_USAGE, after an error message, if there is no terminal.
 */
int __attribute__((format(printf, 3, 4)))
ask(const struct command_args *args, bool yes, const char *format, ...);

/* Shows a bar of a known total, if standard error is a terminal. */
void progress_show(int64_t done, int64_t total);

/* Removes the bar. */
void progress_end(void);

#endif
