/*
 * Reading what queues contain, record by record, for a checkpoint of the log (store/state.h).
 *
 * A shard has its queues in a list: first those that the current checkpoint has not read, then
 * those that it has read, or that were made since it came to this shard. A queue is read in
 * stages: itself, its messages by their numbers, its feed, its subscriptions. Messages that are
 * posted meanwhile have larger numbers and are in the log anyway. What was read and changes then
 * is logged like any change.
 */
#include "engine/changelog.h"
#include "engine/instance.h"
#include "engine/shard.h"
#include "engine/subscription.h"

enum { SLICE_MESSAGES = 256, SLICE_BYTES = 64 * 1024, QUEUE_COST = 4 };

void
engine_checkpoint_begin(struct engine *e)
{
    e->checkpoint_no++;
    e->checkpoint_shard = 0;
}

/* The queue in turn; NULL: the checkpoint has read the shard. */
static struct queue *
queue_in_turn(struct shard *sh)
{
    struct checkpoint *c = &sh->checkpoint;
    struct queue *q;

    if (c->queue != NULL || list_empty(&sh->checkpoint_order))
        return c->queue;
    q = container_of(sh->checkpoint_order.next, struct queue, checkpoint_link);
    if (q->checkpoint_no == c->number)
        return NULL;
    c->queue = q;
    c->stage = STATE_QUEUE;
    return q;
}

static void
enter_stage(struct checkpoint *c, enum state_stage stage)
{
    c->stage = stage;
    c->at = 0;
}

static void
finish_queue(struct shard *sh, struct queue *q)
{
    q->checkpoint_no = sh->checkpoint.number;
    sh->checkpoint.queue = NULL;
    list_remove(&q->checkpoint_link);
    list_add_before(&sh->checkpoint_order, &q->checkpoint_link);
}

/* What a slice may still read. */
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
read_queue(struct shard *sh, struct queue *q, struct allowance *left)
{
    size_t bytes = queue_bytes(&q->where, &q->metadata->document);
    enum status st = changelog_reserve(sh, STORE_CHANGE_QUEUE, 0, bytes);

    if (st != ST_OK)
        return st;
    (void)changelog_queue(q, STORE_CHANGE_QUEUE, sh->now_ms);
    spend(left, QUEUE_COST, bytes);
    sh->checkpoint.last_seq = q->last_seq;
    enter_stage(&sh->checkpoint,
                queue_transient(q) ? STATE_SUBSCRIPTIONS : STATE_MESSAGES);
    return ST_OK;
}

static enum status
read_subscription(struct shard *sh, struct queue *q, struct allowance *left)
{
    const struct subscription *s =
        q->feed == NULL ? NULL
                        : seqmap_next_live(&q->feed->subscriptions, &sh->checkpoint.at);
    size_t bytes;
    enum status st;

    if (s == NULL) {
        finish_queue(sh, q);
        return ST_OK;
    }
    bytes = address_bytes(s->address);
    st = changelog_reserve(sh, STORE_CHANGE_SUBSCRIPTION, 0, bytes);
    if (st != ST_OK)
        return st;
    changelog_of_subscription(q, STORE_CHANGE_SUBSCRIPTION, s, sh->now_ms);
    spend(left, 1, bytes);
    sh->checkpoint.at++;
    return ST_OK;
}

/* The next messages to be read, of the queue or of its feed. */
struct run {
    size_t count, bytes;
    uint64_t end; /* number behind the last one */
};

/* The message with the next number, which becomes *seq; NULL: there is none. */
static const struct message *
next_message(const struct queue *q, enum store_change_kind kind, uint64_t *seq)
{
    const struct feed_entry *entry;

    if (kind == STORE_CHANGE_STATE)
        return backlog_next_live(q->backlog, seq);
    entry = q->feed == NULL ? NULL : seqmap_next_live(&q->feed->entries, seq);
    return entry == NULL ? NULL : entry->message;
}

