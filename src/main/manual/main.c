/*
 * claimd-manual: fills the frame of a manual page with what the tables of help say.
 *
 *     claimd-manual docs/claimd.1.in > claimd.1
 *
 * A program of the build, which is not installed. Of the frame every line is written as it is,
 * but for those that begin with "@": they name what stands there, of a command if one is named.
 * "@version@" within a line is the version.
 */
#include "main/help_text.h"
#include "main/manual/roff.h"
#include "main/option.h"
#include "main/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the server */

static void
write_facts(const struct help_entry *facts)
{
    for (; facts->name != NULL; facts++)
        roff_entry(facts->name, facts->what);
}

static void
arguments(const struct command *c)
{
    (void)c;
    write_facts(help_arguments);
}

static void
signals(const struct command *c)
{
    (void)c;
    write_facts(help_signals);
}

static void
exits(const struct command *c)
{
    (void)c;
    write_facts(help_exits);
}

static void
variables(const struct command *c)
{
    (void)c;
    write_facts(help_variables);
}

static void
files(const struct command *c)
{
    (void)c;
    write_facts(help_files);
}

/* ------------------------------------------------------------------ options */

/* What an option's text ends with: " Default: 300, 1 to 31536000." */
static void
write_default(const struct option *o)
{
    char text[CONFIG_TEXT_CAP] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    if (to == NULL)
        exit(1);
    option_print_default(o, to);
    (void)fclose(to); /* to memory */
    (void)fputs("Default: ", stdout);
    roff_text(text);
    if (option_has_range(o))
        (void)printf(", %lld to %lld", (long long)o->min, (long long)o->max);
    (void)fputs(".\n", stdout);
}

static void
write_help(const struct option *o)
{
    roff_text(o->help);
    (void)fputc('\n', stdout);
    write_default(o);
    if (o->example != NULL) {
        (void)fputs("Example: ", stdout);
        roff_text(o->example);
        (void)fputs(".\n", stdout);
    }
    if (o->live)
        (void)fputs("SIGHUP changes it.\n", stdout);
}

/* The heading of another group. */
static const char *
write_group(const struct option *o, const char *last)
{
    if (last == NULL || strcmp(last, o->group) != 0) {
        (void)fputs(".SS ", stdout);
        roff_text(o->group);
        (void)fputc('\n', stdout);
    }
    return o->group;
}

/* As on the command line. */
static void
list_options(const struct command *c)
{
    const char *group = NULL;

    (void)c;
    for (size_t i = 0; i < option_count; i++) {
        char name[CONFIG_TEXT_CAP];

        group = write_group(&options[i], group);
        option_spell(&options[i], name);
        roff_option("--", name, option_is_switch(&options[i]) ? "[=" : " ",
                    options[i].value, option_is_switch(&options[i]) ? "]" : "");
        write_help(&options[i]);
    }
}

/* As in a file. */
static void
settings(const struct command *c)
{
    const char *group = NULL;

    (void)c;
    for (size_t i = 0; i < option_count; i++) {
        group = write_group(&options[i], group);
        roff_option("", options[i].name, " = ", options[i].value, "");
        write_help(&options[i]);
    }
}

static void
write_setting(void *ctx, const char *option, const char *value)
{
    (void)ctx;
    roff_option("", option, " = ", value, "");
}

static void
profile(const struct command *c)
{
    (void)c;
    profile_show(write_setting, NULL);
}

/* ------------------------------------------------------------------ commands */

static void
synopsis(const struct command *c)
{
    for (size_t i = 0; i < COMMAND_CALLS && c->usages[i] != NULL; i++)
        roff_usage(c->usages[i]);
}

static void
about(const struct command *c)
{
    roff_paragraphs(c->about);
}

static void
command_options(const struct command *c)
{
    for (size_t i = 0; i < COMMAND_OPTIONS && c->options[i].name != NULL; i++) {
        const char *value = c->options[i].value;

        roff_option("", c->options[i].name, value == NULL ? "" : " ",
                    value == NULL ? "" : value, "");
        roff_text(c->options[i].what);
        (void)fputc('\n', stdout);
    }
}

static void
ends(const struct command *c)
{
    for (int i = 0; i < COMMAND_STATUSES; i++) {
        char status[2] = {(char)('0' + i), '\0'};

        if (c->ends[i] != NULL)
            roff_entry(status, c->ends[i]);
    }
    for (const struct help_entry *f = c->other_ends; f != NULL && f->name != NULL; f++)
        roff_entry(f->name, f->what);
}

static void
all_synopses(const struct command *c)
{
    (void)c;
    for (size_t i = 0; i < command_count; i++)
        synopsis(commands[i]);
}

static void
all_commands(const struct command *c)
{
    (void)c;
    for (size_t i = 0; i < command_count; i++) {
        (void)fputs(".SS claimd ", stdout);
        roff_text(commands[i]->name);
        (void)fputc('\n', stdout);
        about(commands[i]);
        command_options(commands[i]);
        (void)fputs(".PP\nExample:\n", stdout);
        roff_text(commands[i]->example);
        (void)fputs("\n.PP\nExit status:\n", stdout);
        ends(commands[i]);
    }
}

/* ------------------------------------------------------------------ the frame */

static const struct place {
    const char *name;
    bool of_command;
    void (*write)(const struct command *c);
} places[] = {
    {"arguments", false, arguments},
    {"options", false, list_options},
    {"settings", false, settings},
    {"profile", false, profile},
    {"signals", false, signals},
    {"exits", false, exits},
    {"variables", false, variables},
    {"files", false, files},
    {"synopses", false, all_synopses},
    {"commands", false, all_commands},
    {"synopsis", true, synopsis},
    {"about", true, about},
    {"command_options", true, command_options},
    {"ends", true, ends},
};

/* "@options" or "@ends token"; false: there is no such place. */
static bool
write_place(char *line)
{
    char *rest = NULL, *name = strtok_r(line, " \n", &rest);
    const char *word = strtok_r(NULL, " \n", &rest);
    const struct command *c = word != NULL ? command_find(word) : NULL;

    for (size_t i = 0; name != NULL && i < sizeof(places) / sizeof(places[0]); i++)
        if (strcmp(places[i].name, name) == 0 && places[i].of_command == (c != NULL)) {
            places[i].write(c);
            return true;
        }
    return false;
}

static void
write_line(const char *line)
{
    static const char mark[] = "@version@";
    const char *at = strstr(line, mark);

    if (at == NULL)
        (void)fputs(line, stdout);
    else
        (void)printf("%.*s" CLAIMD_VERSION "%s", (int)(at - line), line,
                     at + sizeof(mark) - 1);
}

static int
fill(FILE *frame, const char *path)
{
    char line[1024];

    for (int number = 1; fgets(line, sizeof(line), frame) != NULL; number++)
        if (line[0] != '@')
            write_line(line);
        else if (!write_place(line + 1))
            return command_fails(COMMAND_FAILED, "%s:%d: there is nothing to put here",
                                 path, number);
    return ferror(frame) || fflush(stdout) != 0 ? COMMAND_FAILED : COMMAND_GOOD;
}

int
main(int argc, char **argv)
{
    FILE *frame = argc == 2 ? fopen(argv[1], "re") : NULL;
    int status;

    if (argc != 2)
        return command_fails(COMMAND_USAGE, "usage: claimd-manual FRAME");
    if (frame == NULL)
        return command_fails(COMMAND_FAILED, "%s: %s", argv[1], strerror(errno));
    status = fill(frame, argv[1]);
    (void)fclose(frame); /* nothing was written */
    return status;
}
