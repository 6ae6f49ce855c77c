/* The store's operations on claims. */
#include "engine/batch.h"
#include "engine/claim.h"
#include "engine/dead_letter.h"
#include "engine/shard.h"

/* A claim being made: everything that can fail has been done before it is filled. */
struct taking {
    struct claim *claim;
    struct store_batch batch;
};

static enum status
reserve(struct shard *sh, size_t room, struct taking *t)
{
    struct engine *e = sh->engine;
    enum status st;

    t->claim = NULL;
    st = batch_open(e, room, &t->batch);
    if (st != ST_OK)
        return st;
    st = entropy_reserve(&sh->entropy, IDENT_ENTROPY);
    if (st == ST_OK)
        st = hashmap_reserve(&sh->claims, 1);
    if (st == ST_OK) {
        t->claim = claim_new(e->mem, room);
        st = t->claim == NULL ? ST_NO_MEMORY : ST_OK;
    }
    if (st != ST_OK)
        store_batch_release(&t->batch);
    return st;
}

/*
 * Takes ready messages, oldest first, until the claim is full. Dead letters in the way
 * are moved; if there is no memory for that they stay, and so do the messages behind
 * them.
 */
static enum status
take_messages(struct dead_letter *dl, const struct store_terms *terms, size_t room,
              struct taking *t)
{
    struct queue *q = dl->queue;
    bool moved = false;
    uint64_t seq = 0;

    while (t->batch.count < room) {
        struct message *m = seqmap_next_ready(&q->backlog->messages, &seq);

        if (m == NULL)
            break;
        if (dead_letter_is(dl, m)) {
            enum status st = dead_letter_move(dl, &seq);

            if (st != ST_OK)
                return t->batch.count == 0 && !moved ? st : ST_OK;
            moved = true;
            continue;
        }
        claim_take(dl->source, t->claim, m, terms, dl->now_ms);
        batch_add(&t->batch, m, q->tag, dl->now_ms);
    }
    return ST_OK;
}

/* Makes the claim live, or forgets it if it took nothing. */
static void
finish(struct dead_letter *dl, const struct store_terms *terms, struct taking *t)
{
    struct shard *sh = dl->source;
    struct claim *c = t->claim;

    if (c->count == 0) {
        mem_free(sh->engine->mem, c);
        return;
    }
    claim_start(sh, c, terms, dl->now_ms);
    claim_link(sh, c);
    ident_write(&t->batch.claim_id, c->id);
    t->batch.claim_ttl_s = terms->ttl_s;
}

enum status
engine_claim_create(struct store *s, int64_t now_ms, const struct store_queue *where,
                    const struct store_terms *terms, size_t limit,
                    struct store_batch *out)
{
    struct taking t = {.batch = STORE_BATCH_INIT};
    struct dead_letter dl;
    enum status st = ST_OK;
    size_t room = 0;

    dead_letter_enter(engine_of(s), now_ms, where, &dl);
    if (dl.queue != NULL)
        room = dl.queue->backlog->messages.ready;
    if (room > limit)
        room = limit;
    if (room == 0)
        goto out;
    st = reserve(dl.source, room, &t);
    if (st != ST_OK)
        goto out;
    t.claim->queue = dl.queue;
    t.claim->id = ident_random(&dl.source->entropy);
    st = take_messages(&dl, terms, room, &t);
    finish(&dl, terms, &t);
out:
    dead_letter_leave(&dl);
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

    now_ms = shard_enter(sh, now_ms, SETTLE_CLAIMS);
    q = shard_find(sh, where, hash);
    if (q != NULL)
        c = claim_find(sh, q, claim_id);
    st = c == NULL ? ST_NOT_FOUND : batch_open(e, c->count, &batch);
    if (st == ST_OK) {
        for (size_t i = 0; i < c->count; i++) {
            struct message *m = claim_message(c, i, now_ms);

            if (m != NULL)
                batch_add(&batch, m, q->tag, now_ms);
        }
        ident_write(&batch.claim_id, c->id);
        batch.claim_ttl_s = c->ttl_ms / 1000;
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

    now_ms = shard_enter(sh, now_ms, SETTLE_CLAIMS);
    q = shard_find(sh, where, hash);
    if (q != NULL)
        c = claim_find(sh, q, claim_id);
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

    (void)shard_enter(sh, now_ms, SETTLE_CLAIMS); /* due claims are gone already */
    q = shard_find(sh, where, hash);
    if (q != NULL)
        c = claim_find(sh, q, claim_id);
    if (c != NULL)
        claim_end(sh, c);
    shard_leave(sh);
    return ST_OK;
}
