#include "engine/dead_letter.h"
#include "engine/claim.h"
#include "engine/shard.h"

/* Dead letters moved in one go. */
enum { MOVE_SLICE = 64 };

/* Finds the queue, and where its dead letters go. The source's lock is held. */
static void
look(struct engine *e, struct dead_letter *dl, const struct store_queue *where,
     uint64_t hash)
{
    dl->queue = shard_find(dl->source, where, hash);
    dl->target = NULL;
    if (dl->queue == NULL || !queue_has_dead_letters(dl->queue))
        return;
    dl->where.project = dl->queue->project;
    dl->where.name = queue_settings(dl->queue)->dead_letter;
    dl->hash = engine_hash(e, &dl->where);
    dl->target = engine_shard(e, dl->hash);
}

enum status
dead_letter_enter(struct engine *e, int64_t now_ms, const struct store_queue *where,
                  struct dead_letter *out)
{
    uint64_t hash = engine_hash(e, where);
    struct dead_letter dl = {.source = engine_shard(e, hash)};
    struct shard *lower = NULL; /* a lower target, locked before the source */

    for (;;) {
        enum status st;

        dl.now_ms = now_ms;
        st = shard_settle(dl.source, &dl.now_ms, SETTLE_ALL);
        if (st != ST_OK) {
            if (lower != NULL)
                shard_leave(lower);
            *out = (struct dead_letter){.now_ms = dl.now_ms};
            return st;
        }
        look(e, &dl, where, hash);
        if (dl.target == NULL || dl.target >= dl.source || dl.target == lower)
            break;
        /* Locks go from lower to higher shards: start again with the lower one. */
        shard_leave(dl.source);
        if (lower != NULL)
            shard_leave(lower);
        lower = dl.target;
        lock_acquire(&lower->lock);
    }
    if (lower != NULL && lower != dl.target)
        shard_leave(lower); /* the metadata changed meanwhile */
    if (dl.target != NULL && dl.target > dl.source)
        lock_acquire(&dl.target->lock);
    *out = dl;
    return ST_OK;
}

void
dead_letter_leave(struct dead_letter *dl)
{
    if (dl->source == NULL)
        return;
    if (dl->target != NULL && dl->target != dl->source)
        shard_leave(dl->target);
    shard_leave(dl->source);
    dl->source = NULL;
}

/* True if m has been claimed as often as its queue allows. */
static bool
is_dead(const struct dead_letter *dl, const struct message *m)
{
    return (int64_t)m->claim_count >= queue_settings(dl->queue)->max_claim_count;
}

size_t
dead_letter_scan(const struct dead_letter *dl, size_t count, uint64_t *seq)
{
    uint64_t at = 0;

    if (dl->target == NULL)
        return count;
    for (size_t i = 0; i < count; i++, at++) {
        const struct message *m = seqmap_next_ready(&dl->queue->backlog->messages, &at);

        if (m == NULL)
            return count;
        if (is_dead(dl, m)) {
            *seq = at;
            return i;
        }
    }
    return count;
}

/* One move under way. */
struct move {
    struct message *messages[MOVE_SLICE];
    struct foreign *records[MOVE_SLICE]; /* for messages without a foreign id yet */
    size_t count, record_count;
    struct queue *target;
    bool made; /* target is new and not linked yet */
};

/* Collects dead letters up to the first ready message that is not one. */
static void
collect(const struct dead_letter *dl, uint64_t seq, struct move *move)
{
    while (move->count < MOVE_SLICE) {
        struct message *m = seqmap_next_ready(&dl->queue->backlog->messages, &seq);

        if (m == NULL || !is_dead(dl, m))
            return;
        move->messages[move->count++] = m;
        seq++;
    }
}

/* Also leaves in stock what the claim has reserved that clears its way. */
static enum status
reserve(const struct dead_letter *dl, struct move *move)
{
    struct mem *mem = dl->source->engine->mem;
    struct queue *target = shard_find(dl->target, &dl->where, dl->hash);
    enum status st;

    if (target == NULL) {
        target = queue_new(dl->target, &dl->where, NULL);
        if (target == NULL)
            return ST_NO_MEMORY;
        move->made = true;
    }
    move->target = target;
    for (size_t i = 0; i < move->count; i++) {
        if (move->messages[i]->foreign != NULL)
            continue;
        move->records[move->record_count] = mem_alloc(mem, sizeof(struct foreign));
        if (move->records[move->record_count] == NULL)
            return ST_NO_MEMORY;
        move->record_count++;
    }
    st = hashmap_reserve(&target->backlog->foreign, move->count);
    if (st == ST_OK)
        st = backlog_reserve(target->backlog, &dl->target->pool, target->last_seq,
                             move->count, claim_nodes(dl->queue));
    if (st == ST_OK && move->made)
        st = queue_link(target, dl->hash);
    return st;
}

static void
give_up(const struct dead_letter *dl, struct move *move)
{
    while (move->record_count > 0)
        mem_free(dl->source->engine->mem, move->records[--move->record_count]);
    if (move->made)
        queue_free(move->target);
}

/* Gives m the id it has now as a foreign one, if it has none. */
static void
keep_id(const struct queue *source, struct message *m, struct move *move)
{
    if (m->foreign != NULL)
        return;
    m->foreign = move->records[--move->record_count];
    *m->foreign = (struct foreign){.id = {source->tag, m->seq}, .message = m};
}

static void
move_one(const struct dead_letter *dl, struct message *m, struct move *move)
{
    int64_t ttl_s = queue_settings(dl->queue)->dead_letter_ttl_s;
    struct queue *target = move->target;

    wheel_disarm(dl->source->message_wheel, &m->due);
    backlog_remove(m->backlog, &dl->source->pool, m); /* by its old id, foreign or not */
    keep_id(dl->queue, m, move);
    m->seq = ++target->last_seq;
    m->claim_count = 0;
    if (ttl_s != STORE_UNSET) {
        m->posted_ms = dl->now_ms;
        m->expires_ms = dl->now_ms + ttl_s * 1000;
    }
    backlog_add(target->backlog, &dl->target->pool, m);
    backlog_add_foreign(target->backlog, m);
    shard_arm_message(dl->target, m, m->expires_ms);
}

enum status
dead_letter_move(struct dead_letter *dl, uint64_t seq)
{
    struct move move = {.count = 0};
    enum status st;

    collect(dl, seq, &move);
    st = reserve(dl, &move);
    if (st != ST_OK) {
        give_up(dl, &move);
        return st;
    }
    for (size_t i = 0; i < move.count; i++)
        move_one(dl, move.messages[i], &move);
    return ST_OK;
}
