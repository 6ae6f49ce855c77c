/*
 * metadata: the metadata document of a queue, in requests, in responses (docs/api.md 7.1
 * to 7.3) and in the store.
 *
 * The store has the whole document as compact JSON, with its members in the order given,
 * and the settings that it obeys. A reserved member that is null or empty is not set.
 *
 *   Cost     O(length): jansson parses and prints the document
 *   Memory   jansson's trees during the call; results in the arena or the buffer given
 *   Threads  any: no state
 */
#ifndef API_WIRE_METADATA_H
#define API_WIRE_METADATA_H

#include "api/wire/warning.h"
#include "claimd/api/limits.h"
#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/json/reason.h"
#include "claimd/store/store.h"

#include <jansson.h>

/*
 * Decodes and checks the body of a PUT. An absent or empty body is a queue without
 * metadata. ST_TOO_LARGE; ST_BAD_BODY: not an object; ST_BAD_VALUE: a reserved member is
 * wrong; both with a reason; ST_NO_MEMORY. *out comes from the arena.
 */
enum status
metadata_decode(struct bytes body, const struct api_limits *limits, struct arena *arena,
                struct store_metadata *out, struct reason *why);

/*
 * ST_BAD_VALUE, explained: the settings would let messages that are posted without a TTL
 * and a delay expire before a worker can claim them. A dump may have such settings of an
 * older version, so decoding accepts them.
 */
enum status metadata_check_lifetime(const struct store_settings *settings,
                                    const struct api_limits *limits, struct reason *why);

/* Warns of reserved names that are unknown, and of settings that have no effect without
 * others. `queue`: its name. */
void metadata_warn(const struct store_metadata *metadata, struct bytes queue,
                   struct arena *arena, struct warnings *out);

/* Warns that an existing queue or topic keeps other values than these, and names the
 * members. */
void
metadata_warn_kept(const struct store_metadata *given, const struct store_metadata *kept,
                   enum store_kind kind, const struct api_limits *limits,
                   struct arena *arena, struct warnings *out);

/*
 * For a PUT in v1, whose documents have no reserved members: copies _persistence and
 * _enable_encrypt_messages from the old settings. ST_NO_MEMORY.
 */
enum status metadata_keep(struct store_metadata *metadata,
                          const struct store_settings *old, struct arena *arena);

/* Writes the document with the defaults of unset reserved members, those of a topic or of
 * a queue. ST_NO_MEMORY. */
enum status metadata_show(const struct store_metadata *metadata, enum store_kind kind,
                          const struct api_limits *limits, struct buf *out);

/* Writes the document as it was given, {} if there is none (v1.1 and v1). */
void metadata_plain(const struct store_metadata *metadata, struct buf *out);

/* ------------------------------------------------------------------ for patch.c */

/* True for the name of a reserved member. */
bool metadata_is_reserved(struct bytes name);

/* Reads the stored document as an owned tree. ST_NO_MEMORY. */
enum status metadata_tree(const struct store_metadata *metadata, json_t **out);

/*
 * Makes metadata of a changed tree. ST_BAD_BODY with a reason: it breaks docs/api.md 7.3,
 * or changes a member that cannot be changed; ST_NO_MEMORY. *out comes from the arena.
 */
enum status metadata_change(const json_t *document, const struct store_metadata *old,
                            const struct api_limits *limits, struct arena *arena,
                            struct store_metadata *out, struct reason *why);

#endif
