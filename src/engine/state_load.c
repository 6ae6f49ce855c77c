/*
 * state_load: applies records to a store that is in use (claimd/store/state.h), all of
 * them or none, with new numbers. A dump that is loaded comes in slices of a queue.
 *
 *     1. engine_apply() checks the records (store_records_check()) and the memory
 *        budget.
 *     2. load_make() makes messages and subscriptions without the lock, and collects the
 *        claims of the messages (collect_claims()).
 *     3. txn_begin() takes the lock.
 *     4. load_reserve() does everything that can fail. A new queue gets a tag that no id
 *        of the messages has (has_tag()). check_messages() refuses messages that the
 *        queue has already. load_read_ids() keeps the ids of claims and subscriptions.
 *        New numbers follow behind those. reserve_log() reserves the records, each with
 *        at most LOGGED_MESSAGES or LOGGED_BYTES.
 *     5. load_commit() links queue, claims, messages and subscriptions, which cannot
 *        fail. A claim with the id of an existing one, of an earlier slice, replaces it
 *        with all messages of both. The changes are logged like any others: QUEUE,
 *        STATE, SUBSCRIPTION.
 *     6. txn_end() notifies waiters, and releases the lock.
 */
#include "engine/subscription.h"
#include "engine/txn.h"
#include "engine/unique.h"

#include <stdlib.h>

/* Limits of one record of the log, unless the log takes less. */
enum { LOGGED_MESSAGES = 4096, LOGGED_BYTES = 1 << 20 };

/* A claim that holds messages of the records. */
struct loaded_claim {
    const struct store_claim_record *record;
    struct claim *claim; /* owned until it is linked */
    struct claim *old;   /* that `claim` replaces; NULL: none */
    struct ident id;
    size_t count; /* messages of the records that it holds */
};

struct load {
    struct txn txn;
    const struct store_record *records;
    size_t count;
    const struct store_metadata *metadata; /* of the queue if it is new; NULL: without */
    size_t message_count, claim_count, subscription_count;
    size_t key_count;                    /* messages with a key */
    struct list messages;                /* owned, by due.link, in order */
    struct loaded_claim *claims;         /* owned, in order of compare_claims() */
    struct subscription **subscriptions; /* owned, also the subscriptions in it */
    struct feed *feed;                   /* new, owned until it is opened; NULL: none */
    size_t body_bytes;
    uint64_t last_claim, last_subscription; /* of the queue, afterwards */
    struct ident newest; /* newest subscription of the queue, afterwards */
};

/* ------------------------------------------------------------------ without the lock */

/* Bytes of memory that the records will take, roughly. */
static size_t
records_bytes(const struct store_record *records, size_t count)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        const struct store_record *r = &records[i];

        if (r->kind == STORE_RECORD_QUEUE)
            total += r->metadata.json.len;
        else if (r->kind == STORE_RECORD_MESSAGE)
            total += sizeof(struct message) + 32 + r->message.body.len +
                     (r->message.claim == NULL ? 0 : sizeof(struct claim));
        else
            total += sizeof(struct subscription) + sizeof(struct address) +
                     r->subscription.subscriber.len + r->subscription.options.len;
    }
    return total;
}

/* Claims with an id are equal if their ids are. Others are equal if they are the same
 * record. */
static int
compare_claims(const void *a, const void *b)
{
    const struct store_claim_record *x = ((const struct loaded_claim *)a)->record;
    const struct store_claim_record *y = ((const struct loaded_claim *)b)->record;
    int order = strcmp(x->id.text, y->id.text);

    return order != 0 || x->id.text[0] != '\0'
               ? order
               : ((uintptr_t)x > (uintptr_t)y) - ((uintptr_t)x < (uintptr_t)y);
}

/* Collects the claims of the messages, each once, with the number of its messages. */
static enum status
collect_claims(struct load *l, struct mem *mem)
{
    size_t count = 0;

    l->claims = mem_calloc(mem, l->message_count + 1, sizeof(*l->claims));
    if (l->claims == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < l->count; i++)
        if (l->records[i].kind == STORE_RECORD_MESSAGE &&
            l->records[i].message.claim != NULL)
            l->claims[count++].record = l->records[i].message.claim;
    if (count > 1)
        qsort(l->claims, count, sizeof(*l->claims), compare_claims);
    for (size_t i = 0; i < count; i++) {
        if (l->claim_count == 0 ||
            compare_claims(&l->claims[l->claim_count - 1], &l->claims[i]) != 0)
            l->claims[l->claim_count++] =
                (struct loaded_claim){.record = l->claims[i].record};
        l->claims[l->claim_count - 1].count++;
    }
    return ST_OK;
}

