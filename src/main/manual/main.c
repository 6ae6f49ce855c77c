/*
 * claimd-manual: fills the frame of a manual page with what the tables of help say.
 *
 *     claimd-manual docs/claimd.1.in > claimd.1
 *
 * A program of the build, which is not installed. Of the frame every line is written as it is,
 * but for those that begin with "@": they name what stands there, of a command if one is named.
 * "@version@" within a line is the version.
 */
#include "main/command.h"
#include "main/help.h"
#include "main/option.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
roff_char(char c)
{
    if (c == '-')
        (void)fputs("\\-", stdout);
    else if (c == '\\')
        (void)fputs("\\e", stdout);
    else if (c == '\'')
        (void)fputs("\\(aq", stdout);
    else
        (void)fputc(c, stdout);
}

static void
roff_chars(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        roff_char(text[i]);
}

/* A text without the end of the line. `text in backquotes` becomes bold. */
static void
roff_text(const char *text)
{
    bool bold = false;

    if (*text == '.') /* no request, wherever a line begins with it */
        (void)fputs("\\&", stdout);
    for (; *text != '\0'; text++) {
        if (*text != '`') {
            roff_char(*text);
            continue;
        }
        bold = !bold;
        (void)fputs(bold ? "\\fB" : "\\fP", stdout);
    }
}

/* A name, and a text about it. */
static void
roff_entry(const char *name, const char *what)
{
    (void)fputs(".TP\n\\fB", stdout);
    roff_text(name);
    (void)fputs("\\fP\n", stdout);
    roff_text(what);
    (void)fputs(what[strlen(what) - 1] == '.' ? "\n" : ".\n", stdout);
}

/* The head of an entry: before and name bold, the value in italics between two texts. */
static void
roff_option(const char *before, const char *name, const char *between, const char *value,
            const char *behind)
{
    (void)fputs(".TP\n\\fB", stdout);
    roff_text(before);
    roff_text(name);
    (void)fputs("\\fP", stdout);
    roff_text(between);
    (void)fputs("\\fI", stdout);
    roff_text(value);
    (void)fputs("\\fP", stdout);
    roff_text(behind);
    (void)fputc('\n', stdout);
}

/* "log DIR [--from LSN]": capitals stand for what the user puts in. */
static void
roff_usage(const char *usage)
{
    (void)fputs(".HP\n\\fBclaimd\\fP", stdout);
    while (*usage != '\0') {
        const size_t len = strcspn(usage, " "), from = usage[0] == '[' ? 1 : 0;
        size_t till = len; /* the letters stand between brackets and commas */

        while (till > from && strchr("].", usage[till - 1]) != NULL)
            till--;
        (void)fputc(' ', stdout);
        roff_chars(usage, from);
        (void)fputs(isupper((unsigned char)usage[from]) ? "\\fI" : "\\fB", stdout);
        roff_chars(usage + from, till - from);
        (void)fputs("\\fP", stdout);
        roff_chars(usage + till, len - till);
        usage += len + (usage[len] == ' ' ? 1 : 0);
    }
    (void)fputc('\n', stdout);
}

/* A heading within a section: a text in front of a name. */
static void
roff_heading(const char *before, const char *name)
{
    (void)printf(".SS %s", before);
    roff_text(name);
    (void)fputc('\n', stdout);
}

/* What an option's entry says, with "Default: 300, 1 to 31536000." behind it. */
static void
write_help(const struct option *o)
{
    char text[CONFIG_TEXT_CAP] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    if (to == NULL)
        exit(1);
    option_print_default(o, to);
    (void)fclose(to); /* to memory */
    roff_text(o->help);
    (void)fputs("\nDefault: ", stdout);
    roff_text(text);
    if (option_has_range(o))
        (void)printf(", %lld to %lld", (long long)o->min, (long long)o->max);
    (void)fputs(".\n", stdout);
    if (o->example != NULL) {
        (void)fputs("Example: ", stdout);
        roff_text(o->example);
        (void)fputs(".\n", stdout);
    }
    if (o->live)
        (void)fputs("SIGHUP changes it.\n", stdout);
}

/* As on the command line, or as in a file. */
static void
write_options(bool in_file)
{
    for (const struct option *o = options; o < options + option_count; o++) {
        const bool is_switch = !in_file && option_is_switch(o);
        char name[CONFIG_TEXT_CAP];

        if (option_begins_group(o))
            roff_heading("", o->group);
        option_spell(o, name);
        roff_option(in_file ? "" : "--", in_file ? o->name : name,
                    in_file     ? " = "
                    : is_switch ? "[="
                                : " ",
                    o->value, is_switch ? "]" : "");
        write_help(o);
    }
}

