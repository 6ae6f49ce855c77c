/*
 * lost_claim: releases the claim in a response that its client has not received
 * (docs/api.md 11.5).
 *
 *   Threads  the worker
 */
#ifndef HTTP_LOST_CLAIM_H
#define HTTP_LOST_CLAIM_H

#include "http/worker.h"

/*
 * Returns a number that grows with each byte that the kernel takes for this socket. 0 if
 * the kernel does not tell, as for a Unix socket. Makes a system call.
 */
uint64_t socket_sent_bytes(int fd);

/*
 * Releases the claim of a response that its client did not receive. unseen: the delivery
 * does not count. If the executor is overloaded, the claim expires instead.
 */
void lost_claim_release(const struct worker *w, const struct exchange *ex, bool unseen);

#endif
