#include "main/effect.h"

#include "main/admission.h"
#include "main/config_origin.h"
#include "main/listen_policy.h"
#include "main/option.h"
#include "main/store_setup.h"

#include <string.h>

/* What an option needs to have an effect. */
enum need {
    NEED_TLS,
    NEED_SOCKET,
    NEED_OPEN_LOOPBACK,
    NEED_JOURNAL,
    NEED_REDIS,
    NEED_ACCESS_LOG,
    NEED_AUTH,
    NEED_TOKENS,
    NEED_KEYSTONE,
    NEED_MAIL,
    NEED_STUB
};

static const char *const reasons[] = {
    [NEED_TLS] = "no address in listen has tls: in front of it",
    [NEED_SOCKET] = "listen has no Unix socket",
    [NEED_OPEN_LOOPBACK] =
        "no address in listen is a loopback address without authentication",
    [NEED_JOURNAL] = "journal is none",
    [NEED_REDIS] = "store is memory",
    [NEED_ACCESS_LOG] = "access_log is false",
    [NEED_AUTH] = "auth is none",
    [NEED_TOKENS] = "auth is not tokens",
    [NEED_KEYSTONE] = "auth is not keystone",
    [NEED_MAIL] = "smtp_server is none",
    [NEED_STUB] = "identity_stub is false",
};

static const struct {
    const char *option;
    enum need need;
} rows[] = {
    {"tls_certificate", NEED_TLS},
    {"tls_key", NEED_TLS},
    {"tls_client_ca", NEED_TLS},
    {"socket_mode", NEED_SOCKET},
    {"socket_group", NEED_SOCKET},
    {"allowed_hosts", NEED_OPEN_LOOPBACK},
    {"journal_max_bytes", NEED_JOURNAL},
    {"accept_clock", NEED_JOURNAL},
    {"store_threads", NEED_REDIS},
    {"access_log_sample", NEED_ACCESS_LOG},
    {"policy", NEED_AUTH},
    {"tokens", NEED_TOKENS},
    {"keystone_url", NEED_KEYSTONE},
    {"keystone_token_file", NEED_KEYSTONE},
    {"keystone_ca", NEED_KEYSTONE},
    {"keystone_roles", NEED_KEYSTONE},
    {"smtp_from", NEED_MAIL},
    {"smtp_user", NEED_MAIL},
    {"identity_stub_anywhere", NEED_STUB},
    {"identity_users", NEED_STUB},
    {"identity_region", NEED_STUB},
};

static bool
is_open_loopback(const struct config *config, const struct listen_entry *e)
{
    return strncmp(e->address, "unix:", 5) != 0 && listen_is_loopback(e->address) &&
           (config->auth == AUTH_BY_NONE || e->kind == LISTEN_METRICS);
}

static bool
has_listener(const struct config *config, const struct listen_list *list, enum need need)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct listen_entry *e = &list->entries[i];

        if ((need == NEED_TLS && e->kind == LISTEN_TLS) ||
            (need == NEED_SOCKET && strncmp(e->address, "unix:", 5) == 0) ||
            (need == NEED_OPEN_LOOPBACK && is_open_loopback(config, e)))
            return true;
    }
    return false;
}

static bool
is_met(const struct config *config, const struct listen_list *list, enum need need)
{
    switch (need) {
    case NEED_TLS:
    case NEED_SOCKET:
    case NEED_OPEN_LOOPBACK:
        return has_listener(config, list, need);
    case NEED_JOURNAL:
        return strcmp(config->journal, "none") != 0;
    case NEED_REDIS:
        return store_is_redis(config);
    case NEED_ACCESS_LOG:
        return config->access_log;
    case NEED_AUTH:
        return config->auth != AUTH_BY_NONE;
    case NEED_TOKENS:
        return config->auth == AUTH_BY_TOKENS;
    case NEED_KEYSTONE:
        return config->auth == AUTH_BY_KEYSTONE;
    case NEED_MAIL:
        return strcmp(config->smtp_server, "none") != 0;
    case NEED_STUB:
        return config->identity_stub;
    }
    return true;
}

static bool
is_default(const struct config *config, const struct option *option)
{
    char text[CONFIG_TEXT_CAP] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    if (to == NULL)
        return false;
    option_print(option, config, to);
    (void)fclose(to); /* it writes into memory */
    return option->initial != NULL && strcmp(text, option->initial) == 0;
}

void
effect_check(const struct config *config, const struct listen_list *list,
             effect_report_fn *report, void *ctx)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct option *option = option_find(bytes_str(rows[i].option));
        char where[CONFIG_TEXT_CAP];

        if (is_default(config, option) || is_met(config, list, rows[i].need))
            continue;
        config_where(config, option, where);
        report(ctx, option->name, where, reasons[rows[i].need]);
    }
}
