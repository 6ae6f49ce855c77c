#include "claimd/store/waitqueue.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"

#include <string.h>

static struct store_waiter *
waiter_of(const struct list *link)
{
    return container_of(link, struct store_waiter, link);
}

void
wakeups_fire(struct wakeups *wakeups)
{
    for (size_t i = 0; i < wakeups->count; i++)
        wakeups->kept[i]->fire(wakeups->kept[i]);
    wakeups->count = 0;
}

/* There are rarely more wake-ups than workers, and each is returned once. */
void
wakeups_defer(struct wakeups *wakeups, struct store_wakeup *wakeup)
{
    if (wakeup == NULL)
        return;
    if (wakeups->count < WAKEUPS_DEFERRED)
        wakeups->kept[wakeups->count++] = wakeup;
    else
        wakeup->fire(wakeup);
}

struct waitqueue *
waitqueue_new(struct mem *mem, const struct store_queue *where, struct list *dirty_list)
{
    struct waitqueue *waitqueue =
        mem_alloc(mem, sizeof(*waitqueue) + where->project.len + where->name.len);
    char *to;

    if (waitqueue == NULL)
        return NULL;
    *waitqueue = (struct waitqueue){.dirty_list = dirty_list};
    list_init(&waitqueue->waiters);
    to = waitqueue->text;
    waitqueue->where.kind = where->kind;
    waitqueue->where.project = bytes_copy_to(&to, where->project);
    waitqueue->where.name = bytes_copy_to(&to, where->name);
    return waitqueue;
}

void
waitqueue_enter(struct waitqueue *waitqueue, struct store_waiter *w, size_t wants)
{
    ENSURE(wants > 0);
    w->called = false;
    w->wants = wants;
    if (w->waitqueue == waitqueue)
        return;
    ENSURE(w->waitqueue == NULL);
    w->waitqueue = waitqueue;
    list_add_before(&waitqueue->waiters, &w->link);
    waitqueue->count++;
}

void
waitqueue_leave(struct waitqueue *waitqueue, struct store_waiter *w)
{
    ENSURE(w->waitqueue == waitqueue && waitqueue->count > 0);
    list_remove(&w->link);
    w->waitqueue = NULL;
    w->called = false;
    waitqueue->count--;
}

/* True if a waiter behind so many reserved messages need not wait for earlier waiters. */
static bool
may_take(size_t reserved)
{
    return reserved < STORE_RESERVED;
}

size_t
waitqueue_reserved(const struct waitqueue *waitqueue, const struct store_waiter *w)
{
    const struct list *end = w->waitqueue == waitqueue ? &w->link : &waitqueue->waiters;
    const struct list *at = waitqueue->waiters.next;
    size_t reserved = 0;

    for (; at != end && may_take(reserved); at = at->next)
        reserved += waiter_of(at)->wants;
    return may_take(reserved) ? reserved : SIZE_MAX;
}

void
waitqueue_wake(struct waitqueue *waitqueue, size_t ready, struct wakeups *wakeups)
{
    struct list *at = waitqueue->waiters.next;

    for (size_t reserved = 0;
         at != &waitqueue->waiters && reserved < ready && may_take(reserved);
         at = at->next) {
        struct store_waiter *w = waiter_of(at);

        reserved += w->wants;
        SOMETIMES_IF(w->called, WAITER_WOKEN_TWICE);
        if (w->called)
            continue;
        w->called = true;
        wakeups_defer(wakeups, w->listener->notify(w->listener, STORE_READY));
    }
}

void
waitqueue_close(struct waitqueue *waitqueue, struct wakeups *wakeups)
{
    struct store_waiter *w = waiter_of(waitqueue->waiters.next);

    waitqueue_leave(waitqueue, w);
    wakeups_defer(wakeups, w->listener->notify(w->listener, STORE_GONE));
}

bool
waitqueue_audit(const struct waitqueue *waitqueue, size_t ready)
{
    size_t reserved = 0, n = 0;

    for (const struct list *at = waitqueue->waiters.next; at != &waitqueue->waiters;
         at = at->next) {
        const struct store_waiter *w = waiter_of(at);

        if (w->waitqueue != waitqueue || w->wants == 0)
            return false;
        if (reserved < ready && may_take(reserved) && !w->called)
            return false;
        reserved += w->wants;
        n++;
    }
    return n == waitqueue->count && n > 0;
}
