/*
 * mailbox: how accepted connections reach a worker, and how anybody wakes it.
 *
 *   Bounds   as many connections as the acceptor admits
 *   Threads  post and wake from any; take from the worker
 */
#ifndef HTTP_MAILBOX_H
#define HTTP_MAILBOX_H

#include "claimd/base/lock.h"
#include "claimd/base/status.h"
#include "http/conn.h"

struct mailbox {
    struct lock lock; /* guards arrived */
    struct list arrived;
    int event_fd; /* owned; readable when there is something to see */
};

/* ST_IO without a descriptor. */
enum status mailbox_init(struct mailbox *m);
void mailbox_fini(struct mailbox *m);

/* Takes c and wakes the worker. */
void mailbox_post(struct mailbox *m, struct conn *c);

/* Makes event_fd readable; async-signal-safe. */
void mailbox_wake(struct mailbox *m);

/* Moves everything that arrived into *out, an empty list, and resets event_fd. O(1). */
void mailbox_take(struct mailbox *m, struct list *out);

#endif
