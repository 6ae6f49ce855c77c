/*
 * retry_policy: the member _retry_policy of metadata (API.md 10.3), checked.
 */
#ifndef API_RETRY_POLICY_H
#define API_RETRY_POLICY_H

#include <jansson.h>
#include <stdbool.h>

/* True if a policy is an object whose known members are what they must be. */
bool retry_policy_valid(const json_t *policy);

#endif
