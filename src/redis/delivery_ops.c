#include "redis/delivery_ops.h"
#include "claimd/base/invariant.h"
#include "redis/due.h"

#include <stdio.h>

enum {
    LEASE_MOST = 8,          /* deliveries of one script */
    LEASE_MS = 30000,        /* of a delivery */
    RENEW_MS = LEASE_MS / 3, /* time from one renewal of a lease to the next */
    POLL_MS = 1000,          /* maximum time between two polls of a list */
    QUEUE_POLL_MS = 60000    /* likewise of a queue in which nothing is due */
};

/* The length of a lease without a maintenance thread, which would renew it: three
 * years. */
static const int64_t UNRENEWED_MS = INT64_C(100000000000);

struct deliveries {
    struct lock lock;
    struct store_listener *listener; /* borrowed; NULL: none */
    struct list leased; /* deliveries without an outcome, the latest renewal last */
    struct list ready;  /* those of them that no caller has yet */
    struct due_lists queues;
};

/* A leased delivery. */
struct leased {
    struct list link;   /* in deliveries.leased */
    struct list ready;  /* in deliveries.ready, or in no list */
    int64_t renewed_ms; /* last renewal of the lease */
    int64_t version, token;
    struct store_delivery view;
    char text[]; /* of the view */
};

static int64_t
lease_ms(const struct redis_store *s)
{
    return s->maintenance == NULL ? UNRENEWED_MS : LEASE_MS;
}

void
delivery_mark_due(struct redis_store *s, const struct store_op *op,
                  const struct store_queue *where, int64_t ms)
{
    struct deliveries *d = s->deliveries;
    struct store_wakeup *wakeup = NULL;

    if (ms < 0)
        return;
    (void)due_add(s, &d->queues, op, where, ms);
    lock_acquire(&d->lock);
    if (d->listener != NULL)
        wakeup = d->listener->notify(d->listener, STORE_READY);
    lock_release(&d->lock);
    if (wakeup != NULL)
        wakeup->fire(wakeup);
}

/* ---------------------------------------------------------------------- leasing */

/* Words of the response of delivery_lease, and words of each delivery. */
enum { NOW = 1, WHEN, DOCUMENT, LEASED };
enum {
    ID,
    TOKEN,
    VERSION,
    NOTICE,
    SUBSCRIBER,
    OPTIONS,
    ENDS,
    TRIES,
    ORDINAL,
    BODY,
    TTL,
    DELAY,
    WORDS
};

/* Makes a leased delivery of the words from `at` on. NULL: no memory. */
static struct leased *
leased_new(const struct call *c, size_t at, const struct store_op *op)
{
    struct redis_store *s = c->store;
    const struct store_queue *where = c->where;
    const struct bytes document = call_item(c, DOCUMENT);
    const struct bytes subscriber = call_item(c, at + SUBSCRIBER);
    const struct bytes options = call_item(c, at + OPTIONS),
                       body = call_item(c, at + BODY);
    const size_t texts = where->project.len + where->name.len + document.len +
                         subscriber.len + options.len + body.len;
    struct leased *leased = mem_calloc(s->config.mem, 1, sizeof(*leased) + texts);
    struct store_delivery *view;
    char *to;

    if (leased == NULL)
        return NULL;
    to = leased->text;
    view = &leased->view;
    leased->renewed_ms = redis_clock_ms(s, op->now_ms);
    leased->token = call_integer(c, at + TOKEN);
    leased->version = call_integer(c, at + VERSION);
    view->store = &s->store;
    view->notice = (enum store_notice)call_integer(c, at + NOTICE);
    view->queue = (struct store_queue){.kind = where->kind};
    view->queue.project = bytes_copy_to(&to, where->project);
    view->queue.name = bytes_copy_to(&to, where->name);
    view->metadata = bytes_copy_to(&to, document);
    view->subscriber = bytes_copy_to(&to, subscriber);
    view->options = bytes_copy_to(&to, options);
    if (view->notice == STORE_NOTICE_MESSAGE)
        view->body = bytes_copy_to(&to, body);
    call_copy_id(call_item(c, at + ID), &view->subscription);
    /* Converts the time of Redis to the clock of this process. */
    view->expires_ms = op->now_ms + call_integer(c, at + ENDS) - call_integer(c, NOW);
    view->failed = (uint32_t)call_integer(c, at + TRIES);
    view->number = view->ordinal = (uint64_t)call_integer(c, at + ORDINAL);
    view->ttl_s = call_integer(c, at + TTL);
    view->delay_s = call_integer(c, at + DELAY);
    ENSURE(to <= leased->text + texts);
    view->pins[0] = leased;
    return leased;
}

