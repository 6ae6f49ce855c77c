/*
 * trimmer: returns freed memory to the system while the server is idle.
 *
 * malloc keeps freed memory, except at the very top of its heap, where some small block
 * is mostly in use. So a server that once held a gigabyte of messages would keep the
 * gigabyte. malloc_trim() returns whole free pages anywhere. But it holds the lock of a
 * heap for about 0.3 ms per megabyte, so it is called only
 *
 *     when much was freed       a third of the memory in use, and at least a megabyte,
 *     and all workers are idle  none was busy for QUIET_MS.
 *
 * Workers are the threads that call trimmer_busy() and trimmer_step(). A server that is
 * never idle keeps its memory, and uses it.
 *
 *   Cost     a step sums up an account (mem_used()); trimmer_busy() is a load and at most
 *            one store per millisecond
 *   Threads  any
 */
#ifndef CLAIMD_BASE_TRIMMER_H
#define CLAIMD_BASE_TRIMMER_H

#include "claimd/base/mem.h"

#include <stdatomic.h>
#include <stdint.h>

struct trimmer {
    struct mem *mem;         /* borrowed */
    _Atomic size_t high;     /* highest use seen since the last trim */
    _Atomic int64_t busy_ms; /* real time when a worker was last busy */
};

/* Starts with the memory in use now. */
void trimmer_init(struct trimmer *t, struct mem *mem);

/* Notes that a worker has something to do. */
void trimmer_busy(struct trimmer *t, int64_t real_ms);

/* Trims if it is time. Returns the milliseconds that the worker may sleep as far as this
 * is concerned: -1 for any time. */
int64_t trimmer_step(struct trimmer *t, int64_t real_ms);

#endif
