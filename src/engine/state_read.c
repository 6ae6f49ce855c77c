/*
 * state_read: reads the contents of queues as records (claimd/store/state.h): slices of
 * a queue for a dump (engine_read()), and checkpoints of the log.
 *
 * A checkpoint, whose slices checkpoint() in journal/commit.c calls for:
 *
 *     1. engine_checkpoint_begin() begins with the first shard. Each shard lists its
 *        queues: first those that this checkpoint has not read, then those that it has
 *        read or that were made since it came to the shard.
 *     2. engine_checkpoint() takes the lock of one shard, and read_slice() appends at
 *        most SLICE_MESSAGES messages or SLICE_BYTES. The queue in turn continues in the
 *        next slice.
 *     3. read_queue() appends the metadata, and notes the last number of a message.
 *        Messages that are posted meanwhile have larger numbers, and are in the log
 *        anyway.
 *     4. read_run() appends the runs, whose messages stay in their body files.
 *        read_messages() appends the messages up to that number, with their claims, and
 *        then those of the feed. read_subscription() appends the subscriptions, and puts
 *        the queue behind the others.
 *     5. keys_checkpoint() appends the Idempotency-Keys of the shard, after its last
 *        queue. Then it is the turn of the next shard.
 *
 * A change of something that was read is logged like any change. So a replay since the
 * beginning of the checkpoint gives the whole store.
 */
#include "claimd/base/sometimes.h"
#include "engine/keys.h"
#include "engine/run_load.h"
#include "engine/run_read.h"
#include "engine/subscription.h"
#include "engine/txn.h"

enum { SLICE_MESSAGES = 256, SLICE_BYTES = 64 * 1024, SLICE_SUBSCRIPTIONS = 64 };

/* ------------------------------------------------------------------ slices of a queue */

/* The memory of a slice, as large as the largest slice. */
struct slice {
    struct store_record records[SLICE_MESSAGES + SLICE_SUBSCRIPTIONS + 1];
    struct store_claim_record claims[SLICE_MESSAGES];
    size_t claim_count;
};

static struct store_record *
add_record(struct store_records *out, enum store_record_kind kind, void *pin)
{
    struct store_record *r = &out->all[out->count++];

    r->kind = kind; /* the caller sets the rest */
    r->pin = pin;
    return r;
}

/* The record of a claim. The messages of one claim are mostly adjacent. */
static const struct store_claim_record *
add_claim(struct slice *s, const struct claim *c)
{
    struct store_claim_record *all = s->claims;
    struct store_id id;

    ident_write(&id, claim_ident(c));
    if (s->claim_count == 0 || strcmp(all[s->claim_count - 1].id.text, id.text) != 0)
        all[s->claim_count++] =
            (struct store_claim_record){id, c->started_ms, c->due.due_ms};
    return &all[s->claim_count - 1];
}

/* Adds messages from number *at on, which moves behind them, as far as they are in
 * memory. True: there are no more. */
static bool
add_messages(const struct queue *q, uint64_t *at, struct store_records *out)
{
    const uint64_t unloaded = backlog_next_unloaded(q->backlog, *at);
    struct slice *s = out->pin;
    size_t bytes = 0;

    for (size_t n = 0; n < SLICE_MESSAGES && bytes < SLICE_BYTES; n++, ++*at) {
        struct message *m = seqmap_next_live(&q->backlog->messages, at);
        struct store_record *r;

        if (unloaded != RUN_NONE && (m == NULL || *at > unloaded)) {
            *at = unloaded;
            return false;
        }
        if (m == NULL)
            return true;
        r = add_record(out, STORE_RECORD_MESSAGE, m);
        message_pin(m);
        changelog_message(m, q->tag, &r->message);
        if (message_details(m) != NULL)
            (void)details_pin(message_details(m));
        if (m->claim != NULL)
            r->message.claim = add_claim(s, m->claim);
        bytes += m->body_len;
    }
    return false;
}

