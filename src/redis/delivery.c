#include "redis/delivery.h"

#include "claimd/base/clock.h"
#include "redis/key.h"
#include "redis/show_subscription.h"

#include <stdlib.h>

enum {
    LEND_MOST = 8,
    LEASE_MS = 30000,       /* of a subscription, and of a queue that is looked at */
    KEEP_MS = LEASE_MS / 3, /* the lease is renewed when so much of it has gone */
    LOOK_MS = 1000,         /* a list is looked into at least so often */
    AGAIN_MS = 60000        /* and a queue, in which nothing is due */
};

static const int64_t UNKEPT_MS = INT64_C(100000000000); /* three years */

/* Words of the answer of delivery_lend, and of each that it lends. */
enum { NOW = 1, WHEN, DOCUMENT, LENT };
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

/* One that is lent; texts stand behind it. */
struct lent {
    struct list link;  /* in all that is lent */
    struct list ready; /* in what nobody has been given yet */
    int64_t kept_ms;   /* when its lease was renewed */
    int64_t version, token;
    struct store_delivery view;
    char text[];
};

static int64_t
clock_ms(const struct redis_store *s, const struct store_visit *visit)
{
    return redis_clock_ms(s, visit->now_ms);
}

/* Without a keeper nobody renews leases: they last. */
static int64_t
lease_ms(const struct redis_store *s)
{
    return s->keeper == NULL ? UNKEPT_MS : LEASE_MS;
}

/* ---------------------------------------------------------------------- which queues */

/* As they are named there: kind, length of the project, project, name. */
static void
write_member(struct buf *out, const struct store_queue *where)
{
    buf_printf(out, "%c%zu:", where->kind == STORE_TOPIC ? 't' : 'q', where->project.len);
    buf_bytes(out, where->project);
    buf_bytes(out, where->name);
}

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

static unsigned
part_of(const struct redis_store *s, const struct store_queue *where)
{
    struct buf key;
    unsigned part;

    buf_init(&key, s->config.mem);
    key_of_queue(&key, where);
    part = key.failed ? 0 : slot_of(buf_view(&key)) % DELIVERY_PARTS;
    buf_fini(&key);
    return part;
}

/* Begins a call about a list. */
static void
begin(struct call *c, struct redis_store *s, const struct store_visit *visit,
      unsigned part)
{
    struct buf key;

    buf_init(&key, s->config.mem);
    key_of_due(&key, part);
    call_begin_key(c, s, buf_view(&key));
    c->words.words.failed = c->words.words.failed || key.failed;
    buf_fini(&key);
    call_time(c, visit);
}

static void
add_member(struct call *c, const struct store_queue *where)
{
    struct buf member;

    buf_init(&member, c->store->config.mem);
    write_member(&member, where);
    call_word(c, buf_view(&member));
    c->words.words.failed = c->words.words.failed || member.failed;
    buf_fini(&member);
}

/* Has a list looked into at once; tells whoever delivers. */
static void
hurry(struct redis_store *s, unsigned part)
{
    struct delivery *d = &s->delivery;
    struct store_wakeup *wakeup = NULL;

    lock_acquire(&d->lock);
    d->look_ms[part] = INT64_MIN;
    d->hurried[part] = true;
    if (d->listener != NULL)
        wakeup = d->listener->notify(d->listener, STORE_READY);
    lock_release(&d->lock);
    if (wakeup != NULL)
        wakeup->fire(wakeup);
}

void
delivery_is_due(struct redis_store *s, const struct store_visit *visit,
                const struct store_queue *where, int64_t ms)
{
    const unsigned part = part_of(s, where);
    struct call c;

    if (ms < 0)
        return;
    begin(&c, s, visit, part);
    add_member(&c, where);
    call_number(&c, ms);
    (void)call_run(&c, SCRIPT_due_enter, CALL_NOTES);
    call_end(&c);
    hurry(s, part);
}

/* ---------------------------------------------------------------------- lending */

