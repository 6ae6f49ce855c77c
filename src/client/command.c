/* The command line of claimd-client: finds the command, reads its arguments, and prints its help. */
#include "client/command.h"

#include "claimd/base/help_text.h"
#include "claimd/base/nearest.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"
#include "claimd/json/tree.h"
#include "client/text.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ tables */

struct listed {
    const char *name, *synopsis, *summary;
    const struct client_command *command;
};

#define LISTED(name, synopsis, summary) {#name, synopsis, summary, &client_##name},
static const struct listed list[] = {CLIENT_COMMANDS(LISTED)};
#undef LISTED

enum { LIST_COUNT = sizeof(list) / sizeof(list[0]) };

/* In the order of struct client_settings. */
static const struct client_option common_options[] = {
    {"--url", "URL",
     "URL of the server: http://HOST:PORT, https://HOST:PORT or unix:PATH, perhaps with "
     "the path of a reverse proxy (https://HOST/mq). Default: CLAIMD_URL, else "
     "http://127.0.0.1:8888"},
    {"--project", "P", "Project of the queues. Default: CLAIMD_PROJECT"},
    {"--token-file", "FILE", "File with a token. Default: CLAIMD_TOKEN_FILE"},
    {"--ca", "FILE",
     "File with the certificates that sign the one of the server. Default: those of the "
     "system"},
    {"--certificate", "FILE", "File with the certificate of this client."},
    {"--certificate-key", "FILE", "File with the key of that certificate."},
    {"--timeout", "TIME",
     "Time limit of each request, such as 10s or 2m. Waiting for messages does not "
     "count. Default: "
     "30s"},
    {"--json", NULL, "Print JSON for programs, not text for people."},
    {NULL, NULL, NULL}};

enum { COMMON_COUNT = sizeof(common_options) / sizeof(common_options[0]) - 1 };

_Static_assert(COMMON_COUNT * sizeof(char *) == sizeof(struct client_settings),
               "the settings have the order of the options");

enum { STATUSES = 4 };

/* Writes the exit statuses of a command, and the end of the list. Returns its list. */
static const struct client_status *
list_statuses(const struct client_command *c, struct client_status out[STATUSES + 1])
{
    const struct client_status usual[STATUSES + 1] = {
        {CLIENT_GOOD, c->good == NULL ? "Success." : c->good},
        {CLIENT_REFUSED,
         c->refused == NULL
             ? "The server refused the request, or the output could not be written."
             : c->refused},
        {CLIENT_USAGE, "The arguments are wrong."},
        {CLIENT_UNAVAILABLE, "No server responds, or the response is not one of claimd."},
        {0, NULL}};

    memcpy(out, usual, sizeof(usual));
    return c->statuses == NULL ? out : c->statuses;
}

/* ------------------------------------------------------------------ help */

static void
print_options(const struct client_option *options)
{
    for (; options->name != NULL; options++) {
        (void)printf("  %s%s%s\n", options->name, options->value == NULL ? "" : " ",
                     options->value == NULL ? "" : options->value);
        help_print_below("", options->text, stdout);
    }
}

/* Prints the options that all commands have, unless the command has its own with the same name. */
static void
print_common_options(const struct client_command *c)
{
    for (size_t i = 0; i < COMMON_COUNT; i++) {
        const struct client_option one[] = {common_options[i], {NULL, NULL, NULL}};
        bool own = false;

        for (const struct client_option *o = c->options; o->name != NULL; o++)
            own |= strcmp(o->name, one->name) == 0;
        if (!own)
            print_options(one);
    }
}

static void
print_help(const struct listed *l)
{
    const struct client_command *c = l->command;
    struct client_status usual[STATUSES + 1];

    (void)printf("Usage: claimd ");
    help_print_filled(l->synopsis, 14, "           ", stdout);
    help_print_filled(c->about, 0, "", stdout);
    (void)putchar('\n');
    print_options(c->options);
    (void)puts(c->options[0].name == NULL ? "Connection and output"
                                          : "\nConnection and output");
    print_common_options(c);
    help_print_entry("--help", "Print this help and exit.", stdout);
    (void)printf("\nExample\n  %s\n\nExit status\n", c->example);
    for (const struct client_status *s = list_statuses(c, usual); s->text != NULL; s++) {
        (void)printf("  %-2d ", s->status);
        help_print_filled(s->text, 5, "     ", stdout);
    }
}

static void
print_option_records(const char *of, const struct client_option *options)
{
    for (; options->name != NULL; options++)
        HELP_PRINT_RECORD(of, options->name, options->text, options->value);
}