static enum status
make_message(struct load *l, struct mem *mem, const struct store_message_record *record)
{
    enum status st;
    struct message *m = message_of_record(mem, record, record->id.text[0] != '\0', &st);

    if (m != NULL)
        list_add_before(&l->messages, &m->due.link);
    l->body_bytes += record->body.len;
    l->key_count += m != NULL && message_key(m).len > 0;
    return st;
}

static enum status
make_subscription(struct load *l, struct mem *mem, const struct store_queue *where,
                  const struct store_subscription_record *record, size_t i)
{
    struct address *address =
        address_new(mem, where, record->subscriber, record->options);
    struct subscription *s = address == NULL ? NULL : subscription_new(mem, address);

    l->subscriptions[i] = s;
    if (s == NULL)
        return ST_NO_MEMORY;
    s->started_ms = record->started_ms;
    s->ttl_s = record->ttl_s;
    s->confirmed = record->confirmed;
    if (record->pending == STORE_PENDING_CONFIRM &&
        l->txn.engine->core.config.require_confirmation)
        s->pending = STORE_PENDING_CONFIRM;
    s->delivered = record->delivered;
    s->permanent_failures = record->permanent_failures;
    s->dropped = record->dropped;
    return ST_OK;
}

/* Makes messages and subscriptions, without the lock. */
static enum status
load_make(struct load *l, struct mem *mem, const struct store_queue *where)
{
    size_t subscriptions = 0;
    enum status st = collect_claims(l, mem);

    l->subscriptions =
        mem_calloc(mem, l->subscription_count + 1, sizeof(struct subscription *));
    if (l->subscriptions == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; st == ST_OK && i < l->count; i++) {
        const struct store_record *r = &l->records[i];

        if (r->kind == STORE_RECORD_MESSAGE)
            st = make_message(l, mem, &r->message);
        else if (r->kind == STORE_RECORD_SUBSCRIPTION)
            st = make_subscription(l, mem, where, &r->subscription, subscriptions++);
    }
    return st;
}

static void
load_free(struct load *l, struct mem *mem)
{
    message_unpin_all(mem, &l->messages);
    for (size_t i = 0; l->claims != NULL && i < l->claim_count; i++)
        mem_free(mem, l->claims[i].claim);
    for (size_t i = 0; l->subscriptions != NULL && i < l->subscription_count; i++)
        if (l->subscriptions[i] != NULL)
            subscription_free(mem, l->subscriptions[i]);
    if (l->feed != NULL)
        feed_free(mem, l->feed);
    mem_free(mem, l->claims);
    mem_free(mem, l->subscriptions);
}

/* ------------------------------------------------------------------ reserving */

/* True if a message has an original id that a queue with this tag would give to its own
 * messages. */
static bool
has_tag(const struct load *l, uint32_t tag)
{
    for (const struct list *at = l->messages.next; at != &l->messages; at = at->next) {
        const struct message *m = container_of(at, const struct message, due.link);

        if (message_has_original(m) && m->extra->id.high == tag)
            return true;
    }
    return false;
}

/* Checks that the queue has none of the messages and accepts all of them. */
static enum status
check_messages(const struct load *l)
{
    const struct queue *q = l->txn.queue;

    for (const struct list *at = l->messages.next; at != &l->messages; at = at->next) {
        const struct message *m = container_of(at, const struct message, due.link);

        if (queue_settings(q)->encrypt && !store_is_sealed(message_body(m)))
            return ST_NOT_SEALED;
        if (!l->txn.queue_is_new && message_details(m) != NULL &&
            store_holds_key(&message_details(m)->view) &&
            unique_find(q, message_key(m), l->txn.now_ms) != NULL)
            return ST_CONFLICT;
        if (!message_has_original(m) || l->txn.queue_is_new)
            continue;
        if (m->extra->id.high == q->tag ||
            backlog_find(q->backlog, q->tag, m->extra->id) != NULL)
            return ST_CONFLICT;
    }
    return ST_OK;
}

