/*
 * patch: a JSON patch of the metadata of a queue (docs/api.md 7.4).
 *
 * The contract has this order: rules of the document (400), the queue (404), members that
 * must exist (409), the result (400). So a patch is read before the queue is, and applied
 * after that, to a copy.
 *
 *   Cost     O(length): jansson parses the patch and the document
 *   Memory   jansson's trees until patch_fini(); results in the arena
 *   Threads  any: no state
 */
#ifndef API_WIRE_PATCH_H
#define API_WIRE_PATCH_H

#include "api/wire/metadata.h"

struct patch_rule; /* one operation, checked; private */

struct patch {        /* zero: nothing to release */
    json_t *document; /* owned */
    struct patch_rule *rules;
    size_t count;
};

/*
 * Reads a body. ST_BAD_BODY with a reason, also if it is too large; ST_NO_MEMORY. The
 * rules come from the arena. *out needs patch_fini(), also after a failure.
 */
enum status patch_read(struct bytes body, const struct api_limits *limits,
                       struct arena *arena, struct patch *out, struct reason *why);

/*
 * Applies a patch to a copy of `old`. ST_CONFLICT: a member to replace or remove does not
 * exist; ST_BAD_BODY: the result breaks docs/api.md 7.3; both with a reason;
 * ST_NO_MEMORY. *out comes from the arena.
 */
enum status patch_apply(const struct patch *patch, const struct store_metadata *old,
                        const struct api_limits *limits, struct arena *arena,
                        struct store_metadata *out, struct reason *why);

/* Frees the document of a patch. Fine for one of zeros. */
void patch_fini(struct patch *patch);

#endif
