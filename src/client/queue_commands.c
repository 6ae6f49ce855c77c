/*
 * claimd create and set: the settings of a queue, which are its metadata. Both read words
 * of the form MEMBER=VALUE, and print the settings that the queue has then.
 *
 * The tables are at the end of each part (command.h).
 */
#include "client/command.h"
#include "client/text.h"

#include "claimd/base/utf8.h"
#include "claimd/json/string.h"
#include "claimd/json/tree.h"

#include <stdio.h>

/* The server shows this member for each queue. */
static const char shown_always[] = "_default_message_ttl";

/*
 * The names of settings without their "_". They would become members that have no effect.
 */
static const char *const lacking[] = {"max_messages_post_size",
                                      "default_message_ttl",
                                      "default_message_delay",
                                      "default_claim_ttl",
                                      "default_claim_grace",
                                      "max_claim_count",
                                      "dead_letter_queue",
                                      "retry_policy",
                                      "dead_letter_queue_messages_ttl",
                                      "persistence",
                                      "enable_encrypt_messages"};

/* ------------------------------------------------------------------ arguments */

/* The parts of MEMBER=VALUE. */
struct member_value {
    struct bytes name, value;
};

static struct member_value
setting_of(const char *word)
{
    struct bytes rest = bytes_str(word);
    const struct bytes name = bytes_cut(&rest, '=');

    return (struct member_value){name, rest};
}

/* Checks one of the words behind the name of the queue. Returns an exit status. */
static int
setting_check(const struct command_args *args, size_t at)
{
    const char *word = args->words[at];
    const struct member_value s = setting_of(word);

    if (!bytes_present(s.value) || s.name.len == 0)
        return command_misused(args->name, "%.200s is not MEMBER=VALUE", word);
    if (!word_is_utf8(bytes_str(word)))
        return command_misused(args->name, "%.200s is not UTF-8", word);
    for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++)
        if (bytes_equal_str(s.name, lacking[i]))
            return command_misused(args->name, "%s has no effect. The setting is _%s",
                                   lacking[i], lacking[i]);
    for (size_t i = 1; i < at; i++)
        if (bytes_equal(s.name, setting_of(args->words[i]).name))
            return command_misused(args->name, "%.*s is given twice", (int)s.name.len,
                                   s.name.data);
    return COMMAND_GOOD;
}

static int
settings_check(const struct command_args *args)
{
    int status = COMMAND_GOOD;

    for (size_t i = 1; i < args->count && status == COMMAND_GOOD; i++)
        status = setting_check(args, i);
    return status;
}

/* ------------------------------------------------------------------ output */

/*
 * Prints the document of the server, or "QUEUE: MEMBER=VALUE ..." with the settings that
 * are not null, with JSON values. Returns an exit status.
 */
static int
settings_print(struct client *c, const char *queue)
{
    const char *name, *between = "";
    struct buf settings, line;
    json_t *value;

    if (c->json)
        return print_json(&c->response.body);
    buf_init(&settings, c->mem);
    buf_init(&line, c->mem);
    json_object_foreach(c->response.document, name, value)
    {
        if (json_is_null(value))
            continue;
        buf_printf(&settings, "%s%s=", between, name);
        json_tree_write(&settings, value);
        between = " ";
    }
    buf_printf(&line, "%s: ", queue);
    utf8_escape(&line, buf_view(&settings));
    buf_byte(&line, '\n');
    line.failed |= settings.failed;
    buf_fini(&settings);
    return print_text(&line);
}

/* ------------------------------------------------------------------ create */

/* Writes the metadata of a new queue, and reads it as a tree. Returns an exit status. */
static int
metadata_build(const struct command_args *args, struct buf *out, json_t **tree)
{
    enum status st;

    buf_byte(out, '{');
    for (size_t i = 1; i < args->count; i++) {
        const struct member_value s = setting_of(args->words[i]);

        if (s.value.len == 0)
            return command_misused(args->name,
                                   "%.200s has no value. An empty text is '\"\"'",
                                   args->words[i]);
        json_write_comma(out);
        json_string_write(out, s.name);
        buf_byte(out, ':');
        word_write_json(out, s.value);
    }
    buf_byte(out, '}');
    st = out->failed ? ST_NO_MEMORY : json_tree_read(buf_view(out), tree);
    if (st == ST_OK)
        return COMMAND_GOOD;
    return st == ST_NO_MEMORY
               ? command_no_memory()
               : command_misused(args->name, "a name in a value has a NUL");
}

