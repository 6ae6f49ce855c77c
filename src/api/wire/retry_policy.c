#include "api/wire/retry_policy.h"

#include "claimd/json/tree.h"
#include "claimd/store/retry_policy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DEFAULT(name, value) name##_default = value,
#define INTEGER(name, value) #name,
#define BACKOFF(name)        #name,

enum { RETRY_INTEGERS(DEFAULT) };

/* A member that is null counts as left out. */
static const json_t *
member(const json_t *policy, const char *name)
{
    const json_t *value = json_object_get(policy, name);

    return json_is_null(value) ? NULL : value;
}

/* A member that is not what it must be. */
static enum status
refuse(struct reason *why, const char *name, const json_t *value, const char *what)
{
    return reason_give(why, ST_BAD_VALUE, "_retry_policy.%s is %s. It must be %s", name,
                       json_tree_received(value).text, what);
}

static enum status
check_integers(const json_t *policy, struct reason *why)
{
    static const char *const names[] = {RETRY_INTEGERS(INTEGER)};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const json_t *value = member(policy, names[i]);

        if (value != NULL && !json_is_integer(value))
            return refuse(why, names[i], value, "an integer");
    }
    return ST_OK;
}

static enum status
check_function(const json_t *policy, struct reason *why)
{
    static const char *const known[] = {RETRY_BACKOFFS(BACKOFF)};
    const json_t *value = member(policy, "retry_backoff_function");

    if (value == NULL)
        return ST_OK;
    for (size_t i = 0; json_is_string(value) && i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(json_string_value(value), known[i]) == 0)
            return ST_OK;
    return refuse(why, "retry_backoff_function", value,
                  "linear, arithmetic, geometric or exponential");
}

static enum status
check_flag(const json_t *policy, struct reason *why)
{
    const json_t *value = member(policy, "ignore_subscription_override");

    return value == NULL || json_is_boolean(value)
               ? ST_OK
               : refuse(why, "ignore_subscription_override", value, "true or false");
}

static int64_t
delay(const json_t *policy, const char *name, int64_t otherwise)
{
    const json_t *value = member(policy, name);

    return value == NULL ? otherwise : json_integer_value(value);
}

static enum status
check_delays(const json_t *policy, struct reason *why)
{
    int64_t least = delay(policy, "minimum_delay", minimum_delay_default);
    int64_t most = delay(policy, "maximum_delay", maximum_delay_default);

    /* Without a sign the difference of any two fits. */
    if (most >= least && (uint64_t)most - (uint64_t)least >= RETRY_DELAY_SPAN_LEAST)
        return ST_OK;
    return reason_give(
        why, ST_BAD_VALUE,
        "_retry_policy.maximum_delay is %lld. It must be at least %d seconds longer "
        "than minimum_delay, which is %lld",
        (long long)most, RETRY_DELAY_SPAN_LEAST, (long long)least);
}

enum status
retry_policy_check(const json_t *policy, struct reason *why)
{
    enum status st = ST_OK;

    if (!json_is_object(policy))
        return reason_give(why, ST_BAD_VALUE, "_retry_policy is %s. It must be an object",
                           json_tree_received(policy).text);
    st = check_integers(policy, why);
    if (st == ST_OK)
        st = check_function(policy, why);
    if (st == ST_OK)
        st = check_flag(policy, why);
    return st == ST_OK ? check_delays(policy, why) : st;
}
