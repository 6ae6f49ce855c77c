#include "claimd/base/executor.h"

#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"

#include <pthread.h>
#include <signal.h>

/* Those who wait, oldest first. */
struct line {
    struct executor_job *first, **last;
    size_t waiting;
};

enum { GO_FIRST, OTHERS, LINES };

struct executor {
    struct mem *mem;
    struct lock lock; /* guards what follows up to `threads` */
    pthread_cond_t work;
    struct line lines[LINES];
    size_t room; /* in each */
    bool closing;
    size_t thread_count; /* started */
    pthread_t threads[];
};

/* The oldest job of those that go first, or of the others; NULL: there is none. */
static struct executor_job *
find(struct executor *e)
{
    struct line *l = &e->lines[e->lines[GO_FIRST].waiting > 0 ? GO_FIRST : OTHERS];
    struct executor_job *job = l->first;

    if (job == NULL)
        return NULL;
    l->first = job->next;
    if (l->first == NULL)
        l->last = &l->first;
    l->waiting--;
    return job;
}

/* Waits for a job; NULL: there will be none. */
static struct executor_job *
take(struct executor *e)
{
    struct executor_job *job;

    lock_acquire(&e->lock);
    while ((job = find(e)) == NULL && !e->closing)
        lock_wait(&e->lock, &e->work);
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
    for (size_t i = 0; i < LINES; i++)
        e->lines[i].last = &e->lines[i].first;
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

static enum status
submit(struct executor *e, struct line *l, struct executor_job *job)
{
    enum status st = ST_OK;

    lock_acquire(&e->lock);
    ENSURE(!e->closing);
    if (l->waiting == e->room) {
        st = ST_UNAVAILABLE;
    } else {
        job->next = NULL;
        *l->last = job;
        l->last = &job->next;
        l->waiting++;
        (void)pthread_cond_signal(&e->work);
    }
    lock_release(&e->lock);
    return st;
}

enum status
executor_submit(struct executor *e, struct executor_job *job)
{
    return submit(e, &e->lines[OTHERS], job);
}

enum status
executor_submit_first(struct executor *e, struct executor_job *job)
{
    return submit(e, &e->lines[GO_FIRST], job);
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
