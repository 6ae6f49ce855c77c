/*
 * mailbox: how a worker gets its connections, and news of those it has.
 *
 * A mail is embedded in a connection: the first brings the connection itself, those that
 * follow say what has happened to it. News add up until the worker takes them, so a
 * connection is in the mailbox once at most, whoever has something to say about it.
 *
 * A worker that is at work looks into its mailbox before it waits, so only one that rests
 * has to be woken. Both sides write their own flag and then read the other's, in one order
 * for all threads: either who posts sees that the worker rests, or the worker sees the note.
 *
 *   Bounds   as many mails as there are connections
 *   Threads  post, note and wake from any, the first two also under a lock of the store; the
 *            rest from the worker
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
    MAIL_DONE = 8     /* its fiber may go on */
};

struct mail {
    struct list link; /* in the mailbox, or where the worker has put it */
    unsigned news;    /* of enum mail_news, while in the mailbox; guarded by its lock */
};

struct mailbox {
    struct source source;
    struct store_wakeup wakeup; /* wakes the worker */
    struct lock lock;           /* guards posted, and the mails in it */
    struct list posted;
    _Atomic bool noted;   /* there is something to see */
    _Atomic bool resting; /* the worker waits, or is about to */
    int event_fd;         /* owned; readable when the worker shall stop waiting */
};

/* ST_IO without a descriptor. */
enum status mailbox_init(struct mailbox *m);
void mailbox_fini(struct mailbox *m);

/* Adds news, and a note of it. */
bool mailbox_post(struct mailbox *m, struct mail *mail, enum mail_news news);

/*
 * Notes that there is something to see. True if the worker rests: it has to be woken, with
 * mailbox_wake(). Only the first one after it has gone to rest is told so.
 */
bool mailbox_note(struct mailbox *m);

/* Makes event_fd readable; async-signal-safe. */
void mailbox_wake(struct mailbox *m);

/* Resets event_fd. */
void mailbox_reset(struct mailbox *m);

/*
 * The worker is going to wait, and for what is noted from now on it has to be woken. False:
 * something is noted already, it must not wait.
 */
bool mailbox_rest(struct mailbox *m);

/* It waits no more. */
void mailbox_rise(struct mailbox *m);

/* Was anything noted since the last look? To be asked before the mails are taken. */
bool mailbox_look(struct mailbox *m);

/* Takes the oldest mail out, and its news; NULL when there is none. */
struct mail *mailbox_take(struct mailbox *m, unsigned *news);

/* Takes a mail out, if it is in. No more news may be on its way. */
void mailbox_cancel(struct mailbox *m, struct mail *mail);

#endif
