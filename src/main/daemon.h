/*
 * daemon: makes the parts of claimd, connects them, and frees them.
 *
 *     mem -> resources -> log -> test API -> journal -> store -> api -> notify -> server
 *
 * open_parts() (daemon.c) makes the parts in this order. The resources (resources.h) are
 * sockets, keys, certificates and tokens. A daemon knows no signals and no
 * command line, so a test can run several of them with its own clock.
 *
 *   Threads  daemon_stop() and daemon_clock_moved() any; the others one
 */
#ifndef MAIN_DAEMON_H
#define MAIN_DAEMON_H

#include "claimd/base/clock.h"
#include "claimd/base/log.h"
#include "claimd/base/status.h"
#include "main/config.h"

struct store;
struct daemon; /* opaque */

/*
 * Makes all parts, and listens without accepting connections yet. clock is borrowed for
 * the life of the daemon; config is copied. On failure *errors has messages.
 * ST_BAD_VALUE: the configuration is wrong. ST_CONFLICT: the journal must not be used as
 * it is.
 */
enum status daemon_open(const struct config *config, const struct clock *clock,
                        struct daemon **out, struct config_errors *errors);

/*
 * Reports errors about files, groups and sockets without making a daemon. ST_BAD_VALUE:
 * daemon_open() would fail in the same way. An error about a file that claimd reads later
 * only counts in errors->count.
 */
enum status daemon_check(const struct config *config, struct config_errors *errors);

/*
 * Announces that the daemon is ready. Notifies the supervisor (claimd/base/supervisor.h),
 * and then writes a line for each address, such as "claimd listening on
 * http://127.0.0.1:40123" or "... unix:/path", to standard output and to ready_fd. It
 * closes ready_fd unless that is a standard stream.
 */
void daemon_announce(const struct daemon *d);

/* Serves until daemon_stop(), then drains. Returns the number of requests that were cut
 * off. */
size_t daemon_serve(struct daemon *d);

/* Ends daemon_serve(). A second call ends the drain. Async-signal-safe. */
void daemon_stop(struct daemon *d);

/*
 * Does the housekeeping of the store up to the present, and wakes all requests that wait
 * for a time. For tests, which call it after a move of a manual clock.
 */
void daemon_clock_moved(struct daemon *d);

/* Frees a daemon that does not serve. */
void daemon_close(struct daemon *d);

#endif
