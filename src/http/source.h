/*
 * source: what an event of an epoll set of ours is about.
 *
 * Whatever is watched embeds one, and the event's data points at it, so that its kind is
 * read and never guessed from an address.
 */
#ifndef HTTP_SOURCE_H
#define HTTP_SOURCE_H

enum source_kind {
    SOURCE_STOP,     /* acceptor: it shall stop */
    SOURCE_LISTENER, /* acceptor: somebody connects */
    SOURCE_MAILBOX,  /* struct mailbox */
    SOURCE_SECTION,  /* struct section */
    SOURCE_CONN,     /* struct conn */
    SOURCE_LINGER    /* struct linger_slot */
};

struct source {
    enum source_kind kind;
};

#endif
