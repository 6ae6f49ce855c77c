/*
 * claimd generate: writes files from the tables of options and commands, for builds of packages and
 * documents. Help does not show this command.
 *
 *     generate bash|zsh                completions
 *     generate options                 docs/options.md
 *     generate manual FRAME            a manual page, from its frame in docs
 *     generate config [NAME=VALUE...]  a configuration file with every default as a comment, and values for
 *                                      at most two options
 */
#include "claimd/auth/policy.h"
#include "main/command.h"
#include "main/help.h"
#include "main/option.h"

#include <stdio.h>
#include <string.h>

static bool
takes_file(const struct option *option)
{
    return strcmp(option->value, "FILE") == 0 || strcmp(option->value, "DIR") == 0;
}

static bool
takes_words(const struct option *option)
{
    return option->words != NULL && !option_is_switch(option);
}

/* Prints an option such as "--max-wait" between two texts. */
static void
print_name(const char *before, const struct option *option, const char *behind)
{
    char name[CONFIG_TEXT_CAP];

    option_spell(option, name);
    (void)printf("%s--%s%s", before, name, behind);
}

/* Prints "a|b|c" with spaces instead of bars. */
static void
print_words(const char *words)
{
    for (; *words != '\0'; words++)
        (void)putchar(*words == '|' ? ' ' : *words);
}

static void
print_roles(void)
{
    for (enum role role = 0; role < ROLE_COUNT; role++)
        (void)printf("%s%s", role == 0 ? "" : " ", role_name(role));
}

/* Prints all options for which `is` returns true (NULL: all), each behind a text. */
static void
print_names(const char *before, bool is(const struct option *option))
{
    for (size_t i = 0; i < option_count; i++)
        if (is == NULL || is(&options[i]))
            print_name(before, &options[i], "");
}

static bool
takes_other(const struct option *option)
{
    return !takes_file(option) && !takes_words(option) && !option_is_switch(option);
}

static void
print_command_names(void)
{
    for (size_t i = 0; i < command_count; i++)
        (void)printf("%s%s", i == 0 ? "" : " ", commands[i]->name);
}

static const char bash_head[] =
    "# bash completion for claimd, made from its tables    -*- shell-script -*-\n"
    "\n"
    "_claimd_words() { COMPREPLY+=($(compgen -W \"$1\" -- \"$word\")); }\n"
    "_claimd_files() { COMPREPLY+=($(compgen -f -- \"$word\")); }\n"
    "\n"
    "_claimd()\n"
    "{\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command=\n"
    "    ((COMP_CWORD < 2)) || command=${COMP_WORDS[1]}\n"
    "    COMPREPLY=()\n"
    "    case $before in\n";

/* The first case completes values of options, the second one the arguments of commands. */
static void
generate_bash(void)
{
    (void)fputs(bash_head, stdout);
    for (size_t i = 0; i < option_count; i++) {
        if (!takes_words(&options[i]))
            continue;
        print_name("    ", &options[i], ") _claimd_words '");
        print_words(options[i].words);
        (void)fputs("'; return ;;\n", stdout);
    }
    (void)fputs("    --role) _claimd_words '", stdout);
    print_roles();
    (void)fputs("'; return ;;\n", stdout);
    (void)fputs("    --config | --salvage | --log", stdout);
    print_names(" | ", takes_file);
    (void)fputs(")\n        _claimd_files; return ;;\n", stdout);
    (void)fputs("    --projects | --expires | --queue | --project | --from | --instances",
                stdout);
    print_names(" | ", takes_other);
    (void)fputs(")\n        return ;;\n    esac\n    case $command in\n", stdout);
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = commands[i];

        if (c->program != NULL) {
            (void)printf("    %s) _claimd_words --help ;;\n", c->name);
            continue;
        }
        (void)printf("    %s) _claimd_words '%s", c->name,
                     c->actions == NULL ? "" : c->actions);
        for (size_t k = 0; k < COMMAND_OPTIONS && c->options[k].name != NULL; k++)
            (void)printf(" %s", c->options[k].name);
        if (c->start != NULL)
            print_names(" ", NULL);
        (void)printf(" --help'%s ;;\n", c->actions == NULL ? "; _claimd_files" : "");
    }
    (void)fputs("    *)\n        _claimd_words '"
                "--config --print-config --check-config --version --help",
                stdout);
    print_names(" ", NULL);
    (void)fputs("'\n        ((COMP_CWORD > 1)) || _claimd_words '", stdout);
    print_command_names();
    (void)fputs("' ;;\n    esac\n}\ncomplete -F _claimd claimd\n", stdout);
}

