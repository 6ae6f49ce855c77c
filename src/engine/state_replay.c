/*
 * state_replay: applies the records of a log to a new store (claimd/store/state.h).
 *
 *     1. engine_replay() gets each record, in order (journal/recover.c). replay_begin()
 *        makes the replay shard before the first one. No time passes there.
 *     2. apply_change() finds the queue by its tag, or makes one. A log may begin in the
 *        middle, so a queue may have messages before put_queue() gives it a name.
 *     3. apply_to_queue() puts the state of the record in place, whatever was there
 *        before.
 *     4. engine_replay_end() sets the time (replay_end.c). move_keys_to_shards() moves
 *        the Idempotency-Keys.
 *     5. move_to_shard() moves a queue to its shard, ends claims without messages, arms
 *        the deadlines, and attaches the feed (replay_feed_end()). A queue without a
 *        name, or two with the same name, is damage (ST_BAD_VALUE).
 *     6. expire_messages_only() and store_housekeep() expire everything that is due.
 *
 * A record describes the state afterwards:
 *
 *     - A message or queue that exists is replaced.
 *     - The removal of something that does not exist has no effect.
 *     - The last record says which claim holds a message. A CLAIM of a message that does
 *       not exist yet is skipped. The STATE of the message follows, and names the claim.
 *     - A claim that holds no message at the end is over.
 *     - A RUN replaces messages by a run. If a later record changes one of them, a
 *       message without a body stands for it, and adopt_run() reads the body at the end.
 */
#include "claimd/base/invariant.h"
#include "engine/keys.h"
#include "engine/replay.h"
#include "engine/replay_feed.h"
#include "engine/run_ops.h"

static bool
replayed_has_tag(const struct hashnode *node, const void *key)
{
    return container_of(node, const struct replayed_queue, node)->tag ==
           *(const uint32_t *)key;
}

struct replayed_queue *
replayed_find(const struct replay *r, uint32_t tag)
{
    struct hashnode *node =
        hashmap_find(&r->queues, hash_mix(tag), replayed_has_tag, &tag);

    return node == NULL ? NULL : container_of(node, struct replayed_queue, node);
}

/* Adds a queue with a new tag; NULL without memory. */
static struct replayed_queue *
replayed_new(struct replay *r, uint32_t tag)
{
    struct mem *mem = r->core->mem;
    struct replayed_queue *v;

    if (hashmap_reserve(&r->queues, 1) != ST_OK)
        return NULL;
    v = mem_calloc(mem, 1, sizeof(*v));
    if (v == NULL)
        return NULL;
    v->backlog = backlog_new(mem, &r->shard.alive);
    if (v->backlog == NULL) {
        mem_free(mem, v);
        return NULL;
    }
    v->tag = tag;
    hashmap_insert(&r->queues, &v->node, hash_mix(tag));
    return v;
}

/* --------------------------------------------------------------- messages and claims */

/* Takes a message from its claim, which stays even if it holds no message. */
static void
release_message(struct message *m)
{
    if (m->claim == NULL)
        return;
    ENSURE(m->claim->held > 0);
    m->claim->held--;
    backlog_release(m->backlog, m);
}

static void
drop_message(struct replay *r, struct message *m)
{
    if (m == NULL)
        return;
    release_message(m);
    run_forget(&r->shard, m->backlog, m->seq);
    backlog_remove(m->backlog, &r->shard.pool, m);
    message_unpin(r->core->mem, m);
}

/* Removes the message with this number, in memory or not. */
static void
drop_number(struct replay *r, struct backlog *b, uint64_t number)
{
    struct run *run = backlog_run(b, number);

    if (run != NULL && (run->unloaded & run_bit(number)) != 0)
        (void)run_remove(&r->shard, run, run_bit(number));
    else
        drop_message(r, seqmap_find(&b->messages, number));
}

/*
 * The message with this number, which a record changes; NULL: there is none. If it is
 * unloaded, a message without its body takes its place. ST_NO_MEMORY.
 */
