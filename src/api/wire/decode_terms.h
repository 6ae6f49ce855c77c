/*
 * decode_terms: the terms of a claim, from the body that makes or renews one
 * (docs/api.md 9.1, 9.3; 14.5 for v1).
 *
 *   Cost     O(length)
 *   Memory   none
 */
#ifndef API_WIRE_DECODE_TERMS_H
#define API_WIRE_DECODE_TERMS_H

#include "claimd/api/limits.h"
#include "claimd/json/reason.h"
#include "claimd/store/store.h"

enum terms_form {
    TERMS_CLAIM,    /* v2, v1.1: body optional, ttl and grace have defaults */
    TERMS_RENEW,    /* v2, v1.1: body required, the same defaults; any grace from 0 */
    TERMS_CLAIM_V1, /* v1: body, ttl and grace required */
    TERMS_RENEW_V1 /* v1: body and ttl required; any grace from 0, which is the default */
};

struct decoded_terms {
    struct store_terms terms;
    size_t limit; /* messages to claim; 0: the body does not say, as all that renew */
};

/*
 * Decodes and checks. An absent or empty body is no body. ST_BAD_BODY: missing, no
 * object, a type is wrong, a required member is missing; ST_BAD_VALUE: out of range; both
 * with a reason.
 */
enum status
decode_terms(struct bytes body, enum terms_form form, const struct api_limits *limits,
             struct decoded_terms *out, struct reason *why);

#endif
