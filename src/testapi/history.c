#include "claimd/testapi/history.h"

#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/store/waitqueue.h"

#include <string.h>

/* An entry that is kept; its texts stand behind it. */
struct kept {
    struct list link;
    size_t bytes;
    struct history_entry entry;
    char texts[];
};

struct history {
    struct lock lock;
    struct mem *mem;
    struct list all; /* oldest first */
    size_t count, bytes;
    uint64_t last, lost;
    uint64_t last_of[HISTORY_EVENTS];
    struct list listeners;
};

const char *
history_event_name(enum history_event event)
{
    static const char *const names[] = {
#define HISTORY_NAME(name, text) text,
        HISTORY_LIST(HISTORY_NAME)
#undef HISTORY_NAME
    };

    return names[event];
}

enum status
history_new(struct mem *mem, struct history **out)
{
    struct history *h = mem_calloc(mem, 1, sizeof(*h));

    if (h == NULL)
        return ST_NO_MEMORY;
    h->mem = mem;
    lock_init(&h->lock);
    list_init(&h->all);
    list_init(&h->listeners);
    *out = h;
    return ST_OK;
}

static void
drop_oldest(struct history *h)
{
    struct kept *k = container_of(list_pop(&h->all), struct kept, link);

    h->count--;
    h->bytes -= k->bytes;
    h->lost++;
    mem_free(h->mem, k);
}

void
history_free(struct history *h)
{
    if (h == NULL)
        return;
    ENSURE(list_empty(&h->listeners));
    while (h->count > 0)
        drop_oldest(h);
    lock_fini(&h->lock);
    mem_free(h->mem, h);
}

static struct kept *
entry_copy(struct history *h, const struct history_entry *entry)
{
    enum { TEXTS = 8 };
    struct history_entry copy = *entry;
    struct bytes *const texts[TEXTS] = {
        &copy.queue.project, &copy.queue.name, &copy.target.project, &copy.target.name,
        &copy.client,        &copy.claim,      &copy.text,           &copy.ids};
    struct kept *k;
    size_t bytes = sizeof(*k);
    char *at;

    for (size_t i = 0; i < TEXTS; i++)
        bytes += texts[i]->len;
    k = mem_alloc(h->mem, bytes);
    if (k == NULL)
        return NULL;
    at = k->texts;
    for (size_t i = 0; i < TEXTS; i++)
        if (bytes_present(*texts[i]))
            *texts[i] = bytes_lay(&at, *texts[i]);
    k->bytes = bytes;
    k->entry = copy;
    return k;
}

void
history_add(struct history *h, const struct history_entry *entry)
{
    struct wakeups wakeups = {.count = 0};
    struct kept *k;

    lock_acquire(&h->lock);
    k = entry_copy(h, entry);
    h->last++;
    h->last_of[entry->event] = h->last;
    if (k == NULL) {
        h->lost++;
    } else {
        k->entry.number = h->last;
        list_add_before(&h->all, &k->link);
        h->count++;
        h->bytes += k->bytes;
    }
    while (h->count > HISTORY_MOST || h->bytes > HISTORY_BYTES)
        drop_oldest(h);
    for (struct list *at = h->listeners.next; at != &h->listeners; at = at->next) {
        struct store_listener *w = container_of(at, struct store_listener, link);

        wakeups_defer(&wakeups, w->notify(w, STORE_READY));
    }
    lock_release(&h->lock);
    wakeups_fire(&wakeups);
}

uint64_t
history_last(struct history *h)
{
    uint64_t last;

    lock_acquire(&h->lock);
    last = h->last;
    lock_release(&h->lock);
    return last;
}

uint64_t
history_last_of(struct history *h, enum history_event first, enum history_event last)
{
    uint64_t found = 0;

    lock_acquire(&h->lock);
    for (size_t i = first; i <= (size_t)last; i++)
        if (found < h->last_of[i])
            found = h->last_of[i];
    lock_release(&h->lock);
    return found;
}

uint64_t
history_lost(struct history *h)
{
    uint64_t lost;

    lock_acquire(&h->lock);
    lost = h->lost;
    lock_release(&h->lock);
    return lost;
}

static struct kept *
kept_of(struct list *link)
{
    return container_of(link, struct kept, link);
}

uint64_t
history_gone(struct history *h, uint64_t since)
{
    uint64_t first;

    lock_acquire(&h->lock);
    first = list_empty(&h->all) ? h->last + 1 : kept_of(h->all.next)->entry.number;
    lock_release(&h->lock);
    return first > since + 1 ? first - since - 1 : 0;
}

void
history_read(struct history *h, uint64_t since, history_show_fn *show, void *ctx)
{
    struct list *at;

    lock_acquire(&h->lock);
    at = h->all.prev; /* who asks mostly wants the latest */
    while (at != &h->all && kept_of(at)->entry.number > since)
        at = at->prev;
    for (at = at->next; at != &h->all; at = at->next)
        if (!show(ctx, &kept_of(at)->entry))
            break;
    lock_release(&h->lock);
}

void
history_watch(struct history *h, struct store_listener *listener)
{
    lock_acquire(&h->lock);
    list_add_before(&h->listeners, &listener->link);
    lock_release(&h->lock);
}

void
history_unwatch(struct history *h, struct store_listener *listener)
{
    lock_acquire(&h->lock);
    list_remove(&listener->link);
    lock_release(&h->lock);
}
