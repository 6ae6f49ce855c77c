/*
 * checksum: the MD5 of a body in one fixed form (docs/api.md 8.9).
 *
 * The form is what Python's json.dumps() gives, because that is what clients compare
 * with: fixed separators, ASCII only, the shortest decimal for numbers that are no
 * integers, and of members of the same name the last value at the place of the first.
 * The contract differs from Python in one character: DEL stays as it is.
 *
 *   Cost     O(length) for a body without members of the same name
 *   Memory   a buffer of the form's length during the call
 */
#ifndef API_WIRE_CHECKSUM_H
#define API_WIRE_CHECKSUM_H

#include "claimd/base/buf.h"
#include "claimd/base/status.h"
#include "claimd/store/store.h"

/* "MD5:" and 32 hexadecimal digits. */
#define CHECKSUM_LEN 36

/* The checksum of a valid JSON text. ST_NO_MEMORY; ST_BAD_BODY if it is not JSON after all. */
enum status checksum_of(struct bytes body, struct mem *mem, struct store_checksum *out);

/* Writes a checksum as clients see it. */
void checksum_write(const struct store_checksum *checksum, char out[CHECKSUM_LEN]);

/* The form itself, appended to out; for tests. Statuses as above. */
enum status checksum_form(struct bytes body, struct buf *out);

#endif