static bool
add_subscriptions(const struct queue *q, int64_t now_ms, uint64_t *at,
                  struct store_records *out)
{
    for (size_t n = 0; q->feed != NULL && n < SLICE_SUBSCRIPTIONS; n++, ++*at) {
        struct subscription *s = seqmap_next_live(&q->feed->subscriptions, at);
        struct store_record *r;

        if (s == NULL)
            return true;
        if (!subscription_live(s, now_ms))
            continue;
        r = add_record(out, STORE_RECORD_SUBSCRIPTION, address_pin(s->address));
        subscription_record(s, &r->subscription);
    }
    return q->feed == NULL;
}

enum { RESUME_TAG, RESUME_STAGE, RESUME_AT };

/* ST_AGAIN: its messages are being loaded. */
static enum status
read_queue_slice(struct txn *t, enum state_stage stage, uint64_t at,
                 struct store_records *out)
{
    const struct queue *q = t->queue;
    enum status st =
        stage == STATE_MESSAGES ? txn_load_from(t, at, SLICE_MESSAGES) : ST_OK;

    if (st != ST_OK)
        return st;
    if (stage == STATE_QUEUE) {
        add_record(out, STORE_RECORD_QUEUE, metadata_pin(q->metadata))->metadata =
            q->metadata->document;
        stage = STATE_MESSAGES;
    }
    if (stage == STATE_MESSAGES && add_messages(q, &at, out)) {
        stage = STATE_SUBSCRIPTIONS;
        at = 0;
    }
    if (stage == STATE_SUBSCRIPTIONS && add_subscriptions(q, t->now_ms, &at, out))
        stage = STATE_END;
    out->resume[RESUME_TAG] = q->tag;
    out->resume[RESUME_STAGE] = stage;
    out->resume[RESUME_AT] = at;
    out->more = stage != STATE_END;
    return ST_OK;
}

enum status
engine_read(struct store *s, struct store_op *op, const struct store_queue *where,
            struct store_records *records)
{
    const enum state_stage stage = (enum state_stage)records->resume[RESUME_STAGE];
    struct slice *slice = mem_alloc(engine_of(s)->core.mem, sizeof(*slice));
    struct store_records out = {.store = s, .pin = slice};
    struct txn t;
    enum status st;

    if (slice == NULL)
        return ST_NO_MEMORY;
    slice->claim_count = 0;
    out.all = slice->records;
    st = txn_begin(&t, s, op, where, EXPIRE_ALL);
    if (st == ST_OK) {
        SOMETIMES_IF(t.queue == NULL && stage != STATE_QUEUE, DUMP_QUEUE_GONE);
        if (t.queue == NULL && stage == STATE_QUEUE)
            st = ST_NOT_FOUND;
        else if (t.queue != NULL &&
                 (stage == STATE_QUEUE || records->resume[RESUME_TAG] == t.queue->tag))
            st = read_queue_slice(&t, stage, records->resume[RESUME_AT], &out);
        txn_end(&t);
    }
    if (st == ST_OK)
        *records = out;
    else
        store_records_release(&out);
    return st;
}

void
engine_records_release(const struct store *s, struct store_records *records)
{
    struct mem *mem = ((const struct engine *)s)->core.mem;

    for (size_t i = 0; i < records->count; i++) {
        struct store_record *r = &records->all[i];

        if (r->kind == STORE_RECORD_MESSAGE && r->message.details != NULL)
            details_unpin(mem, details_of(r->message.details));
        if (r->kind == STORE_RECORD_MESSAGE)
            message_unpin(mem, r->pin);
        else if (r->kind == STORE_RECORD_SUBSCRIPTION)
            address_unpin(mem, r->pin);
        else
            metadata_unpin(mem, r->pin);
    }
    mem_free(mem, records->pin);
}

/* ------------------------------------------------------------------ checkpoints */

enum { QUEUE_COST = 4, RUN_COST = 4 };

void
engine_checkpoint_begin(struct store *s)
{
    struct engine *e = engine_of(s);

    e->checkpoint_no++;
    e->checkpoint_shard = 0;
}

/* The queue that the checkpoint reads now; NULL: it has read the shard. */
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

