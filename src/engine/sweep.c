/*
 * The images of a sweep (store/durable.h).
 *
 * A shard has its queues in a list: first those that the sweep under way has not shown, then
 * those that it has shown or that were made since it came here. A queue is shown in three
 * stages: itself, its claims by their numbers, its messages by theirs; whatever is posted
 * meanwhile has a larger number, and is in the log anyway. What was shown and then changes
 * is told as any change.
 */
#include "engine/changelog.h"
#include "engine/instance.h"
#include "engine/shard.h"
#include "engine/subscription.h"

enum { SLICE_MESSAGES = 256, SLICE_BYTES = 64 * 1024, QUEUE_COST = 4 };

void
engine_sweep_begin(struct engine *e)
{
    e->sweep_epoch++;
    e->sweep_shard = 0;
}

/* The queue in turn; NULL: the sweep has shown the shard. */
static struct queue *
queue_in_turn(struct shard *sh)
{
    struct sweep *s = &sh->sweep;
    struct queue *q;

    if (s->queue != NULL || list_empty(&sh->swept))
        return s->queue;
    q = container_of(sh->swept.next, struct queue, sweep_link);
    if (q->epoch == s->epoch)
        return NULL;
    s->queue = q;
    s->stage = SWEEP_QUEUE;
    s->last_seq = q->last_seq;
    return q;
}

static void
enter_stage(struct sweep *s, enum sweep_stage stage)
{
    s->stage = stage;
    s->at = 0;
}

static void
finish_queue(struct shard *sh, struct queue *q)
{
    q->epoch = sh->sweep.epoch;
    sh->sweep.queue = NULL;
    list_remove(&q->sweep_link);
    list_add_before(&sh->swept, &q->sweep_link);
}

/* What a slice may still show. */
struct allowance {
    size_t messages, bytes;
};

static void
spend(struct allowance *left, size_t messages, size_t bytes)
{
    left->messages -= messages < left->messages ? messages : left->messages;
    left->bytes -= bytes < left->bytes ? bytes : left->bytes;
}

static enum status
show_queue(struct shard *sh, struct queue *q, struct allowance *left)
{
    size_t bytes = queue_bytes(&q->where, &q->metadata->document);
    enum status st = changelog_reserve(sh, STORE_CHANGE_IMAGE_QUEUE, 0, bytes);

    if (st != ST_OK)
        return st;
    (void)changelog_queue(q, STORE_CHANGE_IMAGE_QUEUE, sh->now_ms);
    spend(left, QUEUE_COST, bytes);
    enter_stage(&sh->sweep, queue_transient(q) ? SWEEP_SUBSCRIPTIONS : SWEEP_CLAIMS);
    return ST_OK;
}

static enum status
show_subscription(struct shard *sh, struct queue *q, struct allowance *left)
{
    const struct subscription *s =
        q->feed == NULL ? NULL : seqmap_next_live(&q->feed->subscriptions, &sh->sweep.at);
    size_t bytes;
    enum status st;

    if (s == NULL) {
        finish_queue(sh, q);
        return ST_OK;
    }
    bytes = address_bytes(s->address);
    st = changelog_reserve(sh, STORE_CHANGE_IMAGE_SUBSCRIPTION, 0, bytes);
    if (st != ST_OK)
        return st;
    changelog_of_subscription(q, STORE_CHANGE_IMAGE_SUBSCRIPTION, s, sh->now_ms);
    spend(left, 1, bytes);
    sh->sweep.at++;
    return ST_OK;
}

static enum status
show_claim(struct shard *sh, struct queue *q, struct allowance *left)
{
    const struct claim *c = backlog_next_claim(q->backlog, &sh->sweep.at);
    enum status st;

    if (c == NULL) {
        enter_stage(&sh->sweep, SWEEP_MESSAGES);
        return ST_OK;
    }
    st = changelog_reserve(sh, STORE_CHANGE_IMAGE_CLAIM, c->held, 0);
    if (st != ST_OK)
        return st;
    (void)changelog_claim(q, STORE_CHANGE_IMAGE_CLAIM, c, sh->now_ms);
    spend(left, c->held, 0);
    sh->sweep.at++;
    return ST_OK;
}

/* The next messages to be shown, of the queue or of its feed. */
struct images {
    size_t count, bytes;
    uint64_t end; /* number behind the last one */
};

