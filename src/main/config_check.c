/*
 * config_check: finds options that contradict each other (config_check()), that name
 * files which claimd cannot read (config_check_files()), and that have no effect
 * (config_check_effect()). Declared in config.h. The loading and a reload make the first
 * check, --check-config makes all three, and a start logs the options without effect.
 * option.c checks the value of a single option.
 */
#include "claimd/api/api.h"
#include "claimd/auth/keystone.h"
#include "claimd/auth/policy.h"
#include "claimd/base/plural.h"
#include "claimd/notify/guard.h"
#include "claimd/redis/redis.h"
#include "main/option.h"
#include "main/resources.h"
#include "main/store_setup.h"
#include "main/text_file.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

static struct config_place
option_where(const struct config *config, const char *name)
{
    return config_where(config, option_find(bytes_str(name)));
}

/* Reports "NAME (FILE:3) WHY". */
static void
option_refuse(const struct config *config, const char *name, struct config_errors *errors,
              const char *why)
{
    config_error(errors, "%s (%s) %s", name, option_where(config, name).text, why);
}

/* True unless the last value of one of the options "a b c" was refused, so that its value
 * is unknown. */
static bool
options_are_known(const struct config *config, const char *names)
{
    struct bytes rest = bytes_str(names);

    while (bytes_present(rest))
        if (config->origins[option_find(bytes_cut(&rest, ' ')) - options].refused)
            return false;
    return true;
}

/* The first option must not be larger than the second. */
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

static void
check_order(const struct config *config, struct config_errors *errors)
{
    for (size_t i = 0; i < sizeof(ordered) / sizeof(ordered[0]); i++) {
        const char *least = ordered[i].least, *most = ordered[i].most;
        const int64_t a = option_number(option_find(bytes_str(least)), config);
        const int64_t b = option_number(option_find(bytes_str(most)), config);

        if (a > b && options_are_known(config, least) && options_are_known(config, most))
            config_error(errors, "%s (%lld, %s) is more than %s (%lld, %s)", least,
                         (long long)a, option_where(config, least).text, most,
                         (long long)b, option_where(config, most).text);
    }
}

/* Else a message that is posted without a TTL and a delay would expire before any
 * claim. */
static void
check_delay(const struct config *config, struct config_errors *errors)
{
    const struct api_limits *l = &config->limits;

    if (l->default_message_delay >= l->default_message_ttl &&
        options_are_known(config, "default_message_delay default_message_ttl"))
        config_error(
            errors,
            "default_message_delay (%lld, %s) must be less than default_message_ttl "
            "(%lld, %s)",
            (long long)l->default_message_delay,
            option_where(config, "default_message_delay").text,
            (long long)l->default_message_ttl,
            option_where(config, "default_message_ttl").text);
}

/*
 * Sizes for which 0 means none, and below which no post or notification could succeed. A
 * smaller one lacks its suffix. A journal needs space for the current segment, two spare
 * ones, and a checkpoint before it frees any.
 */
static const struct {
    const char *name;
    int64_t least;
    const char *text;
} least_sizes[] = {
    {"max_memory", 1 << 20, "1M"},           {"backlog_memory", 1 << 20, "1M"},
    {"journal_max_bytes", 32 << 20, "32M"},  {"project_max_bytes", 1 << 10, "1K"},
    {"subscription_backlog", 1 << 10, "1K"},
};

static void
check_sizes(const struct config *config, struct config_errors *errors)
{
    enum { GIGABYTES_MOST = 64 };

    for (size_t i = 0; i < sizeof(least_sizes) / sizeof(least_sizes[0]); i++) {
        const char *name = least_sizes[i].name;
        const int64_t size = option_number(option_find(bytes_str(name)), config);
        char meant[48] = "";

        if (size <= 0 || size >= least_sizes[i].least || !options_are_known(config, name))
            continue;
        if (size < 1024)
            (void)snprintf(meant, sizeof(meant), ". Did you mean %lld%s?",
                           (long long)size, size < GIGABYTES_MOST ? "G" : "M");
        config_error(errors, "%s is %lld byte%s (%s). It must be 0 or at least %s%s",
                     name, (long long)size, plural_s((uint64_t)size),
                     option_where(config, name).text, least_sizes[i].text, meant);
    }
}

