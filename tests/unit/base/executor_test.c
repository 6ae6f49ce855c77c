/*
 * The thread pool for blocking work: its wait queue is bounded, jobs start in order, and
 * closing finishes the accepted jobs. Read claimd/base/executor.h next.
 */
#include "claimd/base/executor.h"

#include "claimd/base/lock.h"
#include "support/check_main.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

/* A job that says when it runs, and ends when it may. */
struct task {
    struct executor_job job;
    sem_t *running, *may_end; /* NULL: does not say so; does not wait */
    atomic_int *order;        /* counts those that have run */
    int place;                /* which of them it was; 0: has not run */
    sigset_t blocked;
    pthread_t thread;
};

static void
run(struct executor_job *job)
{
    struct task *t = (struct task *)job;

    t->thread = pthread_self();
    (void)pthread_sigmask(SIG_BLOCK, NULL, &t->blocked);
    t->place = atomic_fetch_add(t->order, 1) + 1;
    if (t->running != NULL)
        (void)sem_post(t->running);
    if (t->may_end != NULL)
        (void)sem_wait(t->may_end);
}

struct fixture {
    struct mem *mem;
    struct executor *executor;
    sem_t running, may_end;
    atomic_int order;
};

static void
open(struct fixture *f, size_t threads, size_t line)
{
    struct executor_config config = {.threads = threads, .line = line};

    f->mem = config.mem = mem_new(0);
    ck_assert_ptr_nonnull(f->mem);
    ck_assert_int_eq(sem_init(&f->running, 0, 0), 0);
    ck_assert_int_eq(sem_init(&f->may_end, 0, 0), 0);
    atomic_init(&f->order, 0);
    ck_assert_int_eq(executor_open(&config, &f->executor), ST_OK);
}

/* Waits for whatever was taken. */
static void
close_all(struct fixture *f)
{
    executor_close(f->executor);
    (void)sem_destroy(&f->running);
    (void)sem_destroy(&f->may_end);
    ck_assert_uint_eq(mem_used(f->mem), 0);
    mem_destroy(f->mem);
}

/* One that keeps its thread until it may end / that ends at once. */
static struct task
worker_of(struct fixture *f)
{
    return (struct task){.job.run = run,
                         .running = &f->running,
                         .may_end = &f->may_end,
                         .order = &f->order};
}

static struct task
quick(struct fixture *f)
{
    return (struct task){.job.run = run, .order = &f->order};
}

/* Keeps all threads busy. */
static void
occupy(struct fixture *f, struct task *tasks, size_t threads)
{
    for (size_t i = 0; i < threads; i++) {
        tasks[i] = worker_of(f);
        ck_assert_int_eq(executor_submit(f->executor, &tasks[i].job), ST_OK);
        ck_assert_int_eq(sem_wait(&f->running), 0);
    }
}

START_TEST(a_job_is_done_in_another_thread_with_all_signals_blocked)
{
    struct fixture f;
    struct task t;

    open(&f, 1, 1);
    t = quick(&f);
    t.running = &f.running;
    ck_assert_int_eq(executor_submit(f.executor, &t.job), ST_OK);
    ck_assert_int_eq(sem_wait(&f.running), 0);
    close_all(&f);
    ck_assert(!pthread_equal(t.thread, pthread_self()));
    ck_assert_int_eq(sigismember(&t.blocked, SIGTERM), 1);
    ck_assert_int_eq(sigismember(&t.blocked, SIGHUP), 1);
}

START_TEST(the_queue_of_jobs_is_bounded_and_one_too_many_is_refused_at_once)
{
    struct task busy[2], waiting[3], extra;
    struct fixture f;

    open(&f, 2, 3);
    occupy(&f, busy, 2);
    for (int i = 0; i < 3; i++) {
        waiting[i] = quick(&f);
        ck_assert_int_eq(executor_submit(f.executor, &waiting[i].job), ST_OK);
    }
    extra = quick(&f);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(executor_submit(f.executor, &extra.job), ST_UNAVAILABLE);
    (void)sem_post(&f.may_end);
    (void)sem_post(&f.may_end);
    close_all(&f);
    for (int i = 0; i < 3; i++)
        ck_assert_int_gt(waiting[i].place, 2);
    ck_assert_int_eq(extra.place, 0); /* it was not taken */
}

START_TEST(a_cancelled_job_frees_its_place)
{
    struct task busy, first, second;
    struct fixture f;

    open(&f, 1, 1);
    occupy(&f, &busy, 1);
    first = worker_of(&f);
    second = quick(&f);
    ck_assert_int_eq(executor_submit(f.executor, &first.job), ST_OK);
    ck_assert_int_eq(executor_submit(f.executor, &second.job), ST_UNAVAILABLE);
    (void)sem_post(&f.may_end);
    ck_assert_int_eq(sem_wait(&f.running), 0); /* the first has a thread now */
    ck_assert_int_eq(executor_submit(f.executor, &second.job), ST_OK);
    (void)sem_post(&f.may_end);
    close_all(&f);
    ck_assert_int_eq(second.place, 3);
}

