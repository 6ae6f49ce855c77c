/*
 * connection: where the measured server listens, and one connection to it: its socket, its buffers
 * and its actor.
 */
#ifndef BENCH_CONNECTION_H
#define BENCH_CONNECTION_H

#include "bench/protocol.h"

#include <sys/socket.h>

/* ------------------------------------------------------------------ endpoint */

struct endpoint {
    struct sockaddr_storage address;
    socklen_t address_len;
    char host[300]; /* for the Host header */
};

/*
 * Resolves "http://HOST:PORT", "HOST:PORT", "[v6]:PORT" or "unix:PATH". False if it is
 * none of these or the name does not resolve.
 */
bool endpoint_parse(const char *text, struct endpoint *out);

/*
 * Starts a non-blocking connection without Nagle's delay. Returns the socket (owned), or
 * -1 with errno; the connection is ready when it becomes writable.
 */
int endpoint_connect(const struct endpoint *e);

/* ------------------------------------------------------------------ connection */

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

/* ------------------------------------------------------------------ pauses */

/*
 * The connections of a driver that pause, the soonest to go on first.
 *
 *   Cost     add O(those that pause longer): an eighth of all, as pauses are of about
 *            one length; remove O(1)
 *   Memory   none: the links stand in the connections
 */
struct pauses {
    struct connection *first; /* NULL: none pauses */
    struct connection *last;
};

/* Lets c, which is not in p, pause until its resume_ns. */
void pauses_add(struct pauses *p, struct connection *c);

/* Takes c, which is in p, out. */
void pauses_remove(struct pauses *p, struct connection *c);

/* ------------------------------------------------------------------ driver */

/*
 * One thread of the load generator, with its own epoll set. Driver d of T has the connections d, d+T,
 * d+2T ... of the plan, one request in flight on each.
 */
struct driver; /* opaque */

/* Starts a thread for a phase; plan and stats are borrowed until driver_join(). NULL and
 * errno if it cannot. */
struct driver *
driver_start(const struct plan *plan, unsigned number, struct stats *stats);

/* Asks the driver to stop at once; from any thread. */
void driver_cancel(struct driver *d);

/* True once the driver has nothing left to do. */
bool driver_ended(const struct driver *d);

/*
 * Waits for the end and frees d. Returns NULL, or why the phase failed: a constant text.
 */
const char *driver_join(struct driver *d);

#endif
