#include "redis/waiting.h"

#include "claimd/base/invariant.h"
#include "claimd/ds/hashmap.h"
#include "claimd/store/waitqueue.h"
#include "redis/call.h"

enum {
    HOUSEKEEP_MOST = 16, /* wait queues in one housekeeping */
    WAKE_MOST = 256,     /* waiters that one thread wakes before it releases the lock */
    RETRY_MS = 1000,     /* time to the next count if Redis does not respond */
    UNNOTIFIED_MS =
        2000,         /* delay by a lost notification; 1 ms more for each wait queue */
    WATCH_MS = 60000, /* time for which scripts publish after a count */
    WHEEL_MOVES = 256 /* steps of the wheel while the lock is held */
};

struct redis_waiting {
    struct lock lock;
    struct hashmap waitqueues;
    struct list dirty_list; /* wait queues that are new to the maintenance thread */
    struct wheel *wheel;    /* timers of wait queues; NULL: there was no wait queue yet */
    bool has_maintenance;   /* waiting_set_maintenance() was called */
    void (*wake)(void *arg);
    void *arg;
    _Atomic size_t count; /* of wait queues */
};

/* ------------------------------------------------------------------ wait queues */

static bool
is_waitqueue_of(const struct hashnode *node, const void *key)
{
    return store_queue_equal(&container_of(node, const struct waitqueue, node)->where,
                             key);
}

static uint64_t
queue_hash(const struct hash_key *key, const struct store_queue *where)
{
    return hash_bytes(key, where->project) ^
           hash_mix(hash_bytes(key, where->name) + (uint64_t)where->kind);
}

/* NULL: the queue has no waiters. */
static struct waitqueue *
waitqueue_find(struct redis_store *s, const struct store_queue *where)
{
    struct redis_waiting *w = s->waiting;
    struct hashnode *node = hashmap_find(&w->waitqueues, queue_hash(&s->hash_key, where),
                                         is_waitqueue_of, where);

    lock_assert_held(&w->lock);
    return node == NULL ? NULL : container_of(node, struct waitqueue, node);
}

/* NULL: no memory. */
static struct waitqueue *
waitqueue_add(struct redis_store *s, const struct store_queue *where, int64_t now_ms)
{
    struct redis_waiting *w = s->waiting;
    struct waitqueue *waitqueue;

    lock_assert_held(&w->lock);
    if (w->wheel == NULL)
        w->wheel = wheel_new(w->waitqueues.mem, now_ms);
    if (w->wheel == NULL || hashmap_reserve(&w->waitqueues, 1) != ST_OK)
        return NULL;
    waitqueue = waitqueue_new(w->waitqueues.mem, where, &w->dirty_list);
    if (waitqueue == NULL)
        return NULL;
    if (w->has_maintenance)
        waitqueue_mark_dirty(waitqueue);
    hashmap_insert(&w->waitqueues, &waitqueue->node, queue_hash(&s->hash_key, where));
    atomic_fetch_add(&w->count, 1);
    return waitqueue;
}

static void
free_if_empty(struct redis_waiting *w, struct waitqueue *waitqueue)
{
    lock_assert_held(&w->lock);
    if (waitqueue->count > 0)
        return;
    hashmap_remove(&w->waitqueues, &waitqueue->node);
    wheel_disarm(w->wheel, &waitqueue->look);
    if (list_linked(&waitqueue->link))
        list_remove(&waitqueue->link);
    mem_free(w->waitqueues.mem, waitqueue);
    atomic_fetch_sub(&w->count, 1);
}

/* ------------------------------------------------------------------ waking */

/* Counts the ready messages. *wait_ms: time until a deadline may change the number; -1:
 * there is none. */
