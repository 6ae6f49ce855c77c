#include "http/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

enum status
mailbox_init(struct mailbox *m)
{
    lock_init(&m->lock);
    list_init(&m->arrived);
    m->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return m->event_fd < 0 ? ST_IO : ST_OK;
}

void
mailbox_fini(struct mailbox *m)
{
    if (m->event_fd >= 0)
        (void)close(m->event_fd);
    lock_fini(&m->lock);
}

void
mailbox_post(struct mailbox *m, struct conn *c)
{
    bool first;

    lock_acquire(&m->lock);
    first = list_empty(&m->arrived);
    list_add_before(&m->arrived, &c->link);
    lock_release(&m->lock);
    if (first)
        mailbox_wake(m);
}

void
mailbox_wake(struct mailbox *m)
{
    const uint64_t one = 1;

    /* The only failure is a full counter, which is as good as a wake-up. */
    if (write(m->event_fd, &one, sizeof(one)) < 0)
        return;
}

void
mailbox_take(struct mailbox *m, struct list *out)
{
    uint64_t count;

    /* First reset, then look: what is posted in between wakes the worker again. */
    if (read(m->event_fd, &count, sizeof(count)) < 0)
        return;
    lock_acquire(&m->lock);
    if (!list_empty(&m->arrived)) {
        *out = m->arrived;
        out->next->prev = out;
        out->prev->next = out;
        list_init(&m->arrived);
    }
    lock_release(&m->lock);
}