static void
print_zsh_option(const struct option *option)
{
    print_name("        '", option, "[");
    for (const char *text = option->help; *text != '\0'; text++) {
        if (*text == '\'') /* inside '[...]' of a word in single quotes */
            (void)fputs("'\\''", stdout);
        else if (strchr("[]\\`$", *text) != NULL)
            (void)printf("\\%c", *text);
        else
            (void)putchar(*text);
    }
    (void)putchar(']');
    if (takes_words(option)) {
        (void)fputs(":word:(", stdout);
        print_words(option->words);
        (void)putchar(')');
    } else if (takes_file(option)) {
        (void)fputs(":file:_files", stdout);
    } else if (!option_is_switch(option)) {
        (void)printf(":%s: ", option->value);
    }
    (void)fputs("'\n", stdout);
}

static void
print_zsh_command(const struct command *c)
{
    if (c->program != NULL) {
        (void)printf("    %s) _arguments --help ;;\n", c->name);
        return;
    }
    (void)printf("    %s)\n        _arguments", c->name);
    if (c->actions != NULL)
        (void)printf(" '1:what:(%s)'", c->actions);
    for (size_t k = 0; k < COMMAND_OPTIONS && c->options[k].name != NULL; k++) {
        if (c->options[k].value == NULL) {
            (void)printf(" %s", c->options[k].name);
            continue;
        }
        (void)printf(" '%s:value:", c->options[k].name);
        if (strcmp(c->options[k].name, "--role") == 0) {
            (void)putchar('(');
            print_roles();
            (void)fputs(")'", stdout);
        } else {
            (void)fputs("_files'", stdout);
        }
    }
    (void)printf(" --help%s%s ;;\n", c->start == NULL ? "" : " $options",
                 c->actions == NULL ? " '*:file:_files'" : "");
}

static const char zsh_head[] =
    "#compdef claimd\n"
    "# zsh completion for claimd, made from its tables\n"
    "\n"
    "local -a options commands\n"
    "options=(\n"
    "        '--config[read options from an INI file]:file:_files'\n"
    "        '--print-config[print all options]'\n"
    "        '--check-config[check the options]'\n"
    "        '--version[print the version]'\n"
    "        '--help[print the usage, the options of a group, or everything]'\n";

/* Completes the options of the server, or the arguments of the command in the first word. */
static const char zsh_choice[] = ")\n"
                                 "\n"
                                 "if ((CURRENT == 2)); then\n"
                                 "    _describe command commands\n"
                                 "    _arguments $options\n"
                                 "    return\n"
                                 "fi\n"
                                 "case ${words[2]} in\n"
                                 "    -*) _arguments $options; return ;;\n"
                                 "esac\n"
                                 "shift words\n"
                                 "((CURRENT--))\n"
                                 "case ${words[1]} in\n";

static void
generate_zsh(void)
{
    (void)fputs(zsh_head, stdout);
    for (size_t i = 0; i < option_count; i++)
        print_zsh_option(&options[i]);
    (void)fputs(")\ncommands=(", stdout);
    print_command_names();
    (void)fputs(zsh_choice, stdout);
    for (size_t i = 0; i < command_count; i++)
        print_zsh_command(commands[i]);
    (void)fputs("esac\n", stdout);
}

static const char config_head[] =
    "# Options of claimd, with their defaults as comments. claimd(1) and claimd.conf(5)\n"
    "# describe them. `claimd --config FILE --check-config` checks a file, and\n"
    "# `claimd --config FILE --print-config` prints the values in force. Environment\n"
    "# variables (CLAIMD_MAX_WAIT=20) and the command line override this file.\n";

