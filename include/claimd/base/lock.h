/*
 * lock: a mutex that records the thread that holds it, so that functions can assert it.
 *
 * Functions assert it in releases, too, because an access without the lock is hard to
 * find otherwise. The check costs one or two nanoseconds. It loads a value that the
 * calling thread wrote when it acquired the lock.
 *
 * docs/locking.md lists every lock and their order.
 */
#ifndef CLAIMD_BASE_LOCK_H
#define CLAIMD_BASE_LOCK_H

#include "claimd/base/invariant.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
    pthread_mutex_t mutex;
    _Atomic(const void *)
        holder; /* an address that is unique to the thread; NULL: free */
};

void lock_init(struct lock *l);
void lock_fini(struct lock *l);
void lock_acquire(struct lock *l);
void lock_release(struct lock *l);

/*
 * Releases l, waits until a thread signals `signal` or the seconds have passed, and
 * acquires l again. Returns false if the time has passed. May return true without a
 * signal, as pthread_cond_timedwait() does. The caller must hold l. The clock of the
 * condition variable must be CLOCK_MONOTONIC.
 */
bool lock_wait_ms(struct lock *l, pthread_cond_t *signal, int64_t ms);

/* True if the calling thread holds l. */
bool lock_held(const struct lock *l);

#define lock_assert_held(l) ENSURE(lock_held(l))

#endif
