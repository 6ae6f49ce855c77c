/*
 * supervisor: tells the supervisor how the program is doing, as sd_notify(3) does: lines
 * in a datagram to the socket that NOTIFY_SOCKET names, "/path" or "@abstract".
 *
 *     READY=1  RELOADING=1  STOPPING=1  WATCHDOG=1  STATUS=...  ERRNO=...
 *     MONOTONIC_USEC=...  EXTEND_TIMEOUT_USEC=...
 *
 * Without a supervisor nothing is sent. A socket a message: they are rare.
 *
 *   Cost     waits SUPERVISOR_PATIENCE_MS at most, if the supervisor does not read
 *   Threads  any
 */
#ifndef MAIN_SUPERVISOR_H
#define MAIN_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { SUPERVISOR_PATIENCE_MS = 1000 };

/* Exit statuses of the server besides 0. */
enum {
    EXIT_CANNOT_START = 1,
    EXIT_USAGE = 2,
    EXIT_JOURNAL_REFUSED =
        3,                  /* it is damaged, of another claimd, or the clock is wrong */
    EXIT_JOURNAL_FAILED = 4 /* a write or sync failed while serving */
};

struct supervisor {
    bool wanted; /* there is a supervisor */
    struct sockaddr_un address;
    socklen_t size; /* 0: the address is none that we know */
};

/* name: the value of NOTIFY_SOCKET; NULL or "": there is no supervisor. */
void supervisor_init(struct supervisor *s, const char *name);

/*
 * Sends assignments ("READY=1", lines; NULL: none), and a STATUS with the text, of which
 * what is too long is cut, and control characters become question marks. False: there is
 * a supervisor, and it was not reached.
 */
bool __attribute__((format(printf, 3, 4)))
supervisor_tell(const struct supervisor *s, const char *assignments, const char *format,
                ...);

/* ------------------------------------------------------------------ watchdog */

/*
 * watchdog: a supervisor that ends us when it hears nothing from us for a while
 * (sd_watchdog_enabled(3)) is told at twice that pace that we are alive, but only if every
 * worker is.
 *
 *     look:  all went round since they were asked?  yes: WATCHDOG=1, ask again, half of it
 *                                                   no:  look again soon, say nothing
 *
 * A worker that hangs so makes the supervisor bite. These looks are all that wakes an idle
 * server.
 */

struct watchdog {
    int64_t
        look_ms; /* half of what the supervisor waits; 0: it does not watch this process */
    bool asked;
};

/*
 * usec, pid: the values of WATCHDOG_USEC and WATCHDOG_PID, NULL without; self: our process.
 * False: the values are not understood, and the supervisor is told nothing.
 */
bool watchdog_init(struct watchdog *w, const char *usec, const char *pid, int64_t self);

/*
 * Looks, and tells; all_went: all workers went round since they were asked. Returns the milliseconds
 * until the next look, -1 for never; *ask: the workers are to be asked again. One thread.
 */
int64_t
watchdog_look(struct watchdog *w, const struct supervisor *s, bool all_went, bool *ask);

#endif
