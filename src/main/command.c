#include "main/command.h"

#include "claimd/api/limits.h"
#include "claimd/base/clock.h"
#include "claimd/engine/engine.h"
#include "main/text_file.h"
#include "main/text_fill.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct command *const commands[] = {
    &command_token, &command_health, &command_verify,    &command_log,  &command_backup,
    &command_dump,  &command_load,   &command_run_tests, &command_bench};
const size_t command_count = sizeof(commands) / sizeof(commands[0]);

const struct command command_bench = {
    .name = "bench",
    .call = "bench [OPTION]...",
    .summary = "Measure a server under load.",
    .usages = {"bench [OPTION]..."},
    .about =
        "Starts `claimd-bench`, a load generator for queue servers that comes with "
        "claimd. `claimd bench --help` prints its options. claimd looks for the program "
        "in its own directory and then in PATH.",
    .example = "claimd bench --help",
    .ends = {[COMMAND_USAGE] =
                 "claimd-bench is missing. Otherwise the exit status is its "
                 "own."},
    .program = "claimd-bench"};

const struct command *
command_find(const char *name)
{
    if (strcmp(command_generate.name, name) == 0)
        return &command_generate;
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* One line, with the help to read for a command that was misused. */
static void __attribute__((format(printf, 2, 0)))
fail(const struct command *misused, const char *format, va_list args)
{
    struct config_errors errors = {.to = stderr};
    char line[JOURNAL_ERROR_CAP + 256];

    (void)vsnprintf(line, sizeof(line), format, args);
    (void)fflush(stdout); /* in the order in which it was said */
    if (misused != NULL)
        config_error(&errors, "%s. See claimd %s --help", line, misused->name);
    else
        config_error(&errors, "%s", line);
}

int
command_fails(int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail(NULL, format, args);
    va_end(args);
    return status;
}

int
command_misused(const struct command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail(command, format, args);
    va_end(args);
    return COMMAND_USAGE;
}

/* ------------------------------------------------------------------ arguments */

/* Where the value of an option goes; NULL: the command has no such option. */
static const char **
find_value(const struct command *c, const char *option, struct command_words *words)
{
    for (size_t i = 0; i < COMMAND_OPTIONS && c->options[i].name != NULL; i++)
        if (strcmp(c->options[i].name, option) == 0)
            return &words->values[i];
    return NULL;
}

static int
read_words(const struct command *c, char *const *argv, struct command_words *words)
{
    size_t places = 0;

    for (; *argv != NULL; argv++) {
        bool option = strncmp(*argv, "--", 2) == 0;
        const char **value = option ? find_value(c, *argv, words) : NULL;

        if (option && value == NULL)
            return command_misused(c, "%s is not an option of %s", *argv, c->name);
        if (option && (argv[1] == NULL || *value != NULL))
            return command_misused(c, "%s %s", *argv,
                                   argv[1] == NULL ? "needs a value" : "is given twice");
        if (!option && places == c->places)
            return command_misused(c, "%s is one argument too many", *argv);
        if (option)
            *value = *++argv;
        else
            words->places[places++] = *argv;
    }
    return places >= c->least ? COMMAND_GOOD
                              : command_misused(c, "%s needs %s", c->name, c->needs);
}

static bool
wants_help(char *const *argv)
{
    for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, "--help") == 0 || strcmp(*argv, "-h") == 0)
            return true;
    return false;
}

/* ------------------------------------------------------------------ help */

static void
print_statuses(const struct command *c, FILE *to)
{
    (void)fputs("\nExit status\n", to);
    for (int i = 0; i < COMMAND_STATUSES; i++)
        if (c->ends[i] != NULL) {
            (void)fprintf(to, "  %d  ", i);
            text_fill(c->ends[i], 5, "     ", to);
        }
    for (const struct help_entry *f = c->other_ends; f != NULL && f->name != NULL; f++) {
        (void)fprintf(to, "  %s  ", f->name);
        text_fill(f->what, strlen(f->name) + 4, "     ", to);
    }
}

