#include "http/conn.h"

#include "claimd/base/invariant.h"

#include <errno.h>
#include <string.h>

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
    counter_take(&t->counts[c->phase], 1);
    if (list_linked(&c->link))
        list_remove(&c->link);
}

void
conn_enter(struct conn_table *t, struct conn *c, enum conn_phase phase, int64_t now_ms)
{
    ENSURE(phase <= CONN_CLOSING);
    if (c->phase == CONN_CLOSING)
        return;
    list_remove(&c->link);
    counter_take(&t->counts[c->phase], 1);
    counter_add(&t->counts[phase], 1);
    c->phase = phase;
    c->since_ms = now_ms;
    if (phase != CONN_CLOSING)
        list_add_before(&t->phases[phase], &c->link);
}

struct conn *
conn_first(const struct conn_table *t, enum conn_phase phase)
{
    const struct list *head = &t->phases[phase];

    ENSURE(phase < CONN_PHASES);
    return list_empty(head) ? NULL : container_of(head->next, struct conn, link);
}

static int64_t
due_ms(const struct conn_table *t, const struct conn *c)
{
    int64_t limit_ms = t->limit_ms[c->phase];

    return limit_ms == INT64_MAX ? INT64_MAX : c->since_ms + limit_ms;
}

struct conn *
conn_overdue(const struct conn_table *t, int64_t now_ms)
{
    for (size_t i = 0; i < CONN_PHASES; i++) {
        struct conn *c = conn_first(t, (enum conn_phase)i);

        if (c != NULL && due_ms(t, c) <= now_ms)
            return c;
    }
    return NULL;
}

int64_t
conn_next_ms(const struct conn_table *t)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < CONN_PHASES; i++) {
        const struct conn *c = conn_first(t, (enum conn_phase)i);

        if (c != NULL && due_ms(t, c) < next)
            next = due_ms(t, c);
    }
    return next;
}

enum conn_unread
conn_unread(const struct conn *c)
{
    char byte;
    ssize_t n;

    if (c->mhd.tls != NULL && gnutls_record_check_pending(c->mhd.tls) > 0)
        return UNREAD_DATA;
    n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n > 0)
        return UNREAD_DATA;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? UNREAD_NOTHING : UNREAD_END;
}

static size_t
count_unread(const struct list *head)
{
    size_t n = 0;

    for (const struct list *at = head->next; at != head; at = at->next)
        n += conn_unread(container_of(at, const struct conn, link)) == UNREAD_DATA;
    return n;
}

static size_t
length(const struct list *head)
{
    size_t n = 0;

    for (const struct list *at = head->next; at != head; at = at->next)
        n++;
    return n;
}

size_t
conn_unfinished(const struct conn_table *t)
{
    return length(&t->phases[CONN_RECEIVING]) + length(&t->phases[CONN_RESPONDING]) +
           length(&t->phases[CONN_SUSPENDED]) + count_unread(&t->phases[CONN_WAITING]);
}
