/* command: the subcommands of claimd, such as `claimd verify`, and functions that they share. */
#ifndef MAIN_COMMAND_H
#define MAIN_COMMAND_H

#include "claimd/base/buf.h"
#include "claimd/journal/inspect.h"
#include "claimd/store/store.h"
#include "main/config.h"

struct help_entry;

/* Exit statuses of commands. */
enum { COMMAND_GOOD, COMMAND_FAILED, COMMAND_USAGE, COMMAND_DAMAGED };

enum {
    COMMAND_ARGUMENTS = 3,
    COMMAND_OPTIONS = 4,
    COMMAND_USAGES = 3,
    COMMAND_STATUSES = 4
};

/* Arguments of a command, borrowed from the command line. */
struct command_args {
    const char *positional[COMMAND_ARGUMENTS]; /* NULL: missing */
    const char *values[COMMAND_OPTIONS];       /* by index of the option; NULL: missing */
    struct mem *mem;                           /* for the command */
};

struct command_option {
    const char *name;  /* "--from"; NULL: the end of the list */
    const char *value; /* "LSN"; NULL: the option has no value */
    const char *text;  /* description */
};

/* A command, with its texts for help and the manual (help.h describes the markup). */
struct command {
    const char *name;
    const char *synopsis, *summary;     /* "verify DIR", and one sentence */
    const char *usages[COMMAND_USAGES]; /* all forms, without "claimd "; NULL: the end */
    const char *about;                  /* paragraphs, with an empty line in between */
    struct command_option options[COMMAND_OPTIONS];
    const char *example;                     /* a command line */
    const char *statuses[COMMAND_STATUSES];  /* their meanings; NULL: not used */
    const struct help_entry *other_statuses; /* NULL: none */

    const char *program;       /* implements the command; NULL: `run` or `start` does */
    size_t max_args, min_args; /* positional arguments */
    const char *needs;         /* the required ones, in words: "a directory" */
    const char *actions;       /* values of the first argument: "new list"; NULL: any */
    int (*run)(const struct command_args *args);
    int (*start)(char *const *argv); /* instead of `run`: reads the arguments itself */
};

extern const struct command command_verify, command_log, command_backup, command_token,
    command_health, command_dump, command_load, command_run_tests,
    command_tables; /* help does not show the last one */

/* All commands that help shows. */
extern const struct command *const commands[];
extern const size_t command_count;

/* The commands of claimd-client, as help shows them. */
struct client_entry {
    const char *name, *synopsis, *summary;
};

extern const struct client_entry client_commands[];
extern const size_t client_command_count;

/* True for the name of such a command. */
bool command_is_of_client(const char *name);

/* Finds a command, also command_tables, by name. NULL if there is none. */
const struct command *command_find(const char *name);

/* The name of a command that is like a misspelled one. NULL if there is none. */
const char *command_nearest(const char *name);

/*
 * Reads the arguments behind the name and runs the command, or prints its help. Returns the exit status.
 */
int command_run(const struct command *command, char *const *argv);

/* ------------------------------------------------------------------ shared by commands */

/* Prints an error as one line. Returns `status`. */
int __attribute__((format(printf, 2, 3)))
command_fails(int status, const char *format, ...);

/* Prints an error about the arguments, and names the help. Returns COMMAND_USAGE. */
int __attribute__((format(printf, 2, 3)))
command_misused(const struct command *command, const char *format, ...);

/* Opens a directory; `make`: creates it if it does not exist. NULL after an error message. */
struct disk *command_open_dir(const char *path, bool make);

/* Opens a directory without files, or creates one. NULL after an error message. */
struct disk *command_open_empty_dir(const char *path);

/* The directory of a journal that a command reads. */
struct command_journal {
    const char *path;
    struct disk *disk;
    struct disk_file *lock; /* NULL: not locked */
    bool in_use;            /* another process writes the journal */
};

/*
 * Opens the directory and locks it. If another process uses it, prints an error that ends with `advice`.
 * If `advice` is NULL, use by another process is no error, and the directory does not stay locked. False
 * after an error message. Call command_journal_close() in any case.
 */
bool
command_journal_open(struct command_journal *j, const char *path, const char *advice);
void command_journal_close(struct command_journal *j);

/* A store with the contents of a journal. */
struct command_replay {
    struct mem *mem;
    struct store *store;
    int64_t now_ms;
    struct journal_findings found;
};

/* Replays a journal. Returns an exit status, after an error message if it is not 0. Call
 * command_replay_close() in any case. */
int command_replay_open(struct command_replay *r, struct disk *d, const char *path,
                        const struct journal_callbacks *callbacks);
void command_replay_close(struct command_replay *r);

/*
 * Sends GET for a target to the server at ADDRESS:PORT, [IPv6]:PORT or unix:PATH, over plain HTTP
 * without libcurl. Returns the status of the response and, in *body, its body, as far as it arrived
 * before until_ns (clock_stopwatch_ns()). 0: no response. -1: no connection; errno has the reason.
 */
int http_get(const char *address, const char *target, int64_t until_ns, struct buf *body);

#endif
