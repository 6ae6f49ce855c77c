#include "claimd/base/executor.h"

#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"

#include <pthread.h>
#include <signal.h>

struct executor {
    struct mem *mem;
    struct lock lock; /* guards what follows up to `threads` */
    pthread_cond_t work;
    struct executor_job *first, **last; /* in line, oldest first */
    size_t waiting, room;
    bool closing;
    size_t thread_count; /* started */
    pthread_t threads[];
};

/* The oldest job, waiting for one; NULL: there will be none. */
static struct executor_job *
take(struct executor *e)
{
    struct executor_job *job;

    lock_acquire(&e->lock);
    while (e->first == NULL && !e->closing)
        lock_wait(&e->lock, &e->work);
    job = e->first;
    if (job != NULL) {
        e->first = job->next;
        if (e->first == NULL)
            e->last = &e->first;
        e->waiting--;
    }
    lock_release(&e->lock);
    return job;
}

static void *
thread_main(void *arg)
{
    struct executor *e = arg;
    struct executor_job *job;

    while ((job = take(e)) != NULL)
        job->run(job);
    return NULL;
}

static enum status
start_threads(struct executor *e, size_t count)
{
    sigset_t all, before;
    int failed = 0;

    /* Signals are for the threads of main. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    while (failed == 0 && e->thread_count < count) {
        failed = pthread_create(&e->threads[e->thread_count], NULL, thread_main, e);
        if (failed == 0)
            e->thread_count++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? ST_OK : ST_UNAVAILABLE;
}

enum status
executor_open(const struct executor_config *config, struct executor **out)
{
    struct executor *e;
    enum status st;

    ENSURE(config->threads > 0);
    e = mem_calloc(config->mem, 1, sizeof(*e) + config->threads * sizeof(pthread_t));
    if (e == NULL)
        return ST_NO_MEMORY;
    e->mem = config->mem;
    e->room = config->line;
    e->last = &e->first;
    lock_init(&e->lock);
    (void)pthread_cond_init(&e->work, NULL); /* a plain one needs no resource */
    st = start_threads(e, config->threads);
    if (st != ST_OK) {
        executor_close(e);
        return st;
    }
    *out = e;
    return ST_OK;
}

enum status
executor_submit(struct executor *e, struct executor_job *job)
{
    enum status st = ST_OK;

    lock_acquire(&e->lock);
    ENSURE(!e->closing);
    if (e->waiting == e->room) {
        st = ST_UNAVAILABLE;
    } else {
        job->next = NULL;
        *e->last = job;
        e->last = &job->next;
        e->waiting++;
        (void)pthread_cond_signal(&e->work);
    }
    lock_release(&e->lock);
    return st;
}

void
executor_close(struct executor *e)
{
    if (e == NULL)
        return;
    lock_acquire(&e->lock);
    e->closing = true;
    (void)pthread_cond_broadcast(&e->work);
    lock_release(&e->lock);
    for (size_t i = 0; i < e->thread_count; i++)
        (void)pthread_join(e->threads[i], NULL);
    (void)pthread_cond_destroy(&e->work);
    lock_fini(&e->lock);
    mem_free(e->mem, e);
}
