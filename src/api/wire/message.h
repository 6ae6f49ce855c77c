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
size_t message_room(const struct message_form *form, size_t count);

/* Message documents separated by commas and enclosed in brackets. */
void message_write_all(struct buf *out, const struct message_form *form,
                       const struct store_message *messages, size_t count);

#endif