/* Leases some due deliveries of a queue. *when_ms: when the queue comes due again. */
static enum status
lease_due(struct redis_store *s, const struct store_op *op,
          const struct store_queue *where, int64_t *when_ms)
{
    struct deliveries *d = s->deliveries;
    struct call c = call_begin(s, op, where);
    enum status st;

    call_limit(&c, s->maintenance == NULL ? 1 : LEASE_MOST);
    call_number(&c, lease_ms(s));
    st = call_run(&c, SCRIPT_delivery_lease, CALL_BEST_EFFORT);
    if (st == ST_OK) {
        *when_ms = call_integer(&c, WHEN);
        if (*when_ms > call_integer(&c, NOW) + QUEUE_POLL_MS)
            *when_ms = call_integer(&c, NOW) + QUEUE_POLL_MS;
    }
    for (size_t at = LEASED; st == ST_OK && call_has(&c, at); at += WORDS) {
        struct leased *leased = leased_new(&c, at, op);

        if (leased == NULL)
            continue; /* a process leases it again when this lease has ended */
        lock_acquire(&d->lock);
        list_add_before(&d->leased, &leased->link);
        list_add_before(&d->ready, &leased->ready);
        lock_release(&d->lock);
    }
    call_end(&c);
    return st;
}

/* Takes a delivery that no caller has yet. NULL: there is none. */
static struct leased *
take_ready(struct deliveries *d)
{
    struct list *link;

    lock_acquire(&d->lock);
    link = list_pop(&d->ready);
    lock_release(&d->lock);
    return link == NULL ? NULL : container_of(link, struct leased, ready);
}

enum status
redis_delivery_next(struct store *store, struct store_op *op, struct store_delivery *out)
{
    enum { POLLS_MOST = 2 * DUE_LISTS };
    struct redis_store *s = redis_of(store);
    struct deliveries *d = s->deliveries;
    struct leased *leased;
    int64_t poll_ms;

    for (int polls = 0; (leased = take_ready(d)) == NULL; polls++) {
        const unsigned list_no = due_next_list(&d->queues, &poll_ms);
        enum status st;

        if (poll_ms > redis_clock_ms(s, op->now_ms))
            return ST_NOT_FOUND;
        if (polls == POLLS_MOST)
            return ST_AGAIN;
        st = due_poll(s, &d->queues, op, list_no, lease_due);
        if (st != ST_OK && st != ST_NOT_FOUND)
            return st;
    }
    *out = leased->view;
    return ST_OK;
}

/* ---------------------------------------------------------------------- outcomes */

void
redis_delivery_done(struct store *store, struct store_op *op,
                    struct store_delivery *delivery, enum store_outcome outcome,
                    int64_t again_ms)
{
    struct redis_store *s = redis_of(store);
    struct leased *leased = delivery->pins[0];
    const struct store_delivery *view = &leased->view;
    int64_t when_ms = -1;
    struct call c = call_begin(s, op, &view->queue);

    call_text(&c, view->subscription.text);
    call_number(&c, leased->token);
    call_number(&c, leased->version);
    call_number(&c, view->notice);
    call_number(&c, (int64_t)view->ordinal);
    call_number(&c, (int64_t)outcome);
    call_number(&c, again_ms - op->now_ms);
    if (call_run(&c, SCRIPT_delivery_done, CALL_BEST_EFFORT) == ST_OK) {
        if (outcome == STORE_OUTCOME_FAILED)
            counters_add(s, &view->queue, STORE_COUNT_FAILED, 1);
        else if (view->notice == STORE_NOTICE_MESSAGE &&
                 outcome == STORE_OUTCOME_DELIVERED)
            counters_add(s, &view->queue, STORE_COUNT_NOTIFIED, 1);
        else if (view->notice == STORE_NOTICE_MESSAGE &&
                 outcome == STORE_OUTCOME_PERMANENT_FAILURE)
            counters_add(s, &view->queue, STORE_COUNT_PERMANENT_FAILURES, 1);
        when_ms = call_integer(&c, 1);
    }
    call_end(&c);
    delivery_mark_due(s, op, &view->queue, when_ms);
    lock_acquire(&s->deliveries->lock);
    ENSURE(list_linked(&leased->link) && !list_linked(&leased->ready));
    list_remove(&leased->link);
    lock_release(&s->deliveries->lock);
    mem_free(s->config.mem, leased);
    *delivery = (struct store_delivery){.store = NULL};
}

