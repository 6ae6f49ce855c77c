/*
 * fiber: a function that can stop in the middle, so that its thread does something else meanwhile.
 *
 * A thread that must not wait, as that of an event loop, runs code that has to wait for an answer in
 * a fiber. Where that code would wait it parks: fiber_start() or fiber_go_on() returns, and the
 * thread is free. Whoever has the answer wakes the fiber; its thread hears of that as it likes
 * (fiber_ops), and goes on with it.
 *
 *     if (fiber_start(f, ask, &question) == FIBER_PARKED)
 *         ... f is woken some day; then fiber_go_on(f) ...
 *     fiber_give(pool, f);
 *
 *   Threads    a fiber, and its pool, belong to one thread, which alone starts it and goes on with
 *              it: it never changes its thread. fiber_wake() from any
 *   Ownership  a fiber is its pool's but for the time from fiber_take() to fiber_give()
 *   Memory     a stack of FIBER_STACK bytes of address space, of which it has what it has touched,
 *              and a page behind that nobody may touch; a pool keeps FIBER_SPARE of them, each with
 *              little more than FIBER_KEPT bytes of memory
 *   Locks      none may be held while a fiber parks: others of its thread would wait for it for ever
 *   Cost       starting, parking, going on: a change of stacks, 0.3 us
 */
#ifndef CLAIMD_BASE_FIBER_H
#define CLAIMD_BASE_FIBER_H

#include "claimd/base/executor.h"

#include <stdbool.h>

enum { FIBER_STACK = 512 << 10, FIBER_KEPT = 32 << 10, FIBER_SPARE = 256 };

enum fiber_state { FIBER_ENDED, FIBER_PARKED };

struct fiber; /* opaque */

/* The fibers of a thread. */
struct fiber_pool {
    struct mem *mem;           /* borrowed */
    struct executor *executor; /* borrowed; where detours are made */
    void (*wake)(void *arg);   /* from any thread: fiber_go_on() is wanted for what was
                                  started with this arg. At most once for each time it parks */
    size_t most, count;        /* fibers that there may be, and are */
    struct fiber *spare;       /* private */
    size_t spare_count;
};

void fiber_pool_init(struct fiber_pool *pool, struct mem *mem, struct executor *executor,
                     size_t most, void (*wake)(void *arg));

/* All its fibers have been given back. */
void fiber_pool_fini(struct fiber_pool *pool);

/* One that does nothing yet. NULL: there are as many as there may be, or no memory for one. */
struct fiber *fiber_take(struct fiber_pool *pool);

/* It has ended, or was never started. */
void fiber_give(struct fiber_pool *pool, struct fiber *f);

/* Calls run(arg), until it returns or parks. */
enum fiber_state fiber_start(struct fiber *f, void (*run)(void *arg), void *arg);

/* Goes on with it where it has parked, when it was woken. */
enum fiber_state fiber_go_on(struct fiber *f);

/* The fiber that is running in this thread; NULL: none is, so whoever has to wait blocks. */
struct fiber *fiber_current(void);

/* Within the fiber: until somebody has woken it, which may happen before this is called. */
void fiber_park(struct fiber *self);

void fiber_wake(struct fiber *f);

/*
 * Does something that blocks: in a fiber, by a thread of the executor, while it is parked; else at
 * once. False: there is no thread for it, and nothing was done.
 */
bool fiber_detour(void (*run)(void *arg), void *arg);

#endif
