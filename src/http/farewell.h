/*
 * farewell: sockets that were answered before everything they sent was read.
 *
 * Closing a socket with unread bytes resets the connection, and the reset may destroy the
 * answer on its way. A farewell keeps such a socket half open: it says "no more from
 * us", throws away what still comes, and closes at the end of the input, after a short
 * time, or when too much came.
 *
 *   Bounds   at most FAREWELL_SLOTS sockets; the oldest makes room for a new one
 *   Threads  none: belongs to one event loop
 */
#ifndef HTTP_FAREWELL_H
#define HTTP_FAREWELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAREWELL_SLOTS = 64, FAREWELL_MS = 2000, FAREWELL_BYTES = 16 * 1024 * 1024 };

struct farewell_slot {
    int fd;           /* owned; -1: free */
    int64_t until_ms; /* closed then at the latest */
    size_t left;      /* bytes that may still come */
};

struct farewell {
    int epoll_fd;      /* borrowed: the loop that calls farewell_read() */
    size_t slot_count; /* those that are used, from the first */
    size_t count;
    struct farewell_slot slots[FAREWELL_SLOTS];
};

/* For at most slot_count sockets, 1 to FAREWELL_SLOTS. */
void farewell_init(struct farewell *l, int epoll_fd, size_t slot_count);

/* Closes all. */
void farewell_fini(struct farewell *l);

/* Takes fd. Its events carry a pointer for which farewell_owns() is true. */
void farewell_add(struct farewell *l, int fd, int64_t now_ms);

/* True if an event's data pointer belongs to this set. */
bool farewell_owns(const struct farewell *l, const void *event_data);

/* Reads and forgets; closes at the end of the input. */
void farewell_read(struct farewell *l, void *event_data);

/* Closes what is overdue. Returns when the next is due, INT64_MAX if nothing lingers. */
int64_t farewell_expire(struct farewell *l, int64_t now_ms);

#endif
