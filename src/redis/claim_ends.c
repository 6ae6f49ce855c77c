#include "redis/claim_ends.h"

#include "claimd/base/thread.h"
#include "redis/due.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* POLL_MS is the maximum time between two polls of a list, to which other processes add,
 * too. */
enum {
    POLL_MS = 10000,
    AVOID_MS = 10000, /* how long to avoid a node after a failure */
    RETRY_MS = 1000,  /* time to the next attempt to add queues */
    ADDED_MOST = 10000
};

/* A queue that is not in its list yet. */
struct added {
    struct list link;
    struct store_queue where;
    int64_t ms;
    char text[]; /* of the queue */
};

struct claim_ends {
    struct due_lists lists;
    struct lock lock; /* guards the added queues */
    struct list added;
    size_t added_count;
    int64_t add_ms; /* when to try to add them again; redis_clock_ms() */
    int event_fd;   /* wakes the thread */
    _Atomic bool closing;
    bool has_thread;
    pthread_t thread;
};

/* ------------------------------------------------------------------ adding */

void
claim_ends_add(struct redis_store *s, const struct store_queue *where, int64_t ms)
{
    struct claim_ends *e = s->claim_ends;
    struct added *added = mem_calloc(
        s->config.mem, 1, sizeof(*added) + where->project.len + where->name.len);
    bool kept = false;
    char *to;

    if (added == NULL)
        return; /* the next such claim adds the queue if the look is late */
    to = added->text;
    added->where = *where;
    added->where.project = bytes_copy_to(&to, where->project);
    added->where.name = bytes_copy_to(&to, where->name);
    added->ms = ms;
    lock_acquire(&e->lock);
    if (e->added_count < ADDED_MOST) {
        kept = true;
        list_add_before(&e->added, &added->link);
        e->added_count++;
        e->add_ms = 0;
    }
    lock_release(&e->lock);
    if (!kept)
        mem_free(s->config.mem, added);
    (void)eventfd_write(e->event_fd, 1);
}

/* Takes the oldest queue that is not in its list. NULL: there is none. */
static struct added *
take_added(struct claim_ends *e)
{
    struct list *link;

    lock_acquire(&e->lock);
    link = list_pop(&e->added);
    e->added_count -= link != NULL;
    lock_release(&e->lock);
    return link == NULL ? NULL : container_of(link, struct added, link);
}

/* Tries to add each queue to its list once. */
static void
add_all(struct redis_store *s, const struct store_op *op)
{
    struct claim_ends *e = s->claim_ends;
    struct list failed, *link;
    size_t count = 0;
    struct added *added;

    list_init(&failed);
    lock_acquire(&e->lock);
    e->add_ms = INT64_MAX;
    lock_release(&e->lock);
    while ((added = take_added(e)) != NULL) {
        if (due_add(s, &e->lists, op, &added->where, added->ms) != ST_OK)
            list_add_before(&failed, &added->link);
        else
            mem_free(s->config.mem, added);
    }
    lock_acquire(&e->lock);
    for (; (link = list_pop(&failed)) != NULL; count++)
        list_add_before(&e->added, link);
    e->added_count += count;
    if (count > 0 && e->add_ms == INT64_MAX)
        e->add_ms = redis_clock_ms(s, op->now_ms) + RETRY_MS;
    lock_release(&e->lock);
}

/* ------------------------------------------------------------------ looking */

/* A due_work_fn. */
static enum status
look_at(struct redis_store *s, const struct store_op *op, const struct store_queue *where,
        int64_t *next_ms)
{
    enum { NEXT = 1, TRANSFERS };
    struct call c = call_begin(s, op, where);
    enum status st;

    call_word(&c, where->name);
    call_number(&c, s->config.dead_letter_ttl_s);
    call_number(&c, true);
    st = call_run(&c, SCRIPT_queue_expire, CALL_CHANGE);
    if (st == ST_OK) {
        *next_ms = call_integer(&c, NEXT);
        (void)outbox_deliver(&c, TRANSFERS, op, where); /* or the next look */
    }
    call_end(&c);
    return st;
}

void
claim_ends_step(struct redis_store *s, int64_t now_ms)
{
    struct claim_ends *e = s->claim_ends;
    const struct store_op op = {.now_ms = now_ms};
    unsigned list_no;
    int64_t poll_ms;
    bool adds;

    lock_acquire(&e->lock);
    adds = e->add_ms <= now_ms;
    lock_release(&e->lock);
    if (adds)
        add_all(s, &op);
    list_no = due_next_list(&e->lists, &poll_ms);
    if (poll_ms <= now_ms)
        (void)due_poll(s, &e->lists, &op, list_no, look_at);
}

int64_t
claim_ends_next_ms(struct redis_store *s)
{
    struct claim_ends *e = s->claim_ends;
    int64_t poll_ms, add_ms;

    (void)due_next_list(&e->lists, &poll_ms);
    lock_acquire(&e->lock);
    add_ms = e->add_ms;
    lock_release(&e->lock);
    return add_ms < poll_ms ? add_ms : poll_ms;
}

/* ------------------------------------------------------------------ thread */

static void *
thread_main(void *arg)
{
    struct redis_store *s = arg;
    struct claim_ends *e = s->claim_ends;
    struct pollfd fd = {.fd = e->event_fd, .events = POLLIN};
    eventfd_t wakeups;

    while (!atomic_load(&e->closing)) {
        const int64_t now_ms = redis_clock_ms(s, 0), next_ms = claim_ends_next_ms(s);
        const int64_t wait_ms = next_ms - now_ms < POLL_MS ? next_ms - now_ms : POLL_MS;

        if (poll(&fd, 1, wait_ms < 0 ? 0 : (int)wait_ms) > 0)
            (void)eventfd_read(e->event_fd, &wakeups);
        else
            claim_ends_step(s, redis_clock_ms(s, 0));
    }
    return NULL;
}

enum status
claim_ends_open(struct redis_store *s)
{
    struct claim_ends *e = mem_calloc(s->config.mem, 1, sizeof(*e));

    if (e == NULL)
        return ST_NO_MEMORY;
    lock_init(&e->lock);
    due_init(&e->lists, DUE_CLAIM_ENDS, POLL_MS, AVOID_MS);
    list_init(&e->added);
    e->add_ms = INT64_MAX;
    e->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->claim_ends = e;
    return e->event_fd < 0 ? ST_UNAVAILABLE : ST_OK;
}

void
claim_ends_close(struct redis_store *s)
{
    struct claim_ends *e = s->claim_ends;
    struct added *added;

    if (e == NULL)
        return;
    while ((added = take_added(e)) != NULL)
        mem_free(s->config.mem, added);
    if (e->event_fd >= 0)
        (void)close(e->event_fd);
    due_fini(&e->lists);
    lock_fini(&e->lock);
    mem_free(s->config.mem, e);
}

enum status
claim_ends_start(struct redis_store *s)
{
    const enum status st = thread_start(&s->claim_ends->thread, thread_main, s);

    s->claim_ends->has_thread = st == ST_OK;
    return st;
}

void
claim_ends_end(struct redis_store *s)
{
    struct claim_ends *e = s->claim_ends;

    if (!e->has_thread)
        return;
    atomic_store(&e->closing, true);
    (void)eventfd_write(e->event_fd, 1);
    (void)pthread_join(e->thread, NULL);
    e->has_thread = false;
}
