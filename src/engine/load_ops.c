/*
 * Loading pieces of images (store/image.h).
 *
 * A piece is told to the log as what would have made it: the queue, posts, claims,
 * subscriptions. A log replays that as ever.
 */
#include "claimd/base/invariant.h"
#include "engine/changelog.h"
#include "engine/housekeep.h"
#include "engine/subscription.h"
#include "engine/visit.h"

/* Messages and bytes of bodies told in one post, unless the log takes less. */
enum { POST_MESSAGES = 4096, POST_BYTES = 1 << 20 };

/* A claim of the piece. */
struct loaded_claim {
    struct claim *claim; /* owned until it is entered */
    struct claim *old;   /* that it takes the place of; NULL: none */
    struct ident id;
    size_t count; /* messages of the piece that it holds */
};

struct load {
    struct visit v;
    const struct store_image *image;
    struct list messages;                /* owned, by due.link, in order */
    struct loaded_claim *claims;         /* owned */
    struct subscription **subscriptions; /* owned, with what is in it */
    struct feed *feed;                   /* new, owned until it is opened; NULL: none */
    bool made;                           /* the queue is new, and not linked yet */
    size_t body_bytes;
    uint64_t last_claim, last_subscription; /* of the queue, afterwards */
    struct ident newest;                    /* subscription of the queue, likewise */
};

static struct mem *
mem_of(const struct load *l)
{
    return l->v.engine->core.mem;
}

/* ------------------------------------------------------------------ beforehand */

/* What the piece will take, roughly. */
static size_t
piece_bytes(const struct store_image *image)
{
    size_t total = image->metadata.json.len;

    for (size_t i = 0; i < image->message_count; i++)
        total += sizeof(struct message) + 32 + image->messages[i].body.len;
    total += image->claim_count * sizeof(struct claim);
    for (size_t i = 0; i < image->subscription_count; i++)
        total += sizeof(struct subscription) + sizeof(struct address) +
                 image->subscriptions[i].subscriber.len +
                 image->subscriptions[i].options.len;
    return total;
}

static enum status
make_original(struct mem *mem, struct message *m, const struct store_id *text)
{
    struct ident id;

    if (!ident_read(store_id_bytes(text), &id))
        return ST_BAD_VALUE;
    m->original = mem_alloc(mem, sizeof(*m->original));
    if (m->original == NULL)
        return ST_NO_MEMORY;
    *m->original = (struct original){.id = id, .message = m};
    return ST_OK;
}

static enum status
make_message(struct load *l, struct mem *mem, const struct store_image_message *view)
{
    struct message *m = message_new(mem, view->body, view->checksum, view->client);
    enum status st = ST_OK;

    if (m == NULL)
        return ST_NO_MEMORY;
    list_add_before(&l->messages, &m->due.link);
    m->posted_ms = view->posted_ms;
    m->expires_ms = view->expires_ms;
    m->delayed = view->delayed_until_ms != 0;
    m->claim_count = view->claim_count;
    l->body_bytes += view->body.len;
    if (view->id.text[0] != '\0')
        st = make_original(mem, m, &view->id);
    if (view->claim > 0)
        l->claims[view->claim - 1].count++;
    return st;
}

static enum status
make_subscription(struct load *l, struct mem *mem, const struct store_queue *where,
                  size_t i)
{
    const struct store_image_subscription *view = &l->image->subscriptions[i];
    struct address *address = address_new(mem, where, view->subscriber, view->options);

    if (address != NULL)
        l->subscriptions[i] = subscription_new(mem, address);
    return l->subscriptions[i] == NULL ? ST_NO_MEMORY : ST_OK;
}

/* Makes whatever can be made without the lock. */
static enum status
make_all(struct load *l, struct mem *mem, const struct store_queue *where)
{
    const struct store_image *image = l->image;
    enum status st = ST_OK;

    l->claims = mem_calloc(mem, image->claim_count + 1, sizeof(*l->claims));
    l->subscriptions =
        mem_calloc(mem, image->subscription_count + 1, sizeof(struct subscription *));
    if (l->claims == NULL || l->subscriptions == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; st == ST_OK && i < image->message_count; i++)
        st = make_message(l, mem, &image->messages[i]);
    for (size_t i = 0; st == ST_OK && i < image->subscription_count; i++)
        st = make_subscription(l, mem, where, i);
    return st;
}

