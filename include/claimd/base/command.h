/*
 * command: the skeleton of the programs claimd, claimd-client and claimd-bench. Each has
 * a table of commands. This module finds a command, reads its arguments, runs it, and
 * prints its help and the records for the manual and completions.
 *
 *   Threads  one
 */
#ifndef CLAIMD_BASE_COMMAND_H
#define CLAIMD_BASE_COMMAND_H

#include "claimd/base/mem.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses. */
enum {
    COMMAND_GOOD = 0,
    COMMAND_FAILED = 1,      /* a refusal or a failure */
    COMMAND_USAGE = 2,       /* wrong arguments */
    COMMAND_DAMAGED = 3,     /* the journal is damaged */
    COMMAND_UNAVAILABLE = 69 /* the server does not respond; EX_UNAVAILABLE */
};

enum { COMMAND_OPTIONS = 40, COMMAND_USAGES = 6, COMMAND_STATUSES = 4 };

struct command_option {
    const char *name;  /* "--limit"; NULL: the end of the list */
    const char *value; /* "N"; NULL: a switch */
    const char *text;  /* description */
};

/* An option on the command line. */
struct command_given {
    size_t option;     /* index in the list of the command */
    const char *value; /* a switch: "" */
};

/* Arguments of a command, borrowed from the command line. */
struct command_args {
    const char *name; /* of the command */
    const struct command *command;
    char **words; /* positional arguments, and NULL */
    size_t count;
    size_t before_dashes; /* number of words before "--"; `count` without "--" */
    /* By index of the option; a switch: ""; NULL: not given. */
    const char *values[COMMAND_OPTIONS];
    const char *common[COMMAND_OPTIONS]; /* the same for the options of all commands */
    struct command_given *given;         /* all but those, in their order */
    size_t given_count;
    struct mem *mem; /* for the command */
    void *context;   /* of command_program.open */
};

/* A text about an exit status, or about another name. */
struct command_text {
    const char *name, *text; /* NULL: the end of the list */
};

/* Texts are plain. A `text in backquotes` is a name in its exact spelling. */
struct command {
    const char *usages[COMMAND_USAGES]; /* all forms; none: the synopsis */
    const char *about;                  /* paragraphs, with an empty line in between */
    struct command_option options[COMMAND_OPTIONS];
    const char *example; /* a command line */
    /* Meanings of exit statuses; NULL: the usual ones of the program. */
    const char *statuses[COMMAND_STATUSES];
    const struct command_text *other_statuses;
    size_t least, most;  /* number of positional arguments */
    const char *needs;   /* the required ones, in words: "a directory" */
    const char *actions; /* values of the first argument: "new list"; NULL: any */
    int misuse;          /* exit status if it cannot run; 0: the usual ones */
    bool repeats;        /* takes an option several times; `values` has the last one */

    /* Another program has all the rest; NULL: `run` or `start` implements it. */
    const char *program;
    int (*run)(const struct command_args *args); /* returns the exit status */
    int (*start)(char *const *argv); /* instead of `run`: reads the arguments itself */
};

/* A row of the table of commands. */
struct command_entry {
    const char *name, *synopsis, *summary; /* "verify", "verify DIR", and one sentence */
    const struct command *command;         /* NULL: claimd-client has it */
};

struct command_program {
    const struct command_entry *entries; /* in the order of the help */
    size_t count;
    const struct command_option *common; /* options of all commands; NULL: none */
    const char *common_heading;
    const char *statuses[COMMAND_STATUSES];    /* usual meanings; NULL: not used */
    const struct command_text *other_statuses; /* NULL: none */

    /*
     * Prepares `context` before a command, and returns an exit status. NULL: nothing to
     * do. `close` follows in any case.
     */
    int (*open)(struct command_args *args);
    void (*close)(struct command_args *args);
};

/* Finds a command by name. NULL if there is none. */
const struct command_entry *
command_find(const struct command_program *p, const char *name);

/* The name of a command that is like a misspelled one. NULL if there is none. */
const char *command_nearest(const struct command_program *p, const char *name);

/*
 * Reads the arguments behind the name and runs the command, or prints its help. Returns
 * the exit status.
 */
int command_run(const struct command_program *p, const struct command_entry *e,
                char *const *argv);

/*
 * Returns `status`, or after an error message another one if standard output could not be
 * written. c: NULL: none.
 */
int command_check_output(const struct command *c, int status);

/*
 * Prints the records of all commands that the program implements, for
 * scripts/cmake/generate.awk: lines of texts with tabs in between.
 *
 *     connection OPTION TEXT PLACEHOLDER     an option of all commands
 *     command NAME ABOUT EXAMPLE ACTIONS TAKES-OPTIONS
 *     usage NAME, option NAME, status NAME   a text, or a name, a text and a placeholder
 */
void command_print_records(const struct command_program *p);

/* Prints the entries of a list as records. NULL: none. */
void command_print_texts(const char *list, const struct command_text *texts);

/* ------------------------------------------------------------------ for commands */

/* Prints an error as one line, in which nothing commands a terminal. Returns `status`. */
int __attribute__((format(printf, 2, 3)))
command_fails(int status, const char *format, ...);

/* Prints a warning in the same way. */
void command_warns(const char *text);

/*
 * Prints an error about the arguments of a command, and names its help. Returns
 * COMMAND_USAGE.
 */
int __attribute__((format(printf, 2, 3)))
command_misused(const char *name, const char *format, ...);

/* Prints that there is no memory. Returns COMMAND_FAILED. */
int command_no_memory(void);

/*
 * Reads the value of an option as a whole number. Keeps *out if it is not given. False
 * after an error message.
 */
bool args_number(const struct command_args *args, size_t option, int64_t least,
                 int64_t most, int64_t *out);

#endif
