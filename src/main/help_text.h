/*
 * help_text: what help and manual say of the server besides its options and commands.
 *
 * Texts are plain; `what stands so` is a name that is written somewhere as it is.
 */
#ifndef MAIN_HELP_TEXT_H
#define MAIN_HELP_TEXT_H

struct help_entry {
    const char *name, *what;
};

/* Each ends with a row without a name. */
extern const struct help_entry help_arguments[]; /* that are no options */
extern const struct help_entry help_signals[];
extern const struct help_entry help_exits[]; /* what the exit statuses mean */
extern const struct help_entry help_variables[];
extern const struct help_entry help_files[];

#endif