static enum status
find_to_change(struct replay *r, struct backlog *b, uint64_t number, struct message **out)
{
    struct run *run = backlog_run(b, number);
    const unsigned bit = (unsigned)(number % RUN_MESSAGES);
    struct message *m;

    *out = seqmap_find(&b->messages, number);
    if (*out != NULL || run == NULL || (run->unloaded & run_bit(number)) == 0)
        return ST_OK;
    if (backlog_reserve(b, &r->shard.pool, number - 1, 1, 0) != ST_OK)
        return ST_NO_MEMORY;
    m = message_make(r->core->mem, run->outlines[bit].length, NULL, 0);
    if (m == NULL)
        return ST_NO_MEMORY;
    memset(m->body, 0, m->body_len);
    if ((run->sealed & run_bit(number)) != 0)
        m->body[0] = STORE_SEALED_MARK; /* it counts as encrypted */
    m->lacks_body = true;
    m->seq = number;
    m->expires_ms = m->due.due_ms = run_expires_ms(run, bit);
    backlog_count_loaded(run, run_bit(number));
    backlog_load(b, &r->shard.pool, m);
    *out = m;
    return ST_OK;
}

static void
remove_contents(struct replay *r, struct backlog *b)
{
    struct message *m;
    struct claim *c;
    struct run *run;
    uint64_t at = 0;

    while ((c = seqmap_next_live(&b->claims, &at)) != NULL)
        claim_end(&r->shard, c);
    for (at = 0; (m = seqmap_next_live(&b->messages, &at)) != NULL;)
        drop_message(r, m);
    for (at = 0; (run = seqmap_next_live(&b->runs, &at)) != NULL;)
        (void)run_remove(&r->shard, run, run->unloaded);
    seqmap_pool_trim(&r->shard.pool);
}

static void
replayed_free(struct replay *r, struct replayed_queue *v)
{
    struct mem *mem = r->core->mem;

    remove_contents(r, v->backlog);
    replay_feed_none(&r->shard, &v->feed);
    if (v->queue != NULL)
        queue_free(mem, v->queue); /* frees the backlog, too */
    else
        backlog_free(mem, v->backlog);
    hashmap_remove(&r->queues, &v->node);
    mem_free(mem, v);
}