static struct lent *
new_lent(const struct call *c, size_t at, const struct store_visit *visit,
         const struct store_queue *where)
{
    struct redis_store *s = c->store;
    const struct bytes document = call_item(c, DOCUMENT);
    const struct bytes subscriber = call_item(c, at + SUBSCRIBER);
    const struct bytes options = call_item(c, at + OPTIONS),
                       body = call_item(c, at + BODY);
    struct lent *lent =
        mem_calloc(s->config.mem, 1,
                   sizeof(*lent) + where->project.len + where->name.len + document.len +
                       subscriber.len + options.len + body.len);
    struct store_delivery *view;
    char *to;

    if (lent == NULL)
        return NULL;
    to = lent->text;
    view = &lent->view;
    lent->kept_ms = clock_ms(s, visit);
    lent->token = call_integer(c, at + TOKEN);
    lent->version = call_integer(c, at + VERSION);
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
    view->expires_ms = visit->now_ms + call_integer(c, at + ENDS) - call_integer(c, NOW);
    view->failed = (uint32_t)call_integer(c, at + TRIES);
    view->number = view->ordinal = (uint64_t)call_integer(c, at + ORDINAL);
    view->ttl_s = call_integer(c, at + TTL);
    view->delay_s = call_integer(c, at + DELAY);
    view->pins[0] = lent;
    return lent;
}

/* Keeps what an answer lends; what there is no memory for is lent again when its lease is over. */
static void
keep_lent(const struct call *c, const struct store_visit *visit,
          const struct store_queue *where)
{
    struct delivery *d = &c->store->delivery;

    for (size_t at = LENT; call_has(c, at); at += WORDS) {
        struct lent *lent = new_lent(c, at, visit, where);

        if (lent == NULL)
            continue;
        lock_acquire(&d->lock);
        list_add_before(&d->lent, &lent->link);
        list_add_before(&d->ready, &lent->ready);
        lock_release(&d->lock);
    }
}

static enum status
lend(struct redis_store *s, const struct store_visit *visit,
     const struct store_queue *where, int64_t *when_ms)
{
    struct call c;
    enum status st;

    call_begin(&c, s, visit, where);
    call_limit(&c, s->keeper == NULL ? 1 : LEND_MOST);
    call_number(&c, lease_ms(s));
    st = call_run(&c, SCRIPT_delivery_lend, CALL_NOTES);
    if (st == ST_OK) {
        const int64_t now_ms = call_integer(&c, NOW);

        *when_ms = call_integer(&c, WHEN);
        if (*when_ms > now_ms + AGAIN_MS)
            *when_ms = now_ms + AGAIN_MS;
        keep_lent(&c, visit, where);
    }
    call_end(&c);
    return st;
}

/* Says when the queue that was taken is to be looked at again. */
static void
put_back(struct redis_store *s, const struct store_visit *visit, unsigned part,
         const struct store_queue *where, int64_t lease_ms, int64_t when_ms)
{
    struct call c;

    begin(&c, s, visit, part);
    add_member(&c, where);
    call_number(&c, lease_ms);
    call_number(&c, when_ms);
    (void)call_run(&c, SCRIPT_due_set, CALL_NOTES);
    call_end(&c);
}

/* Takes a queue out of a list, and lends what is due there. ST_NOT_FOUND: none is due. */
static enum status
look_into(struct redis_store *s, const struct store_visit *visit, unsigned part)
{
    enum { TAKEN_NOW = 1, NEXT, QUEUE, UNTIL };
    struct delivery *d = &s->delivery;
    struct store_queue where;
    struct call c;
    int64_t wait_ms = LOOK_MS, when_ms = 0;
    enum status st;

    lock_acquire(&d->lock);
    d->hurried[part] = false;
    lock_release(&d->lock);
    begin(&c, s, visit, part);
    call_number(&c, lease_ms(s));
    st = call_run(&c, SCRIPT_due_take, CALL_NOTES);
    if (st == ST_OK && call_integer(&c, NEXT) > 0 &&
        call_integer(&c, NEXT) - call_integer(&c, TAKEN_NOW) < wait_ms)
        wait_ms = call_integer(&c, NEXT) - call_integer(&c, TAKEN_NOW);
    if (st == ST_OK && read_member(call_item(&c, QUEUE), &where)) {
        st = lend(s, visit, &where, &when_ms);
        if (st == ST_OK)
            put_back(s, visit, part, &where, call_integer(&c, UNTIL), when_ms);
        wait_ms = 0;
    } else if (st == ST_OK) {
        st = ST_NOT_FOUND;
    }
    call_end(&c);
    lock_acquire(&d->lock);
    if (!d->hurried[part])
        d->look_ms[part] = clock_ms(s, visit) + wait_ms;
    lock_release(&d->lock);
    return st;
}

