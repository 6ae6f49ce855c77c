/*
 * A lock knows its holder, so a function that needs it can assert it, in a release too.
 * Read claimd/base/lock.h next.
 */
#include "claimd/base/lock.h"

#include "support/check_main.h"
#include "support/invariant_fixture.h"

START_TEST(a_lock_knows_that_its_holder_holds_it)
{
    struct lock l;

    lock_init(&l);
    ck_assert(!lock_held(&l));
    lock_acquire(&l);
    ck_assert(lock_held(&l));
    lock_release(&l);
    ck_assert(!lock_held(&l));
    lock_fini(&l);
}

static void *
check_held(void *lock)
{
    return lock_held(lock) ? lock : NULL;
}

START_TEST(another_thread_does_not_hold_it)
{
    struct lock l;
    pthread_t other;
    void *held;

    lock_init(&l);
    lock_acquire(&l);
    ck_assert_int_eq(pthread_create(&other, NULL, check_held, &l), 0);
    ck_assert_int_eq(pthread_join(other, &held), 0);
    ck_assert_ptr_null(held);
    lock_release(&l);
    lock_fini(&l);
}

struct counter {
    struct lock lock;
    long value; /* under lock */
};

enum { THREADS = 4, ROUNDS = 20000 };

static void *
count_up(void *arg)
{
    struct counter *c = arg;

    for (int i = 0; i < ROUNDS; i++) {
        lock_acquire(&c->lock);
        c->value++;
        lock_release(&c->lock);
    }
    return NULL;
}

START_TEST(one_thread_at_a_time_holds_it)
{
    struct counter c = {.value = 0};
    pthread_t thread[THREADS];

    lock_init(&c.lock);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, count_up, &c), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ck_assert_int_eq(c.value, (long)THREADS * ROUNDS);
    lock_fini(&c.lock);
}

/* A ball that two threads throw to each other. */
struct game {
    struct lock lock;
    pthread_cond_t thrown;
    int turn, left; /* under lock */
};

static void
play(struct game *g, int self)
{
    lock_acquire(&g->lock);
    while (g->left > 0) {
        if (g->turn != self) {
            (void)lock_wait_ms(&g->lock, &g->thrown, 60000);
            lock_assert_held(&g->lock);
            continue;
        }
        g->left--;
        g->turn = 1 - self;
        (void)pthread_cond_signal(&g->thrown);
    }
    (void)pthread_cond_signal(&g->thrown);
    lock_release(&g->lock);
}

static void *
play_second(void *game)
{
    play(game, 1);
    return NULL;
}

START_TEST(a_wait_releases_the_lock_and_holds_it_after_the_signal)
{
    struct game g = {.left = 1000};
    pthread_condattr_t monotonic;
    pthread_t other;

    ck_assert_int_eq(pthread_condattr_init(&monotonic), 0);
    ck_assert_int_eq(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC), 0);
    ck_assert_int_eq(pthread_cond_init(&g.thrown, &monotonic), 0);
    lock_init(&g.lock);
    ck_assert_int_eq(pthread_create(&other, NULL, play_second, &g), 0);
    play(&g, 0);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    ck_assert_int_eq(g.left, 0);
    ck_assert(!lock_held(&g.lock));
    lock_fini(&g.lock);
}

static void
wait_without_the_lock(void)
{
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct lock l;

    lock_init(&l);
    (void)lock_wait_ms(&l, &never, 60000);
}

static void
release_what_is_free(void)
{
    struct lock l;

    lock_init(&l);
    lock_release(&l);
}

static void
do_what_needs_the_lock(void)
{
    struct lock l;

    lock_init(&l);
    lock_assert_held(&l);
}

START_TEST(work_without_the_lock_is_stopped_in_a_release_too)
{
    expect_broken(release_what_is_free, "lock_held(l)", "in lock_release()\n");
    expect_broken(wait_without_the_lock, "lock_held(l)", "in lock_wait_ms()\n");
    expect_broken(do_what_needs_the_lock, "lock_held(&l)",
                  "in do_what_needs_the_lock()\n");
}