/* The message with the next number, which becomes *seq; NULL: there is none. */
static const struct message *
next_message(const struct queue *q, enum store_change_kind kind, uint64_t *seq)
{
    const struct feed_entry *entry;

    if (kind == STORE_CHANGE_IMAGE)
        return backlog_next_live(q->backlog, seq);
    entry = q->feed == NULL ? NULL : seqmap_next_live(&q->feed->entries, seq);
    return entry == NULL ? NULL : entry->message;
}

static struct images
next_images(const struct shard *sh, const struct queue *q, enum store_change_kind kind,
            size_t messages, size_t bytes)
{
    struct images next = {.end = sh->sweep.at};
    uint64_t seq = sh->sweep.at;
    const struct message *m;

    while (next.count < messages && next.bytes < bytes &&
           (m = next_message(q, kind, &seq)) != NULL && seq <= sh->sweep.last_seq) {
        next.count++;
        next.bytes += m->body_len;
        next.end = ++seq;
    }
    return next;
}

/* Shows that there is a feed, so that what is posted from here on is entered when it is replayed. */
static enum status
begin_feed(struct shard *sh, struct queue *q)
{
    enum status st = ST_OK;

    if (q->feed != NULL)
        st = changelog_reserve(sh, STORE_CHANGE_IMAGE_FEED, 0, 0);
    if (st != ST_OK)
        return st;
    if (q->feed != NULL)
        (void)changelog_feed(q, 0, 0, sh->now_ms);
    sh->sweep.last_seq = q->last_seq;
    enter_stage(&sh->sweep, q->feed != NULL ? SWEEP_FEED : SWEEP_SUBSCRIPTIONS);
    return ST_OK;
}

/* Shows some messages of the queue, or of its feed. */
static enum status
show_messages(struct shard *sh, struct queue *q, enum store_change_kind kind,
              struct allowance *left)
{
    struct images next = next_images(sh, q, kind, left->messages, left->bytes);
    enum status st;

    if (next.count == 0 && kind == STORE_CHANGE_IMAGE)
        return begin_feed(sh, q);
    if (next.count == 0) {
        enter_stage(&sh->sweep, SWEEP_SUBSCRIPTIONS);
        return ST_OK;
    }
    st = changelog_reserve(sh, kind, next.count, next.bytes);
    while (st == ST_BEYOND_LOG && next.count > 1) { /* one of them was posted: it fits */
        next = next_images(sh, q, kind, next.count / 2, left->bytes);
        st = changelog_reserve(sh, kind, next.count, next.bytes);
    }
    if (st != ST_OK)
        return st;
    if (kind == STORE_CHANGE_IMAGE)
        (void)changelog_row(q, kind, sh->sweep.at, next.count, sh->now_ms);
    else
        (void)changelog_feed(q, sh->sweep.at, next.count, sh->now_ms);
    spend(left, next.count, next.bytes);
    sh->sweep.at = next.end;
    return ST_OK;
}

/* Shows a part of the queue in turn. */
static enum status
show_some(struct shard *sh, struct queue *q, struct allowance *left)
{
    switch (sh->sweep.stage) {
    case SWEEP_QUEUE:
        return show_queue(sh, q, left);
    case SWEEP_CLAIMS:
        return show_claim(sh, q, left);
    case SWEEP_MESSAGES:
        return show_messages(sh, q, STORE_CHANGE_IMAGE, left);
    case SWEEP_FEED:
        return show_messages(sh, q, STORE_CHANGE_IMAGE_FEED, left);
    default:
        return show_subscription(sh, q, left);
    }
}

/* Shows a slice of a shard. */
static enum status
sweep_shard(struct shard *sh, bool *done)
{
    struct allowance left = {SLICE_MESSAGES, SLICE_BYTES};
    enum status st = ST_OK;

    while (st == ST_OK && left.messages > 0 && left.bytes > 0) {
        struct queue *q = queue_in_turn(sh);

        if (q == NULL) {
            *done = true;
            return ST_OK;
        }
        st = show_some(sh, q, &left);
    }
    return st;
}

enum status
engine_sweep(struct engine *e, bool *done)
{
    struct shard *sh = &e->shards[e->sweep_shard];
    bool shown = false;
    enum status st;

    *done = false;
    lock_acquire(&sh->lock);
    if (sh->sweep.epoch != e->sweep_epoch)
        sh->sweep = (struct sweep){.epoch = e->sweep_epoch};
    st = sweep_shard(sh, &shown);
    shard_leave(sh);
    if (shown && e->sweep_shard == e->shard_mask)
        *done = true;
    else if (shown)
        e->sweep_shard++;
    return st;
}
