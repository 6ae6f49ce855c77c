/*
 * tree: small documents as trees of jansson.
 *
 * Reading uses json_scan, which checks documents by the same rules as messages, because
 * jansson's parser ignores failed allocations. Writing has its own code, because jansson
 * writes 0.1 as 0.10000000000000001.
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
 * Reads an object or array. The caller frees the tree (json_decref). ST_BAD_BODY: no
 * document, or the name of a member contains a NUL, which jansson cannot represent;
 * ST_NO_MEMORY.
 */
enum status json_tree_read(struct bytes text, json_t **out);

/* Says why json_tree_read() rejected a body. Returns ST_BAD_BODY. */
enum status json_tree_refuse(struct bytes body, struct reason *why);

/* As json_received(), but with the text of a string; NULL: missing. */
struct received json_tree_received(const json_t *value);

/* Writes a tree without spaces, with members in order. */
void json_tree_write(struct buf *out, const json_t *tree);

/* The version of the loaded jansson, a literal. */
const char *json_tree_library_version(void);

#endif
