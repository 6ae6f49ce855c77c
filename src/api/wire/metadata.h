/*
 * metadata: the metadata document of a queue, as clients write and read it (docs/api.md
 * 7.1 to 7.3) and as the store keeps it.
 *
 * Stored is the whole document as compact JSON, members in the order given, and beside it
 * the settings that the store obeys. Members that are null or empty mean nothing set.
 *
 *   Cost     O(length): the document is parsed by jansson and printed
 *   Memory   jansson's trees during the call; results in the arena or the buffer given
 */
#ifndef API_WIRE_METADATA_H
#define API_WIRE_METADATA_H

#include "claimd/api/limits.h"
#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/json/reason.h"
#include "claimd/store/store.h"

#include <jansson.h>

/*
 * PUT: the document of a body, checked. An absent or empty body is a queue without
 * metadata. ST_TOO_LARGE; ST_BAD_BODY: not an object; ST_BAD_VALUE: a reserved member is
 * wrong; both with a reason; ST_NO_MEMORY. Everything in *out comes from the arena.
 */
enum status
metadata_decode(struct bytes body, const struct api_limits *limits, struct arena *arena,
                struct store_metadata *out, struct reason *why);

/*
 * PUT in v1, whose documents have no reserved members: whether a queue is transient was said
 * when it was made, and stays; nor does one stop encrypting by that. ST_NO_MEMORY.
 */
enum status metadata_keep(struct store_metadata *metadata,
                          const struct store_settings *old, struct arena *arena);

/* GET: the document with the defaults of reserved members that are unset, of a topic those that
 * mean something to one. ST_NO_MEMORY. */
enum status metadata_show(const struct store_metadata *metadata, enum store_kind kind,
                          const struct api_limits *limits, struct buf *out);

/* The document as it was given, {} if there is none (v1.1 and v1 show it like that). */
void metadata_plain(const struct store_metadata *metadata, struct buf *out);

/* The pieces PATCH is made of; `document` is always a jansson object. */

/* The stored document as a tree, owned by the caller (json_decref). ST_NO_MEMORY. */
enum status metadata_tree(const struct store_metadata *metadata, json_t **out);

/* Checks the reserved members. ST_BAD_VALUE, with a reason. */
enum status metadata_check(const json_t *document, const struct api_limits *limits,
                           struct reason *why);

/* Prints a checked document into the arena and extracts its settings. ST_NO_MEMORY. */
enum status
metadata_store(const json_t *document, struct arena *arena, struct store_metadata *out);

/* True for the members of docs/api.md 7.3, whether set or not. */
bool metadata_reserved(struct bytes name);

/* ------------------------------------------------------------------ patches */

/*
 * A JSON patch (docs/api.md 7.4). It is read first and applied later, because the contract asks for
 * the queue in between: rules of the document (400), the queue (404), members that must exist (409),
 * the result (400). It is applied to a copy: a patch that fails has changed nothing.
 */
struct patch_rule; /* one operation, checked; private */

struct patch {        /* zero: nothing to release */
    json_t *document; /* owned */
    struct patch_rule *rules;
    size_t count;
};

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