/* Prints the records of scripts/cmake/generate.awk (see src/main/help.c). */
static void
print_tables(void)
{
    struct client_status usual[STATUSES + 1];
    char of[64], number[16];

    print_option_records("connection", common_options);
    for (const struct listed *l = list; l < list + LIST_COUNT; l++) {
        const struct client_command *c = l->command;

        HELP_PRINT_RECORD("command", l->name, c->about, c->example, "", "", "client");
        (void)snprintf(of, sizeof(of), "usage %s", l->name);
        HELP_PRINT_RECORD(of, l->synopsis);
        (void)snprintf(of, sizeof(of), "option %s", l->name);
        print_option_records(of, c->options);
        (void)snprintf(of, sizeof(of), "status %s", l->name);
        for (const struct client_status *s = list_statuses(c, usual); s->text != NULL;
             s++) {
            (void)snprintf(number, sizeof(number), "%d", s->status);
            HELP_PRINT_RECORD(of, number, s->text);
        }
    }
}

/* ------------------------------------------------------------------ arguments */

int
client_misused(const struct client_args *args, const char *format, ...)
{
    char text[CLIENT_ERROR_CAP];
    va_list given;

    va_start(given, format);
    (void)vsnprintf(text, sizeof(text), format, given);
    va_end(given);
    return client_fails(CLIENT_USAGE, "%s. See claimd %s --help", text, args->name);
}

/* Finds the option that a word names, up to its "=", and the place of its value. NULL: there is none. */
static const struct client_option *
find_option(const struct client_args *args, const char *word,
            struct client_settings *settings, const char **own, const char ***place)
{
    const char **common = (const char **)settings;
    const size_t len = strcspn(word, "=");

    for (const struct client_option *o = args->command->options; o->name != NULL; o++)
        if (strlen(o->name) == len && strncmp(o->name, word, len) == 0) {
            *place = &own[o - args->command->options];
            return o;
        }
    for (size_t i = 0; i < COMMON_COUNT; i++)
        if (strlen(common_options[i].name) == len &&
            strncmp(common_options[i].name, word, len) == 0) {
            *place = &common[i];
            return &common_options[i];
        }
    return NULL;
}

static int
refuse_option(const struct client_args *args, const char *word)
{
    struct nearest near = nearest_begin(bytes_of(word, strcspn(word, "=")));

    for (const struct client_option *o = args->command->options; o->name != NULL; o++)
        nearest_offer(&near, o->name);
    for (size_t i = 0; i < COMMON_COUNT; i++)
        nearest_offer(&near, common_options[i].name);
    return client_misused(args, "%.200s is not an option of %s%s%s%s", word, args->name,
                          near.found == NULL ? "" : " (did you mean ",
                          near.found == NULL ? "" : near.found,
                          near.found == NULL ? "" : "?)");
}

/* Reads one option at *at, and moves behind it. Returns an exit status. */
static int
read_option(struct client_args *args, char *const **at, struct client_settings *settings)
{
    const char *word = *(*at)++, *equals = strchr(word, '=');
    const char **place = NULL;
    const struct client_option *option =
        find_option(args, word, settings, args->values, &place);

    if (option == NULL)
        return refuse_option(args, word);
    if (*place != NULL)
        return client_misused(args, "%s is given twice", option->name);
    if (option->value == NULL && equals != NULL)
        return client_misused(args, "%s takes no value", option->name);
    if (option->value == NULL)
        *place = "";
    else if (equals != NULL)
        *place = equals + 1;
    else if (**at == NULL)
        return client_misused(args, "%s needs a value", option->name);
    else
        *place = *(*at)++;
    return CLIENT_GOOD;
}

/* Reads the words behind the name of the command. Positional arguments move to the begin of `words`. */
static int
read_args(struct client_args *args, char *const *argv, char **words,
          struct client_settings *settings)
{
    const struct client_command *c = args->command;
    int status = CLIENT_GOOD;
    bool dashes = false;

    args->words = words;
    while (*argv != NULL && status == CLIENT_GOOD) {
        if (!dashes && strcmp(*argv, "--") == 0) {
            dashes = true;
            args->before_dashes = args->count;
            argv++;
        } else if (!dashes && strncmp(*argv, "--", 2) == 0) {
            status = read_option(args, &argv, settings);
        } else {
            words[args->count++] = *argv++;
        }
    }
    if (!dashes)
        args->before_dashes = args->count;
    if (status == CLIENT_GOOD && args->count > c->most)
        status = client_misused(args, "%.200s is one argument too many", words[c->most]);
    if (status == CLIENT_GOOD && args->count < c->least)
        status = client_misused(args, "%s needs %s", args->name, c->needs);
    return status;
}

bool
args_number(const struct client_args *args, size_t option, int64_t least, int64_t most,
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
    (void)client_misused(args, "%s is %.64s. It must be a whole number from %lld to %lld",
                         args->command->options[option].name, text, (long long)least,
                         (long long)most);
    return false;
}