/* The index of a number among those of a claim, or where to insert it. */
static uint32_t
claim_number_index(const struct claim *c, uint64_t number)
{
    uint32_t low = 0, high = c->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (c->seqs[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds a number to a claim, which is replaced by a larger one if it is full. */
static enum status
add_number(struct replay *r, struct claim **c, uint64_t number)
{
    uint32_t at = claim_number_index(*c, number);
    struct claim *larger;

    if (at < (*c)->count && (*c)->seqs[at] == number)
        return ST_OK;
    if ((*c)->count == (*c)->capacity) {
        larger = claim_new(r->core->mem, 2 * (size_t)(*c)->capacity + 1);
        if (larger == NULL)
            return ST_NO_MEMORY;
        claim_replace(&r->shard, *c, larger);
        *c = larger;
    }
    memmove(&(*c)->seqs[at + 1], &(*c)->seqs[at],
            ((*c)->count - at) * sizeof((*c)->seqs[0]));
    (*c)->seqs[at] = number;
    (*c)->count++;
    return ST_OK;
}

/* Makes a claim without messages, with capacity for `capacity` numbers. */
static enum status
replay_make_claim(struct replay *r, struct backlog *b,
                  const struct store_claim_record *record, size_t capacity,
                  struct claim **out)
{
    struct shard *sh = &r->shard;
    struct ident id;
    struct claim *c;

    if (!ident_read(store_id_bytes(&record->id), &id) || ident_claim_number(id) == 0)
        return ST_BAD_VALUE;
    if (seqmap_pool_stock(
            &sh->pool, seqmap_nodes_for(&b->claims, ident_claim_number(id), 1)) != ST_OK)
        return ST_NO_MEMORY;
    c = claim_new(r->core->mem, capacity);
    if (c == NULL)
        return ST_NO_MEMORY;
    claim_enter(sh, c, b, id, record->started_ms);
    *out = c;
    return ST_OK;
}

/* Sets the times of the claim of this record; NULL: there is none. */
static struct claim *
update_claim(const struct backlog *b, const struct store_claim_record *record)
{
    struct claim *c = seqmap_find(&b->claims, store_id_number(&record->id));

    if (c != NULL) {
        c->started_ms = record->started_ms;
        c->due.due_ms = record->ends_ms;
    }
    return c;
}

/* Lets this claim hold m. Makes the claim, with capacity for `capacity` numbers, if it
 * does not exist. */
static enum status
put_claimed(struct replay *r, struct replayed_queue *v, struct message *m,
            const struct store_claim_record *record, size_t capacity)
{
    struct claim *c = update_claim(v->backlog, record);
    enum status st = ST_OK;

    if (c == NULL) {
        st = replay_make_claim(r, v->backlog, record, capacity, &c);
        if (st == ST_OK)
            (void)update_claim(v->backlog, record);
    }
    if (st == ST_OK)
        st = add_number(r, &c, m->seq);
    if (st != ST_OK)
        return st;
    raise_number(&v->last_claim, store_id_number(&record->id));
    if (m->claim == c)
        return ST_OK;
    release_message(m);
    if (m->delayed)
        backlog_end_delay(m->backlog, m);
    backlog_claim_message(m->backlog, m, c);
    c->held++;
    return ST_OK;
}

/* Adds or replaces a message as the record says, with the claim that holds it. */
static enum status
put_message(struct replay *r, struct replayed_queue *v,
            const struct store_message_record *record)
{
    struct message *m;
    enum status st;

    if (record->number == 0)
        return ST_BAD_VALUE;
    st = backlog_reserve(v->backlog, &r->shard.pool, record->number - 1, 1, 0);
    if (st == ST_OK && record->original_id)
        st = hashmap_reserve(&v->backlog->originals, 1);
    if (st != ST_OK)
        return st;
    m = message_of_record(r->core->mem, record, record->original_id, &st);
    if (m == NULL)
        return st;
    drop_number(r, v->backlog, record->number);
    m->seq = record->number;
    backlog_add(v->backlog, &r->shard.pool, m);
    if (record->original_id)
        backlog_add_original(v->backlog, m);
    raise_number(&v->last_seq, record->number);
    return record->claim == NULL ? ST_OK : put_claimed(r, v, m, record->claim, 1);
}

/* POST, STATE. The subscribers have still to receive messages of a POST. */
static enum status
put_messages(struct replay *r, struct replayed_queue *v, struct store_change *change)
{
    struct store_message_record record;
    enum status st = ST_OK;

    while (st == ST_OK && change->next(change, &record)) {
        st = put_message(r, v, &record);
        if (st == ST_OK && change->kind == STORE_CHANGE_POST)
            st = replay_feed_post(&r->shard, v->feed,
                                  seqmap_find(&v->backlog->messages, record.number),
                                  &record);
    }
    return st;
}

void
replay_drop_stored(struct replay *r, struct backlog *b, const struct run *run,
                   uint64_t bits)
{
    const uint64_t first = run->first; /* the run may end with its last message */

    for (; bits != 0; bits &= bits - 1)
        drop_number(r, b, first + run_lowest(bits));
}

/*
 * RUN: the messages are as the body file has them. If it is in the same place as the run
 * that is there, a checkpoint repeats it: later changes of its messages stay.
 */
static enum status
put_run(struct replay *r, struct replayed_queue *v, const struct store_run_record *record)
{
    struct backlog *b = v->backlog;
    struct run *run = backlog_run(b, record->first);
    const bool repeated =
        run != NULL && memcmp(&run->place, &record->place, sizeof(run->place)) == 0;

    raise_number(&v->last_seq,
                 record->first + 63 - (uint64_t)__builtin_clzll(record->stored));
    if (run != NULL)
        replay_drop_stored(r, b, run, run->stored & ~(repeated ? record->stored : 0));
    if (repeated)
        return ST_OK;
    for (uint64_t rest = record->stored; rest != 0; rest &= rest - 1)
        drop_number(r, b, record->first + run_lowest(rest));
    if (seqmap_pool_stock(&r->shard.pool, run_nodes(b, record->first)) != ST_OK)
        return ST_NO_MEMORY;
    run = run_of_record(r->core->mem, record);
    if (run == NULL)
        return ST_NO_MEMORY;
    run_add(&r->shard, b, run);
    seqmap_pool_trim(&r->shard.pool);
    return ST_OK;
}

/* FEED: entries, whose messages may have left the queue. */
static enum status
put_feed(struct replay *r, struct replayed_queue *v, struct store_change *change)
{
    struct store_message_record record;
    enum status st = replay_feed_open(&r->shard, &v->feed);

    while (st == ST_OK && change->next(change, &record)) {
        struct message *m = seqmap_find(&v->backlog->messages, record.number);

        if (m != NULL && !message_has_original(m) && !m->lacks_body) {
            st = replay_feed_post(&r->shard, v->feed, m, &record);
            continue;
        }
        m = message_new(r->core->mem, record.body, NULL, record.client);
        if (m == NULL)
            return ST_NO_MEMORY;
        st = replay_feed_post(&r->shard, v->feed, m, &record);
        message_unpin(r->core->mem, m); /* the feed has a pin */
    }
    return st;
}

/* MOVE. The subscribers of the target have still to receive the messages. */
static enum status
move_messages(struct replay *r, struct store_change *change)
{
    struct store_message_record record;
    struct replayed_queue *target = replayed_find(r, change->target_tag);
    enum status st = ST_OK;

    if (target == NULL)
        target = replayed_new(r, change->target_tag);
    if (target == NULL)
        return ST_NO_MEMORY;
    while (st == ST_OK && change->next(change, &record)) {
        const struct replayed_queue *source = replayed_find(r, change->tag);

        if (source != NULL)
            drop_number(r, source->backlog, record.old_number);
        st = put_message(r, target, &record);
        if (st == ST_OK)
            st = replay_feed_post(&r->shard, target->feed,
                                  seqmap_find(&target->backlog->messages, record.number),
                                  &record);
    }
    return st;
}

/* CLAIM, RENEW: the claim holds those of the messages that exist. */
static enum status
put_claim(struct replay *r, struct replayed_queue *v, struct store_change *change)
{
    const size_t count = change->count;
    struct store_message_record record;
    enum status st = ST_OK;

    raise_number(&v->last_claim, store_id_number(&change->claim.id));
    (void)update_claim(v->backlog, &change->claim);
    while (st == ST_OK && change->next(change, &record)) {
        struct message *m;

        st = find_to_change(r, v->backlog, record.number, &m);
        if (m == NULL)
            continue;
        st = put_claimed(r, v, m, &change->claim, count);
        message_update(m, &record); /* m is not delayed any more */
    }
    return st;
}

/* RETRY: no claim holds these messages any more, and some are delayed. */
static enum status
retry_messages(struct replay *r, const struct replayed_queue *v,
               struct store_change *change)
{
    struct store_message_record record;
    enum status st = ST_OK;

    while (st == ST_OK && change->next(change, &record)) {
        struct message *m;

        st = find_to_change(r, v->backlog, record.number, &m);
        if (m == NULL)
            continue;
        release_message(m);
        if (record.delayed_until_ms != 0 && !m->delayed)
            backlog_delay(m->backlog, m);
        else if (record.delayed_until_ms == 0 && m->delayed)
            backlog_end_delay(m->backlog, m);
        message_update(m, &record);
    }
    return st;
}

/* DETAILS: replaces those of messages that exist. */
static enum status
put_details(struct replay *r, const struct replayed_queue *v, struct store_change *change)
{
    struct store_message_record record;
    enum status st = ST_OK;

    while (st == ST_OK && change->next(change, &record)) {
        struct details *d;
        struct message *m;

        st = find_to_change(r, v->backlog, record.number, &m);
        if (m == NULL)
            continue;
        d = details_new(r->core->mem, record.details);
        st = d == NULL ? ST_NO_MEMORY : message_ensure_extra(r->core->mem, m);
        if (st == ST_OK && store_holds_key(record.details))
            st = hashmap_reserve(&m->backlog->unique, 1);
        if (st != ST_OK) {
            if (d != NULL)
                details_unpin(r->core->mem, d);
            break;
        }
        backlog_set_details(m->backlog, r->core->mem, m, d);
        if (d->view.unique.key.len > 0)
            backlog_hold_key(m->backlog, m, core_text_hash(r->core, d->view.unique.key));
    }
    return st;
}

static enum status
release_claim(struct replay *r, const struct replayed_queue *v,
              struct store_change *change)
{
    struct store_message_record record;
    enum status st = ST_OK;
    struct claim *c;

    while (st == ST_OK && change->next(change, &record)) {
        struct message *m;

        st = find_to_change(r, v->backlog, record.number, &m);
        if (m != NULL)
            message_update(m, &record);
    }
    c = seqmap_find(&v->backlog->claims, store_id_number(&change->claim.id));
    if (c != NULL)
        claim_end(&r->shard, c);
    return st;
}

/*
 * The expiry of claims is not logged. Those that had expired when the settings changed
 * did so by the old settings: their messages were requeued, or have moved. The others
 * expire when the replay ends.
 */
static void
expire_claims_before(struct replay *r, const struct replayed_queue *v, int64_t now_ms)
{
    uint64_t number = 0;
    struct claim *c;

    for (; (c = seqmap_next_live(&v->backlog->claims, &number)) != NULL; number++)
        if (c->due.due_ms <= now_ms)
            claim_end(&r->shard, c);
}

static enum status
name_queue(struct replay *r, struct replayed_queue *v, const struct store_change *change)
{
    struct mem *mem = r->core->mem;
    struct queue *q =
        queue_new(r->core, &r->shard.alive, &change->queue, change->metadata);

    if (q == NULL)
        return ST_NO_MEMORY;
    backlog_free(mem, q->backlog);
    q->backlog = v->backlog;
    v->backlog->queue = q;
    q->tag = v->tag;
    q->fence_base = change->fence_base;
    v->queue = q;
    return ST_OK;
}

static enum status
replace_metadata(struct replay *r, struct queue *q, const struct store_metadata *metadata)
{
    struct metadata *fresh = metadata_new(r->core->mem, metadata);

    if (fresh == NULL)
        return ST_NO_MEMORY;
    metadata_unpin(r->core->mem, q->metadata);
    q->metadata = fresh;
    return ST_OK;
}

static enum status
put_queue(struct replay *r, struct replayed_queue *v, const struct store_change *change)
{
    raise_number(&v->last_seq, change->last_number);
    raise_number(&v->last_claim, change->last_claim);
    core_restore_marks(r->core, &change->marks);
    if (v->queue == NULL)
        return name_queue(r, v, change);
    return store_queue_equal(&v->queue->where, &change->queue)
               ? replace_metadata(r, v->queue, change->metadata)
               : ST_BAD_VALUE;
}

/* ------------------------------------------------------------------ the whole */

static enum status
replay_begin(struct engine *e)
{
    const struct engine_config config = {.seeded = true};
    struct replay *r = mem_calloc(e->core.mem, 1, sizeof(*r));

    if (r == NULL)
        return ST_NO_MEMORY;
    r->core = &e->core;
    if (shard_init(&r->shard, &e->core, &config, 0) != ST_OK) {
        mem_free(e->core.mem, r);
        return ST_NO_MEMORY;
    }
    hashmap_init(&r->queues, e->core.mem);
    e->replay = r;
    return ST_OK;
}

/* Applies a record of a queue that exists. */
static enum status
apply_to_queue(struct replay *r, struct replayed_queue *v, struct store_change *change)
{
    struct shard *sh = &r->shard;
    struct store_message_record record;

    switch (change->kind) {
    case STORE_CHANGE_QUEUE:
        return put_queue(r, v, change);
    case STORE_CHANGE_POST:
    case STORE_CHANGE_STATE:
        return put_messages(r, v, change);
    case STORE_CHANGE_RUN:
        return put_run(r, v, change->run);
    case STORE_CHANGE_FEED:
        return put_feed(r, v, change);
    case STORE_CHANGE_CLAIM:
    case STORE_CHANGE_RENEW:
        return put_claim(r, v, change);
    /* A later QUEUE has the metadata if the queue has no name yet. */
    case STORE_CHANGE_META:
        expire_claims_before(r, v, change->now_ms);
        return v->queue == NULL ? ST_OK : replace_metadata(r, v->queue, change->metadata);
    case STORE_CHANGE_PURGE:
        remove_contents(r, v->backlog);
        return ST_OK;
    case STORE_CHANGE_SUBSCRIPTION: /* a later one, likewise */
        return v->queue == NULL ? ST_OK
                                : replay_feed_subscription(sh, &v->feed, &v->queue->where,
                                                           change->subscription);
    case STORE_CHANGE_SUBSCRIPTION_GONE:
        replay_feed_gone(sh, v->feed, change->subscription);
        return ST_OK;
    case STORE_CHANGE_UNSUBSCRIBED:
        replay_feed_none(sh, &v->feed);
        return ST_OK;
    case STORE_CHANGE_CURSOR:
        replay_feed_cursor(v->feed, change->subscription);
        return ST_OK;
    case STORE_CHANGE_DELETE:
        while (change->next(change, &record))
            drop_number(r, v->backlog, record.number);
        seqmap_pool_trim(&sh->pool);
        return ST_OK;
    case STORE_CHANGE_RETRY:
        return retry_messages(r, v, change);
    case STORE_CHANGE_DETAILS:
        return put_details(r, v, change);
    case STORE_CHANGE_RELEASE:
        return release_claim(r, v, change);
    default: /* expiries follow from the deadlines */
        return ST_OK;
    }
}

static enum status
apply_change(struct replay *r, struct store_change *change)
{
    struct replayed_queue *v = replayed_find(r, change->tag);

    switch (change->kind) {
    case STORE_CHANGE_QUEUE:
    case STORE_CHANGE_POST:
    case STORE_CHANGE_STATE:
    case STORE_CHANGE_RUN:
    case STORE_CHANGE_FEED:
    case STORE_CHANGE_CLAIM:
    case STORE_CHANGE_RENEW:
        if (v == NULL)
            v = replayed_new(r, change->tag);
        return v == NULL ? ST_NO_MEMORY : apply_to_queue(r, v, change);
    case STORE_CHANGE_MOVE:
        return move_messages(r, change);
    case STORE_CHANGE_KEY:
        return keys_replay(&r->shard, change);
    case STORE_CHANGE_QUEUE_GONE:
        core_restore_marks(r->core, &change->marks);
        core_raise_fence(r->core, change->fence_base + change->last_claim);
        if (v != NULL)
            replayed_free(r, v);
        return ST_OK;
    default:
        return v == NULL ? ST_OK : apply_to_queue(r, v, change);
    }
}

enum status
engine_replay(struct store *s, struct store_change *change)
{
    struct engine *e = engine_of(s);
    enum status st = e->replay == NULL ? replay_begin(e) : ST_OK;

    if (st != ST_OK)
        return st;
    lock_acquire(&e->replay->shard.lock);
    st = apply_change(e->replay, change);
    shard_release_runs(&e->replay->shard);
    lock_release(&e->replay->shard.lock);
    return st;
}

void
engine_replay_drop(struct engine *e)
{
    struct replay *r = e->replay;
    struct hashnode *node;

    if (r == NULL)
        return;
    lock_acquire(&r->shard.lock);
    while ((node = hashmap_walk(&r->queues, NULL)) != NULL)
        replayed_free(r, container_of(node, struct replayed_queue, node));
    keys_free(&r->shard);
    shard_release_runs(&r->shard);
    lock_release(&r->shard.lock);
    hashmap_fini(&r->queues);
    shard_fini(&r->shard);
    mem_free(e->core.mem, r);
    e->replay = NULL;
}
