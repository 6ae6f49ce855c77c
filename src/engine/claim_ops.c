/*
 * claim_ops: the store's operations on claims. Declared in txn.h.
 *
 * A claim:
 *
 *     1. claim_build_open() allocates a claim and a batch for a few messages, without
 *        the lock.
 *     2. try_claim() begins a transaction. txn_begin() expires what is due, and takes
 *        the lock.
 *     3. txn_available() counts the ready messages that are not reserved for earlier
 *        waiters, and count_before_dead_letter() those in front of the first dead
 *        letter.
 *     4. If there is a dead letter, move_dead_letters() moves it away (dead_letter.c).
 *        If the claim lacks capacity, it is allocated again. Both need the lock to be
 *        released, and then all begins with step 2.
 *     5. Without a message txn_wait() adds the waiter to the wait queue.
 *     6. reserve_claim() does everything that can fail. Then deliver_messages() makes
 *        the claim.
 *     7. txn_end() notifies waiters, and releases the lock.
 *
 * Read txn.h and claim.h next.
 */
#include "engine/claim_ops.h"
#include "claimd/base/sometimes.h"
#include "engine/dead_letter.h"
#include "engine/keyed.h"
#include "engine/run_load.h"
#include "engine/txn.h"

/* A claim is allocated before the lock is taken, for few messages at first, since most
 * claims get few. */
enum { FEW_MESSAGES = 16 };

/* A claim being made. */
struct claim_build {
    struct claim *claim; /* owned */
    struct store_batch batch;
    size_t capacity; /* number of messages that both can hold */
    size_t needed;   /* out: more than `capacity`: the claim needs more; else not used */
    bool meets_dead_letter;  /* out: dead letters must move first */
    bool is_blocked;         /* they cannot move now: claim what is in front of them */
    enum status blocked;     /* why, if there is nothing in front of them; ST_OK: wait */
    struct store_batch *out; /* of the caller: its `capacity` and `opened` */
};

static enum status
claim_build_open(struct engine *e, struct claim_build *build)
{
    enum status st = batch_open(e, build->capacity, &build->batch);

    build->claim = NULL;
    if (st == ST_OK)
        build->claim = claim_new(e->core.mem, build->capacity);
    return st == ST_OK && build->claim == NULL ? ST_NO_MEMORY : st;
}

static void
claim_build_free(struct engine *e, struct claim_build *build)
{
    mem_free(e->core.mem, build->claim);
    build->claim = NULL;
    store_batch_release(&build->batch);
}

static struct store_terms
full_terms(const struct txn *t, const struct store_terms *own)
{
    const struct engine_config *config = &t->shard->core->config;

    return store_claim_terms(
        own, queue_settings(t->queue),
        (struct store_terms){config->claim_ttl_s, config->claim_grace_s});
}

/* Starts the lease; also to renew it. */
static void
lease_start(struct txn *t, struct claim *c, const struct store_terms *terms)
{
    ENSURE(terms->ttl_s > 0);
    c->started_ms = t->now_ms;
    shard_arm_claim(t->shard, &c->due,
                    core_deadline_ms(t->shard->core, t->now_ms, terms->ttl_s));
}

/* Extends the life of a message that a claim with these terms holds (promise "grace").
 * Never shortens it. */
static void
extend_message(struct txn *t, struct message *m, const struct store_terms *terms)
{
    int64_t life_s = terms->ttl_s + terms->grace_s;
    int64_t until_ms;

    if (life_s > t->shard->core->config.max_message_ttl_s)
        life_s = t->shard->core->config.max_message_ttl_s;
    until_ms = core_deadline_ms(t->shard->core, t->now_ms, life_s);
    if (until_ms <= m->expires_ms)
        return;
    m->expires_ms = until_ms;
    shard_arm_message(t->shard, &m->due, until_ms);
}

static size_t
min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Claims the first `count` messages that the operation may take. Cannot fail. */
static void
deliver_messages(struct txn *t, const struct store_terms *own, size_t count,
                 struct claim_build *build, struct keyed *key)
{
    struct queue *q = t->queue;
    struct claim *c = build->claim;
    const struct store_terms terms = full_terms(t, own);
    uint64_t seq = t->from_seq;
    struct ident id;

