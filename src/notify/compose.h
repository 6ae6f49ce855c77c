/*
 * compose: the text of a notification, made when it is sent (docs/api.md 20.2, 20.3, 20.5).
 */
#ifndef NOTIFY_COMPOSE_H
#define NOTIFY_COMPOSE_H

#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/notify/notify.h"
#include "claimd/store/subscription.h"
#include "notify/delivery_options.h"

/* {"body": ..., "ttl": ..., "queue_name": ..., "Message_Type": "Notification"}; body verbatim. */
void document_message(struct buf *out, const struct store_delivery *d);

/*
 * The template, the inside of a JSON string, its escapes undone, with the document in the place
 * of each "$zaqar_message$", quotation marks included. False if it would be longer than the
 * document and FILLED_MOST, so that a template and a message do not make a gigabyte.
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

/*
 * The text of a mail, of which nothing that a subscriber chooses can get out of its place:
 *
 *   Addresses   of ASCII, without what could end them or add others
 *   Subjects    are written as encoded words (RFC 2047) unless they are short and plain
 *   Texts       are UTF-8 in base64, so no line of theirs means anything
 */
/* As long as SMTP takes one (RFC 5321, 4.5.3.1.3). */
enum { MAIL_ADDRESS_MOST = 254, MAIL_SUBJECT_MOST = 1000 };

/* True if it is one address that can be put between < and >. */
bool mail_is_address(struct bytes text);

/*
 * Reads what is behind "mailto:": an address and perhaps a subject, whose %XX are undone; other
 * fields mean nothing. Both are appended. False if the address is none.
 */
bool mail_read(struct bytes rest, struct buf *address, struct buf *subject);

struct mail_head {
    struct bytes from, to, subject;
    struct bytes id; /* of the notification */
    int64_t sent_ms; /* since 1970 */
};

/* The head and the empty line behind it. Addresses have been checked. */
void mail_write_head(struct buf *out, const struct mail_head *head);

void mail_write_text(struct buf *out, struct bytes text);

struct composer {
    const struct notify_config *config; /* borrowed */
    struct arena arena;                 /* for the time of a call */
};

/*
 * What a web hook is sent. ST_NOT_FOUND: a confirmation, and there is no key to sign it with;
 * ST_BAD_VALUE: its project cannot be signed; ST_TOO_LARGE: what its template makes of it;
 * ST_UNAVAILABLE: a body cannot be opened now; ST_DAMAGED: nor ever; ST_NO_MEMORY.
 */
enum status compose_hook(struct composer *c, const struct store_delivery *d,
                         const struct delivery_options *options, struct buf *out);

/*
 * The same as a mail, with its head, and to whom it goes. ST_BAD_VALUE also for an address that is
 * none.
 */
enum status compose_mail(struct composer *c, const struct store_delivery *d,
                         const struct delivery_options *options, struct bytes rest,
                         struct buf *to, struct buf *out);

/* Names the notification; the same for each try of it. */
enum { HOOK_ID_CAP = 96 };
void hook_id(const struct store_delivery *d, char out[HOOK_ID_CAP]);

#endif
