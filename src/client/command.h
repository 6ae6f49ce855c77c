/*
 * command: the commands of claimd-client, their arguments and their help.
 *
 * claimd/client/commands.h has the list with a synopsis and a summary of each.
 */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

#include "claimd/client/commands.h"
#include "client/client.h"

#include <stdint.h>

enum { COMMAND_OPTIONS_MOST = 16 };

struct client_option {
    const char *name;  /* "--limit"; NULL: the end of the list */
    const char *value; /* "N"; NULL: a switch */
    const char *text;  /* description */
};

struct client_command;

/* An exit status and its meaning. */
struct client_status {
    int status;
    const char *text; /* NULL: the end of the list */
};

/* The arguments of a command, borrowed from the command line. */
struct client_args {
    const char *name; /* of the command */
    const struct client_command *command;
    char *const *words; /* positional arguments */
    size_t count;
    size_t before_dashes; /* how many of them stand before "--"; `count` without "--" */
    /* By index of the option; a switch: ""; NULL: not given. */
    const char *values[COMMAND_OPTIONS_MOST];
};

struct client_command {
    const char *about; /* paragraphs, with an empty line in between */
    struct client_option options[COMMAND_OPTIONS_MOST];
    const char *example;
    size_t least, most; /* positional arguments */
    const char *needs;  /* the required ones, in words */
    const char *good;   /* meaning of exit status 0, and of 1; NULL: the usual one */
    const char *refused;
    /* All of them, instead of the usual ones; NULL: those. */
    const struct client_status *statuses;
    int misuse; /* exit status if it cannot run, for example with wrong arguments; 0: the usual one */
    bool any_project; /* does not need a project */
    int (*run)(struct client *c,
               const struct client_args *args); /* returns the exit status */
};

#define CLIENT_DECLARE(name, synopsis, summary)                                          \
    extern const struct client_command client_##name;
CLIENT_COMMANDS(CLIENT_DECLARE)
#undef CLIENT_DECLARE

/* Runs the command line behind the name of the program. Returns the exit status. */
int client_main(char *const *argv);

/* ------------------------------------------------------------------ shared by commands */

/* Prints an error about the arguments. Returns CLIENT_USAGE. */
int __attribute__((format(printf, 2, 3)))
client_misused(const struct client_args *args, const char *format, ...);

/* Reads the value of an option as a whole number or a time; keeps *out if it is not given. False after an error
 * message. */
bool args_number(const struct client_args *args, size_t option, int64_t least,
                 int64_t most, int64_t *out);
bool args_duration(const struct client_args *args, size_t option, int64_t least,
                   int64_t most, int64_t *out);

/* Starts a path below a queue: "/v2/queues/NAME" and `behind`. */
void
path_of_queue(struct buf *out, const char *root, const char *queue, const char *behind);

/* Ends a text of requests with a NUL. NULL without memory, after an error message. */
const char *path_done(struct buf *out);

bool word_is_utf8(struct bytes word);

/* Appends a word in UTF-8 as a JSON value: JSON stays JSON, and any other text becomes a string. */
void word_write_json(struct buf *out, struct bytes word);

/* Prints a document as one line of JSON. Returns an exit status. */
int print_json(struct bytes document);

/* Writes the lines of `claimd why` for a document of a message; NULL: nothing. */
void why_write(struct buf *out, const json_t *message);

/* Out of memory: prints it. Returns CLIENT_REFUSED. */
int client_no_memory(void);

#endif
