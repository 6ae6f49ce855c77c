#include "main/config.h"

#include "main/config_file.h"
#include "main/identity.h"
#include "main/option.h"
#include "main/profile.h"

#include <ctype.h>
#include <stdarg.h>

static const char env_prefix[] = "CLAIMD_";

static enum status __attribute__((format(printf, 2, 3)))
bad(char error[CONFIG_ERROR_CAP], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(error, CONFIG_ERROR_CAP, format, args);
    va_end(args);
    return ST_BAD_VALUE;
}

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

static enum status
set(struct config *config, const struct option *option, struct bytes value,
    enum config_source source, const char *shown, char error[CONFIG_ERROR_CAP])
{
    char why[CONFIG_ERROR_CAP];

    if (option_set(option, config, value, why) != ST_OK)
        return bad(error, "%.100s %.300s", shown, why);
    config->origins[option - options] = (struct config_origin){source, 0};
    return ST_OK;
}

static enum status
set_defaults(struct config *config, char error[CONFIG_ERROR_CAP])
{
    enum status st = ST_OK;

    *config = (struct config){.limits = api_limits_default};
    for (size_t i = 0; st == ST_OK && i < option_count; i++)
        st = set(config, &options[i], bytes_str(options[i].initial), CONFIG_DEFAULT,
                 options[i].name, error);
    return st;
}

/* ------------------------------------------------------------------ environment */

/*
 * Kubernetes and Docker describe a service called "claimd" in variables of their own,
 * which are none of our options.
 */
static bool
is_foreign(const char *name)
{
    return strncmp(name, "service_", 8) == 0 || strcmp(name, "port") == 0 ||
           strncmp(name, "port_", 5) == 0;
}

/* One variable, of any program. *file is set by CLAIMD_CONFIG. */
static enum status
take_variable(struct config *config, const char *variable, const char **file,
              char error[CONFIG_ERROR_CAP])
{
    struct bytes value = bytes_str(variable), key = bytes_cut(&value, '=');
    const size_t prefix = sizeof(env_prefix) - 1;
    const struct option *option;
    char name[CONFIG_TEXT_CAP], shown[CONFIG_TEXT_CAP];

    if (key.len <= prefix || strncmp(variable, env_prefix, prefix) != 0)
        return ST_OK;
    (void)snprintf(shown, sizeof(shown), "%.*s", (int)(key.len & 0xff), key.data);
    if (!respell(bytes_of(key.data + prefix, key.len - prefix), '_', '_', name))
        return bad(error, "the environment variable %s... is not an option", shown);
    if (is_foreign(name))
        return ST_OK;
    if (strcmp(name, "config") == 0) {
        *file = value.data;
        return ST_OK;
    }
    option = option_find(bytes_str(name));
    if (option == NULL)
        return bad(error, "the environment variable %s is not an option", shown);
    if (config == NULL)
        return ST_OK;
    return set(config, option, value, CONFIG_ENVIRONMENT, shown, error);
}

/* With config NULL only looks for the file. */
static enum status
take_environment(struct config *config, char *const *envp, const char **file,
                 char error[CONFIG_ERROR_CAP])
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && envp[i] != NULL; i++)
        st = take_variable(config, envp[i], file, error);
    return st;
}

/* ------------------------------------------------------------------ command line */

/* A walk over the arguments. */
struct args {
    int argc, at;
    char *const *argv;
    enum config_action action;
    const char *file;
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

    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(arg, actions[i].text) == 0) {
            args->action = actions[i].action;
            return true;
        }
    return false;
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

/* One option. A switch takes a value only behind "="; alone it means true. */
static enum status
take_option(struct args *args, struct config *config, char error[CONFIG_ERROR_CAP])
{
    struct bytes value = bytes_str(args->argv[args->at]), key = bytes_cut(&value, '=');
    const struct option *option = NULL;
    char name[CONFIG_TEXT_CAP], shown[CONFIG_TEXT_CAP];
    bool is_file;

    (void)snprintf(shown, sizeof(shown), "%s", args->argv[args->at]);
    if (key.len < sizeof(shown))
        shown[key.len] = '\0';
    if (key.len < 3 || key.data[0] != '-' || key.data[1] != '-' ||
        memchr(key.data, '_', key.len) != NULL ||
        !respell(bytes_of(key.data + 2, key.len - 2), '-', '_', name))
        return bad(error, "%s is not an option; see --help", shown);
    is_file = strcmp(name, "config") == 0;
    if (!is_file)
        option = option_find(bytes_str(name));
    if (!is_file && option == NULL)
        return bad(error, "%s is not an option; see --help", shown);
    if (option != NULL && option_is_switch(option) && !bytes_present(value))
        value = bytes_str("true");
    else
        value = take_value(args, value);
    if (!bytes_present(value))
        return bad(error, "%s needs a value", shown);
    if (is_file)
        args->file = value.data;
    if (is_file || config == NULL)
        return ST_OK;
    return set(config, option, value, CONFIG_COMMAND_LINE, shown, error);
}