static enum status
read_queue(struct shard *sh, struct queue *q, struct allowance *left)
{
    size_t bytes = queue_bytes(&q->where, &q->metadata->document);
    enum status st = changelog_reserve(sh, STORE_CHANGE_QUEUE, 0, bytes);

    if (st != ST_OK)
        return st;
    changelog_queue(q, STORE_CHANGE_QUEUE, sh->now_ms);
    allowance_spend(left, QUEUE_COST, bytes);
    sh->checkpoint.last_seq = q->last_seq;
    enter_stage(&sh->checkpoint, queue_transient(q) ? STATE_SUBSCRIPTIONS : STATE_RUNS);
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
        q->checkpoint_no = sh->checkpoint.number;
        sh->checkpoint.queue = NULL;
        list_remove(&q->checkpoint_link);
        list_add_before(&sh->checkpoint_order, &q->checkpoint_link);
        return ST_OK;
    }
    bytes = address_bytes(s->address);
    st = changelog_reserve(sh, STORE_CHANGE_SUBSCRIPTION, 0, bytes);
    if (st != ST_OK)
        return st;
    changelog_subscription(q, STORE_CHANGE_SUBSCRIPTION, s, sh->now_ms);
    allowance_spend(left, 1, bytes);
    sh->checkpoint.at++;
    return ST_OK;
}

static enum status
read_run(struct shard *sh, struct queue *q, struct allowance *left)
{
    const size_t bytes = RUN_MESSAGES * sizeof(struct store_outline);
    struct store_runs *runs = sh->core->config.runs;
    struct run *r = seqmap_next_live(&q->backlog->runs, &sh->checkpoint.at);
    enum status st;

    if (r == NULL) {
        enter_stage(&sh->checkpoint, STATE_MESSAGES);
        return ST_OK;
    }
    st = changelog_reserve(sh, STORE_CHANGE_RUN, 0, bytes);
    if (st != ST_OK)
        return st;
    changelog_run(q, r, sh->now_ms);
    if (runs != NULL &&
        runs->count(runs, r->place.file,
                    run_bytes(r, r->stored) + run_count(r->stored) * STORE_BODY_EACH))
        run_move(sh, r);
    allowance_spend(left, RUN_COST, bytes);
    sh->checkpoint.at++;
    return ST_OK;
}

/* Neighboring messages of the queue or its feed. */
struct stretch {
    size_t count, bytes;
    size_t details, details_bytes; /* messages with details, and the bytes of these */
    uint64_t end;                  /* number behind the last one */
};

/* The message with the next number from *seq on, which becomes that number; NULL: there
 * is none. */
static const struct message *
next_message(const struct queue *q, enum store_change_kind kind, uint64_t *seq)
{
    const struct feed_entry *entry;
    const struct message *m;

    if (kind == STORE_CHANGE_STATE) {
        while ((m = seqmap_next_live(&q->backlog->messages, seq)) != NULL &&
               backlog_is_stored(q->backlog, *seq))
            ++*seq;
        return m;
    }
    entry = q->feed == NULL ? NULL : seqmap_next_live(&q->feed->entries, seq);
    return entry == NULL ? NULL : entry->message;
}

static struct stretch
next_stretch(const struct shard *sh, const struct queue *q, enum store_change_kind kind,
             size_t messages, size_t bytes)
{
    struct stretch next = {.end = sh->checkpoint.at};
    uint64_t seq = sh->checkpoint.at;
    const struct message *m;

    while (next.count < messages && next.bytes < bytes &&
           (m = next_message(q, kind, &seq)) != NULL && seq <= sh->checkpoint.last_seq) {
        next.count++;
        next.bytes += m->body_len;
        next.end = ++seq;
        if (kind == STORE_CHANGE_STATE && message_details(m) != NULL) {
            next.details++;
            next.details_bytes += details_bytes(m);
        }
    }
    return next;
}

/* Ends the stage of messages. Logs that there is a feed, so that a replay adds later
 * posts to it. */
static enum status
begin_feed(struct shard *sh, struct queue *q)
{
    enum status st = ST_OK;

    if (q->feed != NULL)
        st = changelog_reserve(sh, STORE_CHANGE_FEED, 0, 0);
    if (st != ST_OK)
        return st;
    if (q->feed != NULL)
        changelog_feed(q, 0, 0, sh->now_ms);
    sh->checkpoint.last_seq = q->last_seq;
    enter_stage(&sh->checkpoint, q->feed != NULL ? STATE_FEED : STATE_SUBSCRIPTIONS);
    return ST_OK;
}

/* The log has the changed messages of these numbers whole now, so a replay does not need
 * their body files. */
