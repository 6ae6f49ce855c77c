/*
 * daemon: the parts of claimd, wired together and taken apart again.
 *
 *     mem -> log -> journal -> engine -> auth -> api -> server
 *
 * Built in this order, freed in reverse. It knows no signals and no command line, so a
 * test can run one, or ten, with a clock of its own.
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
 * Builds everything and listens, without accepting yet. clock is borrowed for the
 * daemon's life, config likewise. On failure there are complaints; ST_BAD_VALUE: it is
 * the configuration that is wrong; ST_CONFLICT: the journal is not to be used as it is.
 */
enum status daemon_open(const struct config *config, const struct clock *clock,
                        struct daemon **out, struct config_errors *errors);

/*
 * What daemon_open() would complain about in what the configuration names outside of
 * itself. ST_BAD_VALUE after error messages.
 */
enum status daemon_check(const struct config *config, struct config_errors *errors);

/*
 * Tells that it is ready: first the supervisor (main/supervisor.h); then it writes
 * "claimd listening on http://127.0.0.1:40123" (or "unix:/path") as a line for each
 * address, in their order, to standard output and, if there is one, to ready_fd, which is
 * closed.
 */
void daemon_announce(const struct daemon *d);

/* Serves until daemon_stop(), then drains. Returns how many requests were cut off. */
size_t daemon_serve(struct daemon *d);

/* Ends daemon_serve(); called once more it ends the drain. Async-signal-safe. */
void daemon_stop(struct daemon *d);

/* Housekeeping up to the present, and a wake-up for all requests that wait for a time. To be called
 * when a manual clock was moved. */
void daemon_clock_moved(struct daemon *d);

/* Frees a daemon that does not serve. */
void daemon_close(struct daemon *d);

#endif
