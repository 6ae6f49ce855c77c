/*
 * A fiber parks and continues, on the stack size that is promised. A stack overflow ends
 * the process before it writes into another fiber, which children of the test prove. Read
 * claimd/base/fiber.h next.
 */
#include "claimd/base/fiber.h"

#include "support/check_main.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static long page; /* 0: that of the machine */

long __real_sysconf(int name);
long __wrap_sysconf(int name);

long
__wrap_sysconf(int name)
{
    return name == _SC_PAGESIZE && page != 0 ? page : __real_sysconf(name);
}

static bool refuses; /* mmap() fails */

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);

void *
__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return refuses ? MAP_FAILED : __real_mmap(at, size, protection, flags, fd, offset);
}

/* The work of a fiber of the test: it parks so often, and notes how far it has come. */
struct task {
    int parks, done;
    struct fiber *seen; /* the running fiber then */
    sem_t woken;
};

static struct mem *mem;
static struct fiber_pool pool;

static void
note_waking(void *arg)
{
    (void)sem_post(&((struct task *)arg)->woken);
}

static void
open_pool(void)
{
    mem = mem_new(0);
    fiber_pool_init(&pool, mem, NULL, 3, note_waking);
}

static void
close_pool(void)
{
    fiber_pool_fini(&pool);
    ck_assert_uint_eq(mem_used(mem), 0);
    mem_destroy(mem);
}

static void
run(void *arg)
{
    struct task *t = arg;

    t->seen = fiber_current();
    for (; t->done < t->parks; t->done++)
        fiber_park(t->seen);
    t->done++;
}

static void
await(struct task *t)
{
    while (sem_wait(&t->woken) != 0)
        continue;
}

TEST_CASE("fibers", .setup = open_pool, .teardown = close_pool);

START_TEST(one_that_does_not_park_ends_at_once)
{
    struct fiber *f = fiber_take(&pool);
    struct task t = {.parks = 0};

    ck_assert_ptr_null(fiber_current());
    ck_assert_int_eq(fiber_start(f, run, &t), FIBER_ENDED);
    ck_assert_int_eq(t.done, 1);
    ck_assert_ptr_eq(t.seen, f);
    ck_assert_ptr_null(fiber_current());
    fiber_give(&pool, f);
}

START_TEST(one_that_parks_goes_on_where_it_was)
{
    struct fiber *f = fiber_take(&pool);
    struct task t = {.parks = 3};

    ck_assert_int_eq(fiber_start(f, run, &t), FIBER_PARKED);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(t.done, i);
        ck_assert_ptr_null(fiber_current());
        ck_assert_int_eq(fiber_resume(f), i < 2 ? FIBER_PARKED : FIBER_ENDED);
    }
    ck_assert_int_eq(t.done, 4);
    fiber_give(&pool, f);
}

START_TEST(several_are_under_way_and_none_hinders_the_others)
{
    struct task t[3] = {{.parks = 1}, {.parks = 1}, {.parks = 1}};
    struct fiber *f[3];

    for (int i = 0; i < 3; i++) {
        f[i] = fiber_take(&pool);
        ck_assert_int_eq(fiber_start(f[i], run, &t[i]), FIBER_PARKED);
    }
    ck_assert_ptr_null(fiber_take(&pool)); /* there may be three */
    for (int i = 2; i >= 0; i--) {
        ck_assert_int_eq(fiber_resume(f[i]), FIBER_ENDED);
        ck_assert_int_eq(t[i].done, 2);
        fiber_give(&pool, f[i]);
    }
    f[0] = fiber_take(&pool);
    ck_assert_ptr_nonnull(f[0]);
    fiber_give(&pool, f[0]);
}

START_TEST(it_is_used_again)
{
    for (int i = 0; i < 100; i++) {
        struct fiber *f = fiber_take(&pool);
        struct task t = {.parks = i % 2};

        if (fiber_start(f, run, &t) == FIBER_PARKED)
            ck_assert_int_eq(fiber_resume(f), FIBER_ENDED);
        ck_assert_int_eq(t.done, 1 + i % 2);
        fiber_give(&pool, f);
    }
    ck_assert_uint_eq(pool.count, 1);
}

/* Takes some of the stack, in a way that no compiler saves. */
struct depth {
    size_t wanted, reached;
    uintptr_t deepest; /* an address in its stack */
};

/* AddressSanitizer would put the block elsewhere, to find uses after the return. */
static size_t __attribute__((no_sanitize("address"))) fill(struct depth *d, size_t bytes)
{
    volatile unsigned char block[1024];

    memset((void *)block, 'x', sizeof(block));
    d->deepest = (uintptr_t)&block[bytes % sizeof(block)];
    return bytes <= sizeof(block)
               ? bytes
               : fill(d, bytes - sizeof(block)) + block[0] - 'x' + sizeof(block);
}