static struct lent *
take_ready(struct delivery *d)
{
    struct list *link;

    lock_acquire(&d->lock);
    link = list_pop(&d->ready);
    lock_release(&d->lock);
    return link == NULL ? NULL : container_of(link, struct lent, ready);
}

/* A list whose time has come; DELIVERY_PARTS: there is none. */
static unsigned
due_part(struct delivery *d, int64_t now_ms)
{
    unsigned least = 0;

    lock_acquire(&d->lock);
    for (unsigned i = 1; i < DELIVERY_PARTS; i++)
        if (d->look_ms[i] < d->look_ms[least])
            least = i;
    if (d->look_ms[least] > now_ms)
        least = DELIVERY_PARTS;
    lock_release(&d->lock);
    return least;
}

enum status
redis_delivery_next(struct store *store, struct store_visit *visit,
                    struct store_delivery *out)
{
    enum { LOOKS = 2 * DELIVERY_PARTS };
    struct redis_store *s = redis_of(store);
    struct lent *lent = take_ready(&s->delivery);

    for (int i = 0; lent == NULL && i < LOOKS; i++) {
        unsigned part = due_part(&s->delivery, clock_ms(s, visit));
        enum status st =
            part == DELIVERY_PARTS ? ST_NOT_FOUND : look_into(s, visit, part);

        if (part == DELIVERY_PARTS || (st != ST_OK && st != ST_NOT_FOUND))
            return st;
        lent = take_ready(&s->delivery);
    }
    if (lent == NULL)
        return ST_AGAIN;
    *out = lent->view;
    return ST_OK;
}

/* ---------------------------------------------------------------------- taking back */

static void
count_outcome(struct redis_store *s, const struct store_delivery *view,
              enum store_outcome outcome)
{
    if (outcome == STORE_OUTCOME_FAILED)
        done_count(&s->done, STORE_COUNT_FAILED, 1);
    else if (view->notice != STORE_NOTICE_MESSAGE)
        return;
    else if (outcome == STORE_OUTCOME_DELIVERED)
        done_count(&s->done, STORE_COUNT_NOTIFIED, 1);
    else if (outcome == STORE_OUTCOME_GIVEN_UP)
        done_count(&s->done, STORE_COUNT_GIVEN_UP, 1);
}

static void
say_what_became(struct redis_store *s, const struct store_visit *visit,
                const struct lent *lent, enum store_outcome outcome, int64_t wait_ms)
{
    const struct store_delivery *view = &lent->view;
    int64_t when_ms = -1;
    struct call c;

    call_begin(&c, s, visit, &view->queue);
    call_text(&c, view->subscription.text);
    call_number(&c, lent->token);
    call_number(&c, lent->version);
    call_number(&c, view->notice);
    call_number(&c, (int64_t)view->ordinal);
    call_number(&c, (int64_t)outcome);
    call_number(&c, wait_ms);
    if (call_run(&c, SCRIPT_delivery_done, CALL_NOTES) == ST_OK) {
        count_outcome(s, view, outcome);
        when_ms = call_integer(&c, 1);
    }
    call_end(&c);
    delivery_is_due(s, visit, &view->queue, when_ms);
}

void
redis_delivery_done(struct store *store, struct store_visit *visit,
                    struct store_delivery *delivery, enum store_outcome outcome,
                    int64_t again_ms)
{
    struct redis_store *s = redis_of(store);
    struct lent *lent = delivery->pins[0];

    say_what_became(s, visit, lent, outcome, again_ms - visit->now_ms);
    lock_acquire(&s->delivery.lock);
    list_remove(&lent->link);
    lock_release(&s->delivery.lock);
    mem_free(s->config.mem, lent);
    *delivery = (struct store_delivery){.store = NULL};
}

