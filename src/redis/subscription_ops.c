#include "redis/subscription_ops.h"

#include <stdio.h>

/* ---------------------------------------------------------------------- views */

/* What the views point into. */
struct shown_subscriptions {
    redisReply *response;
    struct store_subscription views[];
};

size_t
show_subscription_count(const struct call *c)
{
    return (call_count(c) - SHOWN_FIRST) / SHOWN_WORDS;
}

void
show_subscription_id(struct bytes text, struct store_id *out)
{
    (void)snprintf(out->text, sizeof(out->text), "%.*s", (int)text.len,
                   text.len == 0 ? "" : text.data);
}

static void
fill_view(const struct call *c, size_t at, const struct store_op *op,
          struct store_subscription *out)
{
    const int64_t again_ms = call_integer(c, at + SHOWN_AGAIN);

    *out = (struct store_subscription){
        .subscriber = call_item(c, at + SHOWN_SUBSCRIBER),
        .options = call_item(c, at + SHOWN_OPTIONS),
        .ttl_s = call_integer(c, at + SHOWN_TTL),
        .age_s =
            (call_integer(c, SHOWN_NOW) - call_integer(c, at + SHOWN_STARTED)) / 1000,
        .confirmed = call_integer(c, at + SHOWN_CONFIRMED) != 0,
        .progress = {
            .delivered = (uint64_t)call_integer(c, at + SHOWN_DELIVERED),
            .given_up = (uint64_t)call_integer(c, at + SHOWN_GIVEN_UP),
            .fallen_out = (uint64_t)call_integer(c, at + SHOWN_FALLEN_OUT),
            .behind = (uint64_t)call_integer(c, at + SHOWN_BEHIND),
            .failures = (uint64_t)call_integer(c, at + SHOWN_FAILURES),
            .failed = (uint32_t)call_integer(c, at + SHOWN_FAILED),
            .lent = call_integer(c, at + SHOWN_LEASED) != 0,
            /* A time of Redis, by the clock of this process; 0: none. */
            .next_try_ms =
                again_ms == 0 ? 0 : again_ms - call_integer(c, SHOWN_NOW) + op->now_ms}};
    show_subscription_id(call_item(c, at + SHOWN_ID), &out->id);
}

/* Shows them, and the marker behind the last one. The views take the response over. ST_NO_MEMORY. */
static enum status
show_subscriptions(struct call *c, const struct store_op *op,
                   struct store_subscriptions *out)
{
    const size_t count = show_subscription_count(c);
    struct shown_subscriptions *shown;

    *out = STORE_SUBSCRIPTIONS_INIT;
    if (count == 0)
        return ST_OK;
    shown =
        mem_alloc(c->store->config.mem, sizeof(*shown) + count * sizeof(shown->views[0]));
    if (shown == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        fill_view(c, SHOWN_FIRST + i * SHOWN_WORDS, op, &shown->views[i]);
    (void)snprintf(out->next.text, sizeof(out->next.text), "%lld",
                   (long long)call_integer(c, SHOWN_FIRST + (count - 1) * SHOWN_WORDS));
    out->store = &c->store->store;
    out->views = shown->views;
    out->count = count;
    shown->response = call_take_response(c);
    return ST_OK;
}

void
redis_subscriptions_release(const struct store *store,
                            struct store_subscriptions *subscriptions)
{
    struct redis_store *s = redis_of((struct store *)(uintptr_t)store);
    struct shown_subscriptions *shown =
        container_of(subscriptions->views, struct shown_subscriptions, views[0]);

    wire_give_back(&s->cluster.wire, shown->response);
    mem_free(s->config.mem, shown);
}

enum status
redis_subscription_create(struct store *store, struct store_op *op,
                          const struct store_queue *where,
                          const struct store_subscription_draft *draft,
                          struct store_subscribed *out)
{
    enum { TAG = 1, UNLISTED, ID, CREATED, CONFIRMED };
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);
    enum status st;

