#include "claimd/base/lock.h"

#include "claimd/base/invariant.h"

#include <errno.h>
#include <time.h>

enum { SECOND_NS = 1000000000 };

/* Its address identifies the thread. It has no value. */
static _Thread_local char self;

void
lock_init(struct lock *l)
{
    int failed = pthread_mutex_init(&l->mutex, NULL);

    ENSURE_EQ(failed, 0); /* a plain mutex needs no resource */
    atomic_init(&l->holder, NULL);
}

void
lock_fini(struct lock *l)
{
    ENSURE(atomic_load_explicit(&l->holder, memory_order_relaxed) == NULL);
    (void)pthread_mutex_destroy(&l->mutex); /* fails only if held */
}

void
lock_acquire(struct lock *l)
{
    int failed = pthread_mutex_lock(&l->mutex);

    ENSURE_EQ(failed, 0); /* a plain mutex fails only when misused */
    atomic_store_explicit(&l->holder, &self, memory_order_relaxed);
}

void
lock_release(struct lock *l)
{
    ENSURE(lock_held(l));
    atomic_store_explicit(&l->holder, NULL, memory_order_relaxed);
    (void)pthread_mutex_unlock(&l->mutex);
}

bool
lock_wait_ms(struct lock *l, pthread_cond_t *signal, int64_t ms)
{
    struct timespec until;
    int failed;

    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail */
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000 * 1000000);
    if (until.tv_nsec >= SECOND_NS) {
        until.tv_nsec -= SECOND_NS;
        until.tv_sec++;
    }
    lock_assert_held(l);
    atomic_store_explicit(&l->holder, NULL, memory_order_relaxed);
    failed = pthread_cond_timedwait(signal, &l->mutex, &until);
    atomic_store_explicit(&l->holder, &self, memory_order_relaxed);
    return failed != ETIMEDOUT;
}

bool
lock_held(const struct lock *l)
{
    return atomic_load_explicit(&l->holder, memory_order_relaxed) == &self;
}