    build->claim = NULL; /* the shard owns it now */
    lease_start(t, c, &terms);
    claim_set_client(t->engine->core.mem, c, t->op->client);
    id = ident_claim(&t->shard->entropy, ++q->last_claim);
    claim_enter(t->shard, c, q->backlog, id, t->now_ms);
    metrics_count(&t->shard->metrics, STORE_COUNT_CLAIMS, 1);
    metrics_count(&t->shard->metrics, STORE_COUNT_CLAIMED, count);
    queue_count(q, STORE_QUEUE_DELIVERED, count);
    ident_write(&build->batch.claim_id, id);
    build->batch.claim_ttl_s = terms.ttl_s;
    build->batch.claim_number = claim_fence(q, c);
    while (count-- > 0) {
        struct message *m = seqmap_next_ready(&q->backlog->messages, &seq);

        ENSURE(c->count == 0 || c->seqs[c->count - 1] < m->seq);
        if (m->claim_count == 0)
            metrics_span(&t->shard->metrics, STORE_SPAN_WAITED, m->posted_ms, t->now_ms);
        if (m->claim_count < UINT32_MAX)
            m->claim_count++;
        claim_hold(c, m);
        extend_message(t, m, &terms);
        batch_add(&build->batch, m, q->tag, t->now_ms);
    }
    ENSURE(c->held == build->batch.count);
    load_ahead(t->shard, q->backlog);
    txn_stop_waiting(t);
    if (has_log(&t->engine->core))
        changelog_claim(q, STORE_CHANGE_CLAIM, c, t->now_ms);
    changelog_numbers(q, t->now_ms);
    keyed_commit_claim(key, id);
}

/* Fills an empty batch with the claim and the messages that it holds. ST_NO_MEMORY. */
static enum status
read_claim(struct txn *t, const struct claim *c, struct store_batch *out)
{
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = batch_open(t->engine, c->held, &batch);
    struct message *m;

    if (st != ST_OK)
        return st;
    ident_write(&batch.claim_id, claim_ident(c));
    for (uint64_t i = 0; (m = claim_next(c, &i)) != NULL;)
        if (message_live(m, t->now_ms))
            batch_add(&batch, m, t->queue->tag, t->now_ms);
    batch.claim_ttl_s = (c->due.due_ms - c->started_ms) / 1000;
    batch.claim_age_s = (t->now_ms - c->started_ms) / 1000;
    batch.claim_number = claim_fence(t->queue, c);
    *out = batch;
    return ST_OK;
}

/*
 * Begins with the key of the operation. If there is a claim of an earlier call, it
 * becomes that of `build`. Unless the status is ST_OK and there is none, the key is
 * ended. ST_KEY_ENDED.
 */
static enum status
begin_key(struct txn *t, struct keyed *key, struct claim_build *build)
{
    enum status st = keyed_begin(key, t, STORE_KEY_CLAIM);

    if (st == ST_OK && key->known != NULL) {
        struct store_id id;
        const struct claim *c;

        ident_write(&id, key_claim(key->known));
        c = claim_find(t->queue, store_id_bytes(&id), t->now_ms);
        claim_build_free(t->engine, build);
        SOMETIMES_IF(c == NULL, KEY_CLAIM_ENDED);
        st = c == NULL ? ST_KEY_ENDED : read_claim(t, c, &build->batch);
        t->op->repeated = st == ST_OK;
        if (st == ST_OK)
            txn_stop_waiting(t);
    }
    if (st != ST_OK || key->known != NULL)
        keyed_end(key);
    return st;
}

/* Reserves the rest of what the claim needs. */
static enum status
reserve_claim(struct txn *t, size_t count, struct keyed *key)
{
    enum status st = claim_reserve(t->shard, t->queue);

    if (st == ST_OK)
        st = changelog_reserve_numbers(t->queue, 0, 1);
    if (st == ST_OK)
        st = txn_reserve_messages(t, STORE_CHANGE_CLAIM, count, 0);
    return st == ST_OK ? keyed_reserve(key, STORE_KEY_CLAIM, 0, 0) : st;
}

/* Makes the claim, or adds the waiter to the wait queue, unless the claim needs more
 * space or dead letters must move first. */
static enum status
make_claim(struct txn *t, const struct store_terms *terms, size_t limit,
           struct claim_build *build, struct keyed *key)
{
    const size_t available = min_size(txn_available(t), limit);
    enum status st = available == 0 ? ST_OK : txn_load_ready(t, available);
    size_t count;

