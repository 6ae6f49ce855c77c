/*
 * mail: the text of a mail, of which nothing that a subscriber chooses can get out of its place
 * (docs/api.md 20.5).
 *
 *   Addresses   of ASCII, without what could end them or add others
 *   Subjects    are written as encoded words (RFC 2047) unless they are short and plain
 *   Texts       are UTF-8 in base64, so no line of theirs means anything
 */
#ifndef NOTIFY_MAIL_H
#define NOTIFY_MAIL_H

#include "claimd/base/buf.h"

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

#endif