    call_digits(&c, TAG_DIGITS);
    call_number(&c, s->config.require_confirmation);
    call_digits(&c, SECRET_DIGITS);
    call_word(&c, draft->subscriber);
    call_word(&c, draft->options);
    call_number(&c, draft->ttl_s);
    st = call_run(&c, SCRIPT_subscription_create, CALL_CHANGES);
    if (st == ST_OK) {
        *out = (struct store_subscribed){.created = call_integer(&c, CREATED) != 0,
                                         .confirmed = call_integer(&c, CONFIRMED) != 0};
        show_subscription_id(call_item(&c, ID), &out->id);
        delivery_is_due(s, op, where, 0);
        if (call_integer(&c, UNLISTED) != 0)
            st = queue_index_add(s, op, where, call_item(&c, TAG));
    }
    call_end(&c);
    return st;
}

enum status
redis_subscription_get(struct store *store, struct store_op *op,
                       const struct store_queue *where, struct bytes id,
                       struct store_subscriptions *out)
{
    struct call c = call_begin(redis_of(store), op, where);
    enum status st;

    call_id(&c, id);
    st = call_run(&c, SCRIPT_subscription_get, CALL_LOOKS);
    if (st == ST_OK)
        st = show_subscriptions(&c, op, out);
    call_end(&c);
    return st;
}

enum status
redis_subscription_list(struct store *store, struct store_op *op,
                        const struct store_queue *where, struct bytes marker,
                        size_t limit, struct store_subscriptions *out)
{
    struct call c = call_begin(redis_of(store), op, where);
    enum status st;

    call_marker(&c, marker);
    call_limit(&c, limit);
    call_text(&c, "");
    st = call_run(&c, SCRIPT_subscription_list, CALL_LOOKS);
    if (st == ST_OK)
        st = show_subscriptions(&c, op, out);
    call_end(&c);
    return st;
}

/* ---------------------------------------------------------------------- change */

/* Runs a change of one that exists; a delivery may be due then. */
static enum status
run_change(struct call *c, enum script script, const struct store_op *op,
           const struct store_queue *where)
{
    struct redis_store *s = c->store;
    int64_t when_ms = -1;
    enum status st = call_run(c, script, CALL_CHANGES);

    if (st == ST_OK)
        when_ms = call_integer(c, 1);
    call_end(c);
    delivery_is_due(s, op, where, when_ms);
    return st;
}

enum status
redis_subscription_update(struct store *store, struct store_op *op,
                          const struct store_queue *where, struct bytes id,
                          const struct store_subscription_draft *draft)
{
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);

    call_id(&c, id);
    call_number(&c, s->config.require_confirmation);
    call_number(&c, bytes_present(draft->subscriber));
    call_word(&c, draft->subscriber);
    call_number(&c, bytes_present(draft->options));
    call_word(&c, draft->options);
    call_number(&c, draft->ttl_s);
    return run_change(&c, SCRIPT_subscription_update, op, where);
}

enum status
redis_subscription_confirm(struct store *store, struct store_op *op,
                           const struct store_queue *where, struct bytes id,
                           bool confirmed)
{
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);

    call_id(&c, id);
    call_number(&c, s->config.require_confirmation);
    call_number(&c, confirmed);
    return run_change(&c, SCRIPT_subscription_confirm, op, where);
}

enum status
redis_subscription_delete(struct store *store, struct store_op *op,
                          const struct store_queue *where, struct bytes id)
{
    struct call c = call_begin(redis_of(store), op, where);

    call_id(&c, id);
    return call_finish(&c, SCRIPT_subscription_delete, CALL_CHANGES);
}

enum {
    PARTS = 8,              /* lists of queues with something due */
    LEASE_MOST = 8,         /* deliveries in one call */
    LEASE_MS = 30000,       /* of a delivery, and of a queue that a process looks at */
    KEEP_MS = LEASE_MS / 3, /* the lease is renewed when so much of it has gone */
    LOOK_MS = 1000,         /* a process looks into each list at least so often, */
    AGAIN_MS = 60000        /* and at a queue in which nothing is due */
};

static const int64_t UNKEPT_MS = INT64_C(100000000000); /* three years */

struct deliveries {
    struct lock lock;
    struct store_listener *listener; /* borrowed; NULL: none */
    struct list leased;     /* all without an outcome, the one renewed last behind */
    struct list ready;      /* of these: those that are not handed out yet */
    int64_t look_ms[PARTS]; /* when to look into a list; redis_clock_ms() */
    bool hurried[PARTS];    /* a queue was entered after the last look began */
};

