#include "http/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

static void
fire(struct store_wakeup *wakeup)
{
    mailbox_wake(container_of(wakeup, struct mailbox, wakeup));
}

enum status
mailbox_init(struct mailbox *m)
{
    m->source.kind = SOURCE_MAILBOX;
    m->wakeup.fire = fire;
    lock_init(&m->lock);
    list_init(&m->posted);
    atomic_init(&m->noted, false);
    atomic_init(&m->resting, false);
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

bool
mailbox_post(struct mailbox *m, struct mail *mail, enum mail_news news)
{
    lock_acquire(&m->lock);
    mail->news |= (unsigned)news;
    if (!list_linked(&mail->link))
        list_add_before(&m->posted, &mail->link);
    lock_release(&m->lock);
    return mailbox_note(m);
}

bool
mailbox_note(struct mailbox *m)
{
    atomic_store(&m->noted, true);
    return atomic_load(&m->resting) && atomic_exchange(&m->resting, false);
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
mailbox_reset(struct mailbox *m)
{
    uint64_t count;

    if (read(m->event_fd, &count, sizeof(count)) < 0)
        return; /* it was reset already */
}

bool
mailbox_rest(struct mailbox *m)
{
    atomic_store(&m->resting, true);
    return !atomic_load(&m->noted);
}

void
mailbox_rise(struct mailbox *m)
{
    atomic_store_explicit(&m->resting, false, memory_order_relaxed);
}

bool
mailbox_look(struct mailbox *m)
{
    return atomic_load_explicit(&m->noted, memory_order_relaxed) &&
           atomic_exchange(&m->noted, false);
}

struct mail *
mailbox_take(struct mailbox *m, unsigned *news)
{
    struct mail *mail = NULL;
    struct list *link;

    lock_acquire(&m->lock);
    link = list_pop(&m->posted);
    if (link != NULL) {
        mail = container_of(link, struct mail, link);
        *news = mail->news;
        mail->news = 0;
    }
    lock_release(&m->lock);
    return mail;
}

void
mailbox_cancel(struct mailbox *m, struct mail *mail)
{
    lock_acquire(&m->lock);
    mail->news = 0;
    if (list_linked(&mail->link))
        list_remove(&mail->link);
    lock_release(&m->lock);
}