void
redis_delivery_watch(struct store *store, struct store_listener *listener)
{
    struct delivery *d = &redis_of(store)->delivery;

    lock_acquire(&d->lock);
    d->listener = listener;
    lock_release(&d->lock);
}

/* ---------------------------------------------------------------------- the keeper's */

/* What is to be said of one that is lent, with its texts in `text`; false: none is to be kept now. */
static bool
copy_oldest(struct delivery *d, int64_t now_ms, struct buf *text,
            struct store_delivery *view, int64_t *token)
{
    struct lent *lent = NULL;
    size_t project;

    buf_reset(text, SIZE_MAX);
    lock_acquire(&d->lock);
    if (!list_empty(&d->lent))
        lent = container_of(d->lent.next, struct lent, link);
    if (lent != NULL && lent->kept_ms + KEEP_MS > now_ms)
        lent = NULL;
    if (lent != NULL) {
        lent->kept_ms = now_ms;
        list_remove(&lent->link);
        list_add_before(&d->lent, &lent->link);
        *view = lent->view;
        *token = lent->token;
        buf_bytes(text, view->queue.project);
        buf_bytes(text, view->queue.name);
    }
    lock_release(&d->lock);
    if (lent == NULL || text->failed)
        return false;
    project = view->queue.project.len;
    view->queue.project = bytes_of(buf_view(text).data, project);
    view->queue.name = bytes_of(buf_view(text).data + project, view->queue.name.len);
    return true;
}

/* Renews one: so long as a node does not answer, the others are not kept waiting for more. */
static void
keep_lease(struct redis_store *s, int64_t now_ms)
{
    const struct store_visit visit = {.now_ms = now_ms};
    struct store_delivery view;
    int64_t token;
    struct buf text;

    buf_init(&text, s->config.mem);
    if (copy_oldest(&s->delivery, now_ms, &text, &view, &token)) {
        struct call c;

        call_begin(&c, s, &visit, &view.queue);
        call_text(&c, view.subscription.text);
        call_number(&c, token);
        call_number(&c, lease_ms(s));
        (void)call_run(&c, SCRIPT_delivery_keep, CALL_NOTES);
        call_end(&c);
    }
    buf_fini(&text);
}

/* When the first of all lists is to be looked into, INT64_MAX: nobody wants to. */
static int64_t
first_look(const struct delivery *d)
{
    int64_t first_ms = INT64_MAX;

    for (size_t i = 0; d->listener != NULL && i < DELIVERY_PARTS; i++)
        if (d->look_ms[i] < first_ms)
            first_ms = d->look_ms[i];
    return first_ms;
}

/* When the first lease is to be renewed. */
static int64_t
first_lease(const struct delivery *d)
{
    return container_of(d->lent.next, struct lent, link)->kept_ms + KEEP_MS;
}

int64_t
delivery_keep(struct redis_store *s)
{
    struct delivery *d = &s->delivery;
    const int64_t now_ms = clock_stopwatch_ns() / 1000000;
    struct store_wakeup *wakeup = NULL;
    int64_t next_ms;

    keep_lease(s, now_ms);
    lock_acquire(&d->lock);
    next_ms = first_look(d);
    if (next_ms <= now_ms) {
        wakeup = d->listener->notify(d->listener, STORE_READY);
        next_ms = now_ms + LOOK_MS;
    }
    if (!list_empty(&d->lent) && first_lease(d) < next_ms)
        next_ms = first_lease(d);
    lock_release(&d->lock);
    if (wakeup != NULL)
        wakeup->fire(wakeup);
    return next_ms;
}

void
delivery_init(struct delivery *d)
{
    *d = (struct delivery){.listener = NULL};
    lock_init(&d->lock);
    list_init(&d->lent);
    list_init(&d->ready);
}

void
delivery_fini(struct redis_store *s)
{
    struct lent *lent;

    while ((lent = take_ready(&s->delivery)) != NULL) {
        list_remove(&lent->link);
        mem_free(s->config.mem, lent);
    }
    lock_fini(&s->delivery.lock);
}