/* One that is leased; texts stand behind it. */
struct leased {
    struct list link;  /* in all that is leased */
    struct list ready; /* in what is not handed out yet */
    int64_t kept_ms;   /* when its lease was renewed */
    int64_t version, token;
    struct store_delivery view;
    char text[];
};

/* Without a maintenance thread, which renews leases, they last. */
static int64_t
lease_ms(const struct redis_store *s)
{
    return s->maintenance == NULL ? UNKEPT_MS : LEASE_MS;
}

/* ---------------------------------------------------------------------- lists of queues */

/* Reads the name of a queue in a list: kind, length of the project, project, name. */
static bool
read_member(struct bytes text, struct store_queue *out)
{
    struct bytes rest = text, number;
    uint64_t len;

    if (text.len < 3)
        return false;
    out->kind = text.data[0] == 't' ? STORE_TOPIC : STORE_QUEUE;
    rest.data++;
    rest.len--;
    number = bytes_cut(&rest, ':');
    if (!bytes_to_u64(number, &len) || !bytes_present(rest) || len > rest.len)
        return false;
    out->project = bytes_of(rest.data, (size_t)len);
    out->name = bytes_of(rest.data + len, rest.len - (size_t)len);
    return true;
}

/* Begins a call about a list, and about a queue in it (NULL: none). */
static struct call
begin_part(struct redis_store *s, const struct store_op *op, unsigned part,
           const struct store_queue *where)
{
    struct buf key, member;
    struct call c;

    buf_init(&key, s->config.mem);
    key_of_due(&key, part);
    c = call_begin_key(s, &key);
    call_time(&c, op);
    if (where == NULL)
        return c;
    buf_init(&member, s->config.mem);
    buf_printf(&member, "%c%zu:", where->kind == STORE_TOPIC ? 't' : 'q',
               where->project.len);
    buf_bytes(&member, where->project);
    buf_bytes(&member, where->name);
    call_buf(&c, &member);
    return c;
}

void
delivery_is_due(struct redis_store *s, const struct store_op *op,
                const struct store_queue *where, int64_t ms)
{
    struct deliveries *d = s->deliveries;
    struct store_wakeup *wakeup = NULL;
    struct buf key;
    unsigned part;
    struct call c;

    if (ms < 0)
        return;
    buf_init(&key, s->config.mem);
    key_of_queue(&key, where);
    part = key.failed ? 0 : slot_of(buf_view(&key)) % PARTS;
    buf_fini(&key);
    c = begin_part(s, op, part, where);
    call_number(&c, ms);
    (void)call_finish(&c, SCRIPT_due_enter, CALL_NOTES);
    lock_acquire(&d->lock);
    d->look_ms[part] = INT64_MIN;
    d->hurried[part] = true;
    if (d->listener != NULL)
        wakeup = d->listener->notify(d->listener, STORE_READY);
    lock_release(&d->lock);
    if (wakeup != NULL)
        wakeup->fire(wakeup);
}

/* ---------------------------------------------------------------------- leasing */

/* Words of the response of delivery_lease, and of each delivery. */
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

/* NULL: no memory. */
static struct leased *
new_leased(const struct call *c, size_t at, const struct store_op *op)
{
    struct redis_store *s = c->store;
    const struct store_queue *where = c->where;
    const struct bytes document = call_item(c, DOCUMENT);
    const struct bytes subscriber = call_item(c, at + SUBSCRIBER);
    const struct bytes options = call_item(c, at + OPTIONS),
                       body = call_item(c, at + BODY);
    struct leased *leased =
        mem_calloc(s->config.mem, 1,
                   sizeof(*leased) + where->project.len + where->name.len + document.len +
                       subscriber.len + options.len + body.len);
    struct store_delivery *view;
    char *to;

    if (leased == NULL)
        return NULL;
    to = leased->text;
    view = &leased->view;
    leased->kept_ms = redis_clock_ms(s, op->now_ms);
    leased->token = call_integer(c, at + TOKEN);
    leased->version = call_integer(c, at + VERSION);
    view->store = &s->store;
    view->notice = (enum store_notice)call_integer(c, at + NOTICE);
    view->queue = (struct store_queue){.kind = where->kind};
    view->queue.project = bytes_lay(&to, where->project);
    view->queue.name = bytes_lay(&to, where->name);
    view->metadata = bytes_lay(&to, document);
    view->subscriber = bytes_lay(&to, subscriber);
    view->options = bytes_lay(&to, options);
    if (view->notice == STORE_NOTICE_MESSAGE)
        view->body = bytes_lay(&to, body);
    show_subscription_id(call_item(c, at + ID), &view->subscription);
    /* The end is Redis' time; here it is ours. */
    view->expires_ms = op->now_ms + call_integer(c, at + ENDS) - call_integer(c, NOW);
    view->failed = (uint32_t)call_integer(c, at + TRIES);
    view->number = view->ordinal = (uint64_t)call_integer(c, at + ORDINAL);
    view->ttl_s = call_integer(c, at + TTL);
    view->delay_s = call_integer(c, at + DELAY);
    view->pins[0] = leased;
    return leased;
}

