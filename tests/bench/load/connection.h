/*
 * connection: the address of the measured server, and one connection to it with its
 * socket, buffers and actor. A driver is a thread that runs many connections.
 */
#ifndef LOAD_CONNECTION_H
#define LOAD_CONNECTION_H

#include "load/protocol.h"

#include <sys/socket.h>

/* ------------------------------------------------------------------ endpoint */

struct endpoint {
    struct sockaddr_storage address;
    socklen_t address_len;
    char host[300]; /* for the Host header */
};

/*
 * Resolves "http://HOST:PORT", "HOST:PORT", "[v6]:PORT" or "unix:PATH". False if the text
 * has another form or the name does not resolve.
 */
bool endpoint_parse(const char *text, struct endpoint *out);

/*
 * Starts a non-blocking connection with TCP_NODELAY. Returns the socket, owned, or -1
 * with errno. The connection is ready when the socket becomes writable.
 */
int endpoint_connect(const struct endpoint *e);

/* ------------------------------------------------------------------ connection */

enum connection_state {
    CONNECTION_CONNECTING,
    CONNECTION_WAITING,   /* open loop: its next request is not due yet */
    CONNECTION_PAUSING,   /* until resume_ns */
    CONNECTION_IN_FLIGHT, /* a request has no response yet */
    CONNECTION_FINISHED   /* closed */
};

struct connection {
    int fd; /* owned; -1 when closed */
    enum connection_state state;
    bool wants_write;  /* EPOLLOUT is in the epoll set */
    unsigned number;   /* over all threads */
    unsigned requests; /* of the current step */
    unsigned broken;   /* connections lost in a row, without a response in between */
    uint64_t round;    /* open loop: round of the next request (pace_due()) */
    int64_t start_ns;  /* time at which the current step was meant to start */
    int64_t resume_ns; /* the next step does not start earlier */
    struct connection *earlier, *later; /* PAUSING: links of the pause list */
    struct step step;
    size_t sent;    /* bytes of out */
    struct buf out; /* requests of the current step */
    struct buf in;  /* the response, as far as it has arrived */
    struct actor actor;
};

void connection_init(struct connection *c, const struct plan *plan, unsigned number,
                     struct mem *mem);
void connection_fini(struct connection *c);

/* Closes the socket and drops an incomplete response. Keeps the actor. */
void connection_close(struct connection *c);

/* Reads once and appends to in. False if the server closed the connection, or it
 * failed. */
bool connection_read(struct connection *c);

/* ------------------------------------------------------------------ pauses */

/*
 * The pausing connections of a driver, ordered by resume_ns, earliest first.
 *
 *   Cost     add O(connections that resume later), about an eighth of all, because all
 *            pauses have about the same length; remove O(1)
 *   Memory   none: the links are in the connections
 */
struct pause_list {
    struct connection *first; /* NULL: none pauses */
    struct connection *last;
};

/* Adds c, which is not in p. */
void pauses_add(struct pause_list *p, struct connection *c);

/* Removes c, which is in p. */
void pauses_remove(struct pause_list *p, struct connection *c);

/* ------------------------------------------------------------------ driver */

/*
 * A thread of the load generator with its own epoll set. Driver d of T runs the
 * connections d, d+T, d+2T ... of the plan. Each connection has at most one step in
 * flight.
 */
struct driver; /* opaque */

/* Starts a thread for a phase. plan and stats are borrowed until driver_join(). NULL on
 * failure. */
struct driver *
driver_start(const struct plan *plan, unsigned number, struct stats *stats);

/* Makes the driver stop at once. Any thread. */
void driver_cancel(struct driver *d);

/* True once the thread has finished its work. Any thread. */
bool driver_ended(const struct driver *d);

/*
 * Waits for the end of the thread and frees d. Returns NULL, or why the phase failed: a
 * constant text.
 */
const char *driver_join(struct driver *d);

#endif