static void
free_all(struct load *l, struct mem *mem)
{
    const struct store_image *image = l->image;

    message_unpin_all(mem, &l->messages);
    for (size_t i = 0; l->claims != NULL && i < image->claim_count; i++)
        mem_free(mem, l->claims[i].claim);
    for (size_t i = 0; l->subscriptions != NULL && i < image->subscription_count; i++)
        if (l->subscriptions[i] != NULL)
            subscription_free(mem, l->subscriptions[i]);
    if (l->feed != NULL)
        feed_free(mem, l->feed);
    mem_free(mem, l->claims);
    mem_free(mem, l->subscriptions);
}

/* ------------------------------------------------------------------ reserving */

/* Does a message of the piece have an id that the queue gives to its own? */
static bool
has_tag(const struct load *l, uint32_t tag)
{
    for (const struct list *at = l->messages.next; at != &l->messages; at = at->next) {
        const struct message *m = container_of(at, const struct message, due.link);

        if (m->original != NULL && m->original->id.high == tag)
            return true;
    }
    return false;
}

/* Makes the visit's queue, which is not linked yet, with a tag that no message of the piece has. */
static enum status
make_queue(struct load *l)
{
    struct visit *v = &l->v;

    do {
        if (v->queue != NULL)
            shard_discard(v->shard, v->queue);
        v->queue = shard_new_queue(v->shard, v->where, &l->image->metadata);
    } while (v->queue != NULL && has_tag(l, v->queue->tag));
    l->made = v->queue != NULL;
    return l->made ? ST_OK : ST_NO_MEMORY;
}

static enum status
find_queue(struct load *l)
{
    if (l->image->first)
        return l->v.queue != NULL ? ST_CONFLICT : make_queue(l);
    if (l->v.queue == NULL)
        return ST_NOT_FOUND;
    return l->image->message_count > 0 && l->v.queue->feed != NULL ? ST_CONFLICT : ST_OK;
}

/* The queue has none of the messages, and they may lie there. */
static enum status
check_messages(const struct load *l)
{
    const struct queue *q = l->v.queue;

    for (const struct list *at = l->messages.next; at != &l->messages; at = at->next) {
        const struct message *m = container_of(at, const struct message, due.link);

        if (queue_settings(q)->encrypt && !store_is_sealed(message_body(m)))
            return ST_NOT_SEALED;
        if (m->original == NULL || l->made)
            continue;
        if (m->original->id.high == q->tag ||
            backlog_find(q->backlog, q->tag, m->original->id) != NULL)
            return ST_CONFLICT;
    }
    return ST_OK;
}

static void
raise(uint64_t *number, uint64_t least)
{
    if (*number < least)
        *number = least;
}

/* By their numbers, which find them. */
static void
raise_newest(struct ident *newest, struct ident id)
{
    if (ident_claim_number(*newest) <= ident_claim_number(id))
        *newest = id;
}

/* Ids that are given are read first: the others get numbers behind them. */
static void
read_ids(struct load *l)
{
    const struct store_image *image = l->image;

    l->last_claim = l->v.queue->last_claim;
    l->last_subscription = l->v.queue->last_subscription;
    l->newest = subscription_newest(l->v.queue->feed);
    for (size_t i = 0; i < image->claim_count; i++)
        if (ident_read(store_id_bytes(&image->claims[i].id), &l->claims[i].id))
            raise(&l->last_claim, ident_claim_number(l->claims[i].id));
    for (size_t i = 0; i < image->subscription_count; i++) {
        struct ident id;

        if (!ident_read(store_id_bytes(&image->subscriptions[i].id), &id))
            continue;
        l->subscriptions[i]->id_high = id.high;
        l->subscriptions[i]->id_low = id.low;
        raise(&l->last_subscription, ident_claim_number(id));
        raise_newest(&l->newest, id);
    }
}

