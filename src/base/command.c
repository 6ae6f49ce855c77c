#include "claimd/base/command.h"

#include "claimd/base/buf.h"
#include "claimd/base/help_text.h"
#include "claimd/base/nearest.h"
#include "claimd/base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_CAP = 1536 };

/* ------------------------------------------------------------------ messages */

static void
print_message(const char *mark, const char *text)
{
    struct mem *mem = mem_new(0);
    struct buf line;

    buf_init(&line, mem);
    if (mem != NULL)
        utf8_escape(&line, bytes_str(text));
    (void)fflush(stdout); /* keep the order of both outputs */
    (void)fprintf(stderr, "claimd: %s%.*s\n", mark, (int)line.len,
                  line.data == NULL ? "" : line.data);
    buf_fini(&line);
    mem_destroy(mem);
}

int
command_fails(int status, const char *format, ...)
{
    char text[ERROR_CAP];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    print_message("", text);
    return status;
}

void
command_warns(const char *text)
{
    print_message("warning: ", text);
}

int
command_misused(const char *name, const char *format, ...)
{
    char text[ERROR_CAP];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return command_fails(COMMAND_USAGE, "%s. See claimd %s --help", text, name);
}

int
command_no_memory(void)
{
    return command_fails(COMMAND_FAILED, "out of memory");
}

/* ------------------------------------------------------------------ help */

static const char *
usage_of(const struct command_entry *e, size_t i)
{
    return i == 0 && e->command->usages[0] == NULL ? e->synopsis
           : i < COMMAND_USAGES                    ? e->command->usages[i]
                                                   : NULL;
}

static const char *
status_of(const struct command_program *p, const struct command *c, size_t i)
{
    return c->statuses[i] != NULL ? c->statuses[i] : p->statuses[i];
}

static const struct command_text *
other_statuses_of(const struct command_program *p, const struct command *c)
{
    static const struct command_text none[] = {{NULL, NULL}};

    return c->other_statuses != NULL   ? c->other_statuses
           : p->other_statuses != NULL ? p->other_statuses
                                       : none;
}

/*
 * The option with this name, up to an "=", in a list of up to COMMAND_OPTIONS. NULL:
 * there is none.
 */
static const struct command_option *
option_in(const struct command_option *list, const char *word)
{
    const size_t len = strcspn(word, "=");

    for (size_t i = 0; list != NULL && i < COMMAND_OPTIONS && list[i].name != NULL; i++)
        if (strlen(list[i].name) == len && strncmp(list[i].name, word, len) == 0)
            return &list[i];
    return NULL;
}

/* Prints the options of a list, except those that are in the other one. */
static void
print_options(const struct command_option *list, const struct command_option *except)
{
    for (size_t i = 0; list != NULL && i < COMMAND_OPTIONS && list[i].name != NULL; i++) {
        const char *value = list[i].value;

        if (option_in(except, list[i].name) != NULL)
            continue;
        (void)printf("  %s%s%s\n", list[i].name, value == NULL ? "" : " ",
                     value == NULL ? "" : value);
        help_print_below("", list[i].text, stdout);
    }
}

static void
print_status(const char *name, const char *text)
{
    const int at = printf(strlen(name) > 2 ? "  %s  " : "  %-2s ", name);

    help_print_filled(text, at < 0 ? 0 : (size_t)at, "     ", stdout);
}

static void
print_help(const struct command_program *p, const struct command_entry *e)
{
    const struct command *c = e->command;

    for (size_t i = 0; usage_of(e, i) != NULL; i++) {
        (void)printf("%s claimd ", i == 0 ? "Usage:" : "      ");
        help_print_filled(usage_of(e, i), 14, "           ", stdout);
    }
    help_print_filled(c->about, 0, "", stdout);
    (void)putchar('\n');
    print_options(c->options, NULL);
    if (p->common != NULL)
        (void)printf("%s%s\n", c->options[0].name == NULL ? "" : "\n", p->common_heading);
    print_options(p->common, c->options);
    help_print_entry("--help", "Print this help and exit.", stdout);
    (void)printf("\nExample\n  %s\n\nExit status\n", c->example);
    for (size_t i = 0; i < COMMAND_STATUSES; i++)
        if (status_of(p, c, i) != NULL)
            print_status((const char[]){(char)('0' + i), '\0'}, status_of(p, c, i));
    for (const struct command_text *s = other_statuses_of(p, c); s->name != NULL; s++)
        print_status(s->name, s->text);
}

