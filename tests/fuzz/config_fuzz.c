/*
 * Configuration: whatever the file, the arguments and the environment say, loading ends
 * with values in their bounds or with a line about each thing that is wrong; and what is
 * loaded, printed as a file, loads again as the same.
 *
 * Input: sections file, arguments, environment, the latter two one a line.
 */
#include "fuzz/fuzz.h"

#include "main/config.h"
#include "main/option.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINES_MAX = 16 };

/* A file in memory; its path is "/proc/self/fd/N". */
struct scratch {
    FILE *file;
    char path[32];
};

static void
scratch_open(struct scratch *s)
{
    int fd = memfd_create("config", MFD_CLOEXEC);

    s->file = fd < 0 ? NULL : fdopen(fd, "w+");
    fuzz_check(s->file != NULL, "no file in memory");
    (void)snprintf(s->path, sizeof(s->path), "/proc/self/fd/%d", fd);
}

static void
scratch_close(struct scratch *s)
{
    (void)fclose(s->file);
}

/* Cuts a text into lines, each owned and ended by a NUL; NULL behind the last. */
static size_t
cut_lines(struct bytes text, const char *first, char *lines[LINES_MAX + 3])
{
    size_t count = 0;

    if (first != NULL)
        lines[count++] = strdup(first);
    while (bytes_present(text) && count < LINES_MAX) {
        struct bytes line = bytes_cut(&text, '\n');

        lines[count++] = strndup(line.data, line.len);
    }
    lines[count] = NULL;
    return count;
}

static void
free_lines(char **lines)
{
    for (; *lines != NULL; lines++)
        free(*lines);
}

static void
check_bounds(const struct config *config)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *o = &options[i];
        int64_t number;

        if (o->kind != OPTION_NUMBER && o->kind != OPTION_SIZE && o->kind != OPTION_MODE)
            continue;
        number = option_number(o, config);
        if (o->kind == OPTION_SIZE && o->words != NULL && number == OPTION_WORD)
            continue; /* a word */
        fuzz_check(number >= o->min && number <= o->max, "%s is %lld", o->name,
                   (long long)number);
    }
    fuzz_check(config->limits.min_message_ttl <= config->limits.max_message_ttl &&
                   config->limits.min_claim_ttl <= config->limits.max_claim_ttl,
               "a minimum is above its maximum");
}

/* Prints all options as text() would be compared: without origins. */
static void
print_values(const struct config *config, FILE *to)
{
    for (size_t i = 0; i < option_count; i++) {
        (void)fprintf(to, "%s = ", options[i].name);
        option_print(&options[i], config, to);
        (void)fputc('\n', to);
    }
    (void)fflush(to);
}

/*
 * A text with a semicolon behind a space, or a space at its end, cannot be written to an
 * INI file: the one is a comment there, the other is trimmed.
 */
static bool
printable(const struct config *config)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *o = &options[i];

        if ((o->kind == OPTION_TEXT || o->kind == OPTION_LISTEN) &&
            strpbrk((const char *)config + o->offset, " \t\r\n\v\f;\"#") != NULL)
            return false;
    }
    return true;
}

/* The errors of a loading, and the number of their lines. */
struct config_result {
    struct config_errors errors;
    char *text;
    size_t size;
};

static void
listen_to(struct config_result *h)
{
    *h = (struct config_result){.text = NULL};
    h->errors.to = open_memstream(&h->text, &h->size);
    fuzz_check(h->errors.to != NULL, "out of memory");
}

/* Ends it; each complaint must be one line. */
static void
check_lines(struct config_result *h)
{
    size_t lines = 0;

    (void)fclose(h->errors.to);
    for (const char *c = h->text; *c != '\0'; c++)
        lines += *c == '\n';
    fuzz_check(lines == h->errors.count, "%zu errors in %zu lines:\n%s", h->errors.count,
               lines, h->text);
    free(h->text);
}

static void
expect_round_trip(const struct config *config)
{
    char *const environment[] = {NULL};
    struct scratch written;
    struct config again;
    enum config_action action;
    struct config_result received;
    char option[64];
    char *arguments[] = {(char[]){"claimd"}, option, NULL};
    char *first = NULL, *second = NULL;
    size_t size;
    FILE *to;

    scratch_open(&written);
    config_print(config, written.file);
    (void)fflush(written.file);
    (void)snprintf(option, sizeof(option), "--config=%s", written.path);
    listen_to(&received);
    fuzz_check(config_load(2, arguments, environment, &again, &action,
                           &received.errors) == ST_OK,
               "printed, but refused");
    check_lines(&received);
    scratch_close(&written);
    to = open_memstream(&first, &size);
    print_values(config, to);
    (void)fclose(to);
    to = open_memstream(&second, &size);
    print_values(&again, to);
    (void)fclose(to);
    fuzz_check(strcmp(first, second) == 0, "%s\nbecame\n%s", first, second);
    free(first);
    free(second);
}

static void
load(const char *path, struct bytes arguments, struct bytes environment)
{
    char *argv[LINES_MAX + 3], *envp[LINES_MAX + 3];
    size_t argc = cut_lines(arguments, "claimd", argv);
    struct config config;
    enum config_action action;
    struct config_result received;
    enum status st;

    (void)cut_lines(environment, NULL, envp);
    /* Last, so that it is this file and no other of the machine that is read. */
    fuzz_check(asprintf(&argv[argc], "--config=%s", path) > 0, "out of memory");
    argv[++argc] = NULL;
    listen_to(&received);
    st = config_load((int)argc, argv, envp, &config, &action, &received.errors);
    fuzz_check((st == ST_OK) == (received.errors.count == 0), "refused without a word");
    check_lines(&received);
    free_lines(argv);
    free_lines(envp);
    if (st != ST_OK || action == ACTION_HELP || action == ACTION_VERSION)
        return;
    check_bounds(&config);
    if (printable(&config))
        expect_round_trip(&config);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_input(data, size);
    struct bytes file = fuzz_section(&rest), arguments = fuzz_section(&rest);
    struct scratch given;

    scratch_open(&given);
    if (file.len > 0)
        (void)fwrite(file.data, 1, file.len, given.file);
    (void)fflush(given.file);
    load(given.path, arguments, rest);
    scratch_close(&given);
    return 0;
}
