/* The store's operations on claims. */
#include "engine/dead_letter.h"
#include "engine/visit.h"

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
claim_build_free(struct engine *e, struct claim_build *t)
{
    mem_free(e->core.mem, t->claim);
    t->claim = NULL;
    store_batch_release(&t->batch);
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
    struct visit *v = &dl->from;
    bool moved = false;

    for (int slices = 0;;) {
        uint64_t seq = 0;
        size_t count = lesser(*room, visit_share(v));
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
                 ? dead_letter_enter(dl, &v->engine->store, v->outer, v->where)
                 : ST_AGAIN;
        if (st != ST_OK)
            return st;
    }
}

/* Takes the first `count` messages that the visit may take, and makes the claim live. */
static void
deliver_messages(struct visit *v, const struct store_terms *terms, size_t count,
                 struct claim_build *t)
{
    struct queue *q = v->queue;
    struct claim *c = t->claim;
    uint64_t seq = v->from_seq;

    t->claim = NULL; /* the shard owns it now */
    claim_start(v->shard, c, terms, v->now_ms);
    claim_link(v->shard, c, q);
    figures_count(&v->shard->figures, STORE_COUNT_CLAIMS, 1);
    figures_count(&v->shard->figures, STORE_COUNT_CLAIMED, count);
    ident_write(&t->batch.claim_id, claim_ident(c));
    t->batch.claim_ttl_s = terms->ttl_s;
    t->batch.claim_number = claim_fence(q, c);
    while (count-- > 0) {
        struct message *m = seqmap_next_ready(&q->backlog->messages, &seq);

        claim_take(v->shard, c, m, terms, v->now_ms);
        batch_add(&t->batch, m, q->tag, v->now_ms);
    }
    visit_served(v);
    if (has_log(&v->engine->core))
        changelog_claim(q, STORE_CHANGE_CLAIM, c, v->now_ms);
    changelog_numbers(q, v->now_ms);
}

/* Makes the claim, or waits. ST_AGAIN: the locks are not held. */
static enum status
create_claim(struct dead_letter *dl, const struct store_terms *terms, size_t limit,
             struct store_batch *out, struct claim_build *t)
{
    struct visit *v = &dl->from;
    size_t room = lesser(visit_share(v), limit);
    enum status st = ST_OK;

    if (room > 0)
        st = claim_reserve(v->shard, v->queue);
    if (st == ST_OK && room > 0 && dl->target != NULL)
        st = clear_way(dl, &room);
    if (st != ST_OK)
        return st;
    if (room == 0)
        return visit_wait(v, limit);
    if (room > t->room) {
        t->room = room; /* again, with more room */
        return ST_OK;
    }
    st = batch_fits(v, room, out);
    if (st == ST_OK)
        st = batch_opened(v, room, out);
    if (st == ST_OK)
        st = claim_reserve(v->shard, v->queue); /* others may have used it up */
    if (st == ST_OK)
        st = changelog_reserve_numbers(v->queue, 0, 1);
    if (st == ST_OK)
        st = visit_reserve_messages(v, STORE_CHANGE_CLAIM, room, 0);
    if (st == ST_OK)
        deliver_messages(v, terms, room, t);
    return st;
}

enum status
engine_claim_create(struct store *s, struct store_visit *outer,
                    const struct store_queue *where, const struct store_terms *terms,
                    size_t limit, struct store_batch *out)
{
    struct claim_build t = {.batch = STORE_BATCH_INIT,
                            .room = lesser(limit, FEW_MESSAGES)};
    struct engine *e = engine_of(s);
    enum status st;
    size_t room;

    do {
        struct dead_letter dl;

        room = t.room;
        dl.seals.metadata = NULL;
        dl.seals.count = 0;
        dl.seals.failed = ST_OK;
        st = batch_open(e, room, &t.batch);
        if (st == ST_OK)
            t.claim = claim_new(e->core.mem, room);
        if (st == ST_OK && t.claim == NULL)
            st = ST_NO_MEMORY;
        if (st == ST_OK)
            st = dead_letter_enter(&dl, s, outer, where);
        if (st != ST_OK)
            break;
        st = create_claim(&dl, terms, limit, out, &t);
        if (st != ST_AGAIN)
            dead_letter_leave(&dl);
        dead_letter_fini(&dl);
        if (st == ST_OK && t.batch.count > 0) {
            *out = t.batch;
            return ST_OK;
        }
        claim_build_free(e, &t);
    } while (st == ST_OK && t.room > room);
    claim_build_free(e, &t);
    if (st == ST_OK)
        *out = t.batch; /* empty */
    return st;
}