/* ------------------------------------------------------------------ records */

static void
print_option_records(const char *list, const struct command_option *options)
{
    for (size_t i = 0; options != NULL && i < COMMAND_OPTIONS && options[i].name != NULL;
         i++)
        HELP_PRINT_RECORD(list, options[i].name, options[i].text, options[i].value);
}

void
command_print_texts(const char *list, const struct command_text *texts)
{
    for (; texts != NULL && texts->name != NULL; texts++)
        HELP_PRINT_RECORD(list, texts->name, texts->text);
}

static void
print_entry_records(const struct command_program *p, const struct command_entry *e)
{
    const struct command *c = e->command;
    char list[64];

    HELP_PRINT_RECORD("command", e->name, c->about, c->example, c->actions,
                      c->start != NULL    ? "yes"
                      : p->common != NULL ? "client"
                                          : "");
    (void)snprintf(list, sizeof(list), "usage %s", e->name);
    for (size_t i = 0; usage_of(e, i) != NULL; i++)
        HELP_PRINT_RECORD(list, usage_of(e, i));
    (void)snprintf(list, sizeof(list), "option %s", e->name);
    print_option_records(list, c->options);
    (void)snprintf(list, sizeof(list), "status %s", e->name);
    for (size_t i = 0; i < COMMAND_STATUSES; i++)
        if (status_of(p, c, i) != NULL)
            HELP_PRINT_RECORD(list, ((const char[]){(char)('0' + i), '\0'}),
                              status_of(p, c, i));
    command_print_texts(list, other_statuses_of(p, c));
}

void
command_print_records(const struct command_program *p)
{
    print_option_records("connection", p->common);
    for (const struct command_entry *e = p->entries; e < p->entries + p->count; e++)
        if (e->command != NULL && e->command->program == NULL)
            print_entry_records(p, e);
}

/* ------------------------------------------------------------------ arguments */

static int
refuse_option(const struct command_program *p, const struct command_args *args,
              const char *word)
{
    const struct command_option *const lists[] = {args->command->options, p->common};
    struct nearest near = nearest_begin(bytes_of(word, strcspn(word, "=")));

    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0;
             lists[k] != NULL && i < COMMAND_OPTIONS && lists[k][i].name != NULL; i++)
            nearest_offer(&near, lists[k][i].name);
    return command_misused(args->name, "%.200s is not an option of %s%s%s%s", word,
                           args->name, near.found == NULL ? "" : " (did you mean ",
                           near.found == NULL ? "" : near.found,
                           near.found == NULL ? "" : "?)");
}

/* Reads one option at *at, and moves behind it. Returns an exit status. */
static int
read_option(const struct command_program *p, struct command_args *args, char *const **at)
{
    const char *word = *(*at)++, *equals = strchr(word, '=');
    const struct command_option *own = option_in(args->command->options, word);
    const struct command_option *option = own != NULL ? own : option_in(p->common, word);
    const char **value;

    if (option == NULL)
        return refuse_option(p, args, word);
    value = own != NULL ? &args->values[own - args->command->options]
                        : &args->common[option - p->common];
    if (*value != NULL && !args->command->repeats)
        return command_misused(args->name, "%s is given twice", option->name);
    if (option->value == NULL && equals != NULL)
        return command_misused(args->name, "%s takes no value", option->name);
    if (option->value == NULL)
        *value = "";
    else if (equals != NULL)
        *value = equals + 1;
    else if (**at == NULL)
        return command_misused(args->name, "%s needs a value", option->name);
    else
        *value = *(*at)++;
    if (own != NULL)
        args->given[args->given_count++] =
            (struct command_given){(size_t)(own - args->command->options), *value};
    return COMMAND_GOOD;
}