/* Leases some of what is due in a queue. *when_ms: when to look at it again. */
static enum status
lease_some(struct redis_store *s, const struct store_op *op,
           const struct store_queue *where, int64_t *when_ms)
{
    struct deliveries *d = s->deliveries;
    struct call c = call_begin(s, op, where);
    enum status st;

    call_limit(&c, s->maintenance == NULL ? 1 : LEASE_MOST);
    call_number(&c, lease_ms(s));
    st = call_run(&c, SCRIPT_delivery_lease, CALL_NOTES);
    if (st == ST_OK) {
        *when_ms = call_integer(&c, WHEN);
        if (*when_ms > call_integer(&c, NOW) + AGAIN_MS)
            *when_ms = call_integer(&c, NOW) + AGAIN_MS;
    }
    for (size_t at = LEASED; st == ST_OK && call_has(&c, at); at += WORDS) {
        struct leased *leased = new_leased(&c, at, op);

        if (leased == NULL)
            continue; /* it is leased again when its lease has ended */
        lock_acquire(&d->lock);
        list_add_before(&d->leased, &leased->link);
        list_add_before(&d->ready, &leased->ready);
        lock_release(&d->lock);
    }
    call_end(&c);
    return st;
}

/* Takes a queue out of a list, and leases what is due there. ST_NOT_FOUND: none is due. */
static enum status
look_into(struct redis_store *s, const struct store_op *op, unsigned part)
{
    enum { TAKEN_NOW = 1, NEXT, QUEUE, UNTIL };
    struct deliveries *d = s->deliveries;
    struct store_queue where;
    struct call c;
    int64_t wait_ms = LOOK_MS, when_ms = 0;
    enum status st;

    lock_acquire(&d->lock);
    d->hurried[part] = false;
    lock_release(&d->lock);
    c = begin_part(s, op, part, NULL);
    call_number(&c, lease_ms(s));
    st = call_run(&c, SCRIPT_due_take, CALL_NOTES);
    if (st == ST_OK && call_integer(&c, NEXT) > 0 &&
        call_integer(&c, NEXT) - call_integer(&c, TAKEN_NOW) < wait_ms)
        wait_ms = call_integer(&c, NEXT) - call_integer(&c, TAKEN_NOW);
    if (st == ST_OK && read_member(call_item(&c, QUEUE), &where)) {
        st = lease_some(s, op, &where, &when_ms);
        if (st == ST_OK) {
            struct call put_back = begin_part(s, op, part, &where);

            call_number(&put_back, call_integer(&c, UNTIL));
            call_number(&put_back, when_ms);
            (void)call_finish(&put_back, SCRIPT_due_set, CALL_NOTES);
        }
        wait_ms = 0;
    } else if (st == ST_OK) {
        st = ST_NOT_FOUND;
    }
    call_end(&c);
    lock_acquire(&d->lock);
    if (!d->hurried[part])
        d->look_ms[part] = redis_clock_ms(s, op->now_ms) + wait_ms;
    lock_release(&d->lock);
    return st;
}

/* What is to be handed out next, or else the list to look into now (PARTS: none). */
static struct leased *
next_ready(struct deliveries *d, int64_t now_ms, unsigned *part)
{
    struct list *link;
    unsigned least = 0;

    lock_acquire(&d->lock);
    link = list_pop(&d->ready);
    for (unsigned i = 1; i < PARTS; i++)
        if (d->look_ms[i] < d->look_ms[least])
            least = i;
    *part = d->look_ms[least] > now_ms ? PARTS : least;
    lock_release(&d->lock);
    return link == NULL ? NULL : container_of(link, struct leased, ready);
}