static void
check_numbers(const struct config *config, struct config_errors *errors)
{
    /* A post is one record in one frame. Half of the frame is for the rest of the
     * record. */
    enum { POST_MOST = 8 << 20 };

    if (options_are_known(config, "shards") &&
        (config->shards & (config->shards - 1)) != 0)
        config_error(errors, "shards must be a power of two, not %lld (%s)",
                     (long long)config->shards, option_where(config, "shards").text);
    if (options_are_known(config, "max_messages_post_size") &&
        config_has(config->journal) && config->limits.max_messages_post_size > POST_MOST)
        config_error(
            errors,
            "max_messages_post_size must be at most 8M with a journal, not %lld (%s)",
            (long long)config->limits.max_messages_post_size,
            option_where(config, "max_messages_post_size").text);
}

static void
check_store(const struct config *config, struct config_errors *errors)
{
    const struct api_project_limits *limits = &config->project_limits;
    struct reason why;

    if (!store_is_redis(config)) {
        if (config_has(config->store_password_file))
            option_refuse(
                config, "store_password_file", errors,
                "is for a store on Redis only. Remove it, or set store to a Redis URL");
        return;
    }
    reason_init(&why);
    if (redis_check_url(config->store, &why) != ST_OK)
        option_refuse(config, "store", errors, why.text);
    if (config_has(config->journal))
        option_refuse(config, "journal", errors,
                      "is for a store in memory only, because Redis keeps its data "
                      "itself. Set it to none");
    if (config->ci)
        option_refuse(config, "ci", errors,
                      "is for a store in memory only. Remove it, or set store to memory");
    if (limits->queues != 0 || limits->messages != 0 || limits->bytes != 0)
        config_error(
            errors,
            "project_max_queues, project_max_messages and project_max_bytes are for a "
            "store in memory only, because several servers share a Redis. Set them to 0");
}

static void
check_listeners(const struct config *config, struct config_errors *errors)
{
    struct listen_list list;
    struct reason unused;

    /*
     * The check needs known values. With socket activation, claimd does not use `listen`,
     * and activation_read() checks the sockets. An invalid list was reported when it was
     * set.
     */
    if (!activation_wanted(config) &&
        options_are_known(config, "listen auth insecure_listen identity_stub "
                                  "identity_stub_anywhere ci ci_anywhere") &&
        listen_read(config->listen, &list, &unused) == ST_OK)
        listen_policy_check(config, &list, option_where(config, "listen").text, errors);
    if (options_are_known(config, "allowed_hosts") &&
        !host_list_is_valid(bytes_str(config->allowed_hosts)))
        config_error(
            errors,
            "allowed_hosts must be names without ports, joined by commas, not \"%s\" "
            "(%s)",
            config->allowed_hosts, option_where(config, "allowed_hosts").text);
}

static void
check_proxies(const struct config *config, struct config_errors *errors)
{
    struct proxies unused;
    struct reason why;

    reason_init(&why);
    if (options_are_known(config, "trusted_proxies") &&
        proxies_read(bytes_str(config->trusted_proxies), &unused, &why) != ST_OK)
        option_refuse(config, "trusted_proxies", errors, why.text);
}

static void
check_access(const struct config *config, struct config_errors *errors)
{
    bool listed = config_has(config->certificates),
         has_ca = config_has(config->tls_client_ca);

    /* Tokens of the stub protect nothing, and there is only one kind of tokens. */
    if (config->auth != AUTH_BY_NONE && config->identity_stub)
        config_error(errors,
                     "identity_stub and auth cannot be used together. Remove one");
    if (!options_are_known(config, "auth certificates tls_client_ca"))
        return;
    /* Certificates of clients need all three options. */
    if (listed != has_ca)
        config_error(errors, "%s has no effect without %s",
                     listed ? "certificates" : "tls_client_ca",
                     listed ? "tls_client_ca" : "certificates");
    else if (listed && config->auth == AUTH_BY_NONE)
        config_error(errors, "certificates has no effect without auth");
    else if (!listed && config->auth == AUTH_BY_CERTIFICATES)
        config_error(errors, "auth certificates needs certificates and tls_client_ca");
}