/* Reads the ids that the records have. New numbers start behind those. */
static void
load_read_ids(struct load *l)
{
    size_t subscriptions = 0;

    l->last_claim = l->txn.queue->last_claim;
    l->last_subscription = l->txn.queue->last_subscription;
    l->newest = subscription_newest(l->txn.queue->feed);
    for (size_t i = 0; i < l->claim_count; i++)
        if (ident_read(store_id_bytes(&l->claims[i].record->id), &l->claims[i].id))
            raise_number(&l->last_claim, ident_claim_number(l->claims[i].id));
    for (size_t i = 0; i < l->count; i++) {
        struct subscription *s;
        struct ident id;

        if (l->records[i].kind != STORE_RECORD_SUBSCRIPTION)
            continue;
        s = l->subscriptions[subscriptions++];
        if (!ident_read(store_id_bytes(&l->records[i].subscription.id), &id))
            continue;
        s->id_high = id.high;
        s->id_low = id.low;
        raise_number(&l->last_subscription, ident_claim_number(id));
        if (ident_claim_number(l->newest) <= ident_claim_number(id))
            l->newest = id;
    }
}

/* Makes a claim, which replaces that of an earlier piece if there is one with this id. */
static enum status
reserve_claim(struct load *l, size_t i)
{
    struct loaded_claim *c = &l->claims[i];

    if (c->id.high == 0) { /* without an id: the next number */
        enum status st = entropy_reserve(&l->txn.shard->entropy, IDENT_ENTROPY);

        if (st != ST_OK)
            return st;
        c->id = ident_claim(&l->txn.shard->entropy, ++l->last_claim);
    }
    c->old = seqmap_find(&l->txn.queue->backlog->claims, ident_claim_number(c->id));
    if (c->old != NULL && !ident_equal(claim_ident(c->old), c->id))
        return ST_CONFLICT;
    c->claim = claim_new(l->txn.engine->core.mem,
                         c->count + (c->old == NULL ? 0 : c->old->count));
    return c->claim == NULL ? ST_NO_MEMORY : ST_OK;
}

static enum status
reserve_subscription(struct load *l, struct feed *f, size_t i)
{
    struct subscription *s = l->subscriptions[i];
    struct shard *sh = l->txn.shard;

    if (s->id_high == 0) { /* without an id: the next number */
        enum status st = entropy_reserve(&sh->entropy, IDENT_ENTROPY);

        if (st != ST_OK)
            return st;
        l->newest = ident_subscription(&sh->entropy, l->newest, ++l->last_subscription);
        s->id_high = l->newest.high;
        s->id_low = l->newest.low;
    }
    return seqmap_find(&f->subscriptions, subscription_number(s)) != NULL ||
                   subscription_of(sh, f, s->address->subscriber) != NULL
               ? ST_CONFLICT
               : ST_OK;
}

static enum status
reserve_nodes(const struct load *l, struct feed *f)
{
    const struct queue *q = l->txn.queue;
    size_t nodes = seqmap_nodes_up_to(&q->backlog->claims, l->last_claim, l->claim_count);
    enum status st = ST_OK;

    if (f != NULL) {
        nodes += seqmap_nodes_up_to(&f->subscriptions, l->last_subscription,
                                    l->subscription_count);
        st = subscription_reserve(l->txn.shard, f, l->last_subscription); /* the wheel */
    }
    if (st == ST_OK)
        st = hashmap_reserve(&q->backlog->originals, l->message_count);
    if (st == ST_OK && l->key_count > 0)
        st = hashmap_reserve(&q->backlog->unique, l->key_count);
    return st == ST_OK ? backlog_reserve(q->backlog, &l->txn.shard->pool, q->last_seq,
                                         l->message_count, nodes)
                       : st;
}

static enum status
reserve_parts(struct load *l)
{
    struct feed *f = l->txn.queue->feed;
    enum status st = ST_OK;

    load_read_ids(l);
    for (size_t i = 0; st == ST_OK && i < l->claim_count; i++)
        st = reserve_claim(l, i);
    if (st == ST_OK && l->subscription_count > 0) {
        if (f == NULL)
            f = l->feed = feed_new(l->txn.engine->core.mem);
        st = f == NULL ? ST_NO_MEMORY
                       : hashmap_reserve(&f->subscribers, l->subscription_count);
    }
    for (size_t i = 0; st == ST_OK && i < l->subscription_count; i++)
        st = reserve_subscription(l, f, i);
    return st == ST_OK ? reserve_nodes(l, l->subscription_count > 0 ? f : NULL) : st;
}

