#include "main/config_load.h"

#include "claimd/api/host.h"
#include "main/activation.h"
#include "main/admission.h"
#include "main/config_file.h"
#include "main/config_origin.h"
#include "main/listen_policy.h"
#include "main/notification.h"
#include "main/option.h"
#include "main/profile.h"
#include "main/store_setup.h"

#include <ctype.h>

static const char env_prefix[] = "CLAIMD_";

/* Writes a name with every `from` replaced by `to`, and in small letters. */
static bool
respell(struct bytes name, char from, char to, char out[CONFIG_TEXT_CAP])
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

/* Sets an option; `shown` is how the source calls it. */
static void
set(struct config *config, const struct option *option, struct bytes value,
    enum config_source source, const char *shown, struct config_errors *errors)
{
    char why[CONFIG_ERROR_CAP];
    bool refused = option_set(option, config, value, why) != ST_OK;

    if (refused)
        config_error(errors, "%s: %s %s", config_source_name(source), shown, why);
    config->origins[option - options] =
        (struct config_origin){.source = source, .refused = refused};
}

static void
set_defaults(struct config *config, struct config_errors *errors)
{
    *config = (struct config){.limits = api_limits_default};
    for (size_t i = 0; i < option_count; i++)
        if (options[i].initial != NULL)
            set(config, &options[i], bytes_str(options[i].initial), CONFIG_DEFAULT,
                options[i].name, errors);
}

/* ------------------------------------------------------------------ environment */

/*
 * Kubernetes and Docker describe a service called "claimd" in variables of their own, and
 * `claimd run` its servers, which are none of our options.
 */
static bool
is_foreign(const char *name)
{
    return strncmp(name, "service_", 8) == 0 || strcmp(name, "port") == 0 ||
           strncmp(name, "port_", 5) == 0 || strcmp(name, "url") == 0 ||
           strncmp(name, "url_", 4) == 0;
}

/* The file that the environment names, NULL if it names none. */
static const char *
file_of_environment(char *const *envp)
{
    static const char name[] = "config=";
    const size_t prefix = sizeof(env_prefix) - 1;
    const char *file = NULL;

    for (; *envp != NULL; envp++)
        if (strncmp(*envp, env_prefix, prefix) == 0 &&
            strncasecmp(*envp + prefix, name, sizeof(name) - 1) == 0)
            file = *envp + prefix + sizeof(name) - 1;
    return file;
}

/* One variable, of any program. */
static void
take_variable(struct config *config, const char *variable, struct config_errors *errors)
{
    struct bytes value = bytes_str(variable), key = bytes_cut(&value, '=');
    const size_t prefix = sizeof(env_prefix) - 1;
    const struct option *option = NULL;
    char name[CONFIG_TEXT_CAP], shown[CONFIG_TEXT_CAP];
    bool short_enough;

    if (key.len <= prefix || strncmp(variable, env_prefix, prefix) != 0)
        return;
    (void)snprintf(shown, sizeof(shown), "%.*s", (int)(key.len & 0xff), key.data);
    short_enough = respell(bytes_of(key.data + prefix, key.len - prefix), '_', '_', name);
    if (short_enough && (is_foreign(name) || strcmp(name, "config") == 0))
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
        set(config, option, value, CONFIG_ENVIRONMENT, shown, errors);
}

/* What a supervisor says, which is no option. */
static void
take_notice(struct config *config, const char *variable)
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
                   {"LISTEN_FDNAMES=", &config->listen_names}};

    for (size_t i = 0; i < sizeof(notices) / sizeof(notices[0]); i++)
        if (strncmp(variable, notices[i].name, strlen(notices[i].name)) == 0)
            *notices[i].value = variable + strlen(notices[i].name);
}

static void
take_environment(struct config *config, char *const *envp, struct config_errors *errors)
{
    for (; *envp != NULL; envp++) {
        take_notice(config, *envp);
        take_variable(config, *envp, errors);
    }
}

/* ------------------------------------------------------------------ command line */

/* A walk over the arguments. */
struct args {
    int argc, at;
    char *const *argv;
    enum config_action action;
    const char *file;
    const char *topic; /* of help */
};

static bool
take_action(struct args *args, const char *arg)
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

/* Help and version need no configuration. */
static bool
is_question(enum config_action action)
{
    return action == ACTION_HELP || action == ACTION_VERSION;
}

/* The value behind "=" or in the next argument; absent if there is none. */
static struct bytes
take_value(struct args *args, struct bytes behind_equals)
{
    if (bytes_present(behind_equals))
        return behind_equals;
    if (args->at + 1 >= args->argc)
        return BYTES_NONE;
    return bytes_str(args->argv[++args->at]);
}

/*
 * The value of a switch: behind "=", or the next argument if that is a word for true or
 * false. Alone a switch means true.
 */
static struct bytes
take_switch_value(struct args *args, struct bytes behind_equals)
{
    if (!bytes_present(behind_equals) && args->at + 1 < args->argc &&
        option_is_switch_word(bytes_str(args->argv[args->at + 1])))
        return bytes_str(args->argv[++args->at]);
    return bytes_present(behind_equals) ? behind_equals : bytes_str("true");
}

