/*
 * patch: a JSON patch of a queue's metadata (docs/api.md 7.4).
 *
 * Read first, applied later, because the contract asks for the queue in between: rules
 * of the document (400), the queue (404), members that must exist (409), the result
 * (400). It is applied to a copy: a patch that fails has changed nothing.
 *
 *   Cost     O(length + size of the metadata)
 *   Memory   jansson's, until patch_fini()
 */
#ifndef API_WIRE_PATCH_H
#define API_WIRE_PATCH_H

#include "api/wire/metadata.h"

struct patch_rule; /* one operation, checked; private */

struct patch {
    json_t *document; /* owned; NULL: nothing to release */
    struct patch_rule *rules;
    size_t count;
};

#define PATCH_INIT                                                                       \
    {                                                                                    \
        NULL, NULL, 0                                                                    \
    }

/*
 * Reads a body, which may be too large (then, as in all other cases here, ST_BAD_BODY with
 * a reason).
 * ST_NO_MEMORY. The rules come from the arena; *out needs patch_fini() also after a
 * failure.
 */
enum status patch_read(struct bytes body, const struct api_limits *limits,
                       struct arena *arena, struct patch *out, struct reason *why);

/*
 * Applies it to `old`. ST_CONFLICT: a member to replace or remove does not exist;
 * ST_BAD_BODY: the result breaks docs/api.md 7.3; both with a reason; ST_NO_MEMORY. *out
 * comes from the arena.
 */
enum status patch_apply(const struct patch *patch, const struct store_metadata *old,
                        const struct api_limits *limits, struct arena *arena,
                        struct store_metadata *out, struct reason *why);

/* Releases what patch_read() took; fine when there is nothing. */
void patch_fini(struct patch *patch);

#endif