void
redis_delivery_watch(struct store *store, struct store_listener *listener)
{
    struct deliveries *d = redis_of(store)->deliveries;

    lock_acquire(&d->lock);
    d->listener = listener;
    lock_release(&d->lock);
}

/* If the oldest renewal is due, notes the renewal and copies the delivery, with the texts
 * of its queue in `text`. False: no renewal is due. */
static bool
renew_oldest(struct deliveries *d, int64_t now_ms, struct buf *text,
             struct store_delivery *view, int64_t *token)
{
    struct leased *leased = NULL;
    bool copied = false;

    lock_acquire(&d->lock);
    if (!list_empty(&d->leased))
        leased = container_of(d->leased.next, struct leased, link);
    if (leased != NULL && leased->renewed_ms + RENEW_MS > now_ms)
        leased = NULL;
    if (leased != NULL) {
        leased->renewed_ms = now_ms;
        list_remove(&leased->link);
        list_add_before(&d->leased, &leased->link);
        *view = leased->view;
        *token = leased->token;
        copied = queue_address_copy(&leased->view.queue, text, &view->queue);
    }
    lock_release(&d->lock);
    return copied;
}

int64_t
delivery_leases_renew(struct redis_store *s)
{
    struct deliveries *d = s->deliveries;
    const int64_t now_ms = clock_stopwatch_ns() / 1000000;
    const struct store_op op = {.now_ms = now_ms};
    struct store_wakeup *wakeup = NULL;
    struct store_delivery view;
    int64_t next_ms = INT64_MAX, token;
    struct buf text;

    buf_init(&text, s->config.mem);
    /* One lease at a time, so that a node that does not respond delays the other work of
     * the thread only once. */
    if (renew_oldest(d, now_ms, &text, &view, &token)) {
        struct call c = call_begin(s, &op, &view.queue);

        call_text(&c, view.subscription.text);
        call_number(&c, token);
        call_number(&c, lease_ms(s));
        (void)call_finish(&c, SCRIPT_delivery_renew, CALL_BEST_EFFORT);
    }
    buf_fini(&text);
    lock_acquire(&d->lock);
    if (d->listener != NULL)
        (void)due_next_list(&d->queues, &next_ms);
    if (next_ms <= now_ms) {
        wakeup = d->listener->notify(d->listener, STORE_READY);
        next_ms = now_ms + POLL_MS;
    }
    if (!list_empty(&d->leased)) {
        const int64_t renew_ms =
            container_of(d->leased.next, struct leased, link)->renewed_ms + RENEW_MS;

        next_ms = renew_ms < next_ms ? renew_ms : next_ms;
    }
    lock_release(&d->lock);
    if (wakeup != NULL)
        wakeup->fire(wakeup);
    return next_ms;
}

enum status
deliveries_open(struct redis_store *s)
{
    struct deliveries *d = mem_calloc(s->config.mem, 1, sizeof(*d));

    if (d == NULL)
        return ST_NO_MEMORY;
    lock_init(&d->lock);
    due_init(&d->queues, DUE_DELIVERIES, POLL_MS, 0);
    list_init(&d->leased);
    list_init(&d->ready);
    s->deliveries = d;
    return ST_OK;
}

void
deliveries_close(struct redis_store *s)
{
    struct deliveries *d = s->deliveries;
    struct list *link;

    if (d == NULL)
        return;
    while ((link = list_pop(&d->ready)) != NULL) {
        struct leased *leased = container_of(link, struct leased, ready);

        list_remove(&leased->link);
        mem_free(s->config.mem, leased);
    }
    ENSURE(list_empty(&d->leased));
    due_fini(&d->queues);
    lock_fini(&d->lock);
    mem_free(s->config.mem, d);
}