/* Makes an id with the next number, unless there is one. */
static enum status
make_claim_id(struct load *l, struct ident *id)
{
    enum status st;

    if (id->high != 0)
        return ST_OK;
    st = entropy_reserve(&l->v.shard->entropy, IDENT_ENTROPY);
    if (st == ST_OK)
        *id = ident_claim(&l->v.shard->entropy, ++l->last_claim);
    return st;
}

static enum status
make_subscription_id(struct load *l, struct subscription *s)
{
    enum status st;

    if (s->id_high != 0)
        return ST_OK;
    st = entropy_reserve(&l->v.shard->entropy, IDENT_ENTROPY);
    if (st != ST_OK)
        return st;
    l->newest =
        ident_subscription(&l->v.shard->entropy, l->newest, ++l->last_subscription);
    s->id_high = l->newest.high;
    s->id_low = l->newest.low;
    return ST_OK;
}

/* Makes a claim, or one that goes on with that of an earlier piece. */
static enum status
reserve_claim(struct load *l, size_t i)
{
    struct loaded_claim *c = &l->claims[i];
    enum status st = make_claim_id(l, &c->id);

    if (st != ST_OK)
        return st;
    c->old = backlog_claim(l->v.queue->backlog, ident_claim_number(c->id));
    if (c->old != NULL && !ident_equal(claim_ident(c->old), c->id))
        return ST_CONFLICT;
    c->claim = claim_new(mem_of(l), c->count + (c->old == NULL ? 0 : c->old->count));
    return c->claim == NULL ? ST_NO_MEMORY : ST_OK;
}

static enum status
reserve_subscription(struct load *l, struct feed *f, size_t i)
{
    struct subscription *s = l->subscriptions[i];
    enum status st = make_subscription_id(l, s);

    if (st == ST_OK && (seqmap_find(&f->subscriptions, subscription_number(s)) != NULL ||
                        subscription_of(l->v.shard, f, s->address->subscriber) != NULL))
        return ST_CONFLICT;
    return st;
}

/* The feed of the queue, made if need be. */
static enum status
reserve_feed(struct load *l, struct feed **out)
{
    struct queue *q = l->v.queue;

    if (q->feed == NULL)
        l->feed = feed_new(mem_of(l));
    *out = q->feed == NULL ? l->feed : q->feed;
    if (*out == NULL)
        return ST_NO_MEMORY;
    return hashmap_reserve(&(*out)->subscribers, l->image->subscription_count);
}

/* Nodes of the pool: a number takes no more than the largest one does alone. */
static enum status
reserve_nodes(const struct load *l, struct feed *f)
{
    const struct queue *q = l->v.queue;
    size_t nodes = l->image->claim_count * backlog_claim_nodes(q->backlog, l->last_claim);
    enum status st = ST_OK;

    if (f != NULL) {
        nodes += l->image->subscription_count *
                 seqmap_nodes_for(&f->subscriptions, l->last_subscription, 1);
        st = subscription_reserve(l->v.shard, f, l->last_subscription); /* the wheel */
    }
    if (st == ST_OK)
        st = backlog_reserve_original(q->backlog, l->image->message_count);
    return st == ST_OK ? backlog_reserve(q->backlog, &l->v.shard->pool, q->last_seq,
                                         l->image->message_count, nodes)
                       : st;
}

static enum status
reserve_parts(struct load *l)
{
    struct feed *f = NULL;
    enum status st = ST_OK;

    read_ids(l);
    for (size_t i = 0; st == ST_OK && i < l->image->claim_count; i++)
        st = reserve_claim(l, i);
    if (st == ST_OK && l->image->subscription_count > 0)
        st = reserve_feed(l, &f);
    for (size_t i = 0; st == ST_OK && i < l->image->subscription_count; i++)
        st = reserve_subscription(l, f, i);
    return st == ST_OK ? reserve_nodes(l, f) : st;
}

