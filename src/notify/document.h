/*
 * document: what subscribers are sent (docs/api.md 20.2, 20.3, 20.5).
 */
#ifndef NOTIFY_DOCUMENT_H
#define NOTIFY_DOCUMENT_H

#include "claimd/base/buf.h"
#include "claimd/store/subscription.h"

/* {"body": ..., "ttl": ..., "queue_name": ..., "Message_Type": "Notification"}; body verbatim. */
void document_message(struct buf *out, const struct store_delivery *d);

/*
 * The template, the inside of a JSON string, its escapes undone, with the document in the place
 * of each "$zaqar_message$", quotation marks included. False if it would be longer than the
 * document and FILLED_MOST, so that nobody can have a gigabyte made of a template and a message.
 */
enum { FILLED_MOST = 1048576 };
bool document_fill(struct buf *out, struct bytes inside, struct bytes document);

/* What a subscriber needs to confirm, or to subscribe again. All are texts. */
struct invitation {
    bool again; /* it was unsubscribed */
    struct bytes queue, project;
    struct bytes path, expires, signature;
    struct bytes url; /* of this server, in front of the path; absent: not known */
};

void document_invitation(struct buf *out, const struct invitation *i);

/* The sentence in it, for people; without quotation marks. */
void document_sentence(struct buf *out, const struct invitation *i);

#endif
