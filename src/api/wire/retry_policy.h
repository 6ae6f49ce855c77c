/*
 * retry_policy: the member _retry_policy of metadata (docs/api.md 7.9), checked.
 */
#ifndef API_WIRE_RETRY_POLICY_H
#define API_WIRE_RETRY_POLICY_H

#include "claimd/json/reason.h"

#include <jansson.h>

/* ST_OK if a policy is an object whose known members are what they must be; ST_BAD_VALUE
 * with a reason. */
enum status retry_policy_check(const json_t *policy, struct reason *why);

#endif