/* The messages that are told in one post: from the i-th on. */
static struct post_slice {
    size_t count, bytes;
} slice_from(const struct load *l, size_t i)
{
    const struct store_log *log = l->v.engine->core.log;
    const size_t most = log->largest == 0 ? SIZE_MAX : log->largest / 2;
    struct post_slice slice = {0, 0};

    for (; i < l->image->message_count && slice.count < POST_MESSAGES; i++) {
        size_t bytes = slice.bytes + l->image->messages[i].body.len;

        if (slice.count > 0 &&
            (bytes > POST_BYTES || bytes + (slice.count + 1) * STORE_LOG_EACH > most))
            break;
        slice.bytes = bytes;
        slice.count++;
    }
    return slice;
}

/* Asks the log for all that is going to be told. */
static enum status
reserve_telling(struct load *l)
{
    const struct visit *v = &l->v;
    enum status st = ST_OK;

    if (l->made)
        st = visit_reserve(v, STORE_CHANGE_QUEUE, 0,
                           queue_bytes(v->where, &l->image->metadata));
    else
        st = lend_reserve(v->queue, l->image->message_count,
                          l->last_claim - v->queue->last_claim);
    for (size_t i = 0; st == ST_OK && i < l->image->message_count;) {
        struct post_slice slice = slice_from(l, i);

        st = visit_reserve_messages(v, STORE_CHANGE_POST, slice.count, slice.bytes);
        i += slice.count;
    }
    for (size_t i = 0; st == ST_OK && i < l->image->claim_count; i++) {
        const struct loaded_claim *c = &l->claims[i];

        st = visit_reserve_messages(v, STORE_CHANGE_CLAIM,
                                    c->count + (c->old == NULL ? 0 : c->old->held), 0);
    }
    for (size_t i = 0; st == ST_OK && i < l->image->subscription_count; i++)
        st = visit_reserve(v, STORE_CHANGE_SUBSCRIPTION, 0,
                           address_bytes(l->subscriptions[i]->address));
    return st;
}

/* Whatever can fail, fails here, while nothing has changed. */
static enum status
reserve(struct load *l)
{
    const struct project_limits *limits = &l->v.engine->core.limits;
    enum status st = find_queue(l);
    struct queue *q = l->v.queue;

    if (st == ST_OK)
        st = check_messages(l);
    if (st == ST_OK)
        st = reserve_parts(l);
    if (st == ST_OK && l->made)
        st = shard_enlist(l->v.shard, q, atomic_load(&limits->queues));
    if (st == ST_OK)
        st = directory_take(&q->entry, l->image->message_count, l->body_bytes, limits);
    if (st != ST_OK)
        return st;
    st = has_log(&l->v.engine->core) ? reserve_telling(l) : ST_OK;
    if (st != ST_OK)
        directory_give(&q->entry, l->image->message_count, l->body_bytes);
    return st;
}

/* ------------------------------------------------------------------ entering */

static void
enter_claim(struct load *l, size_t i)
{
    const struct store_image_claim *view = &l->image->claims[i];
    struct loaded_claim *c = &l->claims[i];
    struct shard *sh = l->v.shard;
    struct backlog *b = l->v.queue->backlog;

    if (c->old != NULL) {
        claim_replace(sh, c->old, c->claim);
    } else {
        c->claim->backlog = b;
        c->claim->id_high = c->id.high;
        c->claim->id_low = c->id.low;
        c->claim->made_ms = view->started_ms;
        backlog_add_claim(b, &sh->pool, ident_claim_number(c->id), c->claim);
    }
    c->claim->started_ms = view->started_ms;
    shard_arm_claim(sh, &c->claim->due, view->ends_ms);
}

static void
enter_message(struct load *l, size_t i)
{
    const struct store_image_message *view = &l->image->messages[i];
    struct message *m = container_of(list_pop(&l->messages), struct message, due.link);
    struct queue *q = l->v.queue;

    m->seq = ++q->last_seq;
    backlog_add(q->backlog, &l->v.shard->pool, m);
    if (m->original != NULL)
        backlog_add_original(q->backlog, m);
    if (view->claim > 0) {
        struct claim *c = l->claims[view->claim - 1].claim;

        backlog_hold(q->backlog, m, c);
        c->seqs[c->count++] = m->seq;
        c->held++;
    }
    shard_arm_message(l->v.shard, &m->due,
                      m->delayed ? view->delayed_until_ms : m->expires_ms);
}