/* Enters a queue for one of its claims; *claim is NULL if there is no such claim. */
static enum status
enter_claim(struct visit *v, struct store *s, struct store_visit *outer,
            const struct store_queue *where, struct bytes claim_id, struct claim **claim)
{
    enum status st = visit_enter(v, s, outer, where, EXPIRE_CLAIMS);

    if (st == ST_OK)
        *claim = v->queue == NULL ? NULL : claim_find(v->queue, claim_id, v->now_ms);
    return st;
}

enum status
engine_claim_get(struct store *s, struct store_visit *outer,
                 const struct store_queue *where, struct bytes claim_id,
                 struct store_batch *out)
{
    struct store_batch batch = STORE_BATCH_INIT;
    struct visit v;
    struct claim *c;
    enum status st = enter_claim(&v, s, outer, where, claim_id, &c);

    if (st != ST_OK)
        return st;
    st = c == NULL ? ST_NOT_FOUND : batch_open(v.engine, c->held, &batch);
    if (st == ST_OK) {
        ident_write(&batch.claim_id, claim_ident(c));
        for (size_t i = 0; i < c->count; i++) {
            struct message *m = claim_message(c, i, v.now_ms);

            if (m != NULL)
                batch_add(&batch, m, v.queue->tag, v.now_ms);
        }
        batch.claim_ttl_s = (c->due.due_ms - c->started_ms) / 1000;
        batch.claim_age_s = (v.now_ms - c->started_ms) / 1000;
        batch.claim_number = claim_fence(v.queue, c);
        *out = batch;
    }
    visit_leave(&v);
    return st;
}

static void
renew_claim(struct visit *v, struct claim *c, const struct store_terms *terms)
{
    claim_start(v->shard, c, terms, v->now_ms);
    for (size_t i = 0; i < c->count; i++) {
        struct message *m = claim_message(c, i, v->now_ms);

        if (m != NULL)
            claim_lengthen(v->shard, m, terms, v->now_ms);
    }
    figures_count(&v->shard->figures, STORE_COUNT_RENEWALS, 1);
    if (has_log(&v->engine->core))
        changelog_claim(v->queue, STORE_CHANGE_RENEW, c, v->now_ms);
}

enum status
engine_claim_renew(struct store *s, struct store_visit *outer,
                   const struct store_queue *where, struct bytes claim_id,
                   const struct store_terms *terms, uint64_t *number)
{
    struct visit v;
    struct claim *c;
    enum status st = enter_claim(&v, s, outer, where, claim_id, &c);

    if (st != ST_OK)
        return st;
    st = c == NULL ? ST_NOT_FOUND
                   : visit_reserve_messages(&v, STORE_CHANGE_RENEW, c->held, 0);
    if (st == ST_OK) {
        *number = claim_fence(v.queue, c);
        renew_claim(&v, c, terms);
    }
    visit_leave(&v);
    return st;
}

enum status
engine_claim_release(struct store *s, struct store_visit *outer,
                     const struct store_queue *where, struct bytes claim_id,
                     enum store_release why)
{
    struct visit v;
    struct claim *c;
    enum status st = enter_claim(&v, s, outer, where, claim_id, &c);

    if (st != ST_OK)
        return st;
    if (c != NULL)
        st = visit_reserve_messages(&v, STORE_CHANGE_RELEASE, c->held, 0);
    if (c != NULL && st == ST_OK) {
        if (why == STORE_NOT_SEEN)
            for (size_t i = 0; i < c->count; i++) { /* nobody has heard of the claim */
                struct message *m = claim_held(c, i);

                if (m != NULL && m->claim_count > 0)
                    m->claim_count--;
            }
        if (has_log(&v.engine->core))
            changelog_claim(v.queue, STORE_CHANGE_RELEASE, c, v.now_ms);
        figures_count(&v.shard->figures, store_release_counter(why), c->held);
        claim_end(v.shard, c);
    }
    visit_leave(&v);
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