static void
print_help(const struct command *c, FILE *to)
{
    for (size_t i = 0; i < COMMAND_CALLS && c->usages[i] != NULL; i++) {
        (void)fprintf(to, "%s claimd ", i == 0 ? "Usage:" : "      ");
        text_fill(c->usages[i], 14, "           ", to);
    }
    text_fill(c->about, 0, "", to);
    (void)fputc('\n', to);
    for (size_t i = 0; i < COMMAND_OPTIONS && c->options[i].name != NULL; i++) {
        (void)fprintf(to, "  %s%s%s\n%s", c->options[i].name,
                      c->options[i].value == NULL ? "" : " ",
                      c->options[i].value == NULL ? "" : c->options[i].value,
                      text_indent);
        text_fill(c->options[i].what, TEXT_INDENT, text_indent, to);
    }
    text_entry("--help", "Print this help and exit.", to);
    (void)fprintf(to, "\nExample\n  %s\n", c->example);
    print_statuses(c, to);
}

/* ------------------------------------------------------------------ running */

int
command_run(const struct command *command, char *const *argv)
{
    struct command_words words = {{NULL}, {NULL}};
    int status = COMMAND_GOOD;

    if (wants_help(argv))
        print_help(command, stdout);
    else if (command->start != NULL)
        return command->start(argv);
    else
        status = read_words(command, argv, &words);
    if (status == COMMAND_GOOD && !wants_help(argv))
        status = command->run(&words);
    if (fflush(stdout) != 0 || ferror(stdout))
        return status == COMMAND_GOOD ? COMMAND_FAILED : status;
    return status;
}

/* ------------------------------------------------------------------ directories */

struct disk *
command_open(const char *path)
{
    struct disk *d = NULL;
    int error = disk_open(path, false, &d);

    if (error == 0)
        return d;
    (void)command_fails(COMMAND_FAILED, "%s cannot be opened: %s", path, strerror(error));
    return NULL;
}

static void
count_name(void *arg, const char *name)
{
    (void)name;
    ++*(size_t *)arg;
}

struct disk *
command_open_empty(const char *path)
{
    struct disk *d = NULL;
    size_t names = 0;
    int error = disk_open(path, true, &d);

    if (error == 0)
        error = disk_list(d, count_name, &names);
    if (error == 0 && names == 0)
        return d;
    if (error != 0)
        (void)command_fails(COMMAND_FAILED, "%s cannot be opened: %s", path,
                            strerror(error));
    else
        (void)command_fails(COMMAND_FAILED,
                            "%s is not empty. Give a new or an empty directory", path);
    disk_shut(d);
    return NULL;
}

void
command_tell_missing(const struct journal_damage *damage)
{
    if (damage->from < damage->to)
        (void)printf(": missing LSN %" PRIu64 " to %" PRIu64, damage->from, damage->to);
    else if (damage->from == damage->to)
        (void)printf(": missing LSN %" PRIu64, damage->from);
}

void
command_tell_damage(void *arg, const struct journal_damage *damage)
{
    (void)arg;
    (void)printf("damaged: %s at %" PRIu64 " %s", damage->name, damage->offset,
                 damage->what);
    command_tell_missing(damage);
    (void)putchar('\n');
}

/* ------------------------------------------------------------------ stores */

char *
command_read_word(const char *option, const char *path, struct mem *mem)
{
    const struct text_file file = {
        .path = path, .option = option, .most = 4096, .secret = true, .once = true};
    struct config_errors errors = {.to = stderr};
    struct bytes text, word;
    char *copy;

    if (text_file_read(&file, mem, &text, &errors) != ST_OK)
        return NULL;
    word = bytes_trim(text);
    copy = mem_calloc(mem, 1, word.len + 1);
    if (copy != NULL && word.len > 0)
        memcpy(copy, word.data, word.len);
    mem_free(mem, (void *)text.data);
    return copy;
}

enum status
command_store_open(struct command_store *out)
{
    const struct api_limits *limits = &api_limits_default;
    struct engine_config config = {.shards = 1};
    struct clock clock;
    enum status st;

    clock_init_system(&clock);
    *out = (struct command_store){.mem = mem_new(0), .now_ms = clock_now_ms(&clock)};
    if (out->mem == NULL)
        return ST_NO_MEMORY;
    config.mem = out->mem;
    config.now_ms = out->now_ms;
    config.message_ttl_s = limits->default_message_ttl;
    config.message_delay_s = limits->default_message_delay;
    config.max_message_ttl_s = limits->max_message_ttl;
    config.dead_letter_ttl_s = limits->dead_letter_ttl;
    st = engine_open(&config, &out->store);
    if (st != ST_OK)
        mem_destroy(out->mem);
    return st;
}

void
command_store_close(struct command_store *s)
{
    store_close(s->store);
    mem_destroy(s->mem);
}