static enum status
count_ready(struct redis_store *s, const struct store_op *op,
            const struct store_queue *where, size_t *ready, int64_t *wait_ms)
{
    enum { READY = 1, NOW, DUE };
    enum status st;

    do {
        struct call c = call_begin(s, op, where);

        call_number(&c, s->waiting->has_maintenance ? WATCH_MS : 0);
        st = call_run(&c, SCRIPT_queue_ready, CALL_BEST_EFFORT);
        *ready = (size_t)call_integer(&c, READY);
        *wait_ms = call_integer(&c, DUE) == 0
                       ? -1
                       : call_integer(&c, DUE) - call_integer(&c, NOW);
        call_end(&c);
    } while (st == ST_AGAIN);
    return st;
}

/* Arms the timer of the wait queue (wait_ms; -1: no deadline). With a maintenance thread
 * the timer also makes up for lost notifications. */
static void
arm_timer(struct redis_waiting *w, struct waitqueue *waitqueue, int64_t now_ms,
          int64_t wait_ms)
{
    const int64_t unnotified_ms = UNNOTIFIED_MS + (int64_t)atomic_load(&w->count);

    lock_assert_held(&w->lock);

    if (w->has_maintenance && (wait_ms < 0 || wait_ms > unnotified_ms))
        wait_ms = unnotified_ms;
    if (wait_ms < 0)
        wheel_disarm(w->wheel, &waitqueue->look);
    else
        wheel_arm(w->wheel, &waitqueue->look, now_ms + wait_ms);
}

/* Asks how many messages are ready, and wakes as many waiters. */
static void
wake_ready(struct redis_store *s, const struct store_op *op,
           const struct store_queue *where)
{
    struct redis_waiting *w = s->waiting;
    struct wakeups wakeups = {.count = 0};
    int64_t wait_ms = -1;
    size_t ready = 0;
    struct waitqueue *waitqueue;

    if (count_ready(s, op, where, &ready, &wait_ms) != ST_OK) {
        ready = 0;
        wait_ms = RETRY_MS;
    }
    lock_acquire(&w->lock);
    waitqueue = waitqueue_find(s, where);
    if (waitqueue != NULL) {
        arm_timer(w, waitqueue, redis_clock_ms(s, op->now_ms), wait_ms);
        waitqueue->ready = ready;
        waitqueue_wake(waitqueue, ready, &wakeups);
    }
    lock_release(&w->lock);
    wakeups_fire(&wakeups);
    if (w->has_maintenance)
        w->wake(w->arg); /* the next deadline may be earlier now */
}

void
waiting_wake(struct redis_store *s, const struct store_op *op,
             const struct store_queue *where)
{
    struct redis_waiting *w = s->waiting;
    bool waits;

    if (atomic_load(&w->count) == 0)
        return;
    lock_acquire(&w->lock);
    waits = waitqueue_find(s, where) != NULL;
    lock_release(&w->lock);
    if (waits)
        wake_ready(s, op, where);
}

/* ------------------------------------------------------------------ waiters */

size_t
waiting_reserved(struct redis_store *s, const struct store_op *op,
                 const struct store_queue *where, size_t *limit)
{
    struct redis_waiting *w = s->waiting;
    const struct waitqueue *waitqueue;
    size_t reserved = 0;

    if (op->waiter == NULL || atomic_load(&w->count) == 0)
        return 0;
    lock_acquire(&w->lock);
    waitqueue = waitqueue_find(s, where);
    if (waitqueue != NULL)
        reserved = waitqueue_reserved(waitqueue, op->waiter);
    lock_release(&w->lock);
    if (reserved < STORE_RESERVED)
        return reserved;
    *limit = 0;
    return 0;
}

size_t
waiting_count(struct redis_store *s, const struct store_queue *where)
{
    struct redis_waiting *w = s->waiting;
    const struct waitqueue *waitqueue;
    size_t count;

    if (atomic_load(&w->count) == 0)
        return 0;
    lock_acquire(&w->lock);
    waitqueue = waitqueue_find(s, where);
    count = waitqueue == NULL ? 0 : waitqueue->count;
    lock_release(&w->lock);
    return count;
}

