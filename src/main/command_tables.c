/*
 * claimd tables: prints the tables of options and commands, from which scripts/cmake/generate.awk makes the
 * manual, docs/options.md, completions, and a configuration file. Help does not show this command.
 *
 * A record is a line of texts with tabs in between. A line feed in a text is "\n".
 *
 *     version VERSION
 *     role NAME
 *     option GROUP NAME PLACEHOLDER WORDS DEFAULT RANGE EXAMPLE RELOADABLE HELP
 *     command NAME ABOUT EXAMPLE ACTIONS PROGRAM TAKES-OPTIONS
 *     LIST NAME TEXT [PLACEHOLDER]      an entry of "signals", "status token" and other lists
 */
#include "claimd/auth/policy.h"
#include "claimd/base/invariant.h"
#include "main/command.h"
#include "main/help.h"
#include "main/option.h"

#include <stdio.h>

/* Prints a record. A text may be NULL, which is an empty one. */
static void
print_record(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = texts[i] == NULL ? "" : texts[i];

        for (; *at != '\0'; at++)
            if (*at == '\n')
                (void)fputs("\\n", stdout);
            else
                (void)putchar(*at);
        (void)putchar(i + 1 < count ? '\t' : '\n');
    }
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__})
#define PRINT_RECORD(...)                                                                \
    print_record(TEXTS(__VA_ARGS__), sizeof(TEXTS(__VA_ARGS__)) / sizeof(char *))

static void
print_option(const struct option *o)
{
    char initial[CONFIG_TEXT_CAP] = "", range[64] = "";
    FILE *to = fmemopen(initial, sizeof(initial), "w");

    ENSURE(to != NULL);
    option_print_default(o, to);
    (void)fclose(to);
    if (option_has_range(o))
        (void)snprintf(range, sizeof(range), "%lld to %lld", (long long)o->min,
                       (long long)o->max);
    PRINT_RECORD("option", o->group, o->name, o->value, o->words, initial, range,
                 o->example, o->live ? "yes" : "", o->help);
}

static void
print_list(const char *list, const struct help_entry *entries)
{
    for (; entries != NULL && entries->name != NULL; entries++)
        PRINT_RECORD(list, entries->name, entries->text);
}

static void
print_command(const struct command *c)
{
    char list[64];

    PRINT_RECORD("command", c->name, c->about, c->example, c->actions, c->program,
                 c->start == NULL ? "" : "yes");
    (void)snprintf(list, sizeof(list), "usage %s", c->name);
    for (size_t i = 0; i < COMMAND_USAGES && c->usages[i] != NULL; i++)
        PRINT_RECORD(list, c->usages[i]);
    (void)snprintf(list, sizeof(list), "option %s", c->name);
    for (size_t i = 0; i < COMMAND_OPTIONS && c->options[i].name != NULL; i++)
        PRINT_RECORD(list, c->options[i].name, c->options[i].text, c->options[i].value);
    (void)snprintf(list, sizeof(list), "status %s", c->name);
    for (int i = 0; i < COMMAND_STATUSES; i++)
        if (c->statuses[i] != NULL)
            PRINT_RECORD(list, ((const char[]){(char)('0' + i), '\0'}), c->statuses[i]);
    print_list(list, c->other_statuses);
}

static int
run_tables(const struct command_args *args)
{
    (void)args;
    PRINT_RECORD("version", CLAIMD_VERSION);
    for (enum role role = 0; role < ROLE_COUNT; role++)
        PRINT_RECORD("role", role_name(role));
    for (size_t i = 0; i < option_count; i++)
        print_option(&options[i]);
    for (size_t i = 0; i < command_count; i++)
        print_command(commands[i]);
    for (const struct config_setting *s = config_rackspace; s->option != NULL; s++)
        PRINT_RECORD("profile", s->option, s->value);
    print_list("arguments", help_arguments);
    print_list("signals", help_signals);
    print_list("exits", help_exits);
    return COMMAND_GOOD;
}

const struct command command_tables = {
    .name = "tables",
    .synopsis = "tables",
    .summary = "Print the tables of options and commands.",
    .usages = {"tables"},
    .about = "Prints the tables of options and commands, for builds of documents.",
    .example = "claimd tables",
    .run = run_tables};