/* True for values that mean that a reserved member is not set. */
static bool
value_is_unset(const json_t *value)
{
    return value == NULL || json_is_null(value) || json_is_false(value) ||
           (json_is_integer(value) && json_integer_value(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

/*
 * Compares the settings of a queue that existed with those given. Returns an exit status,
 * after an error message.
 */
static int
existing_check(const struct client *c, const char *queue, json_t *given,
               const json_t *shown)
{
    int status = COMMAND_GOOD;
    struct buf others;
    const char *name;
    json_t *value;

    buf_init(&others, c->mem);
    json_object_foreach(given, name, value)
    {
        const json_t *kept = json_object_get(shown, name);

        if (json_equal(value, kept) ||
            (name[0] == '_' && value_is_unset(value) && value_is_unset(kept)))
            continue;
        buf_printf(&others, "%s%s=", others.len == 0 ? "" : " ", name);
        if (kept != NULL)
            json_tree_write(&others, kept);
    }
    if (others.len > 0) {
        buf_byte(&others, '\0');
        status =
            others.failed
                ? command_no_memory()
                : command_fails(
                      COMMAND_FAILED,
                      "queue %s exists with other settings (%s). claimd set changes them",
                      queue, others.data);
    }
    buf_fini(&others);
    return status;
}

/* Creates a queue. *existed: it was there before. Returns an exit status. */
static int
queue_put(struct client *c, const char *queue, bool *existed)
{
    const struct client_request request = {.method = "PUT",
                                           .path = "/v2/queues/%s",
                                           .parts = {queue},
                                           .body = buf_view(&c->body)};
    int status;

    /* Warnings for a queue that exists are about settings that it may not have. */
    c->quiet = true;
    status = client_call(c, &request);
    c->quiet = false;
    *existed = c->response.status == 204;
    if (status == COMMAND_GOOD && !*existed)
        client_print_warnings(c);
    return status;
}

static int
run_create(const struct command_args *args)
{
    struct client *c = args->context;
    const char *queue = args->words[0];
    const struct client_request request = {
        .path = "/v2/queues/%s", .parts = {queue}, .member = shown_always};
    int status = settings_check(args);
    json_t *given = NULL;
    bool existed = false;

    if (status == COMMAND_GOOD)
        status = metadata_build(args, client_body(c), &given);
    if (status == COMMAND_GOOD)
        status = queue_put(c, queue, &existed);
    if (status == COMMAND_GOOD)
        status = client_call(c, &request);
    if (status == COMMAND_GOOD && existed)
        status = existing_check(c, queue, given, c->response.document);
    if (status == COMMAND_GOOD)
        status = settings_print(c, queue);
    json_decref(given);
    return status;
}

const struct command client_create = {
    .about =
        "Creates a queue with settings, and prints them with the defaults of the others. "
        "The members are those of the API (docs/api.md 7.3), and all others are yours. A "
        "value that is JSON stays JSON. Any other text becomes a string.\n\n"
        "If the queue exists with these settings, the command succeeds. If it has other "
        "ones, the command changes nothing and fails: use `claimd set`.",
    .example =
        "claimd create jobs _max_claim_count=5 _dead_letter_queue=dead --project demo",
    .least = 1,
    .most = SIZE_MAX,
    .needs = "a queue",
    .statuses = {[COMMAND_FAILED] =
                     "The queue exists with other settings, the server refused the "
                     "request, or the output could not be written."},
    .run = run_create};

/* ------------------------------------------------------------------ set */

/* Appends the name of a member as a part of a JSON pointer in a string. */
static void
pointer_write(struct buf *out, struct bytes name)
{
    struct buf path;

    buf_init(&path, out->mem);
    buf_str(&path, "/metadata/");
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] == '~' || name.data[i] == '/')
            buf_str(&path, name.data[i] == '~' ? "~0" : "~1");
        else
            buf_byte(&path, name.data[i]);
    out->failed |= path.failed;
    json_string_write(out, buf_view(&path));
    buf_fini(&path);
}

static void
patch_write(struct buf *out, const struct command_args *args)
{
    buf_byte(out, '[');
    for (size_t i = 1; i < args->count; i++) {
        const struct member_value s = setting_of(args->words[i]);

        json_write_comma(out);
        buf_printf(out, "{\"op\":\"%s\",\"path\":", s.value.len == 0 ? "remove" : "add");
        pointer_write(out, s.name);
        if (s.value.len > 0) {
            buf_str(out, ",\"value\":");
            word_write_json(out, s.value);
        }
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static int
run_set(const struct command_args *args)
{
    struct client *c = args->context;
    struct client_request request = {
        .method = "PATCH",
        .path = "/v2/queues/%s",
        .parts = {args->words[0]},
        .type = "application/openstack-messaging-v2.0-json-patch",
        .member = shown_always};
    int status = settings_check(args);

    if (status != COMMAND_GOOD)
        return status;
    patch_write(client_body(c), args);
    request.body = buf_view(&c->body);
    status = client_call(c, &request);
    return status == COMMAND_GOOD ? settings_print(c, args->words[0]) : status;
}

const struct command client_set = {
    .about = "Changes the named settings of a queue, all or none, and leaves the others. "
             "It prints all settings. Without MEMBER=VALUE it only prints them.\n\n"
             "The members and values are those of `claimd create`. `MEMBER=` without a "
             "value removes a member. A member of the API then has its default.",
    .example = "claimd set jobs _default_message_ttl=86400 team= --project demo",
    .least = 1,
    .most = SIZE_MAX,
    .needs = "a queue",
    .statuses = {[COMMAND_FAILED] =
                     "The queue or a member to remove does not exist, the server refused "
                     "the request, or the output could not be written."},
    .run = run_set};
