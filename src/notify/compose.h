/*
 * compose: writes the text of a notification when it is sent (docs/api.md 20.2, 20.3,
 * 20.5).
 *
 *   Cost     O(length of the text)
 *   Memory   the caller's buffers. Without memory, their `failed` is set
 *   Threads  one for each composer
 */
#ifndef NOTIFY_COMPOSE_H
#define NOTIFY_COMPOSE_H

#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/notify/notify.h"
#include "claimd/store/subscription.h"
#include "notify/delivery_options.h"

/* Writes {"body": ..., "ttl": ..., "queue_name": ..., "Message_Type": "Notification"}.
 * The body is copied verbatim. */
void document_message(struct buf *out, const struct store_delivery *d);

/*
 * Writes a template (the inside of a JSON string) with its escapes decoded, and with the
 * document in place of each "$zaqar_message$", including the quotation marks. False: the
 * result would be longer than the document and FILLED_MOST bytes. The limit keeps a
 * template and a message from making a gigabyte.
 */
enum { FILLED_MOST = 1048576 };
bool document_fill(struct buf *out, struct bytes inside, struct bytes document);

/* The values that a subscriber needs to confirm a subscription, or to subscribe again. */
struct invitation {
    bool again; /* after an unsubscription */
    struct bytes queue, project;
    struct bytes path, expires, signature;
    struct bytes url; /* of this server, before the path; absent: unknown */
};

void document_invitation(struct buf *out, const struct invitation *i);

/*
 * Parts of a mail. A subscriber chooses some texts, which must not change the structure
 * of the mail:
 *
 *   Addresses   are ASCII without characters that end an address or add others
 *   Subjects    are encoded words (RFC 2047) unless they are short and plain
 *   Texts       are UTF-8 in base64
 */

/* The longest address of SMTP (RFC 5321, 4.5.3.1.3). */
enum { MAIL_ADDRESS_MOST = 254, MAIL_SUBJECT_MOST = 1000 };

/* True if the text is one address that can stand between < and >. */
bool mail_is_address(struct bytes text);

/*
 * Reads the text after "mailto:": appends the address and the subject, if there is one,
 * with %XX decoded. Ignores other fields. False: the address is not valid.
 */
bool mail_read(struct bytes rest, struct buf *address, struct buf *subject);

struct mail_head {
    struct bytes from, to, subject;
    struct bytes id; /* of the notification */
    int64_t sent_ms; /* since 1970 */
};

/* Writes the head and the empty line after it. The addresses must have been checked. */
void mail_write_head(struct buf *out, const struct mail_head *head);

void mail_write_text(struct buf *out, struct bytes text);

struct composer {
    const struct notify_config *config; /* borrowed */
    struct arena arena;                 /* for the time of a call */
};

/*
 * Writes the body of a web hook. ST_NOT_FOUND: a confirmation, and there is no key to
 * sign it. ST_BAD_VALUE: the name of the project cannot be signed. ST_TOO_LARGE: the
 * template makes the body too long. ST_UNAVAILABLE: claimd cannot decrypt the message
 * now. ST_DAMAGED: it never can. ST_NO_MEMORY.
 */
enum status compose_hook(struct composer *c, const struct store_delivery *d,
                         const struct delivery_options *options, struct buf *out);

/* Writes a mail with its head, and its recipient into `to`. As compose_hook().
 * ST_BAD_VALUE also for an invalid address. */
enum status compose_mail(struct composer *c, const struct store_delivery *d,
                         const struct delivery_options *options, struct bytes rest,
                         struct buf *to, struct buf *out);

/* Writes the id of the notification, which is the same for each attempt. */
enum { DELIVERY_ID_CAP = 96 };
void delivery_id(const struct store_delivery *d, char out[DELIVERY_ID_CAP]);

#endif
