#include "http/linger.h"

#include "claimd/base/invariant.h"
#include "claimd/ds/list.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void
linger_init(struct linger_set *l, int epoll_fd, size_t slot_count)
{
    ENSURE(slot_count > 0 && slot_count <= LINGER_SLOTS);
    l->slot_count = slot_count;
    l->epoll_fd = epoll_fd;
    l->count = 0;
    for (size_t i = 0; i < LINGER_SLOTS; i++)
        l->slots[i].fd = -1;
}

static void
slot_close(struct linger_set *l, struct linger_slot *slot)
{
    /* Somebody else, a forked child, may have the socket open: closing is not enough. */
    (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, slot->fd, NULL);
    (void)close(slot->fd);
    slot->fd = -1;
    l->count--;
}

void
linger_fini(struct linger_set *l)
{
    for (size_t i = 0; i < LINGER_SLOTS; i++)
        if (l->slots[i].fd >= 0)
            slot_close(l, &l->slots[i]);
}

/* A free slot; the one nearest to its end is freed when there is none. */
static struct linger_slot *
slot_take(struct linger_set *l)
{
    struct linger_slot *first = &l->slots[0];

    for (size_t i = 0; i < l->slot_count; i++) {
        struct linger_slot *slot = &l->slots[i];

        if (slot->fd < 0)
            return slot;
        if (slot->until_ms < first->until_ms)
            first = slot;
    }
    slot_close(l, first);
    return first;
}

void
linger_add(struct linger_set *l, int fd, int64_t now_ms)
{
    struct linger_slot *slot = slot_take(l);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &slot->source};

    (void)shutdown(fd, SHUT_WR); /* fails when the client is gone: noticed when reading */
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        (void)close(fd);
        return;
    }
    *slot = (struct linger_slot){{SOURCE_LINGER}, fd, now_ms + LINGER_MS, LINGER_BYTES};
    l->count++;
}

void
linger_read(struct linger_set *l, struct source *source)
{
    struct linger_slot *slot = container_of(source, struct linger_slot, source);
    char waste[16384];
    ssize_t n;

    ENSURE(source->kind == SOURCE_LINGER);
    if (slot->fd < 0)
        return; /* closed by an earlier event of the same round */
    n = recv(slot->fd, waste, sizeof(waste), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || (size_t)n >= slot->left)
        slot_close(l, slot);
    else
        slot->left -= (size_t)n;
}

int64_t
linger_expire(struct linger_set *l, int64_t now_ms)
{
    int64_t next = INT64_MAX;

    if (l->count == 0)
        return INT64_MAX;
    for (size_t i = 0; i < LINGER_SLOTS; i++) {
        struct linger_slot *slot = &l->slots[i];

        if (slot->fd >= 0 && slot->until_ms <= now_ms)
            slot_close(l, slot);
        else if (slot->fd >= 0 && slot->until_ms < next)
            next = slot->until_ms;
    }
    return next;
}
