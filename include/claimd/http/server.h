/*
 * server: libmicrohttpd, with event loops of claimd.
 *
 * The thread that calls server_run() accepts connections, and hands each to the worker
 * with the fewest. A worker is a thread with an epoll set, daemons of libmicrohttpd
 * (external mode: without threads and listening sockets of their own) and an event queue.
 * Handlers run in the worker. docs/architecture.md has the picture.
 *
 *   Threads  one thread opens, runs, drains and frees the server; other functions say so
 */
#ifndef CLAIMD_HTTP_SERVER_H
#define CLAIMD_HTTP_SERVER_H

#include "claimd/http/server_config.h"

struct server; /* opaque */

/*
 * Binds, listens and starts the workers, but does not accept yet. A status other than
 * ST_OK comes with a reason ("address already in use ...").
 */
enum status
server_open(const struct server_config *config, struct server **out, struct reason *why);

/* The number of listeners, which are in the order of the list. */
size_t server_listener_count(const struct server *s);

/* The address with its real port: "127.0.0.1:40123" for port 0. Borrowed. */
const char *server_address(const struct server *s, size_t index);
enum listen_kind server_listen_kind(const struct server *s, size_t index);

/* Accepts until server_stop(). */
void server_run(struct server *s);

/*
 * Logs one request in `one_in` at level info, and each request that fails with 500 or
 * above at level warn. 0: no requests, and only some of those that fail. Any thread.
 */
void server_log_requests(struct server *s, uint64_t one_in);

/* Makes server_run() return. Async-signal-safe, any thread. */
void server_stop(struct server *s);

/* Wakes the workers after a test has moved the clock. Any thread. */
void server_wake(struct server *s);

/*
 * For a watchdog, in one thread while the server is open: server_ask_round() asks each
 * worker for a round of its loop. server_went_round() is true when each has made one, or
 * has ended. Neither waits.
 */
void server_ask_round(struct server *s);
bool server_went_round(const struct server *s);

/*
 * Closes the listeners, gives requests under way at most drain_ms of real time, and stops
 * the workers. Returns how many requests were cut off. Another server_stop() ends the
 * drain at once.
 */
size_t server_drain(struct server *s, int64_t drain_ms);

/* Adds the server's metrics. */
void server_measure(struct server *s, struct metrics *metrics);

/* The version of libmicrohttpd in use, a literal. */
const char *server_library_version(void);

/* True for a version of libmicrohttpd that claimd was tested with. */
bool server_library_is_known(void);

/*
 * Closes a server, which need not be drained: it uses the store, the API and its
 * executors no more. Their threads may still wake its workers. NULL is fine.
 */
void server_close(struct server *s);

/* Frees a closed server, after those threads have ended. NULL is fine. */
void server_free(struct server *s);

#endif
