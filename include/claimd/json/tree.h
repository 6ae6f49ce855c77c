/*
 * json_tree: small documents as trees of jansson.
 *
 * Reading is our own: json_scan checks documents by the very same rules as messages, and
 * jansson's parser ignores failed allocations. Writing is our own, because jansson writes 0.1
 * as 0.10000000000000001.
 *
 *   Cost     O(length); writing recurses as deep as the tree, SCAN_DEPTH_MAX at most
 */
#ifndef CLAIMD_JSON_TREE_H
#define CLAIMD_JSON_TREE_H

#include "claimd/base/buf.h"
#include "claimd/base/status.h"
#include "claimd/json/reason.h"

#include <jansson.h>

/*
 * Reads an object or array; the tree is owned by the caller (json_decref). ST_BAD_BODY:
 * no document, or the name of a member holds a NUL, which jansson cannot keep;
 * ST_NO_MEMORY.
 */
enum status json_tree_read(struct bytes text, json_t **out);

/* Says why json_tree_read() refused a request's body with ST_BAD_BODY, which is returned. */
enum status json_tree_refuse(struct bytes body, struct reason *why);

/* As json_received(), but with the text of a string; NULL: missing. */
struct received json_tree_received(const json_t *value);

/* Writes a tree without spaces, members in their order. */
void json_tree_write(struct buf *out, const json_t *tree);

/* The version of jansson that is in use, a literal. */
const char *json_tree_library_version(void);

#endif
