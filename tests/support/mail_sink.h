/*
 * mail_sink: a small server that takes mail on loopback. Recipients that begin with "no"
 * are refused for good, those with "later" for now.
 *
 *   Threads  one, for one connection after the other
 */
#ifndef TESTS_SUPPORT_MAIL_SINK_H
#define TESTS_SUPPORT_MAIL_SINK_H

struct mail_sink; /* opaque */

struct mail_sink *mail_sink_open(void);

/* Frees the server. The caller has disconnected all clients. */
void mail_sink_close(struct mail_sink *s);

int mail_sink_port(const struct mail_sink *s);

/* All that it received so far; valid until it receives more. */
const char *mail_sink_received(struct mail_sink *s);

#endif
