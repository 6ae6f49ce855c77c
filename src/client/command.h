/*
 * command: the table of commands of claimd-client, and functions that its commands share
 * (claimd/base/command.h has the skeleton).
 *
 * claimd/client/commands.h has the list with a synopsis and a summary of each.
 */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

#include "claimd/base/command.h"
#include "claimd/client/commands.h"
#include "client/client.h"

#include <stdint.h>

/* The context of their arguments is a struct client. */
#define CLIENT_DECLARE(name, synopsis, summary) extern const struct command client_##name;
CLIENT_COMMANDS(CLIENT_DECLARE)
#undef CLIENT_DECLARE

/* Runs the command line behind the name of the program. Returns the exit status. */
int client_main(char *const *argv);

/*
 * ------------------------------------------------------------------ shared by commands
 */

/*
 * Reads the value of an option as a time. Keeps *out if it is not given. False after an
 * error message.
 */
bool args_duration(const struct command_args *args, size_t option, int64_t least,
                   int64_t most, int64_t *out);

bool word_is_utf8(struct bytes word);

/*
 * Appends a word in UTF-8 as a JSON value: JSON stays JSON, and any other text becomes a
 * string.
 */
void word_write_json(struct buf *out, struct bytes word);

/* A member of an object: as a number, 0 if it is none; as a text, NULL if it is none. */
int64_t member_number(const json_t *object, const char *name);
const char *member_text(const json_t *object, const char *name);

/* Writes the lines of `claimd why` for a document of a message; NULL: nothing. */
void why_write(struct buf *out, const json_t *message);

#endif