/* One option. */
static void
take_option(struct args *args, struct config *config, struct config_errors *errors)
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
               respell(bytes_of(key.data + 2, key.len - 2), '-', '_', name);
    is_file = is_named && strcmp(name, "config") == 0;
    if (is_named && !is_file)
        option = option_find(bytes_str(name));
    if (!is_file && option == NULL) {
        config_error(errors, "command line: %s is not an option. See claimd --help all",
                     shown);
        return;
    }
    value = option != NULL && option_is_switch(option) ? take_switch_value(args, value)
                                                       : take_value(args, value);
    if (!bytes_present(value) || (is_file && value.len == 0))
        config_error(errors, "command line: %s needs a value", shown);
    else if (is_file)
        args->file = value.data;
    else if (config != NULL)
        set(config, option, value, CONFIG_COMMAND_LINE, shown, errors);
}

/* With config NULL only looks for the file and the action. */
static void
take_arguments(struct args *args, struct config *config, struct config_errors *errors)
{
    for (args->at = 1; args->at < args->argc; args->at++) {
        if (!take_action(args, args->argv[args->at]))
            take_option(args, config, errors);
        else if (is_question(args->action) && errors->count == 0)
            return;
    }
}

/* ------------------------------------------------------------------ checks */

/* The first must not be more than the second. */
static const struct {
    const char *least, *most;
} ordered[] = {
    {"min_message_ttl", "default_message_ttl"},
    {"default_message_ttl", "max_message_ttl"},
    {"default_message_delay", "max_message_delay"},
    {"min_claim_ttl", "default_claim_ttl"},
    {"default_claim_ttl", "max_claim_ttl"},
    {"min_claim_grace", "default_claim_grace"},
    {"default_claim_grace", "max_claim_grace"},
    {"min_length_client_id", "max_length_client_id"},
};

/* "max_claim_ttl (43200, default)" */
static void
describe(const struct config *config, const struct option *option,
         char out[2 * CONFIG_TEXT_CAP])
{
    char where[CONFIG_TEXT_CAP];

    config_where(config, option, where);
    (void)snprintf(out, 2 * CONFIG_TEXT_CAP, "%s (%lld, %s)", option->name,
                   (long long)option_number(option, config), where);
}

/* Which value is meant is not known when the last one was not taken. */
static bool
is_known(const struct config *config, const struct option *option)
{
    return !config->origins[option - options].refused;
}

static void
check_order(const struct config *config, struct config_errors *errors)
{
    for (size_t i = 0; i < sizeof(ordered) / sizeof(ordered[0]); i++) {
        const struct option *least = option_find(bytes_str(ordered[i].least));
        const struct option *most = option_find(bytes_str(ordered[i].most));
        char a[2 * CONFIG_TEXT_CAP], b[2 * CONFIG_TEXT_CAP];

        if (!is_known(config, least) || !is_known(config, most) ||
            option_number(least, config) <= option_number(most, config))
            continue;
        describe(config, least, a);
        describe(config, most, b);
        config_error(errors, "%s is more than %s", a, b);
    }
}

static void
check_shards(const struct config *config, struct config_errors *errors)
{
    const struct option *shards = option_find(bytes_str("shards"));
    char where[CONFIG_TEXT_CAP];

    if (!is_known(config, shards) || (config->shards & (config->shards - 1)) == 0)
        return;
    config_where(config, shards, where);
    config_error(errors, "shards must be a power of two, not %lld (%s)",
                 (long long)config->shards, where);
}

/* A post is one record, and a record one frame, of which half is left for the rest of it. */
static void
check_post_size(const struct config *config, struct config_errors *errors)
{
    enum { POST_MOST = 8 << 20 };
    const struct option *size = option_find(bytes_str("max_messages_post_size"));
    char where[CONFIG_TEXT_CAP];

    if (strcmp(config->journal, "none") == 0 || !is_known(config, size) ||
        config->limits.max_messages_post_size <= POST_MOST)
        return;
    config_where(config, size, where);
    config_error(
        errors, "max_messages_post_size must be at most 8M with a journal, not %lld (%s)",
        (long long)config->limits.max_messages_post_size, where);
}

/*
 * With less there is no room for a segment that is written, two spares, and what a sweep
 * writes before anything goes: no post would ever be taken.
 */
static void
check_journal_bytes(const struct config *config, struct config_errors *errors)
{
    enum { BYTES_LEAST = 32 << 20 };
    const struct option *most = option_find(bytes_str("journal_max_bytes"));
    char where[CONFIG_TEXT_CAP];

    if (!is_known(config, most) || config->journal_max_bytes == 0 ||
        config->journal_max_bytes >= BYTES_LEAST)
        return;
    config_where(config, most, where);
    config_error(errors, "journal_max_bytes must be 0 or at least 32M, not %lld (%s)",
                 (long long)config->journal_max_bytes, where);
}