START_TEST(jobs_begin_in_the_order_in_which_they_came)
{
    enum { JOBS = 100 };
    struct task busy, tasks[JOBS];
    struct fixture f;

    open(&f, 1, JOBS);
    for (int round = 0; round < 2; round++) { /* also when the queue was empty once */
        occupy(&f, &busy, 1);
        for (int i = 0; i < JOBS; i++) {
            tasks[i] = quick(&f);
            if (i == JOBS - 1)
                tasks[i].running = &f.running;
            ck_assert_int_eq(executor_submit(f.executor, &tasks[i].job), ST_OK);
        }
        (void)sem_post(&f.may_end);
        ck_assert_int_eq(sem_wait(&f.running), 0);
        for (int i = 0; i < JOBS; i++)
            ck_assert_int_eq(tasks[i].place, busy.place + 1 + i);
    }
    close_all(&f);
}

START_TEST(urgent_jobs_have_their_own_queue)
{
    enum { CAPACITY = 3 };
    struct task busy, others[CAPACITY], firsts[CAPACITY], extra;
    struct fixture f;

    open(&f, 1, CAPACITY);
    occupy(&f, &busy, 1);
    for (int i = 0; i < CAPACITY; i++) {
        others[i] = quick(&f);
        ck_assert_int_eq(executor_submit(f.executor, &others[i].job), ST_OK);
    }
    for (int i = 0; i < CAPACITY; i++) {
        firsts[i] = quick(&f);
        ck_assert_int_eq(executor_submit_first(f.executor, &firsts[i].job), ST_OK);
    }
    extra = quick(&f);
    ck_assert_int_eq(executor_submit_first(f.executor, &extra.job), ST_UNAVAILABLE);
    ck_assert_int_eq(executor_submit(f.executor, &extra.job), ST_UNAVAILABLE);
    (void)sem_post(&f.may_end);
    close_all(&f);
    for (int i = 0; i < CAPACITY; i++) {
        ck_assert_int_eq(firsts[i].place, busy.place + 1 + i);
        ck_assert_int_eq(others[i].place, busy.place + 1 + CAPACITY + i);
    }
}

START_TEST(closing_does_what_was_taken)
{
    enum { JOBS = 50 };
    struct task busy[3], tasks[JOBS];
    struct fixture f;

    open(&f, 3, JOBS);
    occupy(&f, busy, 3);
    for (int i = 0; i < JOBS; i++) {
        tasks[i] = quick(&f);
        ck_assert_int_eq(executor_submit(f.executor, &tasks[i].job), ST_OK);
    }
    for (int i = 0; i < 3; i++)
        (void)sem_post(&f.may_end);
    close_all(&f);
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_gt(tasks[i].place, 0);
    ck_assert_int_eq(atomic_load(&f.order), JOBS + 3);
}

START_TEST(as_many_jobs_as_there_are_threads_run_at_once)
{
    enum { THREADS = 16 };
    struct task tasks[THREADS];
    struct fixture f;

    open(&f, THREADS, THREADS);
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = worker_of(&f);
        ck_assert_int_eq(executor_submit(f.executor, &tasks[i].job), ST_OK);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(sem_wait(&f.running), 0); /* or it waits for ever */
    for (int i = 0; i < THREADS; i++)
        (void)sem_post(&f.may_end);
    close_all(&f);
}

/* A job whose memory is gone when it has reported so. */
struct owned {
    struct executor_job job;
    struct mem *mem;
    sem_t *done;
};

static void
free_itself(struct executor_job *job)
{
    struct owned *o = (struct owned *)job;
    sem_t *done = o->done;

    mem_free(o->mem, o);
    (void)sem_post(done);
}

enum { SENDERS = 4, SENT = 2000 };

static void *
send_many(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < SENT;) {
        struct owned *o = mem_alloc(f->mem, sizeof(*o));

        *o = (struct owned){{.run = free_itself}, f->mem, &f->running};
        if (executor_submit(f->executor, &o->job) == ST_OK) {
            i++;
            continue;
        }
        mem_free(f->mem, o);                        /* refused: still ours */
        ck_assert_int_eq(sem_wait(&f->running), 0); /* until one is done */
        ck_assert_int_eq(sem_post(&f->running), 0);
    }
    return NULL;
}

START_TEST(many_threads_send_jobs_that_are_gone_when_they_are_done)
{
    pthread_t threads[SENDERS];
    struct fixture f;
    int done = 0;

    open(&f, 3, 5);
    for (int i = 0; i < SENDERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_many, &f), 0);
    for (int i = 0; i < SENDERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    executor_close(f.executor);
    ck_assert_int_eq(sem_getvalue(&f.running, &done), 0);
    ck_assert_int_eq(done, SENDERS * SENT);
    f.executor = NULL;
    close_all(&f); /* closing none is fine */
}

START_TEST(without_memory_there_is_none)
{
    struct executor_config config = {.mem = mem_new(0), .threads = 2, .line = 2};
    struct executor *executor = NULL;

    mem_fail_nth(config.mem, 1);
    ck_assert_int_eq(executor_open(&config, &executor), ST_NO_MEMORY);
    ck_assert_ptr_null(executor);
    mem_destroy(config.mem);
}
