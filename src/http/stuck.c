#include "http/stuck.h"

#include "http/front.h"

#include <sys/epoll.h>

enum { STRIKES = 3 };

void
stuck_look(struct worker *w, const struct section *s)
{
    struct list *at = w->chunked.next;

    while (at != &w->chunked) {
        struct conn *c = container_of(at, struct conn, turn);

        at = at->next; /* c may leave the list */
        if (c->section != s || c->held || c->phase == CONN_DOOMED)
            continue;
        if (c->round == w->round) {
            c->strikes = 0;
        } else if (conn_unread(c) == UNREAD_NOTHING) {
            c->strikes = 0;
            /* Not watched, for want of memory: it goes on until its time is up. */
            if (front_watch(w, c, EPOLL_CTL_MOD, EPOLLIN))
                worker_hold(w, c);
        } else if (++c->strikes >= STRIKES) {
            front_give_up(w, c, REFUSAL_CHUNKS);
        }
    }
}

void
stuck_wake(struct worker *w, struct conn *c)
{
    (void)front_watch(w, c, EPOLL_CTL_MOD, 0); /* it was in the set before */
    worker_let_go(w, c);
}
