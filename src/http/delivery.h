/*
 * delivery: whether an answer reached the kernel, and what is done for a claim that did not.
 *
 *   Threads  any
 */
#ifndef HTTP_DELIVERY_H
#define HTTP_DELIVERY_H

#include "http/worker.h"

/*
 * A number that grows with each byte that the kernel has taken for this socket; 0 if it
 * cannot tell (a Unix socket). A system call.
 */
uint64_t delivery_handed(int fd);

/*
 * Gives back the claim of an answer that its client did not get. unseen: not even a byte of
 * it, so that the attempt does not count. If the store blocks, the executor does it; should
 * that have too much to do, the claim ends when its time is over.
 */
void
delivery_give_back(const struct worker_shared *shared, struct exchange *ex, bool unseen);

#endif
