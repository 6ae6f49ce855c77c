/*
 * server: libmicrohttpd in, libmicrohttpd out; event loops of our own.
 *
 * The caller's thread accepts connections and hands each to the worker with the fewest; a
 * worker is a thread with an epoll set that holds its libmicrohttpd daemon (external
 * mode: no thread and no listen socket of its own), a wake-up descriptor and the store's
 * next deadline as time-out. Handlers run in the worker. docs/architecture.md has the
 * picture.
 */
#ifndef CLAIMD_HTTP_SERVER_H
#define CLAIMD_HTTP_SERVER_H

#include "claimd/http/server_config.h"

struct server; /* opaque */

/*
 * Binds, listens and starts the workers; does not accept yet. A status other than ST_OK comes with
 * a reason ("address already in use ...").
 */
enum status
server_open(const struct server_config *config, struct server **out, struct reason *why);

/* The number of its listeners; they are in the order of the list. */
size_t server_listener_count(const struct server *s);

/* The real address: "127.0.0.1:40123" when port 0 was asked for. Borrowed. */
const char *server_address(const struct server *s, size_t index);
enum listen_kind server_listen_kind(const struct server *s, size_t index);

/* Accepts until server_stop(); call it from the thread that opened the server. */
void server_run(struct server *s);

/*
 * From now on one request in so many has a line in the log at level info, and all that failed
 * one at level warn; 0: none has, and of those that failed some are told of. Any thread.
 */
void server_log_requests(struct server *s, uint64_t one_in);

/* Makes server_run() return; async-signal-safe, from any thread. */
void server_stop(struct server *s);

/* Wakes the workers, so that they see that a manual clock was moved. Any thread. */
void server_wake(struct server *s);

/*
 * Is every worker alive? One thread asks each for a round of its loop, for which it has to be
 * done with whatever it does, and looks later whether all have made one (or have ended). Both
 * while the server is open; neither waits.
 */
void server_ask_round(struct server *s);
bool server_went_round(const struct server *s);

/*
 * Closes the listeners, lets requests in flight finish for at most drain_ms of real time,
 * stops the workers. Returns how many requests were cut off. A drain that server_stop()
 * is called upon again ends at once.
 */
size_t server_drain(struct server *s, int64_t drain_ms);

/* Adds the server's figures. */
void server_measure(struct server *s, struct metrics *metrics);

/* The version of libmicrohttpd that is in use, a literal. */
const char *server_library_version(void);

/* Frees a drained server. */
void server_free(struct server *s);

#endif
