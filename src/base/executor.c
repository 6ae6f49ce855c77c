#include "claimd/base/executor.h"

#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

struct job_queue {
    struct executor_job *first, **last;
    size_t waiting;
};

enum { GO_FIRST, OTHERS, QUEUES };

/* A thread. An idle one gets its next job from the submitter, and is woken without the
 * lock. So it need not lock or read the queues. */
struct executor_thread {
    struct executor *executor;
    pthread_t thread;
    struct executor_thread *next; /* next idle one */
    sem_t given;
    struct executor_job *job; /* NULL: the thread ends */
};

struct executor {
    struct mem *mem;
    struct lock lock; /* guards what follows up to `closing` */
    struct job_queue queues[QUEUES];
    struct executor_thread *idle; /* latest one first; not NULL: the queues are empty */
    bool closing;
    size_t capacity;     /* of each queue */
    size_t worker_count; /* started */
    struct executor_thread workers[];
};

/* The oldest priority job, else the oldest other job; NULL: there is none. */
static struct executor_job *
job_pop(struct executor *e)
{
    struct job_queue *q = &e->queues[e->queues[GO_FIRST].waiting > 0 ? GO_FIRST : OTHERS];
    struct executor_job *job = q->first;

    if (job == NULL)
        return NULL;
    q->first = job->next;
    if (q->first == NULL)
        q->last = &q->first;
    q->waiting--;
    return job;
}

/* Waits for a job; NULL: the executor closes. */
static struct executor_job *
worker_next_job(struct executor_thread *w)
{
    struct executor *e = w->executor;
    struct executor_job *job;
    bool waits;

    lock_acquire(&e->lock);
    job = job_pop(e);
    waits = job == NULL && !e->closing;
    if (waits) {
        w->next = e->idle;
        e->idle = w;
    }
    lock_release(&e->lock);
    if (!waits)
        return job;
    while (sem_wait(&w->given) != 0)
        ENSURE(errno == EINTR);
    return w->job;
}

static void *
thread_main(void *arg)
{
    struct executor_job *job;

    while ((job = worker_next_job(arg)) != NULL)
        job->run(job);
    return NULL;
}

static enum status
start_workers(struct executor *e, size_t count)
{
    enum status st = ST_OK;

    while (st == ST_OK && e->worker_count < count) {
        struct executor_thread *w = &e->workers[e->worker_count];

        w->executor = e;
        (void)sem_init(&w->given, 0, 0); /* cannot fail for 0 */
        st = thread_start(&w->thread, thread_main, w);
        if (st == ST_OK)
            e->worker_count++;
        else
            (void)sem_destroy(&w->given);
    }
    return st;
}

enum status
executor_open(const struct executor_config *config, struct executor **out)
{
    struct executor *e;
    enum status st;

    ENSURE(config->threads > 0);
    e = mem_calloc(config->mem, 1,
                   sizeof(*e) + config->threads * sizeof(struct executor_thread));
    if (e == NULL)
        return ST_NO_MEMORY;
    e->mem = config->mem;
    e->capacity = config->line;
    for (size_t i = 0; i < QUEUES; i++)
        e->queues[i].last = &e->queues[i].first;
    lock_init(&e->lock);
    st = start_workers(e, config->threads);
    if (st != ST_OK) {
        executor_close(e);
        return st;
    }
    *out = e;
    return ST_OK;
}

static void
give(struct executor_thread *w, struct executor_job *job)
{
    w->job = job;
    (void)sem_post(&w->given);
}

static enum status
submit(struct executor *e, struct job_queue *q, struct executor_job *job)
{
    enum status st = ST_OK;
    struct executor_thread *idle;

    lock_acquire(&e->lock);
    ENSURE(!e->closing);
    idle = e->idle;
    if (idle != NULL) {
        e->idle = idle->next;
    } else if (q->waiting == e->capacity) {
        st = ST_UNAVAILABLE;
    } else {
        job->next = NULL;
        *q->last = job;
        q->last = &job->next;
        q->waiting++;
    }
    lock_release(&e->lock);
    if (idle != NULL)
        give(idle, job);
    return st;
}

enum status
executor_submit(struct executor *e, struct executor_job *job)
{
    return submit(e, &e->queues[OTHERS], job);
}

enum status
executor_submit_first(struct executor *e, struct executor_job *job)
{
    return submit(e, &e->queues[GO_FIRST], job);
}

void
executor_close(struct executor *e)
{
    struct executor_thread *idle;

    if (e == NULL)
        return;
    lock_acquire(&e->lock);
    e->closing = true;
    idle = e->idle;
    e->idle = NULL;
    lock_release(&e->lock);
    while (idle != NULL) {
        struct executor_thread *next = idle->next;

        give(idle, NULL);
        idle = next;
    }
    for (size_t i = 0; i < e->worker_count; i++) {
        (void)pthread_join(e->workers[i].thread, NULL);
        (void)sem_destroy(&e->workers[i].given);
    }
    lock_fini(&e->lock);
    mem_free(e->mem, e);
}