static void
print_setting(const struct option *option, const char *const *assignments, size_t count)
{
    (void)fputs("# ", stdout);
    help_fill(option->help, 2, "# ", stdout);
    for (size_t i = 0; i < count; i++) {
        struct bytes value = bytes_str(assignments[i] == NULL ? "" : assignments[i]);

        if (option_find(bytes_cut(&value, '=')) != option || !bytes_present(value))
            continue;
        (void)printf("%s = %.*s\n", option->name, (int)value.len, value.data);
        return;
    }
    (void)printf("#%s = ", option->name);
    option_print_default(option, stdout);
    (void)putchar('\n');
}

static int
generate_config(const char *const *assignments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bytes value = bytes_str(assignments[i] == NULL ? "" : assignments[i]);

        if (assignments[i] != NULL && option_find(bytes_cut(&value, '=')) == NULL)
            return command_misused(&command_generate,
                                   "%s does not set an option. Use NAME=VALUE",
                                   assignments[i]);
    }
    (void)fputs(config_head, stdout);
    for (size_t i = 0; i < option_count; i++) {
        if (option_begins_group(&options[i]))
            (void)printf("\n# ---- %s\n", options[i].group);
        (void)putchar('\n');
        print_setting(&options[i], assignments, count);
    }
    return COMMAND_GOOD;
}

static const char page_head[] =
    "# Options\n"
    "\n"
    "Reference of all options of claimd. `claimd generate options` writes this page from "
    "the\n"
    "option table. Start with the [README](../README.md) if you look for the most used "
    "ones.\n"
    "\n"
    "You can give each option on the command line (`--max-wait 30`), in the environment\n"
    "(`CLAIMD_MAX_WAIT=30`) or in the file that `--config` names (`max_wait = 30`). The "
    "command\n"
    "line overrides the environment, and the environment overrides the file. SIGHUP "
    "reloads the\n"
    "options that are marked as reloadable.\n";

static void
generate_options(void)
{
    (void)fputs(page_head, stdout);
    for (const struct option *o = options; o < options + option_count; o++) {
        if (option_begins_group(o))
            (void)printf("\n## %s\n", o->group);
        (void)printf("\n### %s\n\n%s\n\n- Value: `%s`\n- Default: `", o->name, o->help,
                     o->value);
        option_print_default(o, stdout);
        (void)fputs("`\n", stdout);
        if (option_has_range(o))
            (void)printf("- Range: %lld to %lld\n", (long long)o->min, (long long)o->max);
        if (o->example != NULL)
            (void)printf("- Example: `%s = %s`\n", o->name, o->example);
        if (o->live)
            (void)fputs("- Reloadable\n", stdout);
    }
}

static int
run_generate(const struct command_args *args)
{
    static const struct {
        const char *what;
        void (*print)(void);
    } files[] = {
        {"bash", generate_bash}, {"zsh", generate_zsh}, {"options", generate_options}};
    const char *what = args->positional[0];

    if (strcmp(what, "config") == 0)
        return generate_config(args->positional + 1, 2);
    if (strcmp(what, "manual") == 0 && args->positional[1] != NULL)
        return manual_print(args->positional[1]);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strcmp(what, files[i].what) == 0 && args->positional[1] == NULL) {
            files[i].print();
            return COMMAND_GOOD;
        }
    return command_misused(&command_generate, "%s cannot be generated", what);
}

const struct command command_generate = {
    .name = "generate",
    .synopsis = "generate WHAT",
    .summary = "Print files for a package.",
    .usages = {"generate bash|zsh|options", "generate manual FRAME",
               "generate config [NAME=VALUE [NAME=VALUE]]"},
    .about =
        "Prints completions for a shell, the page docs/options.md, a manual page, or a "
        "configuration file with every default.",
    .example = "claimd generate config > claimd.conf",
    .max_args = 3,
    .min_args = 1,
    .needs = "bash, zsh, options, manual or config",
    .run = run_generate};
