/*
 * trimmer: gives freed memory back to the system when nobody is being served.
 *
 * malloc keeps what is freed, except at the very top of its heap, and there something small
 * is always in use: a server that once held a gigabyte of messages would keep the gigabyte.
 * malloc_trim() gives back whole free pages wherever they are. But it holds the lock of a
 * heap all the while, about 0.3 ms for each megabyte, so it is called only
 *
 *     when much was freed       a third of what was in use, and at least a megabyte,
 *     and all workers are idle  none was busy for QUIET_MS.
 *
 * Workers are the threads that tell it when they have something to do, and let it have a
 * look before they sleep. A server that is never idle keeps its memory, and has use for it.
 *
 *   Cost     a step adds up an account (mem_used()); trimmer_busy() is a load and at most
 *            one store a millisecond
 *   Threads  any
 */
#ifndef CLAIMD_BASE_TRIMMER_H
#define CLAIMD_BASE_TRIMMER_H

#include "claimd/base/mem.h"

#include <stdatomic.h>
#include <stdint.h>

struct trimmer {
    struct mem *mem;         /* borrowed */
    _Atomic size_t high;     /* most bytes in use since the last trim, as far as seen */
    _Atomic int64_t busy_ms; /* real time when somebody last had something to do */
};

/* Begins with what is in use now. */
void trimmer_init(struct trimmer *t, struct mem *mem);

/* A worker woke up because there is something to do. */
void trimmer_busy(struct trimmer *t, int64_t real_ms);

/*
 * Trims if it is time. Returns for how many milliseconds the worker may sleep as far as
 * this is concerned: -1 for as long as it likes.
 */
int64_t trimmer_step(struct trimmer *t, int64_t real_ms);

#endif
