#include "http/stuck.h"

#include "http/front.h"

#include <sys/epoll.h>

enum { STRIKES = 3 };

/* Leaves the connection alone until something can be read. */
static void
hold_back(struct worker *w, struct conn *c)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
                                .data.ptr = c};

    /* Not watched, for want of memory: then it goes on as it is until its time is up. */
    if (epoll_ctl(w->epoll_fd, EPOLL_CTL_MOD, c->fd, &event) == 0)
        worker_hold(w, c);
}

void
stuck_look(struct worker *w)
{
    struct list *at = w->chunked.next;

    while (at != &w->chunked) {
        struct conn *c = container_of(at, struct conn, turn);

        at = at->next; /* c may leave the list */
        if (c->held || c->phase == CONN_DOOMED)
            continue;
        if (c->round == w->round) {
            c->strikes = 0;
        } else if (conn_unread(c) == UNREAD_NOTHING) {
            c->strikes = 0;
            hold_back(w, c);
        } else if (++c->strikes >= STRIKES) {
            front_give_up(w, c, REFUSAL_CHUNKS);
        }
    }
}

void
stuck_wake(struct worker *w, struct conn *c)
{
    front_watch_end(w, c);
    worker_let_go(w, c);
}
