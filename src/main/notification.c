#include "main/notification.h"

#include "claimd/base/invariant.h"
#include "main/config_origin.h"
#include "main/option.h"

#include <string.h>

/* Of a choice with a word for nothing. */
static const char *
unless(const char *text, const char *word)
{
    return strcmp(text, word) == 0 ? NULL : text;
}

/* What is behind one of two schemes; NULL if neither is in front. */
static const char *
behind_scheme(const char *url, const char *plain, const char *secure)
{
    if (strncmp(url, plain, strlen(plain)) == 0)
        return url + strlen(plain);
    return strncmp(url, secure, strlen(secure)) == 0 ? url + strlen(secure) : NULL;
}

/* True if there is something, of bytes that stand for themselves wherever a URL stands. */
static bool
is_plain(const char *rest)
{
    for (const char *at = rest; at != NULL && *at != '\0'; at++)
        if (*at <= ' ' || *at >= 0x7f || strchr("\"<>\\^`{|}?#@", *at) != NULL)
            return false;
    return rest != NULL && *rest != '\0' && rest[strlen(rest) - 1] != '/';
}

static void
check_url(const struct config *config, const char *name, const char *url,
          struct config_errors *errors)
{
    if (unless(url, "none") != NULL &&
        !is_plain(behind_scheme(url, "http://", "https://")))
        config_refuse(
            config, name, errors,
            "must be http:// or https://, a host, and perhaps a path that does not "
            "end with a slash");
}

static void
check_mail(const struct config *config, struct config_errors *errors)
{
    const char *server = unless(config->smtp_server, "none");

    if (server != NULL) {
        if (!is_plain(behind_scheme(server, "smtp://", "smtps://")))
            config_refuse(config, "smtp_server", errors,
                          "must be smtp:// or smtps://, a host, and perhaps a port");
        if (strchr(config->smtp_from, '@') == NULL)
            config_refuse(config, "smtp_from", errors,
                          "must be an email address if smtp_server is set");
    }
    if ((unless(config->smtp_user, "none") == NULL) !=
        (unless(config->smtp_password_file, "none") == NULL))
        config_refuse(config, "smtp_user", errors,
                      "and smtp_password_file must be set together");
}

void
notification_check(const struct config *config, struct config_errors *errors)
{
    struct reason why;
    struct guard guard;

    reason_init(&why);
    if (guard_read(bytes_str(config->notify_allow), &guard, &why) != ST_OK)
        config_refuse(config, "notify_allow", errors, why.text);
    check_url(config, "public_url", config->public_url, errors);
    check_url(config, "external_confirmation_url", config->external_confirmation_url,
              errors);
    check_mail(config, errors);
    if (config->require_confirmation && unless(config->signing_keys, "none") == NULL)
        config_refuse(config, "require_confirmation", errors,
                      "needs signing_keys, which sign the requests for confirmation");
}

static void
take_mail(const struct config *config, struct notify_mail *mail)
{
    mail->url = unless(config->smtp_server, "none");
    mail->user = unless(config->smtp_user, "none");
    mail->from = config->smtp_from;
    mail->confirmation_url = unless(config->external_confirmation_url, "none");
}

enum status
notification_open(const struct config *config, const struct notify_config *known,
                  struct notify **out)
{
    struct notify_config notify = *known;
    struct reason why;
    /* notification_check() has seen it. */
    enum status st = guard_read(bytes_str(config->notify_allow), &notify.guard, &why);

    ENSURE(st == ST_OK);
    notify.workers = (size_t)config->max_notifier_workers;
    notify.timeout_ms = config->notify_timeout_ms;
    notify.connect_ms = config->notify_timeout_ms / 2;
    notify.ca = unless(config->notify_ca, "system");
    notify.agent = "claimd/" CLAIMD_VERSION;
    notify.public_url = unless(config->public_url, "none");
    notify.subscription_ttl_s = config->limits.default_subscription_ttl;
    take_mail(config, &notify.mail);
    return notify_open(&notify, out);
}
