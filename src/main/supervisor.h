/*
 * supervisor: tells whoever started the program how it is doing, as sd_notify(3) does: lines
 * in a datagram to the socket that NOTIFY_SOCKET names, "/path" or "@abstract".
 *
 *     READY=1  RELOADING=1  STOPPING=1  WATCHDOG=1  STATUS=...  ERRNO=...
 *     MONOTONIC_USEC=...  EXTEND_TIMEOUT_USEC=...
 *
 * Where nobody wants to know, nothing is sent. A socket a message: they are rare.
 *
 *   Cost     waits SUPERVISOR_PATIENCE_MS at most, if nobody reads
 *   Threads  any
 */
#ifndef MAIN_SUPERVISOR_H
#define MAIN_SUPERVISOR_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { SUPERVISOR_PATIENCE_MS = 1000 };

struct supervisor {
    bool wanted; /* somebody wants to know */
    struct sockaddr_un address;
    socklen_t size; /* 0: the address is none that we know */
};

/* name: the value of NOTIFY_SOCKET; NULL or "": nobody wants to know. */
void supervisor_init(struct supervisor *s, const char *name);

/*
 * Sends assignments ("READY=1", lines; NULL: none), and a STATUS with the text, of which
 * what is too long is cut, and control characters become question marks. False: somebody
 * wants to know, and was not reached.
 */
bool __attribute__((format(printf, 3, 4)))
supervisor_tell(const struct supervisor *s, const char *assignments, const char *format,
                ...);

/* Sends assignments alone. False likewise. */
bool supervisor_send(const struct supervisor *s, const char *assignments);

#endif
