#include "main/help.h"

#include "main/help_text.h"
#include "main/option.h"
#include "main/profile.h"
#include "main/text_fill.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { SHORT_NAME = 28, SHORT_LINE = 32 };

static void
print_facts(const char *heading, const struct help_entry *facts, FILE *to)
{
    (void)fprintf(to, "\n%s\n", heading);
    for (; facts->name != NULL; facts++)
        text_entry(facts->name, facts->what, to);
}

/* ------------------------------------------------------------------ the program */

static void
print_commands(FILE *to)
{
    (void)fputs(
        "Usage: claimd [OPTION]...\n"
        "       claimd COMMAND [ARGUMENT]...\n"
        "\n"
        "claimd is an HTTP queue server that speaks the OpenStack Zaqar API. Without "
        "a\n"
        "command it serves in the foreground.\n"
        "\n"
        "Commands (claimd COMMAND --help says more)\n",
        to);
    for (size_t i = 0; i < command_count; i++)
        (void)fprintf(to, "  %-*s%s\n", SHORT_NAME, commands[i]->call,
                      commands[i]->summary);
}

/* "--max-wait SECONDS". */
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
    (void)fprintf(to, "\n%s", text_indent);
    text_fill(option->help, TEXT_INDENT, text_indent, to);
    if (option->example != NULL) {
        (void)fprintf(to, "%sExample: ", text_indent);
        text_fill(option->example, TEXT_INDENT + strlen("Example: "), text_indent, to);
    }
    (void)fprintf(to, "%sDefault: ", text_indent);
    if (option->kind == OPTION_TEXT) { /* which may be a long one */
        text_fill(option->initial, TEXT_INDENT + strlen("Default: "), text_indent, to);
        return;
    }
    option_print_default(option, to);
    if (option_has_range(option))
        (void)fprintf(to, ", range: %lld to %lld", (long long)option->min,
                      (long long)option->max);
    (void)fputc('\n', to);
}

/* The options of a group, all for NULL; how many there are. */
static size_t
print_options(const char *group, FILE *to)
{
    const char *last = NULL;
    size_t count = 0;

    for (size_t i = 0; i < option_count; i++) {
        if (group != NULL && strcasecmp(group, options[i].group) != 0)
            continue;
        if (last == NULL || strcmp(last, options[i].group) != 0)
            (void)fprintf(to, "%s%s\n", group == NULL ? "\n" : "", options[i].group);
        last = options[i].group;
        print_option(&options[i], to);
        count++;
    }
    return count;
}

/* The options that most servers need, with the first sentence of each description. */
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
    const char *last = "";
    size_t at = strlen("Groups:");

    (void)fputs("Groups:", to);
    for (size_t i = 0; i < option_count; i++) {
        if (strcmp(last, options[i].group) == 0)
            continue;
        last = options[i].group;
        if (at + 1 + strlen(last) > TEXT_COLUMNS) {
            (void)fputs("\n       ", to);
            at = strlen("Groups:");
        }
        (void)fputc(' ', to);
        for (const char *c = last; *c != '\0'; c++)
            (void)fputc(tolower((unsigned char)*c), to);
        at += 1 + strlen(last);
    }
    (void)fputc('\n', to);
}

static void
print_setting(void *to, const char *option, const char *value)
{
    (void)fprintf(to, "  %s = %s\n", option, value);
}

static void
print_short(FILE *to)
{
    print_commands(to);
    print_common_options(to);
    (void)fputs("\nclaimd --help GROUP prints a group of options, claimd --help all "
                "prints all.\n",
                to);
    help_print_groups(to);
}

static void
print_all(FILE *to)
{
    print_commands(to);
    print_facts("Arguments", help_arguments, to);
    (void)fputs(
        "\nYou can give each option below on the command line, in the file "
        "(max_claim_ttl)\n"
        "and in the environment (CLAIMD_MAX_CLAIM_TTL). The command line overrides "
        "the\n"
        "environment, and the environment overrides the file.\n",
        to);
    (void)print_options(NULL, to);
    (void)fputs("\nThe profile rackspace sets these defaults\n", to);
    profile_show(print_setting, to);
    print_facts("Signals", help_signals, to);
    print_facts("Exit status", help_exits, to);
}

bool
help_print(const char *topic, FILE *to)
{
    if (topic == NULL)
        print_short(to);
    else if (strcmp(topic, "all") == 0)
        print_all(to);
    else if (print_options(topic, to) == 0)
        return false;
    return true;
}
