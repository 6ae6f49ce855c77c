/* The table of commands: finds a command, reads its arguments and runs it. */
#include "claimd/base/nearest.h"
#include "claimd/client/commands.h"
#include "main/command.h"
#include "main/help.h"

#include <string.h>

static const struct command command_bench = {
    .name = "bench",
    .synopsis = "bench [OPTION]...",
    .summary = "Measure a server under load.",
    .usages = {"bench [OPTION]..."},
    .about =
        "Starts `claimd-bench`, a load generator for queue servers that comes with "
        "claimd. `claimd bench --help` prints its options. claimd looks for the program "
        "in its own directory and then in PATH.",
    .example = "claimd bench --help",
    .statuses = {[COMMAND_USAGE] =
                     "claimd-bench is missing. Otherwise the exit status is its own."},
    .program = "claimd-bench"};

const struct command *const commands[] = {
    &command_token, &command_health, &command_verify,    &command_log,  &command_backup,
    &command_dump,  &command_load,   &command_run_tests, &command_bench};
const size_t command_count = sizeof(commands) / sizeof(commands[0]);

#define CLIENT_COMMAND(name, synopsis, summary) {#name, synopsis, summary},
const struct client_entry client_commands[] = {CLIENT_COMMANDS(CLIENT_COMMAND)};
#undef CLIENT_COMMAND
const size_t client_command_count = sizeof(client_commands) / sizeof(client_commands[0]);

bool
command_is_of_client(const char *name)
{
    for (size_t i = 0; i < client_command_count; i++)
        if (strcmp(client_commands[i].name, name) == 0)
            return true;
    return false;
}

const struct command *
command_find(const char *name)
{
    if (strcmp(command_tables.name, name) == 0)
        return &command_tables;
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

const char *
command_nearest(const char *name)
{
    struct nearest near = nearest_begin(bytes_str(name));

    for (size_t i = 0; i < command_count; i++)
        nearest_offer(&near, commands[i]->name);
    for (size_t i = 0; i < client_command_count; i++)
        nearest_offer(&near, client_commands[i].name);
    return near.found;
}

static int
read_args(const struct command *c, char *const *argv, struct command_args *args)
{
    size_t count = 0;

    for (; *argv != NULL; argv++) {
        bool option = strncmp(*argv, "--", 2) == 0;
        const char **value = NULL; /* place for the value of the option */

        for (size_t i = 0; i < COMMAND_OPTIONS && c->options[i].name != NULL; i++)
            if (strcmp(c->options[i].name, *argv) == 0)
                value = &args->values[i];
        if (option && value == NULL)
            return command_misused(c, "%s is not an option of %s", *argv, c->name);
        if (option && (argv[1] == NULL || *value != NULL))
            return command_misused(c, "%s %s", *argv,
                                   argv[1] == NULL ? "needs a value" : "is given twice");
        if (!option && count == c->max_args)
            return command_misused(c, "%s is one argument too many", *argv);
        if (option)
            *value = *++argv;
        else
            args->positional[count++] = *argv;
    }
    return count >= c->min_args ? COMMAND_GOOD
                                : command_misused(c, "%s needs %s", c->name, c->needs);
}

int
command_run(const struct command *command, char *const *argv)
{
    struct command_args args = {.mem = NULL};
    int status = COMMAND_GOOD;
    bool wants_help = false;

    for (char *const *at = argv; *at != NULL && strcmp(*at, "--") != 0; at++)
        wants_help |= strcmp(*at, "--help") == 0 || strcmp(*at, "-h") == 0;
    if (wants_help) {
        help_print_command(command, stdout);
    } else if (command->start != NULL) {
        return command->start(argv);
    } else {
        status = read_args(command, argv, &args);
        args.mem = mem_new(0);
        if (status == COMMAND_GOOD)
            status = args.mem == NULL
                         ? command_fails(COMMAND_FAILED, "%s", status_text(ST_NO_MEMORY))
                         : command->run(&args);
        mem_destroy(args.mem);
    }
    if (status == COMMAND_GOOD && (fflush(stdout) != 0 || ferror(stdout)))
        return COMMAND_FAILED;
    return status;
}
