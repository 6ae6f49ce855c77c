#include "main/notification.h"

#include "claimd/base/invariant.h"
#include "main/option.h"
#include "main/version.h"

#include <string.h>

/* Of a choice with a word for nothing. */
static const char *
unless(const char *text, const char *word)
{
    return strcmp(text, word) == 0 ? NULL : text;
}

static void
refuse(const struct config *config, const char *name, struct complaints *complaints,
       const char *why)
{
    char where[CONFIG_TEXT_CAP];

    config_where(config, option_find(bytes_str(name)), where);
    complain(complaints, "%s (%s) %s", name, where, why);
}

/* It stands in JSON texts and links as it is. */
static bool
is_plain_url(const char *url)
{
    size_t scheme = strncmp(url, "https://", 8) == 0  ? 8
                    : strncmp(url, "http://", 7) == 0 ? 7
                                                      : 0;

    for (const char *at = url; *at != '\0'; at++)
        if (*at <= ' ' || *at >= 0x7f || strchr("\"<>\\^`{|}?#@", *at) != NULL)
            return false;
    return scheme > 0 && url[scheme] != '\0' && url[strlen(url) - 1] != '/';
}

void
notification_check(const struct config *config, struct complaints *complaints)
{
    struct reason why;
    struct guard guard;

    reason_init(&why);
    if (guard_read(bytes_str(config->notify_allow), &guard, &why) != ST_OK)
        refuse(config, "notify_allow", complaints, why.text);
    if (unless(config->public_url, "none") != NULL && !is_plain_url(config->public_url))
        refuse(config, "public_url", complaints,
               "must be http:// or https://, a host, and perhaps a path that does not "
               "end with a slash");
    if (config->require_confirmation && unless(config->signing_keys, "none") == NULL)
        refuse(config, "require_confirmation", complaints,
               "needs signing_keys: what asks subscribers to confirm is signed");
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
    notify.subscription_ttl_s = 3600;
    return notify_open(&notify, out);
}
