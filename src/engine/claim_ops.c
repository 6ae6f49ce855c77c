/* The store's operations on claims. */
#include "engine/batch.h"
#include "engine/claim.h"
#include "engine/dead_letter.h"
#include "engine/shard.h"

/* A claim being made: everything that can fail has been done before it is filled. */
struct taking {
    struct claim *claim; /* owned */
    struct store_batch batch;
};

static enum status
reserve(const struct dead_letter *dl, size_t room, struct taking *t)
{
    struct engine *e = dl->source->engine;
    enum status st = claim_reserve(dl->source, dl->queue);

    if (st == ST_OK)
        st = batch_open(e, room, &t->batch);
    if (st != ST_OK)
        return st;
    t->claim = claim_new(e->mem, room);
    return t->claim == NULL ? ST_NO_MEMORY : ST_OK;
}

/* So many slices of dead letters are moved before others of the thread go first. */
enum { CLEAR_SLICES = 16 };

/*
 * Clears the way: moves the dead letters among the first ready messages, a slice at a
 * time, with the locks let go in between. Leaves in *room how many messages can be taken;
 * if there is no memory for a move, only those in front of the letter are. ST_AGAIN: there
 * are more letters; the locks are not held then.
 */
static enum status
clear_way(struct engine *e, const struct store_queue *where, struct dead_letter *dl,
          size_t *room)
{
    int moved = 0;

    for (;;) {
        uint64_t seq = 0;
        size_t ready = dl->queue == NULL ? 0 : dl->queue->backlog->messages.ready;
        size_t count = *room < ready ? *room : ready;
        size_t clear = dead_letter_scan(dl, count, &seq);
        enum status st;

        if (clear == count) {
            *room = count;
            return ST_OK;
        }
        st = dead_letter_move(dl, seq);
        if (st != ST_OK) {
            *room = clear;
            return clear > 0 || moved > 0 ? ST_OK : st;
        }
        dead_letter_leave(dl);
        st = ++moved < CLEAR_SLICES ? dead_letter_enter(e, dl->now_ms, where, dl)
                                    : ST_AGAIN;
        if (st != ST_OK)
            return st;
    }
}

/* Takes the first `count` ready messages and makes the claim live. */
static void
take_messages(struct dead_letter *dl, const struct store_terms *terms, size_t count,
              struct taking *t)
{
    struct queue *q = dl->queue;
    struct claim *c = t->claim;
    uint64_t seq = 0;

    t->claim = NULL; /* the shard owns it now */
    claim_start(dl->source, c, terms, dl->now_ms);
    claim_link(dl->source, c, q);
    ident_write(&t->batch.claim_id, claim_ident(c));
    t->batch.claim_ttl_s = terms->ttl_s;
    while (count-- > 0) {
        struct message *m = seqmap_next_ready(&q->backlog->messages, &seq);

        claim_take(dl->source, c, m, terms, dl->now_ms);
        batch_add(&t->batch, m, q->tag, dl->now_ms);
    }
}

enum status
engine_claim_create(struct store *s, int64_t now_ms, const struct store_queue *where,
                    const struct store_terms *terms, size_t limit,
                    struct store_batch *out)
{
    struct engine *e = engine_of(s);
    struct taking t = {.batch = STORE_BATCH_INIT};
    struct dead_letter dl;
    size_t room = 0;
    enum status st;

    st = dead_letter_enter(e, now_ms, where, &dl);
    if (st != ST_OK)
        return st;
    if (dl.queue != NULL)
        room = dl.queue->backlog->messages.ready;
    if (room > limit)
        room = limit;
    if (room == 0)
        goto out;
    st = reserve(&dl, room, &t);
    if (st == ST_OK)
        st = clear_way(e, where, &dl, &room);
    if (st != ST_OK || room == 0)
        goto out;
    st = batch_fits(&dl.queue->backlog->messages, room, out);
    if (st == ST_OK)
        st = claim_reserve(dl.source, dl.queue); /* others may have used it up */
    if (st == ST_OK)
        take_messages(&dl, terms, room, &t);
out:
    dead_letter_leave(&dl);
    mem_free(e->mem, t.claim);
    if (st == ST_OK)
        *out = t.batch;
    else
        store_batch_release(&t.batch);
    return st;
}

enum status
engine_claim_get(struct store *s, int64_t now_ms, const struct store_queue *where,
                 struct bytes claim_id, struct store_batch *out)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct store_batch batch = STORE_BATCH_INIT;
    struct claim *c = NULL;
    enum status st;
    struct queue *q;

    st = shard_settle(sh, &now_ms, SETTLE_CLAIMS);
    if (st != ST_OK)
        return st;
    q = shard_find(sh, where, hash);
    if (q != NULL)
        c = claim_find(q, claim_id, now_ms);
    st = c == NULL ? ST_NOT_FOUND : batch_open(e, c->held, &batch);
    if (st == ST_OK) {
        ident_write(&batch.claim_id, claim_ident(c));
        for (size_t i = 0; i < c->count; i++) {
            struct message *m = claim_message(c, i, now_ms);

            if (m != NULL)
                batch_add(&batch, m, q->tag, now_ms);
        }
        batch.claim_ttl_s = (c->due.due_ms - c->started_ms) / 1000;
        batch.claim_age_s = (now_ms - c->started_ms) / 1000;
        *out = batch;
    }
    shard_leave(sh);
    return st;
}

enum status
engine_claim_renew(struct store *s, int64_t now_ms, const struct store_queue *where,
                   struct bytes claim_id, const struct store_terms *terms)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct claim *c = NULL;
    struct queue *q;
    enum status st = shard_settle(sh, &now_ms, SETTLE_CLAIMS);

    if (st != ST_OK)
        return st;
    q = shard_find(sh, where, hash);
    if (q != NULL)
        c = claim_find(q, claim_id, now_ms);
    if (c != NULL) {
        claim_start(sh, c, terms, now_ms);
        for (size_t i = 0; i < c->count; i++) {
            struct message *m = claim_message(c, i, now_ms);

            if (m != NULL)
                claim_lengthen(sh, m, terms, now_ms);
        }
    }
    shard_leave(sh);
    return c == NULL ? ST_NOT_FOUND : ST_OK;
}

enum status
engine_claim_release(struct store *s, int64_t now_ms, const struct store_queue *where,
                     struct bytes claim_id)
{
    struct engine *e = engine_of(s);
    uint64_t hash = engine_hash(e, where);
    struct shard *sh = engine_shard(e, hash);
    struct claim *c = NULL;
    struct queue *q;
    enum status st = shard_settle(sh, &now_ms, SETTLE_CLAIMS);

    if (st != ST_OK)
        return st;
    q = shard_find(sh, where, hash);
    if (q != NULL)
        c = claim_find(q, claim_id, now_ms);
    if (c != NULL)
        claim_end(sh, c);
    shard_leave(sh);
    return ST_OK;
}
