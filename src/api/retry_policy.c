#include "api/retry_policy.h"

#include <stdint.h>
#include <string.h>

/* Seconds by which the delays must at least differ. */
#define DELAY_SPAN_MIN 10

static const int64_t minimum_delay_default = 5, maximum_delay_default = 30;

/* A member that is null counts as left out. */
static const json_t *
member(const json_t *policy, const char *name)
{
    const json_t *value = json_object_get(policy, name);

    return json_is_null(value) ? NULL : value;
}

static bool
integers_valid(const json_t *policy)
{
    static const char *const names[] = {"retries_with_no_delay", "minimum_delay_retries",
                                        "minimum_delay", "maximum_delay",
                                        "maximum_delay_retries"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const json_t *value = member(policy, names[i]);

        if (value != NULL && !json_is_integer(value))
            return false;
    }
    return true;
}

static bool
function_valid(const json_t *policy)
{
    static const char *const known[] = {"linear", "arithmetic", "geometric",
                                        "exponential"};
    const json_t *value = member(policy, "retry_backoff_function");

    if (value == NULL)
        return true;
    if (!json_is_string(value))
        return false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(json_string_value(value), known[i]) == 0)
            return true;
    return false;
}

static bool
flag_valid(const json_t *policy)
{
    const json_t *value = member(policy, "ignore_subscription_override");

    return value == NULL || json_is_boolean(value);
}

static int64_t
delay(const json_t *policy, const char *name, int64_t otherwise)
{
    const json_t *value = member(policy, name);

    return value == NULL ? otherwise : json_integer_value(value);
}

static bool
delays_valid(const json_t *policy)
{
    int64_t least = delay(policy, "minimum_delay", minimum_delay_default);
    int64_t most = delay(policy, "maximum_delay", maximum_delay_default);

    /* Without a sign the difference of any two fits. */
    return most >= least && (uint64_t)most - (uint64_t)least >= DELAY_SPAN_MIN;
}

bool
retry_policy_valid(const json_t *policy)
{
    return json_is_object(policy) && integers_valid(policy) && function_valid(policy) &&
           flag_valid(policy) && delays_valid(policy);
}
