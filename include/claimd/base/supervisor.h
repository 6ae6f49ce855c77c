/*
 * supervisor: notifies a supervisor of the state of this process, as sd_notify(3) does. A
 * notification is a datagram with lines, to the socket that NOTIFY_SOCKET names, "/path"
 * or "@abstract".
 *
 *     READY=1  RELOADING=1  STOPPING=1  WATCHDOG=1  STATUS=...  ERRNO=...
 *     MONOTONIC_USEC=...  EXTEND_TIMEOUT_USEC=...
 *
 * Without a supervisor, nothing is sent. Each notification opens a socket, because
 * notifications are rare.
 *
 *   Cost     blocks for at most SUPERVISOR_TIMEOUT_MS if the supervisor does not read
 *   Threads  any
 */
#ifndef CLAIMD_BASE_SUPERVISOR_H
#define CLAIMD_BASE_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { SUPERVISOR_TIMEOUT_MS = 1000 };

struct supervisor {
    bool wanted; /* there is a supervisor */
    struct sockaddr_un address;
    socklen_t size; /* 0: the address is invalid */
};

/* name: the value of NOTIFY_SOCKET. NULL or "": there is no supervisor. */
void supervisor_init(struct supervisor *s, const char *name);

/*
 * Sends assignments (lines such as "READY=1"; NULL: none), and a STATUS with the text.
 * Cuts a text that is too long, and replaces control characters by question marks. False
 * if there is a supervisor and it did not get the datagram.
 */
bool __attribute__((format(printf, 3, 4)))
supervisor_notify(const struct supervisor *s, const char *assignments, const char *format,
                  ...);

/* ------------------------------------------------------------------ watchdog */

/*
 * watchdog: a supervisor may end claimd if it gets no sign of life for a time
 * (sd_watchdog_enabled(3)). claimd sends one after each half of that time, but only if no
 * worker hangs:
 *
 *     check:  has each worker finished the round of its event loop that was asked for?
 *                 yes: send WATCHDOG=1, and ask each worker for another round
 *                 no:  send nothing, and check again soon
 *
 * So the supervisor ends claimd if a worker hangs. Only these checks wake an idle server.
 */

struct watchdog {
    int64_t check_ms; /* interval of the checks; 0: there is no watchdog */
    bool round_asked; /* the workers were asked for a round */
};

/*
 * usec, pid: the values of WATCHDOG_USEC and WATCHDOG_PID, or NULL. self: this process.
 * False if the values are invalid. Then there is no watchdog.
 */
bool watchdog_init(struct watchdog *w, const char *usec, const char *pid, int64_t self);

/*
 * Checks the workers. all_rounds: each has finished a round since it was last asked for
 * one. *ask: the caller must ask each for another. Returns the milliseconds until the
 * next check, -1 for never. One thread.
 */
int64_t watchdog_check(struct watchdog *w, const struct supervisor *s, bool all_rounds,
                       bool *ask);

#endif
