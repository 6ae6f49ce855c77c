/*
 * fact: what help and manual tell of the server besides its options and commands.
 *
 * Texts are plain; `what stands so` is a name that is written somewhere as it is.
 */
#ifndef MAIN_FACT_H
#define MAIN_FACT_H

struct fact {
    const char *name, *what;
};

/* Each ends with a row without a name. */
extern const struct fact fact_arguments[]; /* that are no options */
extern const struct fact fact_signals[];
extern const struct fact fact_exits[]; /* what the exit statuses mean */
extern const struct fact fact_variables[];
extern const struct fact fact_files[];

#endif