static void
enter_subscription(struct load *l, size_t i)
{
    const struct store_image_subscription *view = &l->image->subscriptions[i];
    struct subscription *s = l->subscriptions[i];
    struct shard *sh = l->v.shard;

    l->subscriptions[i] = NULL; /* the feed owns it now */
    s->started_ms = view->started_ms;
    s->ttl_s = view->ttl_s;
    s->confirmed = view->confirmed;
    if (view->asked && sh->core->require_confirmation)
        s->pending = PENDING_CONFIRM;
    s->delivered = view->delivered;
    s->given_up = view->given_up;
    s->fallen_out = view->fallen_out;
    subscription_enter(sh, l->v.queue->feed, s);
    subscription_attach(sh, s, l->v.queue->last_seq);
    subscription_rest(sh, s);
    subscription_arm(sh, s);
    if (has_log(sh->core))
        changelog_of_subscription(l->v.queue, STORE_CHANGE_SUBSCRIPTION, s, l->v.now_ms);
}

/* Tells of the messages behind this number, and of the claims. */
static void
tell(struct load *l, uint64_t before)
{
    struct queue *q = l->v.queue;

    for (size_t i = 0; i < l->image->message_count;) {
        struct post_slice slice = slice_from(l, i);

        (void)changelog_row(q, STORE_CHANGE_POST, before + i + 1, slice.count,
                            l->v.now_ms);
        i += slice.count;
    }
    for (size_t i = 0; i < l->image->claim_count; i++)
        (void)changelog_claim(q, STORE_CHANGE_CLAIM, l->claims[i].claim, l->v.now_ms);
    lend_commit(q, l->v.now_ms);
}

/* Nothing can fail any more. */
static void
enter(struct load *l)
{
    struct queue *q = l->v.queue;
    struct shard *sh = l->v.shard;
    const uint64_t before = q->last_seq;

    if (l->made) {
        shard_link(sh, q, l->v.hash);
        q->last_claim = l->last_claim;
        queue_lend(q);
        if (has_log(sh->core))
            (void)changelog_queue(q, STORE_CHANGE_QUEUE, l->v.now_ms);
    }
    q->last_claim = l->last_claim;
    for (size_t i = 0; i < l->image->claim_count; i++)
        enter_claim(l, i);
    for (size_t i = 0; i < l->image->message_count; i++)
        enter_message(l, i);
    if (has_log(sh->core))
        tell(l, before);
    for (size_t i = 0; i < l->image->claim_count; i++)
        l->claims[i].claim = NULL; /* the backlog owns it now */
    if (l->feed != NULL)
        feed_open(sh, q, l->feed);
    l->feed = NULL;
    q->last_subscription = l->last_subscription;
    for (size_t i = 0; i < l->image->subscription_count; i++)
        enter_subscription(l, i);
    figures_count(&sh->figures, STORE_COUNT_POSTED, l->image->message_count);
    figures_count(&sh->figures, STORE_COUNT_QUEUES_MADE, l->made);
    seqmap_pool_trim(&sh->pool);
    queue_wake_waiters(q);
}

enum status
engine_queue_load(struct store *s, struct store_visit *outer,
                  const struct store_queue *where, const struct store_image *image)
{
    struct load l = {.image = image};
    struct engine *e = engine_of(s);
    struct store_flaw flaw;
    enum status st = store_image_check(e->core.mem, image, &flaw);

    if (st != ST_OK)
        return st;
    housekeep_pay(e, outer->now_ms, image->message_count + 1, piece_bytes(image));
    if (!mem_admits(e->core.mem, piece_bytes(image)))
        return ST_OVER_BUDGET;
    list_init(&l.messages);
    st = make_all(&l, e->core.mem, where);
    if (st == ST_OK) {
        (void)visit_enter(&l.v, s, outer, where, SETTLE_NOTHING); /* which cannot fail */
        st = reserve(&l);
        if (st == ST_OK) {
            enter(&l);
        } else if (l.made) {
            shard_discard(l.v.shard, l.v.queue);
            l.v.queue = NULL;
        }
        visit_leave(&l.v);
    }
    free_all(&l, e->core.mem);
    return st;
}
