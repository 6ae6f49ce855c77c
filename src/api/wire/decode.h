/*
 * decode: what a POST of messages says (docs/api.md 8.2; 13 and 14.4 for the old
 * versions).
 *
 * One pass of json_scan over the body validates it and notes the drafts. Whether it is a
 * document at all is decided first, then types, then ranges, each over the whole body: a
 * message with a ttl out of range before one with a ttl of the wrong type is
 * ST_BAD_BODY.
 *
 *   Cost     O(length)
 *   Memory   drafts from the arena; bodies are spans of the request's body
 */
#ifndef API_WIRE_DECODE_H
#define API_WIRE_DECODE_H

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
    struct store_draft *drafts; /* from the arena */
    size_t count;               /* at least 1 */
};

/*
 * Decodes a body that was not too large (the caller has checked that).
 * ST_BAD_BODY: no document, or a type is wrong, or a member is missing; ST_BAD_VALUE: out
 * of range, no messages, or (v2, v1.1) no member `messages`; both with a reason, which
 * tells of the first message that is as bad as that. ST_NO_MEMORY.
 */
enum status
decode_post(struct bytes body, enum post_form form, const struct api_limits *limits,
            struct arena *arena, struct decoded_post *out, struct reason *why);

/* ------------------------------------------------------------------ claims */

/*
 * The terms of a claim, from the body that makes or renews one
 * (docs/api.md 9.1, 9.3; 14.5 for v1).
 *
 *   Cost     O(length)
 *   Memory   none
 */

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

/* ------------------------------------------------------------------ integers, members */

/* What an integer may be, and the options that say so ("min_claim_ttl, max_claim_ttl"). */
struct integer_range {
    int64_t min, max;
    const char *options;
};

/*
 * Reads a value that may be left out (SCAN_NONE, or null, which counts as left out: *out
 * stays). ST_BAD_VALUE: out of range, or a boolean, which the original takes for 0 or 1;
 * ST_BAD_BODY: anything else that is no integer.
 */
enum status decode_integer(const struct json_scan_value *value,
                           const struct integer_range *range, int64_t *out);

/* A member that is null counts as left out. */
static inline bool
decode_left_out(const struct json_scan_value *value)
{
    return value->kind == SCAN_NONE || value->kind == SCAN_NULL;
}

/* The names that an object has. */
struct decoded_names {
    size_t count;
    struct bytes
        unknown;       /* the first that is not wanted, as it is written; absent: none */
    const char *twice; /* one that is there twice; NULL: none */
};

/*
 * Reads the values of members by their names: SCAN_NONE without one, the last one of several. ST_BAD_BODY:
 * no object, or broken JSON, which has been checked before where it matters.
 */
enum status decode_members(struct bytes object, const char *const *names, size_t count,
                           struct json_scan_value *values, struct decoded_names *seen);

/* The same for one member. */
struct json_scan_value decode_member(struct bytes object, const char *name);

/* Whole numbers (docs/api.md 3.8). Says why decode_integer() refused a value with st, which is returned. */
enum status
integer_refuse(struct reason *why, enum status st, const char *name,
               const struct json_scan_value *value, const struct integer_range *range);

/* Of two outcomes of one body the one to answer: a wrong type before a wrong value. */
enum status decode_worse(enum status a, enum status b);

/* ------------------------------------------------------------------ dates */

/*
 * Dates as people and programs write them (ISO 8601).
 *
 *     2099-01-01T00:00:00        UTC, unless a zone says otherwise
 *     2099-01-01T02:00:00+02:00  also +0200 and +02; Z is UTC
 *     2099-01-01 00:00:00.25     a blank will do; parts of a second do not count
 *     2099-01-01T00:00           no seconds
 *     2099-01-01                 its beginning
 */

/*
 * False: it is none of these, there is no such day, or in UTC its year has not four digits;
 * *out_ms is as it was.
 */
bool iso_time_read(struct bytes text, int64_t *out_ms);

/* Writes "YYYY-MM-DDTHH:MM:SS" in UTC and a NUL. */
#define ISO_TIME_CAP 20
void iso_time_write(int64_t ms, char out[ISO_TIME_CAP]);

#endif