static void
check_keystone(const struct config *config, struct config_errors *errors)
{
    struct role_map roles;
    struct reason why;

    if (config->auth != AUTH_BY_KEYSTONE)
        return;
    if (!keystone_url_check(bytes_str(config->keystone_url)))
        config_error(errors,
                     "keystone_url must be such as https://keystone.example.org:5000/v3,"
                     " not %s",
                     config->keystone_url);
    reason_init(&why);
    if (role_map_read(&roles, bytes_str(config->keystone_roles), &why) != ST_OK)
        config_error(errors, "keystone_roles: %s", why.text);
}

/* True for a URL with one of the two schemes, without bytes that have a meaning in URLs
 * or texts. */
static bool
is_plain_url(const char *url, const char *plain, const char *secure)
{
    const char *scheme = strncmp(url, plain, strlen(plain)) == 0 ? plain : secure;
    const char *rest = url + strlen(scheme);

    if (strncmp(url, scheme, strlen(scheme)) != 0 || *rest == '\0')
        return false;
    for (const char *at = rest; *at != '\0'; at++)
        if (*at <= ' ' || *at >= 0x7f || strchr("\"<>\\^`{|}?#@", *at) != NULL)
            return false;
    return rest[strlen(rest) - 1] != '/';
}

static void
check_url(const struct config *config, const char *name, const char *url,
          struct config_errors *errors)
{
    if (config_has(url) && !is_plain_url(url, "http://", "https://"))
        option_refuse(
            config, name, errors,
            "must be http:// or https://, a host, and perhaps a path that does not "
            "end with a slash");
}

static void
check_notifications(const struct config *config, struct config_errors *errors)
{
    const bool has_server = config_has(config->smtp_server);
    struct reason why;
    struct guard guard;

    reason_init(&why);
    if (guard_read(bytes_str(config->notify_allow), &guard, &why) != ST_OK)
        option_refuse(config, "notify_allow", errors, why.text);
    check_url(config, "public_url", config->public_url, errors);
    check_url(config, "external_confirmation_url", config->external_confirmation_url,
              errors);
    if (has_server && !is_plain_url(config->smtp_server, "smtp://", "smtps://"))
        option_refuse(config, "smtp_server", errors,
                      "must be smtp:// or smtps://, a host, and perhaps a port");
    if (has_server && strchr(config->smtp_from, '@') == NULL)
        option_refuse(config, "smtp_from", errors,
                      "must be an email address if smtp_server is set");
    if (config_has(config->smtp_user) != config_has(config->smtp_password_file))
        option_refuse(config, "smtp_user", errors,
                      "and smtp_password_file must be set together");
    if (config->require_confirmation && !config_has(config->signing_keys))
        option_refuse(config, "require_confirmation", errors,
                      "needs signing_keys, which sign the requests for confirmation");
}

enum status
config_check(const struct config *config, bool complete, struct config_errors *errors)
{
    if (complete) {
        check_order(config, errors);
        check_delay(config, errors);
    }
    check_numbers(config, errors);
    check_sizes(config, errors);
    check_store(config, errors);
    check_listeners(config, errors);
    check_proxies(config, errors);
    check_access(config, errors);
    if (!config->ci && options_are_known(config, "ci ci_anywhere ci_short seed")) {
        if (config->ci_anywhere)
            config_error(errors, "ci_anywhere has no effect without ci");
        if (config->ci_short)
            config_error(errors, "ci_short has no effect without ci");
        if (config_has(config->seed))
            config_error(errors, "seed has no effect without ci");
    }
    check_keystone(config, errors);
    check_notifications(config, errors);
    return errors->count == 0 ? ST_OK : ST_BAD_VALUE;
}

/* ------------------------------------------------------------------ files */