/* The messages of the next record of the log, from record *at on, which moves behind
 * them. */
static struct logged {
    size_t count, bytes;
    size_t details, details_bytes; /* messages with details, and the bytes of these */
} next_logged(const struct load *l, size_t *at)
{
    const struct store_log *log = l->txn.engine->core.log;
    const size_t most = log->largest == 0 ? SIZE_MAX : log->largest / 2;
    struct logged out = {.count = 0};

    for (; *at < l->count && out.count < LOGGED_MESSAGES; ++*at) {
        const struct store_message_record *record = &l->records[*at].message;
        size_t bytes = out.bytes + record->body.len;

        if (l->records[*at].kind != STORE_RECORD_MESSAGE)
            continue;
        if (out.count > 0 &&
            (bytes > LOGGED_BYTES || bytes + (out.count + 1) * STORE_LOG_EACH > most ||
             out.details_bytes > most / 2))
            break;
        out.bytes = bytes;
        out.count++;
        if (record->details == NULL)
            continue;
        out.details++;
        out.details_bytes += STORE_LOG_EACH + store_details_bytes(record->details);
    }
    return out;
}

static enum status
reserve_run(const struct txn *t, const struct logged *run)
{
    enum status st = txn_reserve_messages(t, STORE_CHANGE_STATE, run->count, run->bytes);

    return st == ST_OK && run->details > 0
               ? txn_reserve_messages(t, STORE_CHANGE_DETAILS, run->details,
                                      run->details_bytes)
               : st;
}

static enum status
reserve_log(struct load *l)
{
    const struct txn *t = &l->txn;
    enum status st = ST_OK;
    size_t at = 0;

    if (!t->queue_is_new)
        st = changelog_reserve_numbers(t->queue, l->message_count,
                                       l->last_claim - t->queue->last_claim);
    for (struct logged next; st == ST_OK && (next = next_logged(l, &at)).count > 0;)
        st = reserve_run(t, &next);
    for (size_t i = 0; st == ST_OK && i < l->subscription_count; i++)
        st = txn_reserve(t, STORE_CHANGE_SUBSCRIPTION, 0,
                         address_bytes(l->subscriptions[i]->address));
    return st;
}

/* Does everything that can fail, before anything changes. */
static enum status
load_reserve(struct load *l)
{
    const struct project_limits *limits = &l->txn.engine->core.limits;
    const bool exists = l->txn.queue != NULL;
    enum status st = ST_OK;
    struct queue *q;

    if (l->metadata == NULL && !exists)
        return ST_NOT_FOUND;
    if (exists &&
        (l->metadata != NULL || (l->message_count > 0 && l->txn.queue->feed != NULL)))
        return ST_CONFLICT;
    while (st == ST_OK && (!exists && !l->txn.queue_is_new)) {
        st = txn_make_queue(&l->txn, l->metadata);
        if (st == ST_OK && has_tag(l, l->txn.queue->tag)) { /* take another tag */
            shard_discard(l->txn.shard, l->txn.queue);
            l->txn.queue_is_new = false;
        }
    }
    q = l->txn.queue;
    if (st == ST_OK)
        st = check_messages(l);
    if (st == ST_OK)
        st = reserve_parts(l);
    if (st == ST_OK)
        st = txn_reserve_queue(&l->txn);
    if (st == ST_OK)
        st = directory_charge(&q->entry, l->message_count, l->body_bytes, limits);
    if (st != ST_OK)
        return st;
    st = has_log(&l->txn.engine->core) ? reserve_log(l) : ST_OK;
    if (st != ST_OK)
        directory_uncharge(&q->entry, l->message_count, l->body_bytes);
    return st;
}

/* ------------------------------------------------------------------ entering */

static void
txn_begin_claim(struct load *l, struct loaded_claim *c)
{
    struct shard *sh = l->txn.shard;

    if (c->old != NULL)
        claim_replace(sh, c->old, c->claim);
    else
        claim_enter(sh, c->claim, l->txn.queue->backlog, c->id, c->record->started_ms);
    c->claim->started_ms = c->record->started_ms;
    shard_arm_claim(sh, &c->claim->due, c->record->ends_ms);
}

