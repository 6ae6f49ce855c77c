#include "main/expiry_log.h"

#include "claimd/base/hash.h"
#include "claimd/base/lock.h"
#include "claimd/base/thread.h"

#include <pthread.h>

enum { EACH_S = 60 };

/* The counters of a queue at a look. */
struct seen {
    uint64_t mark; /* hash of its address */
    uint64_t unread, dead_letters;
};

struct expiry_log {
    struct expiry_log_config config;
    struct seen *last, *next; /* owned, with space for config.queues */
    size_t last_count;
    struct store_expired rest; /* at the last look */
    struct lock lock;          /* guards stopping */
    pthread_cond_t stop;
    bool started, stopping;
    pthread_t thread;
};

enum status
expiry_log_open(const struct expiry_log_config *config, struct expiry_log **out)
{
    struct expiry_log *e = mem_calloc(config->mem, 1, sizeof(*e));
    const size_t each = sizeof(struct seen);
    pthread_condattr_t attributes;

    if (e == NULL)
        return ST_NO_MEMORY;
    e->config = *config;
    lock_init(&e->lock);
    (void)pthread_condattr_init(&attributes); /* none of these can fail on Linux */
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&e->stop, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    e->last = mem_calloc(config->mem, config->queues + 1, each);
    e->next = mem_calloc(config->mem, config->queues + 1, each);
    if (e->last == NULL || e->next == NULL) {
        expiry_log_close(e);
        return ST_NO_MEMORY;
    }
    *out = e;
    return ST_OK;
}

/* A queue that was created again begins at 0. */
static uint64_t
growth(uint64_t last, uint64_t now)
{
    return now >= last ? now - last : now;
}

static void
look_at_queue(struct expiry_log *e, const struct store_queue_figures *q, struct seen *now)
{
    static const struct hash_key none; /* a collision costs a line of the log */
    const struct bytes project = bytes_of(q->project, q->project_len),
                       name = bytes_of(q->name, q->name_len);
    struct seen last = {.mark = 0};
    uint64_t unread;

    *now = (struct seen){hash_mix(hash_bytes(&none, project) + q->kind) ^
                             hash_bytes(&none, name),
                         q->expired.unread, q->expired.dead_letters};
    /*
     * Counters in memory begin with the queue; those in Redis may be older than this process, so a
     * queue that was not there at the last look is as it is now.
     */
    if (e->config.store->blocks)
        last = *now;
    for (size_t i = 0; i < e->last_count; i++)
        if (e->last[i].mark == now->mark)
            last = e->last[i];
    unread = growth(last.unread, now->unread);
    if (unread > 0)
        log_event(e->config.log, LOG_WARN, "messages_expired_unread",
                  LOG_B("project", project),
                  LOG_B(q->kind == STORE_TOPIC ? "topic" : "queue", name),
                  LOG_I("messages", unread),
                  LOG_I("dead_letters", growth(last.dead_letters, now->dead_letters)));
}

void
expiry_log_look(struct expiry_log *e)
{
    struct store_op op = {.now_ms = clock_now_ms(e->config.clock)};
    struct store_queue_figures q;
    struct store_figures all;
    struct seen *last = e->last;
    size_t at = 0, count = 0;

    if (store_figures(e->config.store, &op, &all) != ST_OK)
        return;                           /* the next look has it */
    if (all.rest.unread > e->rest.unread) /* of queues that are not shown, together */
        log_event(e->config.log, LOG_WARN, "messages_expired_unread",
                  LOG_S("queues", "not shown by metrics_queues"),
                  LOG_I("messages", all.rest.unread - e->rest.unread),
                  LOG_I("dead_letters", all.rest.dead_letters - e->rest.dead_letters));
    e->rest = all.rest;
    while (count < e->config.queues &&
           store_queue_figures(e->config.store, &op, &at, &q) == ST_OK)
        look_at_queue(e, &q, &e->next[count++]);
    e->last = e->next;
    e->next = last;
    e->last_count = count;
}

static void *
thread_main(void *arg)
{
    struct expiry_log *e = arg;

    expiry_log_look(e);
    lock_acquire(&e->lock);
    while (!e->stopping) {
        if (lock_wait_s(&e->lock, &e->stop, EACH_S))
            continue;
        lock_release(&e->lock);
        expiry_log_look(e);
        lock_acquire(&e->lock);
    }
    lock_release(&e->lock);
    return NULL;
}

enum status
expiry_log_start(struct expiry_log *e)
{
    const enum status st = thread_start(&e->thread, thread_main, e);

    e->started = st == ST_OK;
    return st;
}

void
expiry_log_close(struct expiry_log *e)
{
    if (e == NULL)
        return;
    lock_acquire(&e->lock);
    e->stopping = true;
    (void)pthread_cond_signal(&e->stop);
    lock_release(&e->lock);
    if (e->started)
        (void)pthread_join(e->thread, NULL);
    (void)pthread_cond_destroy(&e->stop);
    lock_fini(&e->lock);
    mem_free(e->config.mem, e->last);
    mem_free(e->config.mem, e->next);
    mem_free(e->config.mem, e);
}