enum status
redis_delivery_next(struct store *store, struct store_op *op, struct store_delivery *out)
{
    enum { LOOKS = 2 * PARTS };
    struct redis_store *s = redis_of(store);
    unsigned part;
    struct leased *leased = NULL;

    for (int looks = 0;; looks++) {
        enum status st;

        leased = next_ready(s->deliveries, redis_clock_ms(s, op->now_ms), &part);
        if (leased != NULL)
            break;
        if (looks == LOOKS)
            return ST_AGAIN;
        st = part == PARTS ? ST_NOT_FOUND : look_into(s, op, part);
        if (part == PARTS || (st != ST_OK && st != ST_NOT_FOUND))
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
    if (call_run(&c, SCRIPT_delivery_done, CALL_NOTES) == ST_OK) {
        if (outcome == STORE_OUTCOME_FAILED)
            counters_add(s, STORE_COUNT_FAILED, 1);
        else if (view->notice == STORE_NOTICE_MESSAGE &&
                 outcome == STORE_OUTCOME_DELIVERED)
            counters_add(s, STORE_COUNT_NOTIFIED, 1);
        else if (view->notice == STORE_NOTICE_MESSAGE &&
                 outcome == STORE_OUTCOME_GIVEN_UP)
            counters_add(s, STORE_COUNT_GIVEN_UP, 1);
        when_ms = call_integer(&c, 1);
    }
    call_end(&c);
    delivery_is_due(s, op, &view->queue, when_ms);
    lock_acquire(&s->deliveries->lock);
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

/* Copies the delivery with the oldest lease, with its texts in `text`, as just renewed. False: none is to be
 * renewed now. */
static bool
copy_oldest(struct deliveries *d, int64_t now_ms, struct buf *text,
            struct store_delivery *view, int64_t *token)
{
    struct leased *leased = NULL;
    bool copied = false;

    lock_acquire(&d->lock);
    if (!list_empty(&d->leased))
        leased = container_of(d->leased.next, struct leased, link);
    if (leased != NULL && leased->kept_ms + KEEP_MS > now_ms)
        leased = NULL;
    if (leased != NULL) {
        leased->kept_ms = now_ms;
        list_remove(&leased->link);
        list_add_before(&d->leased, &leased->link);
        *view = leased->view;
        *token = leased->token;
        copied = address_copy(&leased->view.queue, text, &view->queue);
    }
    lock_release(&d->lock);
    return copied;
}

int64_t
delivery_keep(struct redis_store *s)
{
    struct deliveries *d = s->deliveries;
    const int64_t now_ms = clock_stopwatch_ns() / 1000000;
    const struct store_op op = {.now_ms = now_ms};
    struct store_wakeup *wakeup = NULL;
    struct store_delivery view;
    int64_t next_ms = INT64_MAX, token;
    struct buf text;

    buf_init(&text, s->config.mem);
    /* One at a time: a node that does not respond delays the others no longer than that. */
    if (copy_oldest(d, now_ms, &text, &view, &token)) {
        struct call c = call_begin(s, &op, &view.queue);

        call_text(&c, view.subscription.text);
        call_number(&c, token);
        call_number(&c, lease_ms(s));
        (void)call_finish(&c, SCRIPT_delivery_keep, CALL_NOTES);
    }
    buf_fini(&text);
    lock_acquire(&d->lock);
    for (size_t i = 0; d->listener != NULL && i < PARTS; i++)
        if (d->look_ms[i] < next_ms)
            next_ms = d->look_ms[i];
    if (next_ms <= now_ms) {
        wakeup = d->listener->notify(d->listener, STORE_READY);
        next_ms = now_ms + LOOK_MS;
    }
    if (!list_empty(&d->leased)) {
        const int64_t keep_ms =
            container_of(d->leased.next, struct leased, link)->kept_ms + KEEP_MS;

        next_ms = keep_ms < next_ms ? keep_ms : next_ms;
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
    while ((link = list_pop(&d->ready)) != NULL)
        mem_free(s->config.mem, container_of(link, struct leased, ready));
    lock_fini(&d->lock);
    mem_free(s->config.mem, d);
}
