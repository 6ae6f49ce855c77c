/*
 * decode: the body of a POST of messages (docs/api.md 8.2; 13 and 14.4 for the old
 * versions), the terms of claims, and values of other bodies.
 *
 * One pass of json_scan validates the body and finds the drafts. Syntax is checked first,
 * then types, then ranges, each in the whole body. So a ttl of the wrong type is
 * ST_BAD_BODY, also behind a message whose ttl is out of range.
 *
 *   Cost     O(length)
 *   Memory   drafts from the arena; bodies are spans of the request's body
 *   Threads  any: no state
 */
#ifndef API_WIRE_DECODE_H
#define API_WIRE_DECODE_H

#include "api/wire/warning.h"
#include "claimd/api/limits.h"
#include "claimd/base/arena.h"
#include "claimd/json/reason.h"
#include "claimd/json/scan.h"
#include "claimd/store/store.h"

enum post_form {
    POST_V2,   /* {"messages": [...]}; ttl and delay left out are STORE_UNSET */
    POST_V1_1, /* the same; ttl is filled in from the limits, delay is ignored (0) */
    POST_V1    /* a bare array, ttl required, delay is ignored (0) */
};

struct decoded_post {
    struct store_draft *drafts;   /* from the arena */
    size_t count;                 /* at least 1 */
    struct unknown_names unknown; /* members that have no effect */
};

/*
 * Decodes a body that is not too large. ST_BAD_BODY: no document, a wrong type, or a
 * missing member; ST_BAD_VALUE: out of range, no messages, or (v2, v1.1) no member
 * `messages`. Both with a reason for the first message with this status. ST_NO_MEMORY.
 */
enum status
decode_post(struct bytes body, enum post_form form, const struct api_limits *limits,
            struct arena *arena, struct decoded_post *out, struct reason *why);

/* ------------------------------------------------------------------ claims */

/* The body that makes or renews a claim (docs/api.md 9.1, 9.3; 14.5 for v1). */
enum terms_form {
    TERMS_CLAIM,    /* v2, v1.1: body optional, ttl and grace have defaults */
    TERMS_RENEW,    /* v2, v1.1: body required, the same defaults; any grace from 0 */
    TERMS_CLAIM_V1, /* v1: body, ttl and grace required */
    TERMS_RENEW_V1 /* v1: body and ttl required; any grace from 0, which is the default */
};

struct decoded_terms {
    struct store_terms terms;
    size_t limit; /* messages to claim; 0: not in the body, and never of a renewal */
    struct bytes unknown; /* the first member that has no effect; absent: none */
};

/*
 * Decodes the terms. An empty body counts as absent. ST_BAD_BODY: a required body or
 * member is missing, no object, or a wrong type; ST_BAD_VALUE: out of range. Both with a
 * reason.
 */
enum status
decode_terms(struct bytes body, enum terms_form form, const struct api_limits *limits,
             struct decoded_terms *out, struct reason *why);

/* ------------------------------------------------------------------ integers, strings */

/* The range of an integer, and the options that set it ("min_claim_ttl,
 * max_claim_ttl"); NULL: none do. */
struct integer_range {
    int64_t min, max;
    const char *options;
};

/*
 * Reads an integer. If it is left out, *out stays as it is. ST_BAD_VALUE: out of range,
 * or a boolean, which Zaqar reads as 0 or 1; ST_BAD_BODY: another type.
 */
enum status decode_integer(const struct json_scan_value *value,
                           const struct integer_range *range, int64_t *out);

/* Decodes a string without escapes: it is borrowed, else from the arena. ST_NO_MEMORY. */
enum status decode_string(const struct json_scan_value *value, struct arena *arena,
                          struct bytes *out);

/* The same for the name of a member. */
enum status
decode_name(const struct json_scan_name *name, struct arena *arena, struct bytes *out);

/* Explains why decode_integer() refused a value with st (docs/api.md 3.8), and returns
 * st. */
enum status
integer_refuse(struct reason *why, enum status st, const char *name,
               const struct json_scan_value *value, const struct integer_range *range);

/* ------------------------------------------------------------------ dates */

/*
 * Reads a date (ISO 8601):
 *
 *     2099-01-01T00:00:00        UTC, unless a zone says otherwise
 *     2099-01-01T02:00:00+02:00  also +0200 and +02; Z is UTC
 *     2099-01-01 00:00:00.25     with a blank; fractions of a second are ignored
 *     2099-01-01T00:00           without seconds
 *     2099-01-01                 the beginning of the day
 *
 * False, and *out_ms stays: another form, a day that does not exist, or a year in UTC
 * without four digits.
 */
bool iso_time_read(struct bytes text, int64_t *out_ms);

/* Writes "YYYY-MM-DDTHH:MM:SS" in UTC and a NUL. */
#define ISO_TIME_CAP 20
void iso_time_write(int64_t ms, char out[ISO_TIME_CAP]);

#endif
