/*
 * mailbox: how a worker gets its connections, and news of those it has.
 *
 * A mail is embedded in a connection: the first brings the connection itself, those that
 * follow say what has happened to it. News add up until the worker takes them, so a
 * connection is in the mailbox once at most, whoever has something to say about it.
 *
 *   Bounds   as many mails as there are connections
 *   Threads  post and wake from any, post also under a lock of the store; the rest from
 *            the worker
 */
#ifndef HTTP_MAILBOX_H
#define HTTP_MAILBOX_H

#include "claimd/base/lock.h"
#include "claimd/base/status.h"
#include "claimd/ds/list.h"
#include "claimd/store/waiter.h"
#include "http/source.h"

enum mail_news {
    MAIL_ARRIVED = 1, /* a new connection */
    MAIL_READY = 2,   /* there may be a message for who waits */
    MAIL_GONE = 4,    /* its queue was deleted */
    MAIL_DONE = 8     /* the executor has asked the API */
};

struct mail {
    struct list link; /* in the mailbox, or where the worker has put it */
    unsigned news;    /* of enum mail_news, while in the mailbox; guarded by its lock */
};

struct mailbox {
    struct source source;
    struct store_bell bell; /* wakes the worker */
    struct lock lock;       /* guards posted, and the mails in it */
    struct list posted;
    int event_fd; /* owned; readable when there is something to see */
};

/* ST_IO without a descriptor. */
enum status mailbox_init(struct mailbox *m);
void mailbox_fini(struct mailbox *m);

/* Adds news. True if the worker has to be woken for it, with mailbox_wake(). */
bool mailbox_post(struct mailbox *m, struct mail *mail, enum mail_news news);

/* Makes event_fd readable; async-signal-safe. */
void mailbox_wake(struct mailbox *m);

/* Resets event_fd: what is posted from now on wakes again. */
void mailbox_reset(struct mailbox *m);

/* Takes the oldest mail out, and its news; NULL when there is none. */
struct mail *mailbox_take(struct mailbox *m, unsigned *news);

/* Takes a mail out, if it is in. No more news may be on its way. */
void mailbox_cancel(struct mailbox *m, struct mail *mail);

#endif
