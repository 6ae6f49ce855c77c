/*
 * decode_post: what a POST of messages says (docs/api.md 8.2; 13 and 14.4 for the old
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
#ifndef API_WIRE_DECODE_POST_H
#define API_WIRE_DECODE_POST_H

#include "claimd/api/limits.h"
#include "claimd/base/arena.h"
#include "claimd/json/reason.h"
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

#endif