static void
go_deep(void *arg)
{
    struct depth *d = arg;

    d->reached = fill(d, d->wanted);
}

START_TEST(it_has_the_stack_that_is_promised)
{
    struct fiber *f = fiber_take(&pool);
    struct depth d = {.wanted = 100 << 10}; /* a sanitizer's frames are larger */

    ck_assert_int_eq(fiber_start(f, go_deep, &d), FIBER_ENDED);
    ck_assert_uint_eq(d.reached, d.wanted);
    fiber_give(&pool, f);
}

START_TEST(stack_pages_of_a_fiber_are_not_kept)
{
    struct fiber *f = fiber_take(&pool);
    struct depth d = {.wanted = 100 << 10};
    volatile unsigned char *deep;

    ck_assert_int_eq(fiber_start(f, go_deep, &d), FIBER_ENDED);
    deep = (volatile unsigned char *)d.deepest;
    ck_assert_int_ne(*deep, 0);
    fiber_give(&pool, f);
    ck_assert_int_eq(*deep, 0); /* an untouched page */
    ck_assert_ptr_eq(fiber_take(&pool), f);
    d.wanted = 1;
    ck_assert_int_eq(fiber_start(f, go_deep, &d), FIBER_ENDED);
    ck_assert_uint_eq(d.reached, 1);
    fiber_give(&pool, f);
}

/* The kernel frees the whole page that an end is in. The frames that the next start
 * continues are in the kept part. */
START_TEST(the_kept_part_of_a_stack_is_whole_pages_of_any_size)
{
    struct depth d = {.wanted = 100 << 10};
    volatile unsigned char *far, *near;
    struct fiber *f;

    page = 64 << 10;
    f = fiber_take(&pool);
    page = 0;
    ck_assert_int_eq(fiber_start(f, go_deep, &d), FIBER_ENDED);
    far = (volatile unsigned char *)d.deepest;
    d.wanted = 40 << 10;
    ck_assert_int_eq(fiber_start(f, go_deep, &d), FIBER_ENDED);
    near = (volatile unsigned char *)d.deepest;
    fiber_give(&pool, f);
    ck_assert_int_eq(*far, 0);
    ck_assert_int_eq(*near, 'x');
}

START_TEST(unused_fibers_are_kept_up_to_a_limit)
{
    static struct fiber *all[FIBER_SPARE + 2];
    struct fiber_pool large;

    fiber_pool_init(&large, mem, NULL, FIBER_SPARE + 2, note_waking);
    for (size_t i = 0; i < FIBER_SPARE + 2; i++)
        ck_assert_ptr_nonnull(all[i] = fiber_take(&large));
    for (size_t i = 0; i < FIBER_SPARE + 2; i++)
        fiber_give(&large, all[i]);
    ck_assert_uint_eq(large.count, FIBER_SPARE);
    fiber_pool_fini(&large);
    ck_assert_uint_eq(large.count, 0);
}

START_TEST(without_memory_there_is_none)
{
    struct fiber *f;

    refuses = true;
    f = fiber_take(&pool);
    refuses = false;
    ck_assert_ptr_null(f);
    ck_assert_uint_eq(pool.count, 0);
}

#if !defined(__SANITIZE_ADDRESS__) &&                                                    \
    !defined(__SANITIZE_THREAD__) /* they end it another way */
