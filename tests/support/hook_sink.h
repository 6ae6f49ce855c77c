/*
 * hook_sink: a small web server on all loopback addresses, which takes web hooks and
 * behaves as the path says:
 *
 *     /status/CODE     responds so; /status/503/60 with "Retry-After: 60"
 *     /hang            never responds
 *     /drip            begins a response, and never ends it
 *     /huge, /heads    never stops: body, headers
 *     /close           closes without a response
 *     /noise           responses what is not HTTP
 *     /redirect        302 to /status/200 of itself
 *
 *   Threads  one a connection
 */
#ifndef TESTS_SUPPORT_HOOK_SINK_H
#define TESTS_SUPPORT_HOOK_SINK_H

#include <stdbool.h>
#include <stddef.h>

struct hook_sink; /* opaque */

struct hook_sink *hook_sink_open(void);
void hook_sink_close(struct hook_sink *s);

int hook_sink_port(const struct hook_sink *s);

/* The requests that came with this path, so far. */
size_t hook_sink_count(struct hook_sink *s, const char *path);

/* Waits until so many have come with it. */
void hook_sink_await(struct hook_sink *s, const char *path, size_t count);

/*
 * The n-th of them, from 0: the whole text, head and body, NUL-terminated, valid until
 * the sink is closed; waits for it.
 */
const char *hook_sink_request(struct hook_sink *s, const char *path, size_t n);

/* Connections that were made, so far. */
size_t hook_sink_connections(struct hook_sink *s);

#endif
