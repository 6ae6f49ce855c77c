/*
 * fiber: a function that can stop in the middle, so that its thread does other work
 * meanwhile.
 *
 * A thread that must not wait, such as an event loop, runs code that waits for responses
 * in a fiber. Where this code would wait, it parks: fiber_start() or fiber_resume()
 * returns, and the thread is free. The receiver of the response wakes the fiber. Its
 * thread is notified (fiber_pool.wake), and continues it.
 *
 *     if (fiber_start(f, ask, &question) == FIBER_PARKED)
 *         ... when f is woken: fiber_resume(f) ...
 *     fiber_give(pool, f);
 *
 *   Threads    a fiber and its pool belong to one thread, which alone starts and
 *              continues the fiber; fiber_wake(): any
 *   Ownership  a fiber belongs to its pool, except between fiber_take() and fiber_give()
 *   Memory     a stack of FIBER_STACK bytes of address space, of which only touched pages
 *              use memory, and FIBER_GUARD inaccessible bytes; a pool keeps FIBER_SPARE
 *              stacks, each with little more than FIBER_KEPT bytes of memory, or a page
 *   Locks      a fiber must hold none while it parks, since others of its thread could
 *              wait for it for ever
 *   Cost       starting, parking, continuing: a change of stacks, 0.3 us
 */
#ifndef CLAIMD_BASE_FIBER_H
#define CLAIMD_BASE_FIBER_H

#include "claimd/base/executor.h"

#include <stdbool.h>

enum {
    FIBER_STACK = 512 << 10,
    /* Whole pages of up to 64 KB. On arm64, -fstack-clash-protection touches a frame only
     * every 64 KB. */
    FIBER_GUARD = 64 << 10,
    FIBER_KEPT = 32 << 10,
    FIBER_SPARE = 256
};

enum fiber_state { FIBER_ENDED, FIBER_PARKED };

struct fiber; /* opaque */

/* The fibers of a thread. */
struct fiber_pool {
    struct mem *mem;           /* borrowed */
    struct executor *executor; /* borrowed; runs detours */
    void (*wake)(
        void *
            arg); /* called from any thread when the fiber started with this arg is woken;
                   * at most once per park */
    size_t most, count;  /* limit and number of fibers */
    struct fiber *spare; /* private */
    size_t spare_count;
};

void fiber_pool_init(struct fiber_pool *pool, struct mem *mem, struct executor *executor,
                     size_t most, void (*wake)(void *arg));

/* Frees a pool that has all its fibers. */
void fiber_pool_fini(struct fiber_pool *pool);

/* Takes an idle fiber. NULL: the pool is at its limit, or out of memory. */
struct fiber *fiber_take(struct fiber_pool *pool);

/* Returns a fiber that has ended or was never started. */
void fiber_give(struct fiber_pool *pool, struct fiber *f);

/* Calls run(arg), until it returns or parks. */
enum fiber_state fiber_start(struct fiber *f, void (*run)(void *arg), void *arg);

/* Continues a fiber that was woken. */
enum fiber_state fiber_resume(struct fiber *f);

/* The running fiber of this thread; NULL: none, so code that waits blocks. */
struct fiber *fiber_current(void);

/* Parks the running fiber until it is woken, which may already have happened. */
void fiber_park(struct fiber *self);

void fiber_wake(struct fiber *f);

/*
 * Calls run(arg), which may block: in a fiber, a thread of the executor does so while the
 * fiber is parked; else at once. False: no thread is available, and run() was not called.
 */
bool fiber_offload(void (*run)(void *arg), void *arg);

#endif
