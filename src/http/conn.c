#include "http/conn.h"

#include "claimd/base/invariant.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

void
conn_table_init(struct conn_table *t, int64_t idle_ms, int64_t request_ms)
{
    for (size_t i = 0; i < CONN_PHASES; i++)
        list_init(&t->phases[i]);
    t->limit_ms[CONN_WAITING] = idle_ms;
    t->limit_ms[CONN_RECEIVING] = request_ms;
    t->limit_ms[CONN_RESPONDING] = request_ms;
    t->limit_ms[CONN_SUSPENDED] = INT64_MAX;
    memset(t->counts, 0, sizeof(t->counts));
    t->count = 0;
}

void
conn_table_add(struct conn_table *t, struct conn *c, int64_t now_ms)
{
    ENSURE(!list_linked(&c->link)); /* it is in no phase yet */
    t->count++;
    c->phase = CONN_WAITING;
    counter_add(&t->counts[c->phase], 1);
    c->since_ms = now_ms;
    list_add_before(&t->phases[CONN_WAITING], &c->link);
}

void
conn_table_remove(struct conn_table *t, struct conn *c)
{
    ENSURE(t->count > 0);
    t->count--;
    counter_subtract(&t->counts[c->phase], 1);
    if (list_linked(&c->link))
        list_remove(&c->link);
}

void
conn_set_phase(struct conn_table *t, struct conn *c, enum conn_phase phase,
               int64_t now_ms)
{
    ENSURE(phase <= CONN_CLOSING);
    if (c->phase == CONN_CLOSING)
        return;
    list_remove(&c->link);
    counter_subtract(&t->counts[c->phase], 1);
    counter_add(&t->counts[phase], 1);
    c->phase = phase;
    c->since_ms = now_ms;
    if (phase != CONN_CLOSING)
        list_add_before(&t->phases[phase], &c->link);
}

struct conn *
conn_earliest(const struct conn_table *t, int64_t *due_ms)
{
    struct conn *earliest = NULL;

    *due_ms = INT64_MAX;
    for (size_t i = 0; i < CONN_PHASES; i++) {
        struct conn *c = container_of(t->phases[i].next, struct conn, link);

        if (list_empty(&t->phases[i]) || t->limit_ms[i] == INT64_MAX ||
            c->since_ms + t->limit_ms[i] >= *due_ms)
            continue;
        *due_ms = c->since_ms + t->limit_ms[i];
        earliest = c;
    }
    return earliest;
}

enum conn_unread
conn_unread(const struct conn *c)
{
    char byte;
    ssize_t n;

    if (c->mhd.tls != NULL && (transport_has_input(&c->mhd.transport) ||
                               gnutls_record_check_pending(c->mhd.tls) > 0))
        return UNREAD_DATA;
    n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0)
        return UNREAD_DATA;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? UNREAD_NOTHING : UNREAD_END;
}

/* States of <netinet/tcp.h>, which cannot stand beside <linux/tcp.h>. */
enum { FIN_WAIT1 = 4, FIN_WAIT2 = 5, CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 };

/* True if this side of the connection is closed. */
static bool
is_shut_down(unsigned state)
{
    return state == FIN_WAIT1 || state == FIN_WAIT2 || state == LAST_ACK ||
           state == CLOSING;
}

bool
conn_has_part(const struct conn *c)
{
    const size_t needed = offsetof(struct tcp_info, tcpi_bytes_received) +
                          sizeof((struct tcp_info){0}.tcpi_bytes_received);
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    uint64_t read;
    int unread = 0;

    /* In this order, bytes that arrive between the calls make the result true. */
    if (c->mhd.tls != NULL || ioctl(c->fd, SIOCINQ, &unread) != 0 ||
        getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 || len < needed)
        return true;
    if (is_shut_down(info.tcpi_state))
        return false;
    read = (uint64_t)info.tcpi_bytes_received - (uint64_t)unread;
    if (info.tcpi_state == CLOSE_WAIT)
        read--; /* the end of the input counts as a byte */
    return read != c->mhd.ended_bytes;
}

size_t
conn_unsent(const struct conn *c)
{
    int bytes = 0;

    return ioctl(c->fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

void
conn_drop_unsent(const struct conn *c)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (conn_unsent(c) > 0)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

size_t
conn_unfinished(const struct conn_table *t)
{
    const struct list *head = &t->phases[CONN_WAITING];
    size_t n = counter_read(&t->counts[CONN_RECEIVING]) +
               counter_read(&t->counts[CONN_RESPONDING]) +
               counter_read(&t->counts[CONN_SUSPENDED]);

    for (const struct list *at = head->next; at != head; at = at->next)
        n += conn_unread(container_of(at, const struct conn, link)) == UNREAD_DATA;
    return n;
}

/* ------------------------------------------------------------------ lingering close */

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
    ENSURE(slot->fd >= 0 && l->count > 0);
    /* close() does not end the events of a socket that a forked child has open, too. */
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

void
linger_add(struct linger_set *l, int fd, int64_t now_ms)
{
    struct linger_slot *slot = &l->slots[0];
    struct epoll_event event = {.events = EPOLLIN};

    /* A free slot, or else the one nearest to its end. */
    for (size_t i = 1; i < l->slot_count && slot->fd >= 0; i++)
        if (l->slots[i].fd < 0 || l->slots[i].until_ms < slot->until_ms)
            slot = &l->slots[i];
    if (slot->fd >= 0)
        slot_close(l, slot);
    event.data.ptr = &slot->source;
    (void)shutdown(fd, SHUT_WR); /* fails if the client is gone: recv() reports that */
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
