/* The store's operations on claims. */
#include "engine/dead_letter.h"
#include "engine/txn.h"

/*
 * A claim being made: everything that can fail has been done before it is filled. It is allocated
 * before the locks are taken, for few messages at first, since most claims get few.
 */
enum { FEW_MESSAGES = 16 };

struct claim_build {
    struct claim *claim; /* owned */
    struct store_batch batch;
    size_t room; /* messages that both have room for */
};

static void
claim_build_free(struct engine *e, struct claim_build *build)
{
    mem_free(e->core.mem, build->claim);
    build->claim = NULL;
    store_batch_release(&build->batch);
}

/* So many slices of dead letters are moved before others of the thread go first. */
enum { CLEAR_SLICES = 16 };

static size_t
lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * Clears the way: moves the dead letters among the first ready messages, a slice at a
 * time, with the locks let go in between. Leaves in *room how many messages can be taken;
 * if there is no memory for a move, only those in front of the letter are. ST_AGAIN: there
 * are more letters; the locks are not held then.
 */
static enum status
clear_way(struct dead_letter *dl, size_t *room)
{
    struct txn *t = &dl->from;
    bool moved = false;

    for (int slices = 0;;) {
        uint64_t seq = 0;
        size_t count = lesser(*room, txn_available(t));
        size_t clear = dead_letter_scan(dl, count, &seq);
        enum status st;

        if (clear == count) {
            *room = count;
            return ST_OK;
        }
        st = dead_letter_move(dl, seq);
        if (st != ST_OK && st != ST_SEALED) {
            *room = clear;
            return clear > 0 || moved ? ST_OK : st;
        }
        moved = moved || st == ST_OK;
        dead_letter_leave(dl);
        if (st == ST_SEALED)
            dead_letter_seal(dl);
        st = ++slices < CLEAR_SLICES
                 ? dead_letter_enter(dl, &t->engine->store, t->op, t->where)
                 : ST_AGAIN;
        if (st != ST_OK)
            return st;
    }
}

/* Takes the first `count` messages that the operation may take, and makes the claim live. */
static void
deliver_messages(struct txn *t, const struct store_terms *terms, size_t count,
                 struct claim_build *build)
{
    struct queue *q = t->queue;
    struct claim *c = build->claim;
    uint64_t seq = t->from_seq;

    build->claim = NULL; /* the shard owns it now */
    claim_start(t->shard, c, terms, t->now_ms);
    claim_link(t->shard, c, q);
    figures_count(&t->shard->figures, STORE_COUNT_CLAIMS, 1);
    figures_count(&t->shard->figures, STORE_COUNT_CLAIMED, count);
    ident_write(&build->batch.claim_id, claim_ident(c));
    build->batch.claim_ttl_s = terms->ttl_s;
    build->batch.claim_number = claim_fence(q, c);
    while (count-- > 0) {
        struct message *m = seqmap_next_ready(&q->backlog->messages, &seq);

        claim_take(t->shard, c, m, terms, t->now_ms);
        batch_add(&build->batch, m, q->tag, t->now_ms);
    }
    txn_stop_waiting(t);
    if (has_log(&t->engine->core))
        changelog_claim(q, STORE_CHANGE_CLAIM, c, t->now_ms);
    changelog_numbers(q, t->now_ms);
}

/* Makes the claim, or waits. ST_AGAIN: the locks are not held. */
static enum status
create_claim(struct dead_letter *dl, const struct store_terms *terms, size_t limit,
             struct store_batch *out, struct claim_build *build)
{
    struct txn *t = &dl->from;
    size_t room = lesser(txn_available(t), limit);
    enum status st = ST_OK;

    if (room > 0)
        st = claim_reserve(t->shard, t->queue);
    if (st == ST_OK && room > 0 && dl->target != NULL)
        st = clear_way(dl, &room);
    if (st != ST_OK)
        return st;
    if (room == 0)
        return txn_wait(t, limit);
    if (room > build->room) {
        build->room = room; /* again, with more room */
        return ST_OK;
    }
    st = batch_fits(t, room, out);
    if (st == ST_OK)
        st = batch_opened(t, room, out);
    if (st == ST_OK)
        st = claim_reserve(t->shard, t->queue); /* others may have used it up */
    if (st == ST_OK)
        st = changelog_reserve_numbers(t->queue, 0, 1);
    if (st == ST_OK)
        st = txn_reserve_messages(t, STORE_CHANGE_CLAIM, room, 0);
    if (st == ST_OK)
        deliver_messages(t, terms, room, build);
    return st;
}

