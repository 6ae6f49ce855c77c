/*
 * config_load: reads the values of all options. Declared in config.h.
 *
 *     1. read_arguments() looks for the file that the command line names.
 *     2. set_option() sets the defaults. Then config_file_apply() reads the file,
 *        read_variable() the environment, and read_arguments() the command line. Each
 *        overrides the ones before.
 *     3. apply_settings() applies the profile, and the defaults of a durable store, to
 *        options that no source has set.
 *     4. config_check() refuses contradictions (config_check.c).
 *
 * After SIGHUP reload_read() does all of it again. It keeps the values of options that
 * need a restart. Read option.h next.
 */
#include "main/option.h"
#include "main/store_setup.h"

#include "claimd/base/invariant.h"

#include <ctype.h>
#include <stdarg.h>

static const char env_prefix[] = "CLAIMD_";

void
config_error(struct config_errors *c, const char *format, ...)
{
    va_list args;

    c->count++;
    va_start(args, format);
    if (vsnprintf(c->last, sizeof(c->last), format, args) < 0)
        c->last[0] = '\0';
    va_end(args);
    for (char *at = c->last; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            *at = '?';
    if (c->count == 1)
        memcpy(c->first, c->last, sizeof(c->first));
    if (c->to != NULL)
        (void)fprintf(c->to, "claimd: %s\n", c->last);
}

static const char *const source_names[] = {"default",
                                           "default with a journal",
                                           "default with a store on Redis",
                                           "profile",
                                           "file",
                                           "environment",
                                           "command line"};

struct config_place
config_where(const struct config *config, const struct option *option)
{
    const struct config_origin *origin = &config->origins[option - options];
    struct config_place place;

    if (origin->source == CONFIG_FILE)
        (void)snprintf(place.text, sizeof(place.text), "%.*s:%d", CONFIG_TEXT_CAP - 16,
                       config->file, origin->line);
    else
        (void)snprintf(place.text, sizeof(place.text), "%s",
                       source_names[origin->source]);
    return place;
}

void
config_print(const struct config *config, FILE *to)
{
    for (size_t i = 0; i < option_count; i++) {
        const enum config_source source = config->origins[i].source;

        if (option_begins_group(&options[i]))
            (void)fprintf(to, "%s# %s\n", i == 0 ? "" : "\n", options[i].group);
        (void)fprintf(to, "%s = ", options[i].name);
        option_print(&options[i], config, to);
        if (source != CONFIG_DEFAULT)
            (void)fprintf(to, "  ; from the %s", source_names[source]);
        (void)fputc('\n', to);
    }
}

/* Copies a name in lower case and with `to` for each `from`. False if it is too long. */
static bool
name_respell(struct bytes name, char from, char to, char out[CONFIG_TEXT_CAP])
{
    if (name.len >= CONFIG_TEXT_CAP)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = (char)tolower((unsigned char)name.data[i]);

        out[i] = c == from ? to : c;
    }
    out[name.len] = '\0';
    return true;
}

/* Sets an option. `shown` is its name in the source. */
static void
set_option(struct config *config, const struct option *option, struct bytes value,
           enum config_source source, const char *shown, struct config_errors *errors)
{
    char why[CONFIG_ERROR_CAP];
    bool refused = option_set(option, config, value, why) != ST_OK;

    if (refused)
        config_error(errors, "%s: %s %s", source_names[source], shown, why);
    config->origins[option - options] =
        (struct config_origin){.source = source, .refused = refused};
}

/*
 * True for a variable that Kubernetes or Docker sets for a service with this name, "" for
 * a service called claimd: SERVICE_HOST, SERVICE_PORT[_NAME], PORT, PORT_N_TCP[_ADDR].
 * "metrics_service_host" is of a service called claimd-metrics. No option has such a
 * name.
 */
