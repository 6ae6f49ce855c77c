/*
 * linger: the lingering close of sockets that were answered before everything they sent
 * was read.
 *
 * Closing a socket with unread bytes resets the connection, and the reset may destroy the
 * answer on its way. So such a socket is kept half open: it says "no more from us", throws
 * away what still comes, and is closed at the end of the input, after a short time, or
 * when too much came. (SO_LINGER is another thing: it is about bytes of ours.)
 *
 *   Bounds   at most LINGER_SLOTS sockets; the oldest makes room for a new one
 *   Threads  none: belongs to one event loop
 */
#ifndef HTTP_LINGER_H
#define HTTP_LINGER_H

#include "http/eventq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINGER_SLOTS = 64, LINGER_MS = 2000, LINGER_BYTES = 16 * 1024 * 1024 };

struct linger_slot {
    struct source source;
    int fd;           /* owned; -1: free */
    int64_t until_ms; /* closed then at the latest */
    size_t left;      /* bytes that may still come */
};

struct linger_set {
    int epoll_fd;      /* borrowed: the loop that calls linger_read() */
    size_t slot_count; /* those that are used, from the first */
    size_t count;
    struct linger_slot slots[LINGER_SLOTS];
};

/* For at most slot_count sockets, 1 to LINGER_SLOTS. */
void linger_init(struct linger_set *l, int epoll_fd, size_t slot_count);

/* Closes all. */
void linger_fini(struct linger_set *l);

/* Takes fd; its events are of SOURCE_LINGER. */
void linger_add(struct linger_set *l, int fd, int64_t now_ms);

/* Reads and forgets; closes at the end of the input. */
void linger_read(struct linger_set *l, struct source *source);

/* Closes what is overdue. Returns when the next is due, INT64_MAX if nothing lingers. */
int64_t linger_expire(struct linger_set *l, int64_t now_ms);

#endif
