/*
 * The table of the commands of claimd, and of those that it leaves to claimd-client and
 * claimd-bench. main.c starts them.
 *
 * command.h declares the table. claimd/base/command.h reads the arguments, prints the
 * help and runs a command. For an example, read command_log.c.
 */
#include "claimd/client/commands.h"
#include "main/command.h"

static const struct command command_bench = {.program = "claimd-bench"};

#define OF_CLIENT(name, synopsis, summary) {#name, synopsis, summary, NULL},
static const struct command_entry entries[] = {
    CLIENT_COMMANDS(OF_CLIENT){"token", "token new|list|revoke",
                               "Make, list and revoke access tokens.", &command_token},
    {"health", "health [ADDRESS]", "Check whether a server is ready.", &command_health},
    {"verify", "verify DIR [--salvage OUT]", "Check a journal, and save what is intact.",
     &command_verify},
    {"log", "log DIR", "Print a journal, record by record.", &command_log},
    {"backup", "backup DIR OUT", "Copy a journal, even while claimd writes it.",
     &command_backup},
    {"dump", "dump [OPTION]...", "Write all that a server has as lines of JSON.",
     &command_dump},
    {"load", "load [OPTION]...", "Load a dump into a server.", &command_load},
    {"run", "run [OPTION]... -- CMD", "Start a server for tests, as long as CMD runs.",
     &command_run_tests},
    {"bench", "bench [OPTION]...", "Measure a server under load.", &command_bench},
};
#undef OF_CLIENT

const struct command_program command_program = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
    .statuses = {[COMMAND_USAGE] = "The arguments are wrong."}};
