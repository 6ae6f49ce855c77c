/*
 * lock: a mutex that knows its holder, so that functions can assert that it is held.
 *
 * They do so in releases, too. The check costs a load of a value that this thread wrote
 * when it took the lock, one or two nanoseconds, and bugs without the lock are hard to
 * find otherwise.
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
    _Atomic(const void *) holder; /* names the holder; NULL: free */
};

void lock_init(struct lock *l);
void lock_fini(struct lock *l);
void lock_acquire(struct lock *l);
void lock_release(struct lock *l);

/*
 * Releases l, which the caller holds, until `signal` is signalled, or for that many
 * seconds. False: the time is over. The caller holds l again then. The condition's clock
 * must be CLOCK_MONOTONIC.
 */
bool lock_wait_s(struct lock *l, pthread_cond_t *signal, int64_t seconds);

/* True if the calling thread holds l. */
bool lock_held(const struct lock *l);

#define lock_assert_held(l) ENSURE(lock_held(l))

#endif