static bool
is_of_service(const char *name)
{
    static const char *const marks[] = {"_service_host", "_service_port"};
    const char *port = strstr(name, "port");
    size_t len = strlen(name);

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (strncmp(name, marks[i] + 1, strlen(marks[i]) - 1) == 0 ||
            strstr(name, marks[i]) != NULL)
            return true;
    if (port == NULL || (port > name && port[-1] != '_'))
        return false;
    return name + len == port + 4 || (port[4] == '_' && isdigit((unsigned char)port[5]));
}

/* True for a variable that is no option: it is of a service, of a client, or `claimd
 * work` sets it for a job. */
static bool
is_for_others(const char *name)
{
    static const char *const names[] = {
        "config",       "url",      "project",        "token_file", "token",
        "client_id",    "queue",    "message_id",     "claim_id",   "binary",
        "claim_number", "deadline", "delivery_count", "boot_id"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return is_of_service(name) || strncmp(name, "url_", 4) == 0;
}

/* Reads a variable, which may belong to another program. */
static void
read_variable(struct config *config, const char *variable, struct config_errors *errors)
{
    struct bytes value = bytes_str(variable), key = bytes_cut(&value, '=');
    const size_t prefix = sizeof(env_prefix) - 1;
    const struct option *option = NULL;
    char name[CONFIG_TEXT_CAP], shown[CONFIG_TEXT_CAP];
    bool short_enough;

    if (key.len <= prefix || strncmp(variable, env_prefix, prefix) != 0)
        return;
    (void)snprintf(shown, sizeof(shown), "%.*s", (int)(key.len & 0xff), key.data);
    short_enough =
        name_respell(bytes_of(key.data + prefix, key.len - prefix), '_', '_', name);
    if (short_enough && is_for_others(name))
        return;
    if (short_enough)
        option = option_find(bytes_str(name));
    if (option == NULL)
        config_error(
            errors,
            "environment: %s is not an option. Variables that begin with CLAIMD_ set "
            "options. Rename or unset it",
            shown);
    else
        set_option(config, option, value, CONFIG_ENVIRONMENT, shown, errors);
}

/* Reads a variable of a supervisor, which is no option. */
static void
read_supervisor_variable(struct config *config, const char *variable)
{
    const struct {
        const char *name;
        const char **value;
    } notices[] = {{"NOTIFY_SOCKET=", &config->notify_socket},
                   {"WATCHDOG_USEC=", &config->watchdog_usec},
                   {"WATCHDOG_PID=", &config->watchdog_pid},
                   {"JOURNAL_STREAM=", &config->journal_stream},
                   {"LISTEN_PID=", &config->listen_pid},
                   {"LISTEN_FDS=", &config->listen_fds},
                   {"LISTEN_FDNAMES=", &config->listen_names},
                   {"CLAIMD_BOOT_ID=", &config->boot_id}};

    for (size_t i = 0; i < sizeof(notices) / sizeof(notices[0]); i++)
        if (strncmp(variable, notices[i].name, strlen(notices[i].name)) == 0)
            *notices[i].value = variable + strlen(notices[i].name);
}

/* The arguments, and the results of reading them. */
struct args {
    int argc, at; /* at: index of the current argument */
    char *const *argv;
    enum config_action action;
    const char *file;
    const char *topic; /* of help */
};

static bool
read_action(struct args *args, const char *arg)
{
    static const struct {
        const char *text;
        enum config_action action;
    } actions[] = {{"--help", ACTION_HELP},
                   {"-h", ACTION_HELP},
                   {"--version", ACTION_VERSION},
                   {"--print-config", ACTION_PRINT_CONFIG},
                   {"--check-config", ACTION_CHECK_CONFIG}};

    if (strncmp(arg, "--help=", 7) == 0) {
        args->action = ACTION_HELP;
        args->topic = arg + 7;
        return true;
    }
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(arg, actions[i].text) == 0) {
            const char *next = args->at + 1 < args->argc ? args->argv[args->at + 1] : "-";

            args->action = actions[i].action;
            if (args->action == ACTION_HELP && next[0] != '-')
                args->topic = args->argv[++args->at];
            return true;
        }
    return false;
}

