/*
 * connection: one connection: its socket, its buffers and its actor.
 */
#ifndef BENCH_LINK_H
#define BENCH_LINK_H

#include "bench/protocol.h"

enum connection_state {
    CONNECTION_CONNECTING,
    CONNECTION_WAITING, /* open loop: until its next request is due */
    CONNECTION_PAUSING, /* until resume_ns */
    CONNECTION_ASKING,  /* a request is on its way */
    CONNECTION_FINISHED /* closed */
};

struct connection {
    int fd; /* owned; -1 when closed */
    enum connection_state state;
    bool greeted;      /* HELLO was said on this connection */
    bool wants_write;  /* EPOLLOUT is in the epoll set */
    unsigned number;   /* over all threads */
    unsigned requests; /* of the present step */
    unsigned broken;   /* connections lost in a row, without an answer between */
    uint64_t round;    /* open loop: of the next request */
    int64_t start_ns;  /* of the present step: when it was meant to start */
    int64_t resume_ns; /* the next step does not start sooner */
    struct connection *earlier, *later; /* PAUSING: in the driver's pauses */
    struct step step;
    size_t sent;    /* of out */
    struct buf out; /* the present request */
    struct buf in;  /* what has come of the answer */
    struct actor actor;
};

enum connection_io {
    CONNECTION_IO_DONE,  /* everything written; or something was read */
    CONNECTION_IO_AGAIN, /* the socket is full; or nothing was there */
    CONNECTION_IO_ENDED  /* the server closed the connection, or it broke */
};

void connection_init(struct connection *c, const struct plan *plan, unsigned number,
                     struct mem *mem);
void connection_fini(struct connection *c);

/* Closes the socket and forgets half an answer; the actor stays. */
void connection_close(struct connection *c);

/* Writes what is left of out / reads once into in. */
enum connection_io connection_write(struct connection *c);
enum connection_io connection_read(struct connection *c);

#endif