/* Only of values that are known it can be said whom they keep out. */
static void
check_listen_policy(const struct config *config, struct config_errors *errors)
{
    static const char *const parts[] = {"listen",
                                        "auth",
                                        "insecure_listen",
                                        "identity_stub",
                                        "identity_stub_anywhere",
                                        "ci",
                                        "ci_anywhere"};
    char where[CONFIG_TEXT_CAP], why[CONFIG_ERROR_CAP];
    struct listen_list list;

    if (activation_wanted(config))
        return; /* it is not listened there: activation_take() looks at what is */
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!is_known(config, option_find(bytes_str(parts[i]))))
            return;
    if (!listen_read(config->listen, &list, why, sizeof(why)))
        return; /* it was refused when it was set */
    config_where(config, option_find(bytes_str("listen")), where);
    listen_policy_check(config, &list, where, errors);
}

/* The stub's tokens are no protection, and there is one kind of tokens at a time. */
static void
check_one_kind(const struct config *config, struct config_errors *errors)
{
    if (config->auth != AUTH_BY_NONE && config->identity_stub)
        config_error(errors,
                     "identity_stub and auth cannot be used together. Remove one");
}

static bool
is_named(const char *path)
{
    return strcmp(path, "none") != 0;
}

/* Certificates of clients mean something only if all of it is there. */
static void
check_certificates(const struct config *config, struct config_errors *errors)
{
    static const char *const parts[] = {"auth", "certificates", "tls_client_ca"};
    bool listed = is_named(config->certificates), asked = is_named(config->tls_client_ca);

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!is_known(config, option_find(bytes_str(parts[i]))))
            return;
    if (listed != asked)
        config_error(errors, "%s has no effect without %s",
                     listed ? "certificates" : "tls_client_ca",
                     listed ? "tls_client_ca" : "certificates");
    else if (listed && config->auth == AUTH_BY_NONE)
        config_error(errors, "certificates has no effect without auth");
    else if (!listed && config->auth == AUTH_BY_CERTIFICATES)
        config_error(errors, "auth certificates needs certificates and tls_client_ca");
}

static void
check_tests(const struct config *config, struct config_errors *errors)
{
    static const char *const parts[] = {"ci", "ci_anywhere", "ci_short", "seed"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!is_known(config, option_find(bytes_str(parts[i]))))
            return;
    if (config->ci_anywhere && !config->ci)
        config_error(errors, "ci_anywhere has no effect without ci");
    if (config->ci_short && !config->ci)
        config_error(errors, "ci_short has no effect without ci");
    if (is_named(config->seed) && !config->ci)
        config_error(errors, "seed has no effect without ci");
}

static void
check_hosts(const struct config *config, struct config_errors *errors)
{
    const struct option *option = option_find(bytes_str("allowed_hosts"));
    char where[CONFIG_TEXT_CAP];

    if (!is_known(config, option) || host_list_is_valid(bytes_str(config->allowed_hosts)))
        return;
    config_where(config, option, where);
    config_error(
        errors,
        "allowed_hosts must be names without ports, joined by commas, not \"%s\" (%s)",
        config->allowed_hosts, where);
}

static void
check_rest(const struct config *config, struct config_errors *errors)
{
    check_shards(config, errors);
    check_post_size(config, errors);
    check_journal_bytes(config, errors);
    store_setup_check(config, errors);
    check_listen_policy(config, errors);
    check_hosts(config, errors);
    check_one_kind(config, errors);
    check_certificates(config, errors);
    check_tests(config, errors);
    admission_check(config, errors);
    notification_check(config, errors);
}

enum status
config_check(const struct config *config, struct config_errors *errors)
{
    check_order(config, errors);
    check_rest(config, errors);
    return errors->count == 0 ? ST_OK : ST_BAD_VALUE;
}

/* ------------------------------------------------------------------ all together */

enum status
config_load(int argc, char *const *argv, char *const *envp, struct config *out,
            enum config_action *action, struct config_errors *errors)
{
    struct args args = {.argc = argc, .argv = argv, .action = ACTION_SERVE};
    struct config_errors unheard = {.to = NULL};
    const char *file = file_of_environment(envp);
    bool has_all = true;

    /* Twice over the arguments: the file they name must be read before they count. */
    take_arguments(&args, NULL, &unheard);
    *action = args.action;
    out->help_topic = args.topic;
    if (is_question(*action) && unheard.count == 0)
        return ST_OK;
    set_defaults(out, errors);
    out->argc = argc;
    out->argv = argv;
    out->envp = envp;
    if (args.file != NULL)
        file = args.file;
    if (file != NULL) {
        (void)snprintf(out->file, sizeof(out->file), "%s", file);
        has_all = config_file_apply(out, file, errors);
    }
    take_environment(out, envp, errors);
    take_arguments(&args, out, errors);
    profile_apply(out);
    /* Without its file a configuration may contradict itself where it would not. */
    if (has_all)
        check_order(out, errors);
    check_rest(out, errors);
    return errors->count == 0 ? ST_OK : ST_BAD_VALUE;
}

enum status
config_reload(const struct config *now, struct config *out, struct config_errors *errors)
{
    enum config_action unused;

    return config_load(now->argc, now->argv, now->envp, out, &unused, errors);
}
