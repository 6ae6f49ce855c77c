/*
 * secure: connections with TLS, as far as they differ from others.
 *
 * TLS is libmicrohttpd's: a section (section.h) whose daemon has it takes the connections of
 * a listener for TLS. libmicrohttpd 0.9.75 makes the handshake when the connection is
 * readable, but does not note when it has read all there was: it would try again and again
 * until the client goes on, with every client that stops half way. So a connection that
 * has not brought a request yet is left alone (worker_hold) unless there is something to
 * read, and our own epoll set tells when:
 *
 *     adopted --> held --readable--> KNOCKING --its turn--> SHAKING --> first request
 *                  ^                                            |
 *                  +----------- nothing to read ----------------+
 *
 * A handshake takes the processor for a millisecond or so. A few have their turn in each
 * round, so that others are served in between however many come at once. Who has gone
 * before its turn came is only closed.
 *
 *   Cost     half a handshake: nothing until the client goes on, or its time is up
 *   Threads  none: belongs to the worker
 */
#ifndef HTTP_SECURE_H
#define HTTP_SECURE_H

#include "http/worker.h"

#include <gnutls/abstract.h>

void secure_init(struct worker *w);

/* For MHD_OPTION_HTTPS_CERT_CALLBACK: the pair in force, pinned by the connection. */
int secure_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
                       int authority_count, const gnutls_pk_algorithm_t *algorithms,
                       int algorithm_count, gnutls_pcert_st **chain,
                       unsigned *chain_count, gnutls_privkey_t *key);

/* libmicrohttpd has just got the connection: notes its session. */
void secure_begin(struct conn *c);

/* The same, when it can be held. */
void secure_wait(struct worker *w, struct conn *c);

/* True for a connection that is held before its first request. */
bool secure_is_waiting(const struct conn *c);

/* There is something to read for one of these. */
void secure_knock(struct worker *w, struct conn *c);

/* Lets some of those go who knock. True: there are more. */
bool secure_admit(struct worker *w);

/* After a run of libmicrohttpd: holds those again for whom nothing is left to read. */
void secure_hold_idle(struct worker *w);

/* Its first request is there: the handshake is over. Looks at the client's certificate. */
void secure_used(struct worker *w, struct conn *c);

/* The connection ends. Its session is gone. */
void secure_end(struct worker *w, struct conn *c);

#endif
