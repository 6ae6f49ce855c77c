/*
 * lock: a mutex that knows its holder, so that functions can assert it is held.
 *
 * docs/locking.md lists every lock and their order.
 */
#ifndef CLAIMD_BASE_LOCK_H
#define CLAIMD_BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct lock {
    pthread_mutex_t mutex;
    _Atomic(const void *)
        holder; /* address of a thread-local of the holder; NULL: free */
};

void lock_init(struct lock *l);
void lock_fini(struct lock *l);
void lock_acquire(struct lock *l);
void lock_release(struct lock *l);

/* True if the calling thread holds l. */
bool lock_held(const struct lock *l);

#define lock_assert_held(l) assert(lock_held(l))

#endif