bool
args_duration(const struct client_args *args, size_t option, int64_t least, int64_t most,
              int64_t *out)
{
    const char *text = args->values[option];

    if (text == NULL || duration_read(text, least, most, out))
        return true;
    (void)client_misused(args,
                         "%s is %.64s. It must be a time from %lld s to %lld s, such as "
                         "90, 90s or 2m",
                         args->command->options[option].name, text, (long long)least,
                         (long long)most);
    return false;
}

/* ------------------------------------------------------------------ running */

/* The exit status if the whole output is written. l: NULL: no command. */
static int
check_output(const struct listed *l, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (l != NULL && l->command->misuse != 0)
        status = l->command->misuse;
    return client_fails(status == CLIENT_GOOD ? CLIENT_REFUSED : status,
                        "the output cannot be written: %s", strerror(errno));
}

static int
run_command(const struct listed *l, char *const *argv, char **words)
{
    struct client_args args = {.name = l->name, .command = l->command};
    struct client_settings settings = {.url = NULL};
    struct client client;
    int status = read_args(&args, argv, words, &settings);

    if (status == CLIENT_GOOD) {
        status = client_open(&client, &settings);
        if (status == CLIENT_GOOD && client.project == NULL && !l->command->any_project)
            status = client_misused(&args, "no project is named. Use --project or set "
                                           "CLAIMD_PROJECT");
        if (status == CLIENT_GOOD) {
            /* errno is of the output: client_close() changes it. */
            status = check_output(l, l->command->run(&client, &args));
            client_close(&client);
            return status;
        }
        client_close(&client);
    }
    return l->command->misuse == 0 ? status : l->command->misuse;
}

/* Makes the widths of characters those of UTF-8. The locale changes nothing else. */
static void
use_utf8(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

static const struct listed *
find_command(const char *name)
{
    for (const struct listed *l = list; name != NULL && l < list + LIST_COUNT; l++)
        if (strcmp(l->name, name) == 0)
            return l;
    return NULL;
}

int
client_main(char *const *argv)
{
    const struct listed *l = find_command(argv[0]);
    bool wants_help = false;
    size_t count = 0;
    char **words;
    int status;

    use_utf8();
    for (; argv[count] != NULL && strcmp(argv[count], "--") != 0; count++)
        wants_help |=
            strcmp(argv[count], "--help") == 0 || strcmp(argv[count], "-h") == 0;
    while (argv[count] != NULL)
        count++;
    if (l == NULL && argv[0] != NULL && strcmp(argv[0], "tables") == 0) {
        print_tables();
        return check_output(NULL, CLIENT_GOOD);
    }
    if (l == NULL)
        return client_fails(CLIENT_USAGE,
                            "%.200s is no command of claimd-client. "
                            "claimd --help lists them",
                            argv[0] == NULL ? "nothing" : argv[0]);
    if (wants_help) {
        print_help(l);
        return check_output(l, CLIENT_GOOD);
    }
    words = calloc(count, sizeof(*words));
    status = words == NULL ? client_no_memory() : run_command(l, argv + 1, words);
    free(words);
    return status;
}

/* ------------------------------------------------------------------ shared by commands */

int
client_no_memory(void)
{
    return client_fails(CLIENT_REFUSED, "out of memory");
}

void
path_of_queue(struct buf *out, const char *root, const char *queue, const char *behind)
{
    buf_str(out, root);
    buf_str(out, "/queues/");
    client_add_encoded(out, queue);
    buf_str(out, behind);
}

const char *
path_done(struct buf *out)
{
    buf_byte(out, '\0');
    if (!out->failed)
        return out->data;
    (void)client_no_memory();
    return NULL;
}

bool
word_is_utf8(struct bytes word)
{
    const unsigned char *at = (const unsigned char *)word.data, *end = at + word.len;

    while (at != NULL && at < end)
        at = *at < 0x80 ? at + 1 : utf8_pass(at, end);
    return at != NULL;
}

void
word_write_json(struct buf *out, struct bytes word)
{
    struct json_scan scan;

    json_scan_begin(&scan, word);
    if (json_scan_value(&scan, NULL) && json_scan_end(&scan) == ST_OK)
        buf_bytes(out, bytes_trim(word));
    else
        json_string_write(out, word);
}

int
print_json(struct bytes document)
{
    struct mem *mem = mem_new(0);
    struct buf out;
    bool failed;

    if (mem == NULL)
        return client_no_memory();
    buf_init(&out, mem);
    text_escape_json(&out, bytes_trim(document));
    buf_byte(&out, '\n');
    failed = out.failed;
    if (!failed)
        (void)fwrite(out.data, 1, out.len, stdout); /* client_main() checks the output */
    buf_fini(&out);
    mem_destroy(mem);
    return failed ? client_no_memory() : CLIENT_GOOD;
}
