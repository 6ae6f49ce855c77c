/* command: what claimd does besides serving, named by its first argument. */
#ifndef MAIN_COMMAND_H
#define MAIN_COMMAND_H

#include "claimd/base/buf.h"
#include "claimd/journal/inspect.h"
#include "claimd/store/store.h"
#include "main/config.h"

struct help_entry;

/* What a command returns: exit statuses. */
enum {
    COMMAND_GOOD = 0,
    COMMAND_FAILED =
        1, /* it could not be done: also when another process is in the way */
    COMMAND_USAGE = 2,
    COMMAND_DAMAGED = 3
};

enum { COMMAND_PLACES = 3, COMMAND_OPTIONS = 4, COMMAND_CALLS = 3, COMMAND_STATUSES = 4 };

/* Words of a command line; the values are borrowed from it. */
struct command_words {
    const char *places[COMMAND_PLACES]; /* in their order; NULL: not there */
    const char *values[COMMAND_OPTIONS];
    struct mem *mem; /* for the command */
};

struct command_option {
    const char *name, *value, *what; /* "--from", "LSN", or NULL: it has no value;
                                        name NULL: no more */
};

/* How a command is called, and what help and manual tell of it (help.h says how). */
struct command {
    const char *name;
    const char *call, *summary;        /* "verify DIR", and a line */
    const char *usages[COMMAND_CALLS]; /* behind "claimd ", in full; NULL: no more */
    const char *about;                 /* paragraphs, with an empty line in between */
    struct command_option options[COMMAND_OPTIONS];
    const char *example; /* a command line */
    const char
        *ends[COMMAND_STATUSES]; /* what an exit status means; NULL: there is none */
    const struct help_entry *other_ends; /* and others; NULL: none */

    const char *program; /* NULL, or the one that is started with the arguments instead */
    size_t places;       /* that may be there */
    size_t least;        /* that must be there */
    const char *needs;   /* these, in words: "a directory" */
    const char
        *verbs; /* of which the first place is one, "new list"; NULL: it is a path */
    int (*run)(const struct command_words *words);
    int (*start)(char *const *argv); /* instead of `run`: reads its words itself, among
                                        them options of the server */
};

extern const struct command command_verify, command_log, command_backup, command_token,
    command_health, command_dump, command_load, command_bench, command_run_tests,
    command_generate; /* the last is not shown */

/* All of them. */
extern const struct command *const commands[];
extern const size_t command_count;

/* The command with this name, NULL if there is none. */
const struct command *command_find(const char *name);

/* Reads the arguments behind the name and runs it. Returns the exit status. */
int command_run(const struct command *command, char *const *argv);

/* ------------------------------------------------------------------ what they share */

/* One line on standard error; returns `status`. */
int __attribute__((format(printf, 2, 3)))
command_fails(int status, const char *format, ...);

/* The same for wrong arguments, with the help to read; returns COMMAND_USAGE. */
int __attribute__((format(printf, 2, 3)))
command_misused(const struct command *command, const char *format, ...);

/* Opens a directory, or makes it first; NULL after an error message. */
struct disk *command_open(const char *path, bool make);

/* The directory of a journal, for a command that reads it. */
struct command_journal {
    const char *path;
    struct disk *disk;
    struct disk_file *lock; /* NULL: it is not locked */
    bool in_use;            /* another process writes it */
};

/*
 * Opens the directory and locks it. If another process uses it, that is an error, with `advice` behind
 * it; with NULL it is none, and the command does not keep it locked either. False after an error
 * message. To be closed in any case.
 */
bool
command_journal_open(struct command_journal *j, const char *path, const char *advice);
void command_journal_close(struct command_journal *j);

/* A store with everything that a journal has. */
struct command_replay {
    struct mem *mem;
    struct store *store;
    int64_t now_ms;
    struct journal_findings found;
};

/* Replays a journal. An exit status, after an error message. To be closed in any case. */
int command_replay_open(struct command_replay *r, struct disk *d, const char *path,
                        const struct journal_eyes *eyes);
void command_replay_close(struct command_replay *r);

/* Opens a new directory, or one without files; NULL after an error message. */
struct disk *command_open_empty(const char *path);

/*
 * Requests a target of the server at ADDRESS:PORT, [IPv6]:PORT or unix:PATH, over plain HTTP without
 * libcurl. Returns the status of the response, and in *body its body, as far as it came until the server
 * closed the connection or until until_ns, a time of clock_stopwatch_ns(). 0: there was no response. -1:
 * it cannot connect, and errno says why.
 */
int http_get(const char *address, const char *target, int64_t until_ns, struct buf *body);

#endif