    if (st != ST_OK)
        return st;
    count = count_before_dead_letter(t, available);
    build->meets_dead_letter = count < available && !build->is_blocked;
    build->needed = count;
    if (build->meets_dead_letter || count > build->capacity)
        return ST_OK;
    if (count == 0)
        return available > 0 && build->blocked != ST_OK ? build->blocked
                                                        : txn_wait(t, limit);
    SOMETIMES_IF(count < available, LETTER_BLOCKS_CLAIM);
    st = batch_check(t, count, build->out);
    if (st == ST_OK)
        st = reserve_claim(t, count, key);
    if (st == ST_OK)
        deliver_messages(t, terms, count, build, key);
    return st;
}

/* One transaction, in which the claim is made, or not (see make_claim()). */
static enum status
try_claim(struct store *s, struct store_op *op, const struct store_queue *where,
          const struct store_terms *terms, size_t limit, struct claim_build *build)
{
    struct keyed key;
    struct txn t;
    enum status st = txn_begin(&t, s, op, where, EXPIRE_ALL);

    build->meets_dead_letter = false;
    build->needed = 0;
    if (st != ST_OK)
        return st;
    st = begin_key(&t, &key, build);
    if (st == ST_OK && key.known == NULL) {
        st = make_claim(&t, terms, limit, build, &key);
        keyed_end(&key);
    }
    txn_end(&t);
    return st;
}

/* Moves the dead letters that the claim met. If they cannot move now, the claim ends in
 * front of them. ST_AGAIN. */
static enum status
move_dead_letters(struct store *s, struct store_op *op, const struct store_queue *where,
                  size_t limit, struct claim_build *build)
{
    bool moved = false;
    enum status st = dead_letters_move(s, op, where, limit, &moved);

    build->is_blocked = st != ST_OK;
    build->blocked = moved ? ST_OK : st;
    return st == ST_AGAIN ? st : ST_OK;
}

enum status
engine_claim_create(struct store *s, struct store_op *op, const struct store_queue *where,
                    const struct store_terms *terms, size_t limit,
                    struct store_batch *out)
{
    struct claim_build build = {
        .batch = STORE_BATCH_INIT, .capacity = min_size(limit, FEW_MESSAGES), .out = out};
    struct engine *e = engine_of(s);
    enum status st = claim_build_open(e, &build);
    bool moved = false;

    while (st == ST_OK) {
        st = try_claim(s, op, where, terms, limit, &build);
        if (st != ST_OK || build.batch.count > 0 ||
            (!build.meets_dead_letter && build.needed <= build.capacity))
            break;
        if (build.meets_dead_letter) {
            /* New ones meanwhile: let other requests of the thread run. */
            st = moved ? ST_AGAIN : move_dead_letters(s, op, where, limit, &build);
            moved = true;
            continue;
        }
        SOMETIMES(CLAIM_GROWS);
        claim_build_free(e, &build);
        build.capacity = build.needed;
        st = claim_build_open(e, &build);
    }
    if (st != ST_OK || build.batch.count == 0)
        claim_build_free(e, &build);
    if (st == ST_OK)
        *out = build.batch; /* empty: there is no ready message */
    return st;
}

/* Begins a transaction on a claim; *claim is NULL if there is no such claim. */
static enum status
txn_begin_claim(struct txn *t, struct store *s, struct store_op *op,
                const struct store_queue *where, struct bytes claim_id,
                struct claim **claim)
{
    enum status st = txn_begin(t, s, op, where, EXPIRE_CLAIMS);

    if (st == ST_OK)
        *claim = t->queue == NULL ? NULL : claim_find(t->queue, claim_id, t->now_ms);
    return st;
}

enum status
engine_claim_get(struct store *s, struct store_op *op, const struct store_queue *where,
                 struct bytes claim_id, struct store_batch *out)
{
    struct txn t;
    struct claim *c;
    enum status st = txn_begin_claim(&t, s, op, where, claim_id, &c);

    if (st != ST_OK)
        return st;
    st = c == NULL ? ST_NOT_FOUND : read_claim(&t, c, out);
    txn_end(&t);
    return st;
}

static void
fill_claim_info(const struct txn *t, const struct claim *c, struct store_claim_info *out)
{
    ident_write(&out->id, claim_ident(c));
    if (c->client_len > 0)
        memcpy(out->client, c->client, c->client_len);
    out->client_len = c->client_len;
    out->number = claim_fence(t->queue, c);
    out->age_ms = c->made_ms < t->now_ms ? t->now_ms - c->made_ms : 0;
    out->left_ms = c->due.due_ms - t->now_ms;
    out->messages = c->held;
}

/* The number of the claim behind which a page begins; 0: it begins with the oldest. */
static uint64_t
claim_marker(struct bytes marker)
{
    uint64_t number = 0;
    struct ident id;

    if (ident_read(marker, &id))
        return ident_claim_number(id);
    return bytes_to_u64(marker, &number) && number < UINT64_MAX ? number : 0;
}