enum status
waiting_found_nothing(struct redis_store *s, struct store_op *op,
                      const struct store_queue *where, size_t wants)
{
    struct redis_waiting *w = s->waiting;
    struct waitqueue *waitqueue;

    if (op->waiter == NULL)
        return ST_OK;
    lock_acquire(&w->lock);
    waitqueue = waitqueue_find(s, where);
    if (waitqueue == NULL)
        waitqueue = waitqueue_add(s, where, redis_clock_ms(s, op->now_ms));
    if (waitqueue != NULL) {
        op->waiter->home = w;
        waitqueue_enter(waitqueue, op->waiter, wants);
        op->waits = true;
    }
    lock_release(&w->lock);
    if (waitqueue == NULL)
        return ST_NO_MEMORY;
    wake_ready(s, op, where); /* messages that were posted before woke no waiter */
    return ST_OK;
}

static void
remove_waiter(struct redis_waiting *w, struct store_waiter *waiter)
{
    struct waitqueue *waitqueue = waiter->waitqueue;

    lock_assert_held(&w->lock);
    if (waitqueue == NULL)
        return;
    waitqueue_leave(waitqueue, waiter);
    free_if_empty(w, waitqueue);
}

void
waiting_served(struct redis_store *s, const struct store_op *op,
               const struct store_queue *where)
{
    struct redis_waiting *w = s->waiting;

    if (op->waiter != NULL && op->waiter->home != NULL) {
        lock_acquire(&w->lock);
        remove_waiter(w, op->waiter);
        lock_release(&w->lock);
    }
    waiting_wake(s, op, where);
}

/* Wakes the waiters after this one by the last known count. They may find nothing. */
void
redis_waiter_leave(struct store *store, struct store_waiter *waiter)
{
    struct redis_waiting *w = redis_of(store)->waiting;
    struct wakeups wakeups = {.count = 0};
    struct waitqueue *waitqueue;

    if (waiter->home == NULL)
        return;
    lock_acquire(&w->lock);
    waitqueue = waiter->waitqueue;
    if (waitqueue != NULL && waitqueue->count > 1) {
        waitqueue_leave(waitqueue, waiter);
        waitqueue_wake(waitqueue, waitqueue->ready, &wakeups);
    } else {
        remove_waiter(w, waiter);
    }
    lock_release(&w->lock);
    wakeups_fire(&wakeups);
}

/* Wakes all waiters of a deleted queue. */
static void
close_waitqueue(struct redis_store *s, const struct store_queue *where)
{
    struct redis_waiting *w = s->waiting;
    struct wakeups wakeups = {.count = 0};
    struct waitqueue *waitqueue;
    bool more = atomic_load(&w->count) > 0;

    while (more) {
        lock_acquire(&w->lock);
        waitqueue = waitqueue_find(s, where);
        for (int i = 0; waitqueue != NULL && waitqueue->count > 0 && i < WAKE_MOST; i++)
            waitqueue_close(waitqueue, &wakeups);
        more = waitqueue != NULL && waitqueue->count > 0;
        if (waitqueue != NULL)
            free_if_empty(w, waitqueue);
        lock_release(&w->lock);
        wakeups_fire(&wakeups);
    }
}

/* ------------------------------------------------------------------ housekeeping */

/* A wait queue whose timer has fired; NULL: there is none. */
static struct waitqueue *
due_waitqueue(struct redis_waiting *w, int64_t now_ms)
{
    struct deadline *due;

    lock_assert_held(&w->lock);
    if (w->wheel == NULL)
        return NULL;
    (void)wheel_advance(w->wheel, now_ms, WHEEL_MOVES);
    due = wheel_drain(w->wheel);
    return due == NULL ? NULL : container_of(due, struct waitqueue, look);
}