static void
enter_message(struct load *l, const struct store_message_record *record)
{
    struct message *m = container_of(list_pop(&l->messages), struct message, due.link);
    struct queue *q = l->txn.queue;

    m->seq = ++q->last_seq;
    backlog_add(q->backlog, &l->txn.shard->pool, m);
    if (message_has_original(m))
        backlog_add_original(q->backlog, m);
    unique_hold(q, m);
    if (record->claim != NULL) {
        const struct loaded_claim key = {.record = record->claim}, *loaded;

        loaded = bsearch(&key, l->claims, l->claim_count, sizeof(key), compare_claims);
        claim_hold(loaded->claim, m);
    }
    shard_arm_message(l->txn.shard, &m->due, m->due.due_ms);
}

/* Cannot fail: everything is reserved. */
static void
load_commit(struct load *l)
{
    struct queue *q = l->txn.queue;
    struct shard *sh = l->txn.shard;
    uint64_t before = q->last_seq;

    q->last_claim = l->last_claim;
    if (l->txn.queue_is_new)
        queue_reserve_numbers(q);
    if (txn_link_queue(&l->txn))
        changelog_queue(q, STORE_CHANGE_QUEUE, l->txn.now_ms);
    for (size_t i = 0; i < l->claim_count; i++)
        txn_begin_claim(l, &l->claims[i]);
    for (size_t i = 0; i < l->count; i++)
        if (l->records[i].kind == STORE_RECORD_MESSAGE)
            enter_message(l, &l->records[i].message);
    for (size_t i = 0; i < l->claim_count; i++)
        l->claims[i].claim = NULL; /* the backlog owns it now */
    if (has_log(&l->txn.engine->core)) {
        size_t at = 0;

        for (struct logged next; (next = next_logged(l, &at)).count > 0;
             before += next.count) {
            changelog_row(q, STORE_CHANGE_STATE, before + 1, next.count, l->txn.now_ms);
            if (next.details > 0)
                changelog_row_details(q, before + 1, next.count, l->txn.now_ms);
        }
        changelog_numbers(q, l->txn.now_ms);
    }
    if (l->feed != NULL)
        feed_open(sh, q, l->feed);
    l->feed = NULL;
    q->last_subscription = l->last_subscription;
    for (size_t i = 0; i < l->subscription_count; i++) {
        struct subscription *s = l->subscriptions[i];

        l->subscriptions[i] = NULL; /* the feed owns it now */
        subscription_enter(sh, q->feed, s);
        subscription_attach(sh, s, q->last_seq);
        subscription_rest(sh, s);
        subscription_arm(sh, s);
        changelog_subscription(q, STORE_CHANGE_SUBSCRIPTION, s, l->txn.now_ms);
    }
    metrics_count(&sh->metrics, STORE_COUNT_POSTED, l->message_count);
    queue_count(q, STORE_QUEUE_POSTED, l->message_count);
    seqmap_pool_trim(&sh->pool);
    queue_wake_waiters(q);
}

enum status
engine_apply(struct store *s, struct store_op *op, const struct store_queue *where,
             const struct store_record *records, size_t count)
{
    struct engine *e = engine_of(s);
    struct load l = {.txn.engine = e, .records = records, .count = count};
    struct store_flaw flaw;
    enum status st = store_records_check(e->core.mem, records, count, &flaw);

    if (st != ST_OK)
        return st;
    list_init(&l.messages);
    if (count > 0 && records[0].kind == STORE_RECORD_QUEUE)
        l.metadata = &records[0].metadata;
    for (size_t i = 0; i < count; i++) {
        l.message_count += records[i].kind == STORE_RECORD_MESSAGE;
        l.subscription_count += records[i].kind == STORE_RECORD_SUBSCRIPTION;
    }
    housekeep_pay(e, op->now_ms, l.message_count + 1, records_bytes(records, count));
    if (!mem_admits(e->core.mem, records_bytes(records, count)))
        return ST_OVER_BUDGET;
    st = load_make(&l, e->core.mem, where);
    if (st == ST_OK) {
        (void)txn_begin(&l.txn, s, op, where, EXPIRE_NOTHING); /* which cannot fail */
        st = load_reserve(&l);
        if (st == ST_OK)
            load_commit(&l);
        txn_end(&l.txn);
    }
    load_free(&l, e->core.mem);
    return st;
}
