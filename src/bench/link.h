/*
 * link: one connection: its socket, its buffers and its actor.
 */
#ifndef BENCH_LINK_H
#define BENCH_LINK_H

#include "bench/protocol.h"

enum link_state {
    LINK_CONNECTING,
    LINK_WAITING, /* open loop: until its next request is due */
    LINK_ASKING,  /* a request is on its way */
    LINK_FINISHED /* closed */
};

struct link {
    int fd; /* owned; -1 when closed */
    enum link_state state;
    bool greeted;      /* HELLO was said on this connection */
    bool wants_write;  /* EPOLLOUT is in the epoll set */
    unsigned number;   /* over all threads */
    unsigned requests; /* of the present step */
    unsigned broken;   /* connections lost in a row, without an answer between */
    uint64_t round;    /* open loop: of the next request */
    int64_t start_ns;  /* of the present step: when it was meant to start */
    struct step step;
    size_t sent;    /* of out */
    struct buf out; /* the present request */
    struct buf in;  /* what has come of the answer */
    struct actor actor;
};

enum link_io {
    LINK_IO_DONE,  /* everything written; or something was read */
    LINK_IO_AGAIN, /* the socket is full; or nothing was there */
    LINK_IO_ENDED  /* the server closed the connection, or it broke */
};

void link_init(struct link *l, const struct plan *plan, unsigned number, struct mem *mem);
void link_fini(struct link *l);

/* Closes the socket and forgets half an answer; the actor stays. */
void link_close(struct link *l);

/* Writes what is left of out / reads once into in. */
enum link_io link_write(struct link *l);
enum link_io link_read(struct link *l);

#endif
