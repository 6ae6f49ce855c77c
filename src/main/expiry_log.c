#include "main/expiry_log.h"

#include "claimd/base/hash.h"
#include "claimd/base/lock.h"
#include "claimd/base/thread.h"

#include <pthread.h>

enum { INTERVAL_S = 60 };

/* The counters of a queue at a check. */
struct queue_counters {
    uint64_t queue; /* hash of project, name and kind */
    uint64_t unread, dead_letters;
};

struct expiry_log {
    struct expiry_log_config config;
    struct queue_counters *last, *next; /* owned, with space for config.queues */
    size_t last_count;
    struct store_expired rest; /* of all other queues, at the last check */
    struct lock lock;          /* guards stopping */
    pthread_cond_t stop;
    bool started, stopping;
    pthread_t thread;
};

enum status
expiry_log_open(const struct expiry_log_config *config, struct expiry_log **out)
{
    struct expiry_log *e = mem_calloc(config->mem, 1, sizeof(*e));
    const size_t each = sizeof(struct queue_counters);
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

/* The increase of a counter. The counters of a queue that was created again begin at 0. */
static uint64_t
counter_growth(uint64_t last, uint64_t now)
{
    return now >= last ? now - last : now;
}

static void
log_queue(struct expiry_log *e, const struct store_queue_metrics *q,
          struct queue_counters *now)
{
    static const struct hash_key none; /* a collision only costs a line of the log */
    const struct bytes project = bytes_of(q->project, q->project_len),
                       name = bytes_of(q->name, q->name_len);
    struct queue_counters last = {.queue = 0};
    uint64_t unread;

    *now = (struct queue_counters){hash_mix(hash_bytes(&none, project) + q->kind) ^
                                       hash_bytes(&none, name),
                                   q->expired.unread, q->expired.dead_letters};
    /*
     * Counters in memory begin with the queue. Counters in Redis may be older than this process. So a
     * queue that is new here has the same counters as at the last check.
     */
    if (e->config.store->blocks)
        last = *now;
    for (size_t i = 0; i < e->last_count; i++)
        if (e->last[i].queue == now->queue)
            last = e->last[i];
    unread = counter_growth(last.unread, now->unread);
    if (unread > 0)
        log_event(
            e->config.log, LOG_WARN, "messages_expired_unread", LOG_B("project", project),
            LOG_B(q->kind == STORE_TOPIC ? "topic" : "queue", name),
            LOG_I("messages", unread),
            LOG_I("dead_letters", counter_growth(last.dead_letters, now->dead_letters)));
}

void
expiry_log_check(struct expiry_log *e)
{
    struct store_op op = {.now_ms = clock_now_ms(e->config.clock)};
    struct store_queue_metrics q;
    struct store_metrics all;
    struct queue_counters *last = e->last;
    size_t at = 0, count = 0;

    if (store_metrics(e->config.store, &op, &all) != ST_OK)
        return; /* the next check includes it */
    if (all.rest.unread > e->rest.unread)
        log_event(e->config.log, LOG_WARN, "messages_expired_unread",
                  LOG_S("queues", "not shown by metrics_queues"),
                  LOG_I("messages", all.rest.unread - e->rest.unread),
                  LOG_I("dead_letters", all.rest.dead_letters - e->rest.dead_letters));
    e->rest = all.rest;
    while (count < e->config.queues &&
           store_queue_metrics(e->config.store, &op, &at, &q) == ST_OK)
        log_queue(e, &q, &e->next[count++]);
    e->last = e->next;
    e->next = last;
    e->last_count = count;
}

static void *
expiry_log_main(void *arg)
{
    struct expiry_log *e = arg;

    expiry_log_check(e);
    lock_acquire(&e->lock);
    while (!e->stopping) {
        if (lock_wait_s(&e->lock, &e->stop, INTERVAL_S))
            continue;
        lock_release(&e->lock);
        expiry_log_check(e);
        lock_acquire(&e->lock);
    }
    lock_release(&e->lock);
    return NULL;
}

enum status
expiry_log_start(struct expiry_log *e)
{
    const enum status st = thread_start(&e->thread, expiry_log_main, e);

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