int64_t
waiting_housekeep(struct redis_store *s, int64_t now_ms)
{
    const struct store_op op = {.now_ms = now_ms};
    struct redis_waiting *w = s->waiting;
    struct store_queue where;
    struct buf text;
    bool good = true;

    buf_init(&text, s->config.mem);
    for (int i = 0; i < HOUSEKEEP_MOST && good; i++) {
        struct waitqueue *waitqueue;

        lock_acquire(&w->lock);
        waitqueue = due_waitqueue(w, now_ms);
        good = waitqueue != NULL && queue_address_copy(&waitqueue->where, &text, &where);
        if (waitqueue != NULL && !good)
            wheel_arm(w->wheel, &waitqueue->look, now_ms + RETRY_MS);
        lock_release(&w->lock);
        if (good)
            wake_ready(s, &op, &where);
    }
    buf_fini(&text);
    return waiting_next_ms(s);
}

int64_t
waiting_next_ms(struct redis_store *s)
{
    struct redis_waiting *w = s->waiting;
    int64_t ms;

    if (atomic_load(&w->count) == 0)
        return INT64_MAX;
    lock_acquire(&w->lock);
    ms = w->wheel == NULL ? INT64_MAX : wheel_next_ms(w->wheel);
    lock_release(&w->lock);
    return ms;
}

/* ------------------------------------------------------------ the maintenance thread */

void
waiting_set_maintenance(struct redis_store *s, void (*wake)(void *arg), void *arg)
{
    struct redis_waiting *w = s->waiting;

    w->wake = wake;
    w->arg = arg;
    w->has_maintenance = true;
}

bool
waiting_take_new(struct redis_store *s, struct buf *text, struct store_queue *where)
{
    struct redis_waiting *w = s->waiting;
    struct list *link;
    bool taken;

    lock_acquire(&w->lock);
    link = list_pop(&w->dirty_list);
    taken = link != NULL &&
            queue_address_copy(&container_of(link, struct waitqueue, link)->where, text,
                               where);
    lock_release(&w->lock);
    return taken;
}

int64_t
waiting_wake_due(struct redis_store *s, int64_t now_ms)
{
    struct redis_waiting *w = s->waiting;
    struct wakeups wakeups = {.count = 0};
    struct waitqueue *waitqueue;
    int64_t ms;

    lock_acquire(&w->lock);
    for (int i = 0; i < WAKE_MOST && (waitqueue = due_waitqueue(w, now_ms)) != NULL;
         i++) {
        waitqueue_wake(waitqueue, 1, &wakeups);
        arm_timer(w, waitqueue, now_ms, -1);
    }
    ms = w->wheel == NULL ? INT64_MAX : wheel_next_ms(w->wheel);
    lock_release(&w->lock);
    wakeups_fire(&wakeups);
    return ms;
}

void
waiting_notify(struct redis_store *s, const struct store_queue *where, bool gone)
{
    struct redis_waiting *w = s->waiting;
    struct wakeups wakeups = {.count = 0};
    struct waitqueue *waitqueue;

    if (gone) {
        close_waitqueue(s, where);
        return;
    }
    lock_acquire(&w->lock);
    waitqueue = waitqueue_find(s, where);
    if (waitqueue != NULL)
        waitqueue_wake(waitqueue, 1, &wakeups);
    lock_release(&w->lock);
    wakeups_fire(&wakeups);
}

enum status
waiting_open(struct redis_store *s)
{
    struct redis_waiting *w = mem_calloc(s->config.mem, 1, sizeof(*w));

    if (w == NULL)
        return ST_NO_MEMORY;
    lock_init(&w->lock);
    list_init(&w->dirty_list);
    hashmap_init(&w->waitqueues, s->config.mem);
    s->waiting = w;
    return ST_OK;
}

void
waiting_close(struct redis_store *s)
{
    struct redis_waiting *w = s->waiting;

    if (w == NULL)
        return;
    ENSURE(w->waitqueues.count == 0);
    wheel_free(w->wheel);
    hashmap_fini(&w->waitqueues);
    lock_fini(&w->lock);
    mem_free(s->config.mem, w);
}