static void
list_options(void)
{
    write_options(false);
}

static void
settings(void)
{
    write_options(true);
}

static void
profile(void)
{
    for (const struct config_setting *s = config_rackspace; s->option != NULL; s++)
        roff_option("", s->option, " = ", s->value, "");
}

static void
synopsis(const struct command *c)
{
    for (size_t i = 0; i < COMMAND_CALLS && c->usages[i] != NULL; i++)
        roff_usage(c->usages[i]);
}

static void
about(const struct command *c)
{
    const char *text = c->about;

    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t len = end == NULL ? strlen(text) : (size_t)(end - text);
        char paragraph[2048];

        (void)snprintf(paragraph, sizeof(paragraph), "%.*s", (int)len, text);
        roff_text(paragraph);
        (void)fputs(end == NULL ? "\n" : "\n.PP\n", stdout);
        text += len + (end == NULL ? 0 : 2);
    }
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
write_entries(const struct help_entry *entries)
{
    for (; entries != NULL && entries->name != NULL; entries++)
        roff_entry(entries->name, entries->text);
}

static void
ends(const struct command *c)
{
    for (int i = 0; i < COMMAND_STATUSES; i++) {
        char status[2] = {(char)('0' + i), '\0'};

        if (c->ends[i] != NULL)
            roff_entry(status, c->ends[i]);
    }
    write_entries(c->other_ends);
}

static void
all_synopses(void)
{
    for (size_t i = 0; i < command_count; i++)
        synopsis(commands[i]);
}

static void
all_commands(void)
{
    for (size_t i = 0; i < command_count; i++) {
        roff_heading("claimd ", commands[i]->name);
        about(commands[i]);
        command_options(commands[i]);
        (void)fputs(".PP\nExample:\n", stdout);
        roff_text(commands[i]->example);
        (void)fputs("\n.PP\nExit status:\n", stdout);
        ends(commands[i]);
    }
}

/* Entries, or a function that writes what stands there, of a command if one is named. */
static const struct place {
    const char *name;
    const struct help_entry *entries;
    void (*write)(void);
    void (*write_command)(const struct command *c);
} places[] = {
    {"arguments", .entries = help_arguments},
    {"options", .write = list_options},
    {"settings", .write = settings},
    {"profile", .write = profile},
    {"signals", .entries = help_signals},
    {"exits", .entries = help_exits},
    {"variables", .entries = help_variables},
    {"files", .entries = help_files},
    {"synopses", .write = all_synopses},
    {"commands", .write = all_commands},
    {"synopsis", .write_command = synopsis},
    {"about", .write_command = about},
    {"command_options", .write_command = command_options},
    {"ends", .write_command = ends},
};

/* "@options" or "@ends token"; false: there is no such place. */
static bool
write_place(char *line)
{
    char *rest = NULL, *name = strtok_r(line, " \n", &rest);
    const char *word = strtok_r(NULL, " \n", &rest);
    const struct command *c = word != NULL ? command_find(word) : NULL;

    for (size_t i = 0; name != NULL && i < sizeof(places) / sizeof(places[0]); i++)
        if (strcmp(places[i].name, name) == 0 &&
            (places[i].write_command != NULL) == (c != NULL)) {
            write_entries(places[i].entries);
            if (places[i].write != NULL)
                places[i].write();
            if (c != NULL)
                places[i].write_command(c);
            return true;
        }
    return false;
}

static int
fill_frame(FILE *frame, const char *path)
{
    static const char mark[] = "@version@";
    char line[1024];

    for (int number = 1; fgets(line, sizeof(line), frame) != NULL; number++) {
        const char *at = strstr(line, mark);

        if (line[0] != '@' && at == NULL)
            (void)fputs(line, stdout);
        else if (line[0] != '@')
            (void)printf("%.*s" CLAIMD_VERSION "%s", (int)(at - line), line,
                         at + sizeof(mark) - 1);
        else if (!write_place(line + 1))
            return command_fails(COMMAND_FAILED, "%s:%d: there is nothing to put here",
                                 path, number);
    }
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
    status = fill_frame(frame, argv[1]);
    (void)fclose(frame); /* nothing was written */
    return status;
}
