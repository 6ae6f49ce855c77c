/*
 * command: the commands of claimd, such as `claimd verify`, and functions that they
 * share. claimd/base/command.h has the skeleton.
 */
#ifndef MAIN_COMMAND_H
#define MAIN_COMMAND_H

#include "claimd/base/buf.h"
#include "claimd/base/command.h"
#include "claimd/journal/inspect.h"
#include "claimd/store/store.h"
#include "claimd/web/web_client.h"
#include "main/config.h"

extern const struct command command_verify, command_log, command_backup, command_token,
    command_health, command_dump, command_load, command_run_tests;

/* The commands of claimd, and those that it leaves to other programs. */
extern const struct command_program command_program;

/*
 * ------------------------------------------------------------------ shared by commands
 */

/*
 * Opens a directory; `make`: creates it if it does not exist. NULL after an error
 * message.
 */
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
 * Opens the directory and locks it. If another process uses it, prints an error that ends
 * with `advice`. If `advice` is NULL, use by another process is no error, and the
 * directory does not stay locked. False after an error message. Call
 * command_journal_close() in any case.
 */
bool
command_journal_open(struct command_journal *j, const char *path, const char *advice);
void command_journal_close(struct command_journal *j);

/* A store with the contents of a journal. */
struct command_replay {
    struct mem *mem;
    struct journal_bodies *bodies;
    struct store *store;
    int64_t now_ms;
    struct journal_findings found;
};

/* Replays a journal. Returns an exit status, after an error message if it is not 0. Call
 * command_replay_close() in any case. */
int command_replay_open(struct command_replay *r, struct disk *d, const char *path,
                        const struct journal_callbacks *callbacks);
void command_replay_close(struct command_replay *r);

/* Requests of a command to a server. */
struct command_client {
    struct curl_library curl;
    struct web_client web;
};

/*
 * Loads libcurl for requests to a URL, which is borrowed. False after an error message.
 * Call command_client_close() only after success.
 */
bool command_client_open(struct command_client *c, const char *url, struct mem *mem);
void command_client_close(struct command_client *c);

#endif