enum status
engine_claim_list(struct store *s, struct store_op *op, const struct store_queue *where,
                  struct store_claim_page *page)
{
    const struct claim *c;
    struct txn t;
    enum status st = txn_begin(&t, s, op, where, EXPIRE_ALL);

    page->count = 0;
    page->next.text[0] = '\0';
    if (st != ST_OK)
        return st;
    if (t.queue == NULL)
        st = ST_NOT_FOUND;
    if (t.queue != NULL && bytes_present(page->id)) {
        c = claim_find(t.queue, page->id, t.now_ms);
        if (c != NULL)
            fill_claim_info(&t, c, &page->claims[page->count++]);
    } else if (t.queue != NULL) {
        const struct seqmap *claims = &t.queue->backlog->claims;
        uint64_t number = claim_marker(page->marker), last = number;

        while (page->count < page->limit && ++number > 0 &&
               (c = seqmap_next_live(claims, &number)) != NULL) {
            fill_claim_info(&t, c, &page->claims[page->count++]);
            last = number;
        }
        number = last + 1;
        if (page->count == page->limit && seqmap_next_live(claims, &number) != NULL)
            ident_write_marker(&page->next, last);
    }
    txn_end(&t);
    return st;
}

void
claim_commit_renewal(struct txn *t, struct claim *c, const struct store_terms *own)
{
    const struct store_terms terms = full_terms(t, own);
    struct message *m;

    SOMETIMES_IF(c->due.due_ms == t->now_ms + 1, CLAIM_RENEWED_LAST);
    lease_start(t, c, &terms);
    for (uint64_t i = 0; (m = claim_next(c, &i)) != NULL;)
        if (message_live(m, t->now_ms))
            extend_message(t, m, &terms);
    claim_set_client(t->engine->core.mem, c, t->op->client);
    metrics_count(&t->shard->metrics, STORE_COUNT_RENEWALS, 1);
    if (has_log(&t->engine->core))
        changelog_claim(t->queue, STORE_CHANGE_RENEW, c, t->now_ms);
}

enum status
engine_claim_renew(struct store *s, struct store_op *op, const struct store_queue *where,
                   struct bytes claim_id, const struct store_terms *terms,
                   uint64_t *number)
{
    struct txn t;
    struct claim *c;
    enum status st = txn_begin_claim(&t, s, op, where, claim_id, &c);

    if (st != ST_OK)
        return st;
    st = c == NULL ? ST_NOT_FOUND
                   : txn_reserve_messages(&t, STORE_CHANGE_RENEW, c->held, 0);
    if (st == ST_OK) {
        *number = claim_fence(t.queue, c);
        claim_commit_renewal(&t, c, terms);
    }
    txn_end(&t);
    return st;
}

enum status
engine_claim_release(struct store *s, struct store_op *op,
                     const struct store_queue *where, struct bytes claim_id,
                     enum store_release why)
{
    struct txn t;
    struct claim *c;
    struct message *m;
    enum status st = txn_begin_claim(&t, s, op, where, claim_id, &c);

    if (st != ST_OK)
        return st;
    if (c != NULL)
        st = txn_reserve_messages(&t, STORE_CHANGE_RELEASE, c->held, 0);
    if (c != NULL && st == ST_OK) {
        SOMETIMES_IF(why == STORE_NOT_SEEN, CLAIM_UNSEEN);
        if (why == STORE_NOT_SEEN) /* the client never saw the claim */
            for (uint64_t i = 0; (m = claim_next(c, &i)) != NULL;)
                m->claim_count -= m->claim_count > 0;
        if (has_log(&t.engine->core))
            changelog_claim(t.queue, STORE_CHANGE_RELEASE, c, t.now_ms);
        metrics_count(&t.shard->metrics, store_release_counter(why), c->held);
        queue_count(t.queue, STORE_QUEUE_REQUEUED, c->held);
        claim_end(t.shard, c);
    }
    txn_end(&t);
    return st;
}

void
engine_waiter_leave(struct store *s, struct store_waiter *w)
{
    struct shard *sh = w->home;

    (void)s;
    if (sh == NULL)
        return;
    lock_acquire(&sh->lock);
    SOMETIMES_IF(w->waitqueue != NULL && w->called, WAITER_LEAVES_WOKEN);
    if (w->waitqueue != NULL)
        shard_stop_waiting(sh, w);
    shard_leave(sh);
}