static void
forget_stored(struct shard *sh, struct queue *q, uint64_t from, uint64_t end)
{
    struct backlog *b = q->backlog;

    for (uint64_t block = from / RUN_MESSAGES; b->runs.live > 0 && from < end; block++) {
        const struct run *r = seqmap_next_live(&b->runs, &block);

        if (r == NULL || r->first >= end)
            return;
        for (uint64_t rest = r->changed; rest != 0; rest &= rest - 1) {
            const uint64_t seq = r->first + run_lowest(rest);

            if (seq >= from && seq < end)
                run_forget(sh, b, seq); /* perhaps with the run, as the last one */
        }
    }
}

/* Reads some messages of the queue (STATE), or of its feed (FEED). */
static enum status
read_messages(struct shard *sh, struct queue *q, enum store_change_kind kind,
              struct allowance *left)
{
    struct stretch next = next_stretch(sh, q, kind, left->messages, left->bytes);
    enum status st;

    if (next.count == 0 && kind == STORE_CHANGE_STATE)
        return begin_feed(sh, q);
    if (next.count == 0) {
        enter_stage(&sh->checkpoint, STATE_SUBSCRIPTIONS);
        return ST_OK;
    }
    st = changelog_reserve(sh, kind, next.count, next.bytes);
    while (st == ST_BEYOND_LOG && next.count > 1) { /* a single one fits */
        next = next_stretch(sh, q, kind, next.count / 2, left->bytes);
        st = changelog_reserve(sh, kind, next.count, next.bytes);
    }
    ENSURE(next.count > 0);
    if (st == ST_OK && next.details > 0)
        st =
            changelog_reserve(sh, STORE_CHANGE_DETAILS, next.details, next.details_bytes);
    if (st != ST_OK)
        return st;
    if (kind == STORE_CHANGE_STATE) {
        changelog_row(q, kind, sh->checkpoint.at, next.count, sh->now_ms);
        forget_stored(sh, q, sh->checkpoint.at, next.end);
    }
    if (next.details > 0)
        changelog_row_details(q, sh->checkpoint.at, next.count, sh->now_ms);
    if (kind == STORE_CHANGE_FEED)
        changelog_feed(q, sh->checkpoint.at, next.count, sh->now_ms);
    allowance_spend(left, next.count, next.bytes + next.details_bytes);
    sh->checkpoint.at = next.end;
    return ST_OK;
}

static enum status
read_slice(struct shard *sh, bool *done)
{
    struct allowance left = {SLICE_MESSAGES, SLICE_BYTES};
    enum status st = ST_OK;

    while (st == ST_OK && left.messages > 0 && left.bytes > 0) {
        struct queue *q = queue_in_turn(sh);

        if (q == NULL)
            return keys_checkpoint(sh, &left, done);
        if (sh->checkpoint.stage == STATE_QUEUE)
            st = read_queue(sh, q, &left);
        else if (sh->checkpoint.stage == STATE_RUNS)
            st = read_run(sh, q, &left);
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

/* True if a shard has nothing that a checkpoint would read. */
static bool
is_blank(struct shard *sh)
{
    bool blank;

    lock_acquire(&sh->lock);
    blank = sh->queues.count == 0 && sh->keys.count == 0;
    lock_release(&sh->lock);
    return blank;
}

enum status
engine_checkpoint(struct store *s, bool *done)
{
    struct engine *e = engine_of(s);
    struct shard *sh = &e->shards[e->checkpoint_shard];
    bool read = false;
    enum status st;

    ENSURE(e->checkpoint_shard < e->shard_count);
    *done = false;
    lock_acquire(&sh->lock);
    if (sh->checkpoint.number != e->checkpoint_no)
        sh->checkpoint = (struct checkpoint){.number = e->checkpoint_no};
    sh->checkpointing = true;
    st = read_slice(sh, &read);
    sh->checkpointing = false;
    shard_leave(sh);
    if (read && (e->checkpoint_shard + 1 == e->shard_count ||
                 (e->checkpoint_shard == e->shard_mask && is_blank(sh + 1))))
        *done = true; /* a server without schedules needs no step for them */
    else if (read)
        e->checkpoint_shard++;
    return st;
}
