#include "http/eventq.h"

#include "claimd/base/invariant.h"

#include <sys/eventfd.h>
#include <unistd.h>

static void
fire_wakeup(struct store_wakeup *wakeup)
{
    eventq_wake(container_of(wakeup, struct eventq, wakeup));
}

enum status
eventq_init(struct eventq *q)
{
    q->source.kind = SOURCE_EVENTQ;
    q->wakeup.fire = fire_wakeup;
    lock_init(&q->lock);
    list_init(&q->events);
    atomic_init(&q->notified, false);
    atomic_init(&q->sleeping, false);
    q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return q->fd < 0 ? ST_IO : ST_OK;
}

void
eventq_fini(struct eventq *q)
{
    if (q->fd >= 0)
        (void)close(q->fd);
    lock_fini(&q->lock);
}

bool
eventq_push(struct eventq *q, struct event *event, enum event_bits bits)
{
    ENSURE(bits != 0);
    lock_acquire(&q->lock);
    event->bits |= (unsigned)bits;
    if (!list_linked(&event->link))
        list_add_before(&q->events, &event->link);
    lock_release(&q->lock);
    return eventq_notify(q);
}

bool
eventq_notify(struct eventq *q)
{
    atomic_store(&q->notified, true);
    return atomic_load(&q->sleeping) && atomic_exchange(&q->sleeping, false);
}

void
eventq_wake(struct eventq *q)
{
    (void)eventfd_write(q->fd, 1); /* fails only if the counter is full: fd is readable */
}

void
eventq_reset(struct eventq *q)
{
    eventfd_t count;

    (void)eventfd_read(q->fd, &count); /* fails if it was reset already */
}

bool
eventq_prepare_sleep(struct eventq *q)
{
    atomic_store(&q->sleeping, true);
    return !atomic_load(&q->notified);
}

void
eventq_cancel_sleep(struct eventq *q)
{
    atomic_store_explicit(&q->sleeping, false, memory_order_relaxed);
}

bool
eventq_poll(struct eventq *q)
{
    return atomic_load_explicit(&q->notified, memory_order_relaxed) &&
           atomic_exchange(&q->notified, false);
}

struct event *
eventq_take(struct eventq *q, unsigned *bits)
{
    struct event *event = NULL;
    struct list *link;

    lock_acquire(&q->lock);
    link = list_pop(&q->events);
    if (link != NULL) {
        event = container_of(link, struct event, link);
        *bits = event->bits;
        event->bits = 0;
        ENSURE(*bits != 0);
    }
    lock_release(&q->lock);
    return event;
}

void
eventq_cancel(struct eventq *q, struct event *event)
{
    lock_acquire(&q->lock);
    event->bits = 0;
    if (list_linked(&event->link))
        list_remove(&event->link);
    lock_release(&q->lock);
}
