/*
 * message: message documents, written straight into a buffer.
 *
 * Nothing here builds a tree: stored bodies are spliced in as the bytes they are. A lack
 * of memory makes the buffer `failed`, which its owner asks for once.
 *
 *   Cost     O(bytes written)
 */
#ifndef API_WIRE_MESSAGE_H
#define API_WIRE_MESSAGE_H

#include "claimd/base/buf.h"
#include "claimd/base/status.h"
#include "claimd/store/store.h"

enum message_shape {
    MESSAGE_FULL, /* id, href, ttl, age, body; v2 and v1.1 */
    MESSAGE_V1,   /* href, ttl, age, body; never a checksum */
    MESSAGE_POP   /* id, age, ttl, body, claim_id (null), claim_count */
};

/* How one answer shows its messages. */
struct message_form {
    enum message_shape shape;
    struct bytes href; /* of the collection, such as /v2/queues/q/messages; not for pop */
    bool hide_claim;   /* v1 outside claims: the href goes without ?claim_id= */
    bool checksum;     /* option enable_checksum */
};

/* One message document (docs/api.md 8.1). */
void message_write(struct buf *out, const struct message_form *form,
                   const struct store_message *message);

/*
 * More than message_write_all() adds for `count` messages besides their bodies. With that
 * room reserved it cannot fail.
 */
size_t message_space(const struct message_form *form, size_t count);

/* Message documents separated by commas and enclosed in brackets. */
void message_write_all(struct buf *out, const struct message_form *form,
                       const struct store_message *messages, size_t count);

/* ------------------------------------------------------------------ checksums */

/*
 * The MD5 of a body in one fixed form (docs/api.md 8.9).
 *
 * The form is what Python's json.dumps() gives, because that is what clients compare
 * with: fixed separators, ASCII only, the shortest decimal for numbers that are no
 * integers, and of members of the same name the last value at the place of the first.
 * The contract differs from Python in one character: DEL stays as it is.
 *
 *   Cost     O(length) for a body without members of the same name
 *   Memory   a buffer of the form's length during the call
 */

/* "MD5:" and 32 hexadecimal digits. */
#define CHECKSUM_LEN 36

/* The checksum of a valid JSON text. ST_NO_MEMORY; ST_BAD_BODY if it is not JSON after all. */
enum status checksum_of(struct bytes body, struct mem *mem, struct store_checksum *out);

/* Writes a checksum as clients see it. */
void checksum_write(const struct store_checksum *checksum, char out[CHECKSUM_LEN]);

/* The form itself, appended to out; for tests. Statuses as above. */
enum status checksum_form(struct bytes body, struct buf *out);

#endif
