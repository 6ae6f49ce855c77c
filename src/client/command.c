/*
 * The table of commands of claimd-client with the options that all have, and functions
 * that the commands share.
 *
 * command.h declares them. claimd/base/command.h reads the arguments, prints the help and
 * runs a command. For an example, read run_pause() in change_commands.c.
 */
#include "client/command.h"

#include "claimd/base/utf8.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"
#include "client/text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>

/* ------------------------------------------------------------------ table */

#define ENTRY(name, synopsis, summary) {#name, synopsis, summary, &client_##name},
static const struct command_entry entries[] = {CLIENT_COMMANDS(ENTRY)};
#undef ENTRY

static const struct command_option common_options[] = {
    {"--url", "URL",
     "URL of the server: http://HOST:PORT, https://HOST:PORT or unix:PATH, perhaps with "
     "the path of a reverse proxy (https://HOST/mq). Default: CLAIMD_URL, else "
     "http://127.0.0.1:8888"},
    {"--project", "P",
     "Project of the queues. Default: CLAIMD_PROJECT, else that of the server"},
    {"--token-file", "FILE", "File with a token. Default: CLAIMD_TOKEN_FILE"},
    {"--ca", "FILE",
     "File with the certificates that sign the one of the server. Default: those of the "
     "system"},
    {"--certificate", "FILE", "File with the certificate of this client."},
    {"--certificate-key", "FILE", "File with the key of that certificate."},
    {"--timeout", "TIME",
     "Time limit of each request, such as 10s or 2m. Waiting for messages does not "
     "count. Default: 30s"},
    {"--json", NULL, "Print JSON for programs, not text for people."},
    {NULL, NULL, NULL}};

static const struct command_text other_statuses[] = {
    {"69", "No server responds, or the response is not one of claimd."}, {NULL, NULL}};

/* Opens the connection of a command. Returns an exit status. */
static int
open_client(struct command_args *args)
{
    struct client *c = mem_calloc(args->mem, 1, sizeof(*c));

    args->context = c;
    return c == NULL ? command_no_memory() : client_open(c, args);
}

static void
close_client(struct command_args *args)
{
    if (args->context != NULL)
        client_close(args->context);
    mem_free(args->mem, args->context);
}

static const struct command_program program = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
    .common = common_options,
    .common_heading = "Connection and output",
    .statuses = {"Success.",
                 "The server refused the request, or the output could not be written.",
                 "The arguments are wrong."},
    .other_statuses = other_statuses,
    .open = open_client,
    .close = close_client};

/* ------------------------------------------------------------------ running */

int
client_main(char *const *argv)
{
    const struct command_entry *entry = command_find(&program, argv[0]);

    /* Make the widths of characters those of UTF-8. The locale changes nothing else. */
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    if (entry != NULL)
        return command_run(&program, entry, argv + 1);
    if (argv[0] == NULL || strcmp(argv[0], "tables") != 0)
        return command_fails(
            COMMAND_USAGE,
            "%.200s is no command of claimd-client. claimd --help lists them",
            argv[0] == NULL ? "nothing" : argv[0]);
    command_print_records(&program);
    return command_check_output(NULL, COMMAND_GOOD);
}

/*
 * ------------------------------------------------------------------ shared by commands
 */

bool
args_duration(const struct command_args *args, size_t option, int64_t least, int64_t most,
              int64_t *out)
{
    const char *text = args->values[option];

    if (text == NULL || duration_read(bytes_str(text), least, most, out))
        return true;
    (void)command_misused(
        args->name,
        "%s is %.64s. It must be a time from %lld s to %lld s, such as 90, 90s or 2m",
        args->command->options[option].name, text, (long long)least, (long long)most);
    return false;
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

int64_t
member_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_real(value) ? (int64_t)json_real_value(value)
                               : json_integer_value(value);
}

const char *
member_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}
