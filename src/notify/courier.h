/*
 * courier: sends parcels with libcurl, many at a time, and tells how it ended.
 *
 *   Cost     of a round: that of the sockets that have something to say
 *   Threads  one
 */
#ifndef NOTIFY_COURIER_H
#define NOTIFY_COURIER_H

#include "notify/packing.h"
#include "notify/verdict.h"

struct courier {
    struct packing pack;
    bool loaded;
    CURLM *multi;     /* owned; NULL: nothing was sent since it rested */
    struct list sent; /* parcels under way */
};

void courier_init(struct courier *c, const struct notify_config *config);
void courier_fini(struct courier *c);

/* Loads libcurl, if it is not yet. ST_UNAVAILABLE: *why says what is missing. */
enum status courier_load(struct courier *c, struct reason *why);

/*
 * Sends it. ST_BAD_VALUE, ST_NOT_FOUND (there is no key to sign it with): it cannot be sent, and
 * *why says why; ST_UNAVAILABLE: not now, likewise; ST_NO_MEMORY. Then nothing
 * was done.
 */
enum status courier_send(struct courier *c, struct parcel *p, struct reason *why);

/* One that has ended, no longer under way, and how; NULL: there is none now. */
struct parcel *courier_next(struct courier *c, struct ending *how, struct reason *why);

/* Goes on with all; then waits for more, or for the descriptor, or until the time is over. */
void courier_go_on(struct courier *c);
void courier_wait(struct courier *c, int fd, int timeout_ms);

/* Breaks off one that is under way. */
void courier_break_off(struct courier *c, struct parcel *p);

/* Closes the connections that were kept. Nothing is under way. */
void courier_rest(struct courier *c);

#endif