/* The directory may be missing, because the start creates it. Its parent must exist. */
static void
check_journal(const struct config *config, struct config_errors *errors)
{
    char copy[CONFIG_TEXT_CAP];
    const char *parent;
    struct stat st;

    if (!config_has(config->journal))
        return;
    (void)snprintf(copy, sizeof(copy), "%s", config->journal);
    parent = dirname(copy);
    if (stat(config->journal, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            config_error(errors, "journal: %s is not a directory", config->journal);
    } else if (errno != ENOENT) {
        config_error(errors, "journal: %s: %s", config->journal, strerror(errno));
    } else if (stat(parent, &st) != 0) {
        config_error(errors, "journal: %s cannot be made in %s: %s. Create %s",
                     config->journal, parent, strerror(errno), parent);
    }
}

void
config_check_files(const struct config *config, const struct listen_list *list,
                   struct mem *mem, struct config_errors *errors)
{
    const struct bytes begin = bytes_str("-----BEGIN CERTIFICATE-----");
    const bool auth = config->auth != AUTH_BY_NONE;
    const struct {
        const char *option;
        bool opened; /* the start opens and checks the file */
        bool is_ca;
    } files[] = {
        {"tls_client_ca", certificate_wanted(list), true},
        {"certificates", auth, false},
        {"policy", auth, false},
        {"notify_ca", false, true},
        {"keystone_ca", false, true},
        {"keystone_token_file", config->auth == AUTH_BY_KEYSTONE, false},
        {"identity_users", config->identity_stub, false},
        {"store_password_file", false, false},
        {"seed", false, false},
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const struct option *option = option_find(bytes_str(files[i].option));
        struct text_file file = option_file(config, option->name);
        struct bytes text;

        file.once = false; /* the start reads it again */
        if (files[i].opened || file.path == NULL ||
            strcmp(file.path, option->initial) == 0 ||
            text_file_read(&file, mem, &text, errors) != ST_OK)
            continue;
        if (files[i].is_ca && !bytes_contain(text, begin))
            config_error(errors, "%s: %s has no certificate in PEM form", file.option,
                         file.path);
        text_file_drop(mem, text);
    }
    if (!certificate_wanted(list))
        certificate_check(config, mem, errors);
    check_journal(config, errors);
}

/* ------------------------------------------------------------------ effect */

/* The kinds of listeners in a list. */
struct listeners {
    bool tls, unix_socket, open_loopback; /* open: without authentication */
};

static struct listeners
listeners_find(const struct config *config, const struct listen_list *list)
{
    struct listeners has = {.tls = certificate_wanted(list)};

    for (size_t i = 0; i < list->count; i++) {
        const struct listen_entry *e = &list->entries[i];
        const bool is_unix = strncmp(e->address, "unix:", 5) == 0;
        const bool open = config->auth == AUTH_BY_NONE || e->kind == LISTEN_METRICS;

        has.unix_socket |= is_unix;
        has.open_loopback |= open && !is_unix && listen_is_loopback(e->address);
    }
    return has;
}

void
config_check_effect(const struct config *config, const struct listen_list *list,
                    config_report_fn *report, void *ctx)
{
    const struct listeners has = listeners_find(config, list);
    const struct {
        bool met; /* the condition under which the options have an effect */
        const char *options, *missing;
    } needs[] = {
        {has.tls, "tls_certificate tls_key tls_client_ca",
         "no address in listen has tls: in front of it"},
        {has.unix_socket, "socket_mode socket_group", "listen has no Unix socket"},
        {has.open_loopback, "allowed_hosts",
         "no address in listen is a loopback address without authentication"},
        {config_has(config->journal), "journal_max_bytes accept_clock journal_downtime",
         "journal is none"},
        {store_is_redis(config), "store_threads", "store is memory"},
        {config->access_log, "access_log_sample", "access_log is false"},
        {config->auth != AUTH_BY_NONE, "policy", "auth is none"},
        {config->auth == AUTH_BY_TOKENS, "tokens", "auth is not tokens"},
        {config->auth == AUTH_BY_KEYSTONE,
         "keystone_url keystone_token_file keystone_ca keystone_roles",
         "auth is not keystone"},
        {config_has(config->smtp_server), "smtp_from smtp_user", "smtp_server is none"},
        {config->identity_stub, "identity_stub_anywhere identity_users identity_region",
         "identity_stub is false"},
    };

    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        struct bytes rest = bytes_str(needs[i].options);

        while (!needs[i].met && bytes_present(rest)) {
            const struct option *option = option_find(bytes_cut(&rest, ' '));
            struct config defaults;
            char why[CONFIG_ERROR_CAP];

            if (option_set(option, &defaults, bytes_str(option->initial), why) != ST_OK ||
                !option_same(option, config, &defaults))
                report(ctx, option->name, config_where(config, option).text,
                       needs[i].missing);
        }
    }
}
