/*
 * claimd generate manual: fills the frame of a manual page, such as docs/claimd.1.in, with the texts of
 * the help.
 *
 * A line of the frame that begins with "@" names a part, such as "@options", and perhaps a command, such
 * as "@about token". The part replaces the line. "@version@" within a line becomes the version. All
 * other lines are copied.
 */
#include "claimd/base/invariant.h"
#include "main/command.h"
#include "main/help.h"
#include "main/option.h"

#include <ctype.h>
#include <errno.h>
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

/* Writes a text without a line feed. Backquotes make bold. An empty line begins a paragraph. */
static void
roff_text(const char *text)
{
    bool bold = false;

    if (*text == '.') /* not a request of roff */
        (void)fputs("\\&", stdout);
    for (; *text != '\0'; text++) {
        if (*text == '`') {
            bold = !bold;
            (void)fputs(bold ? "\\fB" : "\\fP", stdout);
        } else if (strncmp(text, "\n\n", 2) == 0) {
            (void)fputs("\n.PP\n", stdout);
            text++;
        } else {
            roff_char(*text);
        }
    }
}

static void
roff_entry(const char *name, const char *text)
{
    (void)fputs(".TP\n\\fB", stdout);
    roff_text(name);
    (void)fputs("\\fP\n", stdout);
    roff_text(text);
    (void)fputs(text[strlen(text) - 1] == '.' ? "\n" : ".\n", stdout);
}

/* Writes the head of an entry: `before` and name in bold, and the value in italics. */
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

/* Writes a usage such as "log DIR [--from LSN]". Words in capitals are placeholders, in italics. */
static void
roff_usage(const char *usage)
{
    (void)fputs(".HP\n\\fBclaimd\\fP", stdout);
    while (*usage != '\0') {
        const size_t len = strcspn(usage, " "), from = usage[0] == '[' ? 1 : 0;
        size_t till = len; /* the letters end before brackets and dots */

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

/* Writes the heading of a subsection. */
static void
roff_heading(const char *before, const char *name)
{
    (void)printf(".SS %s", before);
    roff_text(name);
    (void)fputc('\n', stdout);
}

/* Writes the description of an option, and lines such as "Default: 300, 1 to 31536000.". */
static void
write_option_text(const struct option *o)
{
    char text[CONFIG_TEXT_CAP] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    ENSURE(to != NULL);
    option_print_default(o, to);
    (void)fclose(to);
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

/* Writes the options as they are on the command line, or as in a file. */
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
        write_option_text(o);
    }
}

static void
write_arguments(void)
{
    write_options(false);
}

static void
write_settings(void)
{
    write_options(true);
}

static void
write_profile(void)
{
    for (const struct config_setting *s = config_rackspace; s->option != NULL; s++)
        roff_option("", s->option, " = ", s->value, "");
}

static void
write_synopsis(const struct command *c)
{
    for (size_t i = 0; i < COMMAND_USAGES && c->usages[i] != NULL; i++)
        roff_usage(c->usages[i]);
}

static void
write_about(const struct command *c)
{
    roff_text(c->about);
    (void)fputc('\n', stdout);
}

static void
write_command_options(const struct command *c)
{
    for (size_t i = 0; i < COMMAND_OPTIONS && c->options[i].name != NULL; i++) {
        const char *value = c->options[i].value;

        roff_option("", c->options[i].name, value == NULL ? "" : " ",
                    value == NULL ? "" : value, "");
        roff_text(c->options[i].text);
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
write_statuses(const struct command *c)
{
    for (int i = 0; i < COMMAND_STATUSES; i++) {
        char status[2] = {(char)('0' + i), '\0'};

        if (c->statuses[i] != NULL)
            roff_entry(status, c->statuses[i]);
    }
    write_entries(c->other_statuses);
}

static void
write_command(const struct command *c)
{
    roff_heading("claimd ", c->name);
    write_about(c);
    write_command_options(c);
    (void)fputs(".PP\nExample:\n", stdout);
    roff_text(c->example);
    (void)fputs("\n.PP\nExit status:\n", stdout);
    write_statuses(c);
}

/* The parts that a frame can name. A part has entries, or a function writes it. */
static const struct frame_part {
    const char *name;
    const struct help_entry *entries;
    void (*write)(void);
    void (*write_command)(const struct command *c); /* for one command, or for each */
} parts[] = {
    {"arguments", .entries = help_arguments},
    {"options", .write = write_arguments},
    {"settings", .write = write_settings},
    {"profile", .write = write_profile},
    {"signals", .entries = help_signals},
    {"exits", .entries = help_exits},
    {"variables", .entries = help_variables},
    {"files", .entries = help_files},
    {"command", .write_command = write_command},
    {"synopsis", .write_command = write_synopsis},
    {"about", .write_command = write_about},
    {"command_options", .write_command = write_command_options},
    {"statuses", .write_command = write_statuses},
};

/* Writes the part that a line such as "options" or "about token" names. False if there is none. */
static bool
write_part(char *line)
{
    char *rest = NULL, *name = strtok_r(line, " \n", &rest);
    const char *word = strtok_r(NULL, " \n", &rest);
    const struct command *c = word != NULL ? command_find(word) : NULL;
    const struct frame_part *part = parts,
                            *end = parts + sizeof(parts) / sizeof(parts[0]);

    while (part < end && (name == NULL || strcmp(part->name, name) != 0))
        part++;
    if (part == end || (word != NULL && (c == NULL || part->write_command == NULL)))
        return false;
    write_entries(part->entries);
    if (part->write != NULL)
        part->write();
    for (size_t i = 0; part->write_command != NULL && i < command_count; i++)
        if (c == NULL || c == commands[i])
            part->write_command(commands[i]);
    return true;
}

int
manual_print(const char *frame_path)
{
    static const char mark[] = "@version@";
    FILE *frame = fopen(frame_path, "re");
    char line[1024];
    int status = COMMAND_GOOD;

    if (frame == NULL)
        return command_fails(COMMAND_FAILED, "%s: %s", frame_path, strerror(errno));
    for (int number = 1;
         status == COMMAND_GOOD && fgets(line, sizeof(line), frame) != NULL; number++) {
        const char *at = strstr(line, mark);

        if (line[0] != '@' && at == NULL)
            (void)fputs(line, stdout);
        else if (line[0] != '@')
            (void)printf("%.*s" CLAIMD_VERSION "%s", (int)(at - line), line,
                         at + sizeof(mark) - 1);
        else if (!write_part(line + 1))
            status = command_fails(COMMAND_FAILED, "%s:%d: there is nothing to put here",
                                   frame_path, number);
    }
    if (ferror(frame))
        status = COMMAND_FAILED;
    (void)fclose(frame); /* read only */
    return status;
}