enum status
engine_claim_create(struct store *s, struct store_op *op, const struct store_queue *where,
                    const struct store_terms *terms, size_t limit,
                    struct store_batch *out)
{
    struct claim_build build = {.batch = STORE_BATCH_INIT,
                                .room = lesser(limit, FEW_MESSAGES)};
    struct engine *e = engine_of(s);
    enum status st;
    size_t room;

    do {
        struct dead_letter dl;

        room = build.room;
        dl.seals.metadata = NULL;
        dl.seals.count = 0;
        dl.seals.failed = ST_OK;
        st = batch_open(e, room, &build.batch);
        if (st == ST_OK)
            build.claim = claim_new(e->core.mem, room);
        if (st == ST_OK && build.claim == NULL)
            st = ST_NO_MEMORY;
        if (st == ST_OK)
            st = dead_letter_enter(&dl, s, op, where);
        if (st != ST_OK)
            break;
        st = create_claim(&dl, terms, limit, out, &build);
        if (st != ST_AGAIN)
            dead_letter_leave(&dl);
        dead_letter_fini(&dl);
        if (st == ST_OK && build.batch.count > 0) {
            *out = build.batch;
            return ST_OK;
        }
        claim_build_free(e, &build);
    } while (st == ST_OK && build.room > room);
    claim_build_free(e, &build);
    if (st == ST_OK)
        *out = build.batch; /* empty */
    return st;
}

/* Enters a queue for one of its claims; *claim is NULL if there is no such claim. */
static enum status
enter_claim(struct txn *t, struct store *s, struct store_op *op,
            const struct store_queue *where, struct bytes claim_id, struct claim **claim)
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
    struct store_batch batch = STORE_BATCH_INIT;
    struct txn t;
    struct claim *c;
    enum status st = enter_claim(&t, s, op, where, claim_id, &c);

    if (st != ST_OK)
        return st;
    st = c == NULL ? ST_NOT_FOUND : batch_open(t.engine, c->held, &batch);
    if (st == ST_OK) {
        ident_write(&batch.claim_id, claim_ident(c));
        for (size_t i = 0; i < c->count; i++) {
            struct message *m = claim_message(c, i, t.now_ms);

            if (m != NULL)
                batch_add(&batch, m, t.queue->tag, t.now_ms);
        }
        batch.claim_ttl_s = (c->due.due_ms - c->started_ms) / 1000;
        batch.claim_age_s = (t.now_ms - c->started_ms) / 1000;
        batch.claim_number = claim_fence(t.queue, c);
        *out = batch;
    }
    txn_end(&t);
    return st;
}

static void
renew_claim(struct txn *t, struct claim *c, const struct store_terms *terms)
{
    claim_start(t->shard, c, terms, t->now_ms);
    for (size_t i = 0; i < c->count; i++) {
        struct message *m = claim_message(c, i, t->now_ms);

        if (m != NULL)
            claim_lengthen(t->shard, m, terms, t->now_ms);
    }
    figures_count(&t->shard->figures, STORE_COUNT_RENEWALS, 1);
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
    enum status st = enter_claim(&t, s, op, where, claim_id, &c);

    if (st != ST_OK)
        return st;
    st = c == NULL ? ST_NOT_FOUND
                   : txn_reserve_messages(&t, STORE_CHANGE_RENEW, c->held, 0);
    if (st == ST_OK) {
        *number = claim_fence(t.queue, c);
        renew_claim(&t, c, terms);
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
    enum status st = enter_claim(&t, s, op, where, claim_id, &c);

    if (st != ST_OK)
        return st;
    if (c != NULL)
        st = txn_reserve_messages(&t, STORE_CHANGE_RELEASE, c->held, 0);
    if (c != NULL && st == ST_OK) {
        if (why == STORE_NOT_SEEN)
            for (size_t i = 0; i < c->count; i++) { /* nobody has heard of the claim */
                struct message *m = claim_held(c, i);

                if (m != NULL && m->claim_count > 0)
                    m->claim_count--;
            }
        if (has_log(&t.engine->core))
            changelog_claim(t.queue, STORE_CHANGE_RELEASE, c, t.now_ms);
        figures_count(&t.shard->figures, store_release_counter(why), c->held);
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
    if (w->waitqueue != NULL)
        shard_stop_waiting(sh, w);
    shard_leave(sh);
}