/* True for help and version, which need no configuration. */
static bool
is_question(enum config_action action)
{
    return action == ACTION_HELP || action == ACTION_VERSION;
}

/*
 * The value of an option: the text behind "=", or the next argument. For a switch, the
 * next argument is the value only if it means true or false. Otherwise the value is true.
 * Absent if there is none.
 */
static struct bytes
option_value(struct args *args, bool is_switch, struct bytes behind_equals)
{
    const bool last = args->at + 1 >= args->argc;
    const struct bytes next = last ? BYTES_NONE : bytes_str(args->argv[args->at + 1]);

    if (bytes_present(behind_equals))
        return behind_equals;
    if (is_switch && (last || option_switch_index(next) < 0))
        return bytes_str("true");
    if (!last)
        args->at++;
    return next;
}

/* Reads an option. If config is NULL, keeps only the file that --config names. */
static void
read_option(struct args *args, struct config *config, struct config_errors *errors)
{
    struct bytes value = bytes_str(args->argv[args->at]), key = bytes_cut(&value, '=');
    const struct option *option = NULL;
    char name[CONFIG_TEXT_CAP], shown[CONFIG_TEXT_CAP];
    bool is_named, is_file;

    (void)snprintf(shown, sizeof(shown), "%s", args->argv[args->at]);
    if (key.len < sizeof(shown))
        shown[key.len] = '\0';
    is_named = key.len >= 3 && key.data[0] == '-' && key.data[1] == '-' &&
               memchr(key.data, '_', key.len) == NULL &&
               name_respell(bytes_of(key.data + 2, key.len - 2), '-', '_', name);
    is_file = is_named && strcmp(name, "config") == 0;
    if (is_named && !is_file)
        option = option_find(bytes_str(name));
    if (!is_file && option == NULL) {
        option = is_named ? option_nearest(bytes_str(name)) : NULL;
        config_error(errors,
                     "command line: %s is not an option%s%s%s. See claimd --help all",
                     shown, option == NULL ? "" : " (did you mean the option ",
                     option == NULL ? "" : option->name, option == NULL ? "" : "?)");
        return;
    }
    value = option_value(args, option != NULL && option_is_switch(option), value);
    if (!bytes_present(value) || (is_file && value.len == 0))
        config_error(errors, "command line: %s needs a value", shown);
    else if (is_file)
        args->file = value.data;
    else if (config != NULL)
        set_option(config, option, value, CONFIG_COMMAND_LINE, shown, errors);
}

/* Reads all arguments. If config is NULL, keeps only the file and the action. */
static void
read_arguments(struct args *args, struct config *config, struct config_errors *errors)
{
    for (args->at = 1; args->at < args->argc; args->at++) {
        if (!read_action(args, args->argv[args->at]))
            read_option(args, config, errors);
        else if (is_question(args->action) && errors->count == 0)
            return;
    }
}

/*
 * The profile rackspace follows the documentation of Cloud Queues. The PHP SDK requests
 * pages of 100 queues, and shows no queue if the server refuses. A Client-ID may be any
 * text: examples in the guide have names such as QClient1 beside UUIDs.
 */
const struct config_setting config_rackspace[] = {
    {"max_queues_per_page", "100"},   {"max_messages_per_claim_or_pop", "100"},
    {"client_id_uuid_safe", "off"},   {"min_length_client_id", "1"},
    {"max_length_client_id", "1024"}, {NULL, NULL},
};

static const struct config_setting ci_short[] = {{"min_message_ttl", "1"},
                                                 {"min_claim_ttl", "1"},
                                                 {"min_claim_grace", "1"},
                                                 {NULL, NULL}};

const struct config_setting config_durable[] = {{"default_message_ttl", "1209600"},
                                                {NULL, NULL}};