/* Reads the words behind the name of the command. Returns an exit status. */
static int
read_args(const struct command_program *p, struct command_args *args, char *const *argv)
{
    const struct command *c = args->command;
    int status = COMMAND_GOOD;
    bool dashes = false;

    while (*argv != NULL && status == COMMAND_GOOD) {
        if (!dashes && strcmp(*argv, "--") == 0) {
            dashes = true;
            args->before_dashes = args->count;
            argv++;
        } else if (!dashes && strncmp(*argv, "--", 2) == 0) {
            status = read_option(p, args, &argv);
        } else {
            args->words[args->count++] = *argv++;
        }
    }
    if (!dashes)
        args->before_dashes = args->count;
    if (status == COMMAND_GOOD && args->count > c->most)
        status = command_misused(args->name, "%.200s is one argument too many",
                                 args->words[c->most]);
    if (status == COMMAND_GOOD && args->count < c->least)
        status = command_misused(args->name, "%s needs %s", args->name, c->needs);
    return status;
}

bool
args_number(const struct command_args *args, size_t option, int64_t least, int64_t most,
            int64_t *out)
{
    const char *text = args->values[option];
    int64_t value;

    if (text == NULL)
        return true;
    if (bytes_to_i64(bytes_str(text), &value) && value >= least && value <= most) {
        *out = value;
        return true;
    }
    (void)command_misused(
        args->name, "%s is %.64s. It must be a whole number from %lld to %lld",
        args->command->options[option].name, text, (long long)least, (long long)most);
    return false;
}

/* ------------------------------------------------------------------ running */

const struct command_entry *
command_find(const struct command_program *p, const char *name)
{
    for (const struct command_entry *e = p->entries;
         name != NULL && e < p->entries + p->count; e++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

const char *
command_nearest(const struct command_program *p, const char *name)
{
    struct nearest near = nearest_begin(bytes_str(name));

    for (size_t i = 0; i < p->count; i++)
        nearest_offer(&near, p->entries[i].name);
    return near.found;
}

int
command_check_output(const struct command *c, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (c != NULL && c->misuse != 0)
        status = c->misuse;
    return command_fails(status == COMMAND_GOOD ? COMMAND_FAILED : status,
                         "the output cannot be written: %s", strerror(errno));
}

/* Reads the arguments and runs the command. Returns the exit status. */
static int
run_with_args(const struct command_program *p, struct command_args *args,
              char *const *argv)
{
    int status = read_args(p, args, argv);

    if (status == COMMAND_GOOD && p->open != NULL) {
        status = p->open(args);
        if (status != COMMAND_GOOD)
            p->close(args);
    }
    if (status != COMMAND_GOOD)
        return args->command->misuse == 0 ? status : args->command->misuse;
    /* errno is of the output: close() changes it. */
    status = command_check_output(args->command, args->command->run(args));
    if (p->close != NULL)
        p->close(args);
    return status;
}

int
command_run(const struct command_program *p, const struct command_entry *e,
            char *const *argv)
{
    struct command_args args = {.name = e->name, .command = e->command, .mem = NULL};
    bool wants_help = false;
    size_t count = 0;
    int status;

    for (; argv[count] != NULL && strcmp(argv[count], "--") != 0; count++)
        wants_help |=
            strcmp(argv[count], "--help") == 0 || strcmp(argv[count], "-h") == 0;
    while (argv[count] != NULL)
        count++;
    if (wants_help) {
        print_help(p, e);
        return command_check_output(e->command, COMMAND_GOOD);
    }
    if (e->command->start != NULL)
        return e->command->start(argv);
    args.mem = mem_new(0);
    if (args.mem != NULL) {
        args.words = mem_calloc(args.mem, count + 1, sizeof(*args.words));
        args.given = mem_calloc(args.mem, count + 1, sizeof(*args.given));
    }
    status = args.words == NULL || args.given == NULL ? command_no_memory()
                                                      : run_with_args(p, &args, argv);
    mem_free(args.mem, args.given);
    mem_free(args.mem, args.words);
    mem_destroy(args.mem);
    return status;
}
