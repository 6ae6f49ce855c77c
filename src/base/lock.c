#include "claimd/base/lock.h"

#include <assert.h>

/* Its address names the thread; it holds nothing. */
static _Thread_local char self;

void
lock_init(struct lock *l)
{
    int failed = pthread_mutex_init(&l->mutex, NULL);

    assert(failed == 0); /* a plain mutex needs no resource */
    (void)failed;
    atomic_init(&l->holder, NULL);
}

void
lock_fini(struct lock *l)
{
    (void)pthread_mutex_destroy(&l->mutex); /* fails only if held: asserted by users */
}

void
lock_acquire(struct lock *l)
{
    int failed = pthread_mutex_lock(&l->mutex);

    assert(failed == 0); /* a plain mutex fails only when misused */
    (void)failed;
    atomic_store_explicit(&l->holder, &self, memory_order_relaxed);
}

void
lock_release(struct lock *l)
{
    atomic_store_explicit(&l->holder, NULL, memory_order_relaxed);
    (void)pthread_mutex_unlock(&l->mutex);
}

bool
lock_held(const struct lock *l)
{
    return atomic_load_explicit(&l->holder, memory_order_relaxed) == &self;
}