/* Sets the options that no source has set. */
static void
apply_settings(struct config *config, const struct config_setting *setting,
               enum config_source source)
{
    for (; setting->option != NULL; setting++) {
        const struct option *option = option_find(bytes_str(setting->option));
        struct config_origin *origin = &config->origins[option - options];
        char why[CONFIG_ERROR_CAP];
        enum status st;

        if (origin->source != CONFIG_DEFAULT)
            continue;
        st = option_set(option, config, bytes_str(setting->value), why);
        ENSURE_EQ(st, ST_OK); /* the values are constants */
        origin->source = source;
    }
}

/* Messages that survive a restart outlive the weekend of their workers, too. */
static void
apply_durable(struct config *config)
{
    const size_t ttl = (size_t)(option_find(bytes_str("default_message_ttl")) - options);
    const enum config_source source =
        store_is_redis(config) ? CONFIG_REDIS : CONFIG_JOURNAL;
    struct api_limits *limits = &config->limits;

    if (config->ci || (!config_has(config->journal) && !store_is_redis(config)))
        return;
    apply_settings(config, config_durable, source);
    if (config->origins[ttl].source == source &&
        limits->default_message_ttl > limits->max_message_ttl)
        limits->default_message_ttl = limits->max_message_ttl;
}

enum status
config_load(int argc, char *const *argv, char *const *envp, struct config *out,
            enum config_action *action, struct config_errors *errors)
{
    struct args args = {.argc = argc, .argv = argv, .action = ACTION_SERVE};
    struct config_errors first_pass = {.to = NULL};
    static const char file_name[] = "config=";
    const size_t prefix = sizeof(env_prefix) - 1;
    const char *file = NULL;
    bool complete = true;

    /* Read the arguments twice: first for the file that they name, which they
     * override. */
    read_arguments(&args, NULL, &first_pass);
    *action = args.action;
    out->help_topic = args.topic;
    if (is_question(*action) && first_pass.count == 0)
        return ST_OK;
    *out = (struct config){
        .limits = api_limits_default, .argc = argc, .argv = argv, .envp = envp};
    for (size_t i = 0; i < option_count; i++)
        if (options[i].initial != NULL)
            set_option(out, &options[i], bytes_str(options[i].initial), CONFIG_DEFAULT,
                       options[i].name, errors);
    for (char *const *at = envp; *at != NULL; at++)
        if (strncmp(*at, env_prefix, prefix) == 0 &&
            strncasecmp(*at + prefix, file_name, sizeof(file_name) - 1) == 0)
            file = *at + prefix + sizeof(file_name) - 1;
    if (args.file != NULL)
        file = args.file;
    if (file != NULL) {
        (void)snprintf(out->file, sizeof(out->file), "%s", file);
        complete = config_file_apply(out, file, errors);
    }
    for (; *envp != NULL; envp++) {
        read_supervisor_variable(out, *envp);
        read_variable(out, *envp, errors);
    }
    read_arguments(&args, out, errors);
    if (out->profile == PROFILE_RACKSPACE)
        apply_settings(out, config_rackspace, CONFIG_PROFILE);
    if (out->ci_short)
        apply_settings(out, ci_short, CONFIG_PROFILE);
    apply_durable(out);
    return config_check(out, complete, errors);
}

enum status
reload_read(struct reload *r, const struct config *now, struct config_errors *errors)
{
    enum config_action unused;
    enum status st;

    *r = (struct reload){.changed = 0};
    st = config_load(now->argc, now->argv, now->envp, &r->next, &unused, errors);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < option_count; i++) {
        if (option_same(&options[i], &r->next, now))
            continue;
        if (options[i].live) {
            r->changed++;
            continue;
        }
        r->kept[r->kept_count++] = &options[i];
        option_copy(&options[i], &r->next, now);
    }
    /* New values of some options may contradict old values of others. */
    return r->kept_count == 0 ? ST_OK : config_check(&r->next, true, errors);
}

void
reload_apply(const struct reload *r, struct config *now)
{
    for (size_t i = 0; i < option_count; i++)
        if (options[i].live)
            option_copy(&options[i], now, &r->next);
}