/* With config NULL only looks for the file and the action. */
static enum status
take_arguments(struct args *args, struct config *config, char error[CONFIG_ERROR_CAP])
{
    for (args->at = 1; args->at < args->argc; args->at++) {
        enum status st;

        if (take_action(args, args->argv[args->at])) {
            if (args->action == ACTION_HELP || args->action == ACTION_VERSION)
                return ST_OK;
            continue;
        }
        st = take_option(args, config, error);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
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

/* "max_claim_ttl (43200, the default)" */
static void
describe(const struct config *config, const struct option *option,
         char out[CONFIG_TEXT_CAP])
{
    const struct config_origin *origin = &config->origins[option - options];
    static const char *const sources[] = {"the default", "the profile", "the file",
                                          "the environment", "the command line"};
    char where[32] = "";

    if (origin->source == CONFIG_FILE)
        (void)snprintf(where, sizeof(where), ", line %d", origin->line);
    (void)snprintf(out, CONFIG_TEXT_CAP, "%s (%lld, %s%s)", option->name,
                   (long long)option_number(option, config), sources[origin->source],
                   where);
}

static enum status
check(const struct config *config, char error[CONFIG_ERROR_CAP])
{
    for (size_t i = 0; i < sizeof(ordered) / sizeof(ordered[0]); i++) {
        const struct option *least = option_find(bytes_str(ordered[i].least));
        const struct option *most = option_find(bytes_str(ordered[i].most));
        char a[CONFIG_TEXT_CAP], b[CONFIG_TEXT_CAP];

        if (option_number(least, config) <= option_number(most, config))
            continue;
        describe(config, least, a);
        describe(config, most, b);
        return bad(error, "%.200s is more than %.200s", a, b);
    }
    if ((config->shards & (config->shards - 1)) != 0)
        return bad(error, "shards must be a power of two, not %lld",
                   (long long)config->shards);
    if (config->identity_stub && !config->identity_stub_anywhere &&
        !identity_is_loopback(config->listen))
        return bad(error,
                   "identity_stub gives tokens to anybody who asks: it listens on the "
                   "loopback only, not on %.200s, unless identity_stub_anywhere is set",
                   config->listen);
    return ST_OK;
}

/* ------------------------------------------------------------------ all together */

enum status
config_load(int argc, char *const *argv, char *const *envp, struct config *out,
            enum config_action *action, char error[CONFIG_ERROR_CAP])
{
    struct args args = {.argc = argc, .argv = argv, .action = ACTION_SERVE};
    const char *file = NULL, *ignored = NULL;
    enum status st;

    /* Twice over the arguments: the file they name must be read before they count. */
    st = take_arguments(&args, NULL, error);
    *action = args.action;
    if (st != ST_OK || *action == ACTION_HELP || *action == ACTION_VERSION)
        return st;
    st = set_defaults(out, error);
    if (st == ST_OK)
        st = take_environment(NULL, envp, &file, error);
    if (args.file != NULL)
        file = args.file;
    if (st == ST_OK && file != NULL) {
        (void)snprintf(out->file, sizeof(out->file), "%s", file);
        st = config_file_apply(out, file, error);
    }
    if (st == ST_OK)
        st = take_environment(out, envp, &ignored, error);
    if (st == ST_OK)
        st = take_arguments(&args, out, error);
    if (st != ST_OK)
        return st;
    profile_apply(out);
    return check(out, error);
}

void
config_print(const struct config *config, FILE *to)
{
    static const char *const remarks[] = {"", "  ; from the profile", "  ; from the file",
                                          "  ; from the environment",
                                          "  ; from the command line"};
    const char *group = NULL;

    for (size_t i = 0; i < option_count; i++) {
        if (group == NULL || strcmp(group, options[i].group) != 0)
            (void)fprintf(to, "%s# %s\n", group == NULL ? "" : "\n", options[i].group);
        group = options[i].group;
        (void)fprintf(to, "%s = ", options[i].name);
        option_print(&options[i], config, to);
        (void)fprintf(to, "%s\n", remarks[config->origins[i].source]);
    }
}

static void
print_option_help(const struct option *option, FILE *to)
{
    char name[CONFIG_TEXT_CAP];

    (void)respell(bytes_str(option->name), '_', '-', name); /* table names are short */
    if (option_is_switch(option))
        (void)fprintf(to, "  --%s[=%s]\n", name, option_placeholder(option));
    else
        (void)fprintf(to, "  --%s %s\n", name, option_placeholder(option));
    (void)fprintf(to, "        %s\n        default %s", option->help, option->initial);
    if (option->min < option->max && option->max != INT64_MAX)
        (void)fprintf(to, ", %lld to %lld", (long long)option->min,
                      (long long)option->max);
    (void)fputc('\n', to);
}

void
config_print_help(FILE *to)
{
    const char *group = NULL;

    (void)fputs(
        "Usage: claimd [OPTION]...\n"
        "HTTP queue server speaking the Zaqar API, in the foreground.\n"
        "\n"
        "  --config FILE    read options from an INI file: max_claim_ttl = 43200\n"
        "  --print-config   print all options as such a file, and exit\n"
        "  --check-config   check the options, and exit\n"
        "  --version        print the version, and exit\n"
        "  --help           print this, and exit\n"
        "\n"
        "Each option below may also stand in the file (max_claim_ttl) and in the\n"
        "environment (CLAIMD_MAX_CLAIM_TTL). The command line wins over the\n"
        "environment, the environment over the file.\n",
        to);
    for (size_t i = 0; i < option_count; i++) {
        if (group == NULL || strcmp(group, options[i].group) != 0)
            (void)fprintf(to, "\n%s\n", options[i].group);
        group = options[i].group;
        print_option_help(&options[i], to);
    }
    profile_print_help(to);
    (void)fputs(
        "\nSIGTERM and SIGINT stop it: requests in flight are finished first. Another "
        "one\n"
        "ends it at once if it comes a second or more after the first. SIGHUP and "
        "SIGUSR1\n"
        "are ignored and logged.\n"
        "\nExit status: 0 after SIGTERM or SIGINT, 1 if it cannot start, 2 for wrong"
        " options;\n128 and the signal's number when another signal cuts it short.\n",
        to);
}
