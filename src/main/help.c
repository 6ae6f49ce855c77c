#include "main/help.h"

#include "claimd/auth/policy.h"
#include "claimd/base/help_text.h"
#include "claimd/base/invariant.h"
#include "main/command.h"
#include "main/option.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------------ texts */

static const struct command_text arguments[] = {
    {"--config FILE", "Read options from an INI file with lines such as "
                      "max_claim_ttl = 43200."},
    {"--print-config",
     "Print all options with the values in force, in the form of such a file, and exit."},
    {"--check-config",
     "Check the options, the file, and the files and groups that they name, and exit. "
     "The exit status is 0 if all is well. Otherwise it is 2, and standard error has a "
     "line for each fault. claimd does not look up names of hosts."},
    {"--version", "Print the version, the commit, and the libraries, and exit."},
    {"--help [GROUP|all]", "Print the usage, the options of a group, or everything, and "
                           "exit."},
    {NULL, NULL},
};

static const struct command_text signals[] = {
    {"SIGTERM, SIGINT",
     "Stop accepting connections, finish the requests in progress within "
     "`drain_seconds`, and exit. A second signal, at least one second later, exits at "
     "once with 128 plus its number. claimd ignores and logs an earlier one, because "
     "tools such as `timeout` send two."},
    {"SIGHUP",
     "Read the options again from the same file, environment and command line, and also "
     "the tokens, the policy, the list of certificates and the TLS pair. claimd puts "
     "all of it in force, or nothing. It also clears the cache of Keystone. The log has "
     "`reloaded` or `reload_failed`. claimd.conf(5) marks the options that SIGHUP "
     "changes. For any other option with a new value, claimd logs `restart_needed` and "
     "keeps the old value."},
    {"SIGUSR1",
     "Turn maintenance on or off. During maintenance, claimd responds to posts and to "
     "/readyz with 503. Claims and deletes continue, so workers can empty the queues."},
    {NULL, NULL},
};

static const struct command_text exits[] = {
    {"0", "A signal stopped claimd."},
    {"1", "claimd could not start."},
    {"2", "The configuration is wrong. Standard error has a line for each fault."},
    {"3", "claimd refuses the directory of the journal: it is damaged, it was written by "
          "a newer claimd, it belongs to another journal, or the clock is too far ahead "
          "of it."},
    {"4", "claimd could not write the journal while serving."},
    {"128+N", "A second signal, with the number N, interrupted the stop."},
    {NULL, NULL},
};

/* ------------------------------------------------------------------ help */

enum { SHORT_NAME = 31, SHORT_LINE = 32 };

static void
print_entries(const char *heading, const struct command_text *entries, FILE *to)
{
    (void)fprintf(to, "\n%s\n", heading);
    for (; entries->name != NULL; entries++)
        help_print_entry(entries->name, entries->text, to);
}

/* Prints an option such as "--max-wait SECONDS". Returns the number of columns. */
static int
print_option_name(const struct option *option, FILE *to)
{
    char name[CONFIG_TEXT_CAP];

    option_spell(option, name);
    return option_is_switch(option) ? fprintf(to, "  --%s[=%s]", name, option->value)
                                    : fprintf(to, "  --%s %s", name, option->value);
}

static void
print_option(const struct option *option, FILE *to)
{
    (void)print_option_name(option, to);
    (void)fputc('\n', to);
    help_print_below("", option->help, to);
    if (option->example != NULL)
        help_print_below("Example: ", option->example, to);
    if (option->kind == OPTION_TEXT) { /* the default may need several lines */
        help_print_below("Default: ", option->initial, to);
        return;
    }
    (void)fprintf(to, "%*sDefault: ", HELP_INDENT, "");
    option_print_default(option, to);
    if (option_durable_default(option)[0] != '\0')
        (void)fprintf(to, ", with a journal or Redis %s", option_durable_default(option));
    if (option_has_range(option))
        (void)fprintf(to, ", range: %lld to %lld", (long long)option->min,
                      (long long)option->max);
    (void)fputc('\n', to);
}

/* Prints the options of a group; NULL: of all groups. Returns their number. */
static size_t
print_options(const char *group, FILE *to)
{
    size_t count = 0;

    for (size_t i = 0; i < option_count; i++) {
        if (group != NULL && strcasecmp(group, options[i].group) != 0)
            continue;
        if (option_begins_group(&options[i]))
            (void)fprintf(to, "%s%s\n", group == NULL ? "\n" : "", options[i].group);
        print_option(&options[i], to);
        count++;
    }
    return count;
}

/* Prints the options that most servers need, with the first sentence of each
 * description. */
