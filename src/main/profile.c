#include "main/profile.h"

#include "claimd/base/invariant.h"
#include "main/option.h"

struct setting {
    enum profile profile;
    const char *option, *value;
};

/*
 * rackspace: what the documentation of Cloud Queues lets its clients do. The PHP SDK asks
 * for pages of 100 queues, and shows none when that is refused. A Client-ID is a text
 * that the client has chosen: the guide's examples have names like QClient1 beside UUIDs.
 */
static const struct setting settings[] = {
    {PROFILE_RACKSPACE, "max_queues_per_page", "100"},
    {PROFILE_RACKSPACE, "max_messages_per_claim_or_pop", "100"},
    {PROFILE_RACKSPACE, "client_id_uuid_safe", "off"},
    {PROFILE_RACKSPACE, "min_length_client_id", "1"},
    {PROFILE_RACKSPACE, "max_length_client_id", "1024"},
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* Where nobody has said anything else. */
static void
apply(struct config *config, const char *name, const char *value)
{
    const struct option *option = option_find(bytes_str(name));
    struct config_origin *origin = &config->origins[option - options];
    char why[CONFIG_ERROR_CAP];
    enum status st;

    if (origin->source != CONFIG_DEFAULT)
        return;
    st = option_set(option, config, bytes_str(value), why);
    ENSURE_EQ(st, ST_OK); /* all that is set here is ours */
    origin->source = CONFIG_PROFILE;
}

void
profile_apply(struct config *config)
{
    static const char *const shortest[] = {"min_message_ttl", "min_claim_ttl",
                                           "min_claim_grace"};

    for (size_t i = 0; i < SETTINGS; i++)
        if (config->profile == (int)settings[i].profile)
            apply(config, settings[i].option, settings[i].value);
    for (size_t i = 0; config->ci_short && i < sizeof(shortest) / sizeof(shortest[0]);
         i++)
        apply(config, shortest[i], "1");
}

void
profile_show(void (*show)(void *ctx, const char *option, const char *value), void *ctx)
{
    for (size_t i = 0; i < SETTINGS; i++)
        show(ctx, settings[i].option, settings[i].value);
}