static struct run
next_run(const struct shard *sh, const struct queue *q, enum store_change_kind kind,
         size_t messages, size_t bytes)
{
    struct run next = {.end = sh->checkpoint.at};
    uint64_t seq = sh->checkpoint.at;
    const struct message *m;

    while (next.count < messages && next.bytes < bytes &&
           (m = next_message(q, kind, &seq)) != NULL && seq <= sh->checkpoint.last_seq) {
        next.count++;
        next.bytes += m->body_len;
        next.end = ++seq;
    }
    return next;
}

/* Logs that there is a feed, so that what is posted from here on is entered in a replay. */
static enum status
begin_feed(struct shard *sh, struct queue *q)
{
    enum status st = ST_OK;

    if (q->feed != NULL)
        st = changelog_reserve(sh, STORE_CHANGE_FEED, 0, 0);
    if (st != ST_OK)
        return st;
    if (q->feed != NULL)
        (void)changelog_feed(q, 0, 0, sh->now_ms);
    sh->checkpoint.last_seq = q->last_seq;
    enter_stage(&sh->checkpoint, q->feed != NULL ? STATE_FEED : STATE_SUBSCRIPTIONS);
    return ST_OK;
}

/* Reads some messages of the queue (STATE), or of its feed (FEED). */
static enum status
read_messages(struct shard *sh, struct queue *q, enum store_change_kind kind,
              struct allowance *left)
{
    struct run next = next_run(sh, q, kind, left->messages, left->bytes);
    enum status st;

    if (next.count == 0 && kind == STORE_CHANGE_STATE)
        return begin_feed(sh, q);
    if (next.count == 0) {
        enter_stage(&sh->checkpoint, STATE_SUBSCRIPTIONS);
        return ST_OK;
    }
    st = changelog_reserve(sh, kind, next.count, next.bytes);
    while (st == ST_BEYOND_LOG && next.count > 1) { /* one of them was posted: it fits */
        next = next_run(sh, q, kind, next.count / 2, left->bytes);
        st = changelog_reserve(sh, kind, next.count, next.bytes);
    }
    if (st != ST_OK)
        return st;
    if (kind == STORE_CHANGE_STATE)
        (void)changelog_row(q, kind, sh->checkpoint.at, next.count, sh->now_ms);
    else
        (void)changelog_feed(q, sh->checkpoint.at, next.count, sh->now_ms);
    spend(left, next.count, next.bytes);
    sh->checkpoint.at = next.end;
    return ST_OK;
}

/* Reads a slice of a shard. */
static enum status
read_slice(struct shard *sh, bool *done)
{
    struct allowance left = {SLICE_MESSAGES, SLICE_BYTES};
    enum status st = ST_OK;

    while (st == ST_OK && left.messages > 0 && left.bytes > 0) {
        struct queue *q = queue_in_turn(sh);

        if (q == NULL) {
            *done = true;
            return ST_OK;
        }
        if (sh->checkpoint.stage == STATE_QUEUE)
            st = read_queue(sh, q, &left);
        else if (sh->checkpoint.stage == STATE_SUBSCRIPTIONS)
            st = read_subscription(sh, q, &left);
        else
            st = read_messages(sh, q,
                               sh->checkpoint.stage == STATE_FEED ? STORE_CHANGE_FEED
                                                                  : STORE_CHANGE_STATE,
                               &left);
    }
    return st;
}

enum status
engine_checkpoint(struct engine *e, bool *done)
{
    struct shard *sh = &e->shards[e->checkpoint_shard];
    bool read = false;
    enum status st;

    *done = false;
    lock_acquire(&sh->lock);
    if (sh->checkpoint.number != e->checkpoint_no)
        sh->checkpoint = (struct checkpoint){.number = e->checkpoint_no};
    sh->checkpointing = true;
    st = read_slice(sh, &read);
    sh->checkpointing = false;
    shard_leave(sh);
    if (read && e->checkpoint_shard == e->shard_mask)
        *done = true;
    else if (read)
        e->checkpoint_shard++;
    return st;
}
