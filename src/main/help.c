#include "main/help.h"

#include "main/fact.h"
#include "main/option.h"
#include "main/profile.h"

#include <string.h>

enum { COLUMNS = 79, INDENT = 8 };

/*
 * Prints a text word by word, no line longer than COLUMNS if its words are not, and each but the
 * first `indent` wide; `at` is where the first begins. An empty line of the text stays one.
 */
static void
print_filled(const char *text, size_t at, size_t indent, FILE *to)
{
    bool first = true;

    while (*text != '\0') {
        size_t len = strcspn(text, " \n");
        bool ends = strncmp(text + len, "\n\n", 2) == 0;

        if (!first && at + 1 + len > COLUMNS) {
            (void)fprintf(to, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        (void)fprintf(to, "%s%.*s", first ? "" : " ", (int)len, text);
        at += len + (first ? 0 : 1);
        first = ends;
        text += len + (text[len] == '\0' ? 0 : ends ? 2 : 1);
        if (ends) {
            (void)fprintf(to, "\n\n%*s", (int)indent, "");
            at = indent;
        }
    }
    (void)fputc('\n', to);
}

/* A name, and below it what is to be said of it. */
static void
print_entry(const char *name, const char *what, FILE *to)
{
    (void)fprintf(to, "  %s\n%*s", name, INDENT, "");
    print_filled(what, INDENT, INDENT, to);
}

static void
print_facts(const char *heading, const struct fact *facts, FILE *to)
{
    (void)fprintf(to, "\n%s\n", heading);
    for (; facts->name != NULL; facts++)
        print_entry(facts->name, facts->what, to);
}

/* ------------------------------------------------------------------ the program */

static void
print_commands(FILE *to)
{
    (void)fputs("Usage: claimd [OPTION]...\n", to);
    for (size_t i = 0; i < command_count; i++)
        (void)fprintf(to, "       claimd %-24s %s\n", commands[i]->call,
                      commands[i]->summary);
    (void)fputs(
        "Each of these has a --help of its own. Without one of them claimd serves:\n"
        "an HTTP queue server speaking the Zaqar API, in the foreground.\n",
        to);
}

static void
print_option(const struct option *option, FILE *to)
{
    char name[CONFIG_TEXT_CAP];

    option_spell(option, name);
    if (option_is_switch(option))
        (void)fprintf(to, "  --%s[=%s]\n", name, option_placeholder(option));
    else
        (void)fprintf(to, "  --%s %s\n", name, option_placeholder(option));
    (void)fprintf(to, "%*s", INDENT, "");
    print_filled(option->help, INDENT, INDENT, to);
    (void)fprintf(to, "%*sdefault ", INDENT, "");
    if (option->kind == OPTION_TEXT) { /* which may be a long one */
        print_filled(option->initial, INDENT + sizeof("default"), INDENT, to);
        return;
    }
    option_print_default(option, to);
    if (option_has_range(option))
        (void)fprintf(to, ", %lld to %lld", (long long)option->min,
                      (long long)option->max);
    (void)fputc('\n', to);
}

static void
print_options(FILE *to)
{
    const char *group = NULL;

    (void)fputs(
        "\nEach option below may also stand in the file (max_claim_ttl) and in the\n"
        "environment (CLAIMD_MAX_CLAIM_TTL). The command line wins over the\n"
        "environment, the environment over the file.\n",
        to);
    for (size_t i = 0; i < option_count; i++) {
        if (group == NULL || strcmp(group, options[i].group) != 0)
            (void)fprintf(to, "\n%s\n", options[i].group);
        group = options[i].group;
        print_option(&options[i], to);
    }
}

static void
print_setting(void *to, const char *option, const char *value)
{
    (void)fprintf(to, "  %s = %s\n", option, value);
}

void
help_print(FILE *to)
{
    print_commands(to);
    print_facts("Arguments", fact_arguments, to);
    print_options(to);
    (void)fputs("\nThe profile rackspace sets, unless they are set otherwise:\n", to);
    profile_show(print_setting, to);
    print_facts("Signals", fact_signals, to);
    print_facts("Exit status", fact_exits, to);
}

/* ------------------------------------------------------------------ its commands */

static void
print_statuses(const struct command *c, FILE *to)
{
    (void)fputs("\nExit status\n", to);
    for (int i = 0; i < COMMAND_STATUSES; i++)
        if (c->ends[i] != NULL) {
            (void)fprintf(to, "  %d  ", i);
            print_filled(c->ends[i], 5, 5, to);
        }
    for (const struct fact *f = c->other_ends; f != NULL && f->name != NULL; f++) {
        (void)fprintf(to, "  %s  ", f->name);
        print_filled(f->what, strlen(f->name) + 4, 5, to);
    }
}

void
help_print_command(const struct command *c, FILE *to)
{
    for (size_t i = 0; i < COMMAND_CALLS && c->usages[i] != NULL; i++) {
        (void)fprintf(to, "%s claimd ", i == 0 ? "Usage:" : "      ");
        print_filled(c->usages[i], 14, 11, to);
    }
    print_filled(c->about, 0, 0, to);
    (void)fputc('\n', to);
    for (size_t i = 0; i < COMMAND_OPTIONS && c->options[i].name != NULL; i++) {
        (void)fprintf(to, "  %s%s%s\n%*s", c->options[i].name,
                      c->options[i].value == NULL ? "" : " ",
                      c->options[i].value == NULL ? "" : c->options[i].value, INDENT, "");
        print_filled(c->options[i].what, INDENT, INDENT, to);
    }
    print_entry("--help", "print this, and exit", to);
    print_statuses(c, to);
}