/* How a process ends in which this is called. */
static int
end_of(void (*what)(void))
{
    int status = 0;
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        what();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static void
run_too_deep(void)
{
    struct depth d = {.wanted = 2 * FIBER_STACK};

    (void)signal(SIGSEGV, SIG_DFL);
    (void)fiber_start(fiber_take(&pool), go_deep, &d);
}

START_TEST(a_stack_overflow_ends_the_process)
{
    const int status = end_of(run_too_deep);

    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* Frames of less than the guard, that touch only their end. */
static int __attribute__((noinline)) leap(int more)
{
    volatile unsigned char block[60 << 10];

    block[0] = 1;
    return more == 0 ? 0 : leap(more - 1) + block[0];
}

static void
leap_past_the_end(void *arg)
{
    (void)arg;
    (void)leap(8); /* the ninth frame is the first that ends beyond the stack */
}

/* Starts the second of three neighbors. One of the others is below it, where a stack
 * overflow would do damage: the system allocates downwards, and an emulator upwards. */
static void
start_between(void (*overflow)(void *arg))
{
    struct fiber *f[3];
    unsigned char unused;

    for (int i = 0; i < 3; i++)
        f[i] = fiber_take(&pool);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)fiber_start(f[1], overflow, &unused);
}

static void
run_in_leaps(void)
{
    start_between(leap_past_the_end);
}

START_TEST(frames_that_are_hardly_touched_do_not_skip_the_guard)
{
    const int status = end_of(run_in_leaps);

    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

#ifdef HAS_STACK_CLASH_PROTECTION
/* One frame that ends behind the guard, and touches nothing in between. */
static void
skip_the_guard(void *arg)
{
    volatile unsigned char block[FIBER_STACK + FIBER_GUARD + (64 << 10)];

    block[0] = 1;
    *(unsigned char *)arg = block[0];
}

static void
run_past_the_guard(void)
{
    start_between(skip_the_guard);
}

/* Without -fstack-clash-protection the frame would end in the stack of the other fiber.
 * clang has the option on arm64 only in later versions. */
START_TEST(a_frame_larger_than_the_stack_ends_the_process)
{
    const int status = end_of(run_past_the_guard);

    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
#endif
#endif

TEST_CASE("waking and detours", .setup = open_pool, .teardown = close_pool);

static void *
wake_it(void *arg)
{
    fiber_wake(arg);
    return NULL;
}

START_TEST(any_thread_may_wake_it_even_before_it_parks)
{
    struct fiber *f = fiber_take(&pool);
    struct task t = {.parks = 1};
    pthread_t thread;

    ck_assert_int_eq(sem_init(&t.woken, 0, 0), 0);
    ck_assert_int_eq(fiber_start(f, run, &t), FIBER_PARKED);
    ck_assert_int_eq(pthread_create(&thread, NULL, wake_it, f), 0);
    await(&t);
    ck_assert_int_eq(fiber_resume(f), FIBER_ENDED);
    (void)pthread_join(thread, NULL);
    (void)sem_destroy(&t.woken);
    fiber_give(&pool, f);
}

static void
note_thread(void *arg)
{
    ck_assert_ptr_null(fiber_current());
    *(pthread_t *)arg = pthread_self();
}

START_TEST(without_a_fiber_the_work_is_done_at_once)
{
    pthread_t thread;

    ck_assert(fiber_offload(note_thread, &thread));
    ck_assert(pthread_equal(thread, pthread_self()));
}

struct traveller {
    struct task task; /* the first, so that it can be woken */
    pthread_t thread, after;
    bool made;
};

static void
travel(void *arg)
{
    struct traveller *t = arg;

    t->made = fiber_offload(note_thread, &t->thread);
    t->after = pthread_self();
}

START_TEST(offloaded_work_is_done_by_another_thread_and_the_fiber_stays)
{
    struct executor_config config = {.mem = mem, .threads = 1, .line = 1};
    struct traveller t = {.made = false};
    struct executor *executor;
    struct fiber *f;

    ck_assert_int_eq(executor_open(&config, &executor), ST_OK);
    pool.executor = executor;
    ck_assert_int_eq(sem_init(&t.task.woken, 0, 0), 0);
    f = fiber_take(&pool);
    ck_assert_int_eq(fiber_start(f, travel, &t), FIBER_PARKED);
    await(&t.task);
    ck_assert_int_eq(fiber_resume(f), FIBER_ENDED);
    ck_assert(t.made);
    ck_assert(!pthread_equal(t.thread, pthread_self()));
    ck_assert(pthread_equal(t.after, pthread_self()));
    (void)sem_destroy(&t.task.woken);
    fiber_give(&pool, f);
    executor_close(executor);
}

struct blocker {
    struct executor_job job;
    sem_t running, may_end;
};

static void
block(struct executor_job *job)
{
    struct blocker *b = (struct blocker *)job;

    (void)sem_post(&b->running);
    (void)sem_wait(&b->may_end);
}

START_TEST(without_a_thread_nothing_is_offloaded)
{
    struct executor_config config = {.mem = mem, .threads = 1, .line = 0};
    struct blocker b = {.job.run = block};
    struct traveller t = {.made = true};
    struct executor *executor;
    struct fiber *f;

    (void)sem_init(&b.running, 0, 0);
    (void)sem_init(&b.may_end, 0, 0);
    ck_assert_int_eq(executor_open(&config, &executor), ST_OK);
    pool.executor = executor;
    while (executor_submit(executor, &b.job) != ST_OK) /* until its thread is there */
        (void)sched_yield();
    (void)sem_wait(&b.running);
    f = fiber_take(&pool);
    ck_assert_int_eq(fiber_start(f, travel, &t), FIBER_ENDED);
    ck_assert(!t.made);
    fiber_give(&pool, f);
    (void)sem_post(&b.may_end);
    executor_close(executor);
    (void)sem_destroy(&b.running);
    (void)sem_destroy(&b.may_end);
}