static void
print_common_options(FILE *to)
{
    (void)fputs("\nMost used options\n", to);
    for (const struct option *option = options; option < options + option_count;
         option++) {
        const char *end = strstr(option->help, ". ");
        int width;

        if (!option->common)
            continue;
        width = print_option_name(option, to);
        if (width >= SHORT_LINE) {
            (void)fputc('\n', to);
            width = 0;
        }
        (void)fprintf(to, "%*s%.*s\n", SHORT_LINE - width, "",
                      end == NULL ? (int)strlen(option->help)
                                  : (int)(end - option->help) + 1,
                      option->help);
    }
}

void
help_print_groups(FILE *to)
{
    static const char heading[] = "Groups:";
    size_t at = strlen(heading);

    (void)fputs(heading, to);
    for (size_t i = 0; i < option_count; i++) {
        const char *name = options[i].group;

        if (!option_begins_group(&options[i]))
            continue;
        if (at + 1 + strlen(name) > HELP_COLUMNS) {
            (void)fputs("\n       ", to);
            at = strlen(heading);
        }
        at += 1 + strlen(name);
        (void)fputc(' ', to);
        for (; *name != '\0'; name++)
            (void)fputc(tolower((unsigned char)*name), to);
    }
    (void)fputc('\n', to);
}

/* Prints the commands that claimd-client has, or the others. */
static void
print_commands(bool of_client, FILE *to)
{
    for (size_t i = 0; i < command_program.count; i++) {
        const struct command_entry *e = &command_program.entries[i];

        if ((e->command == NULL) == of_client)
            (void)fprintf(to, "  %-*s%s\n", SHORT_NAME, e->synopsis, e->summary);
    }
}

bool
help_print(const char *topic, FILE *to)
{
    if (topic != NULL && strcmp(topic, "all") != 0)
        return print_options(topic, to) > 0;
    (void)fputs(
        "Usage: claimd [OPTION]...\n"
        "       claimd COMMAND [ARGUMENT]...\n"
        "\n"
        "claimd is an HTTP queue server that speaks the OpenStack Zaqar API. Without a\n"
        "command it serves in the foreground.\n"
        "\n"
        "Commands for a running server (claimd COMMAND --help says more)\n",
        to);
    print_commands(true, to);
    (void)fputs("\nCommands\n", to);
    print_commands(false, to);
    if (topic == NULL) {
        print_common_options(to);
        (void)fputs("\nclaimd --help GROUP prints a group of options, claimd --help all "
                    "prints all.\n",
                    to);
        help_print_groups(to);
        return true;
    }
    print_entries("Arguments", arguments, to);
    (void)fputs(
        "\nYou can give each option below on the command line, in the file "
        "(max_claim_ttl)\n"
        "and in the environment (CLAIMD_MAX_CLAIM_TTL). The command line overrides the\n"
        "environment, and the environment overrides the file.\n",
        to);
    (void)print_options(NULL, to);
    (void)fputs("\nThe profile rackspace sets these defaults\n", to);
    for (const struct config_setting *s = config_rackspace; s->option != NULL; s++)
        (void)fprintf(to, "  %s = %s\n", s->option, s->value);
    print_entries("Signals", signals, to);
    print_entries("Exit status", exits, to);
    return true;
}

/* ------------------------------------------------------------------ tables */

/*
 * `claimd tables` prints the tables of options and commands, from which
 * scripts/cmake/generate.awk makes the manual, docs/options.md, completions, and a
 * configuration file. Help does not show this command.
 *
 * A record is a line of texts with tabs in between. A line feed in a text is "\n".
 *
 *     version VERSION
 *     role NAME
 *     option GROUP NAME PLACEHOLDER WORDS DEFAULT RANGE EXAMPLE RELOADABLE HELP DURABLE
 *     LIST NAME TEXT     an entry of "signals" and other lists
 *
 * command_print_records() prints those of commands.
 */

static void
print_option_record(const struct option *o)
{
    char initial[CONFIG_TEXT_CAP] = "", range[64] = "";
    FILE *to = fmemopen(initial, sizeof(initial), "w");

    ENSURE(to != NULL);
    option_print_default(o, to);
    (void)fclose(to);
    if (option_has_range(o))
        (void)snprintf(range, sizeof(range), "%lld to %lld", (long long)o->min,
                       (long long)o->max);
    HELP_PRINT_RECORD("option", o->group, o->name, o->value, o->words, initial, range,
                      o->example, o->live ? "yes" : "", o->help,
                      option_durable_default(o));
}

void
help_print_tables(void)
{
    HELP_PRINT_RECORD("version", CLAIMD_VERSION);
    for (enum role role = 0; role < ROLE_COUNT; role++)
        HELP_PRINT_RECORD("role", role_name(role));
    for (size_t i = 0; i < option_count; i++)
        print_option_record(&options[i]);
    command_print_records(&command_program);
    for (const struct config_setting *s = config_rackspace; s->option != NULL; s++)
        HELP_PRINT_RECORD("profile", s->option, s->value);
    command_print_texts("arguments", arguments);
    command_print_texts("signals", signals);
    command_print_texts("exits", exits);
}
