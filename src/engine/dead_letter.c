/*
 * dead_letter: moves messages without an attempt left to the dead-letter queue. Declared
 * in dead_letter.h and housekeeping.h. A finish moves those that it releases
 * (claim_finish.c).
 *
 * A claim meets dead letters:
 *
 *     1. make_claim() finds one among the messages that it may take (claim_ops.c). So
 *        dead_letters_move() runs before the next try.
 *     2. move_pair_begin() locks the shards of both queues in their order (move.c). Only
 *        the queue names its dead-letter queue, so it may have to begin again with the
 *        lower shard.
 *     3. claim_reserve() reserves the memory of a claim, so that a claim that would fail
 *        moves nothing.
 *     4. collect_dead_letters() adds the dead letters in a row, at most MOVE_SLICE.
 *        move_execute() moves them, and logs the move as one group.
 *     5. If the dead-letter queue encrypts, that fails with ST_SEALED. move_make_seals()
 *        encrypts copies without locks, and all begins with step 2.
 *     6. After MOVE_SLICES slices the claim returns ST_AGAIN, so that other requests
 *        run.
 *
 * A claim with dead letters expires:
 *
 *     1. expire_claims() leaves the claim in its wheel (housekeeping.c), and
 *        dead_letters_expire() takes the locks of both shards in their order.
 *     2. expire_with_letters() drains the wheel again. A claim without dead letters ends
 *        as usual.
 *     3. move_letters_of() moves the dead letters of the claim, and takes them from the
 *        claim. The next round ends the claim, which requeues its other messages.
 *     4. If they cannot move now, claim_expire() requeues all. The next claim moves
 *        them.
 */
#include "engine/dead_letter.h"
#include "claimd/base/sometimes.h"
#include "engine/claim.h"
#include "engine/run_load.h"

/* Slices after which a claim returns ST_AGAIN, so that other requests of the thread
 * run. */
enum { MOVE_SLICES = 16 };

/* -------------------------------------------------------------- claims that meet one */

/* Finds the first dead letter of the first `count` messages that t may take. Returns the
 * number of messages in front of it, and sets *seq to its number. */
static size_t
find_dead_letter(const struct txn *t, size_t count, uint64_t *seq)
{
    uint64_t at = t->from_seq;

    if (t->queue == NULL || !limits_claims(t->queue))
        return count;
    for (size_t i = 0; i < count; i++, at++) {
        const struct message *m = seqmap_next_ready(&t->queue->backlog->messages, &at);

        if (m == NULL)
            return count;
        if (is_exhausted(t->queue, m)) {
            *seq = at;
            return i;
        }
    }
    return count;
}

size_t
count_before_dead_letter(const struct txn *t, size_t count)
{
    uint64_t seq;

    return find_dead_letter(t, count, &seq);
}

/* The find() of the pair. */
static bool
find_dead_letter_queue(struct move_pair *pair)
{
    pair->where.name = queue_settings(pair->from.queue)->dead_letter;
    return limits_claims(pair->from.queue);
}

/* Loads the messages behind the dead letters in a row from number seq on, if they may be
 * dead letters, too: if they were claimed before. ST_OK: there are none. ST_AGAIN,
 * ST_NO_MEMORY. */
static enum status
load_row(struct txn *t, uint64_t seq)
{
    const struct backlog *b = t->queue->backlog;
    const uint64_t unloaded = backlog_next_unloaded(b, seq);

    for (int i = 0; unloaded != RUN_NONE && i < MOVE_SLICE; i++, seq++) {
        const struct message *m = seqmap_next_ready(&b->messages, &seq);

        if (m == NULL || seq > unloaded)
            return (backlog_run(b, unloaded)->unread & run_bit(unloaded)) != 0
                       ? ST_OK
                       : txn_load_from(t, unloaded, 1);
        if (!is_exhausted(t->queue, m))
            return ST_OK;
    }
    return ST_OK;
}

/* Collects the dead letters in a row from number seq on. */
static void
collect_dead_letters(const struct queue *q, uint64_t seq, struct move *move)
{
    const uint64_t unloaded = backlog_next_unloaded(q->backlog, seq);

    for (;; seq++) {
        struct message *m = seqmap_next_ready(&q->backlog->messages, &seq);

        if (m == NULL || seq > unloaded || !is_exhausted(q, m) ||
            !move_add(move, m, STORE_CAUSE_ATTEMPTS, BYTES_NONE))
            return;
    }
}

/*
 * Moves a slice of the dead letters in a row from number seq on; there is at least one.
 * Makes the dead-letter queue if needed. Moves nothing on failure. ST_SEALED: call
 * move_pair_end() and move_make_seals(), and try again.
 */
static enum status
move_slice(struct move_pair *pair, uint64_t seq, struct move_seals *seals)
{
    struct move move = {.from = &pair->from,
                        .shard = pair->target,
                        .where = pair->where,
                        .hash = pair->hash,
                        .spare = claim_nodes(pair->from.queue)};
    enum status st = move_begin(&move);

    if (st != ST_OK)
        return st;
    collect_dead_letters(pair->from.queue, seq, &move);
    return move_execute(&move, seals);
}

/* One transaction. *done: no dead letter is left. ST_SEALED: as move_slice(). */
static enum status
move_next_slice(struct store *s, struct store_op *op, const struct store_queue *where,
                size_t limit, struct move_seals *seals, bool *done)
{
    struct move_pair pair = {.find = find_dead_letter_queue};
    enum status st = move_pair_begin(&pair, s, op, where);
    uint64_t seq = 0;
    size_t count;

    if (st != ST_OK)
        return st;
    count = txn_available(&pair.from);
    if (count > limit)
        count = limit;
    if (count > 0)
        st = txn_load_ready(&pair.from, count);
    *done = st == ST_OK &&
            (pair.target == NULL || find_dead_letter(&pair.from, count, &seq) == count);
    if (!*done &&
        st == ST_OK) /* a claim that would fail for lack of memory moves nothing */
        st = claim_reserve(pair.from.shard, pair.from.queue);
    if (!*done && st == ST_OK)
        st = load_row(&pair.from, seq);
    if (!*done && st == ST_OK)
        st = move_slice(&pair, seq, seals);
    move_pair_end(&pair);
    return st;
}

enum status
dead_letters_move(struct store *s, struct store_op *op, const struct store_queue *where,
                  size_t limit, bool *moved)
{
    const struct core *core = &engine_of(s)->core;
    struct move_seals seals;
    enum status st = ST_OK;
    bool done = false;

    move_seals_init(&seals);
    for (int slices = 0; !done && (st == ST_OK || st == ST_SEALED); slices++) {
        if (slices == MOVE_SLICES) {
            st = ST_AGAIN;
            break;
        }
        st = move_next_slice(s, op, where, limit, &seals, &done);
        *moved = *moved || (st == ST_OK && !done);
        if (st == ST_SEALED)
            move_make_seals(&seals, core);
    }
    move_seals_fini(&seals, core);
    return st;
}

/* ---------------------------------------------------------------- claims that expire */

/* The queue to which messages of the claim's queue go. */
static struct store_queue
letters_address(const struct queue *q)
{
    struct store_queue where = q->where;

    where.name = queue_settings(q)->dead_letter;
    return where;
}

struct shard *
dead_letters_target(const struct claim *c)
{
    const struct queue *q = c->backlog->queue;
    const struct message *m;

    if (q == NULL || !limits_claims(q))
        return NULL;
    for (uint64_t i = 0; (m = claim_next(c, &i)) != NULL;)
        if (dies_with_claim(c, m)) {
            struct engine *e = container_of(q->shard->core, struct engine, core);
            const struct store_queue where = letters_address(q);

            return engine_shard(e, core_hash(&e->core, &where));
        }
    return NULL;
}

/* Moves dead letters of a due claim, which ends with its last message. ST_SEALED; other
 * statuses: they cannot be moved now. */
static enum status
move_letters_of(struct claim *c, struct shard *target, struct move_seals *seals,
                int64_t now_ms, size_t *moved)
{
    struct queue *q = c->backlog->queue;
    struct engine *e = container_of(q->shard->core, struct engine, core);
    struct txn from = {
        .engine = e, .where = &q->where, .shard = q->shard, .queue = q, .now_ms = now_ms};
    struct move move = {.from = &from, .shard = target, .where = letters_address(q)};
    struct message *m;
    enum status st;

    move.hash = core_hash(&e->core, &move.where);
    st = move_begin(&move);
    if (st != ST_OK)
        return st;
    for (uint64_t i = 0; (m = claim_next(c, &i)) != NULL;)
        if (dies_with_claim(c, m) && !move_add(&move, m, STORE_CAUSE_EXPIRED, BYTES_NONE))
            break;
    st = move_execute(&move, seals);
    if (st != ST_OK)
        return st;
    *moved += move.count;
    while (move.count-- > 0)
        claim_drop_message(from.shard, c);
    return ST_OK;
}

/* One slice, under both locks. ST_SEALED: encrypted copies are needed. */
static enum status
expire_with_letters(struct shard *sh, struct shard *target, int64_t now_ms,
                    struct move_seals *seals)
{
    size_t moved = 0;

    for (size_t work = 0; work < EXPIRE_SLICE && moved < MOVE_SLICE; work++) {
        struct deadline *d = wheel_drain(sh->claim_wheel);
        struct claim *c = d == NULL ? NULL : container_of(d, struct claim, due);
        struct shard *letters_to = c == NULL ? NULL : dead_letters_target(c);
        enum status st;

        if (c == NULL)
            return ST_OK;
        if (letters_to == NULL) {
            work += c->held;
            claim_expire(sh, c, now_ms);
            continue;
        }
        wheel_put_back(sh->claim_wheel, &c->due); /* until its last message has moved */
        if (letters_to != target)
            return ST_OK;
        st = move_letters_of(c, target, seals, now_ms, &moved);
        if (st == ST_SEALED)
            return st;
        if (st == ST_OK)
            continue;
        SOMETIMES(LETTER_NOT_AT_ONCE);
        claim_expire(sh, c, now_ms);
        return ST_OK; /* the caller releases the space in the log with the lock */
    }
    return ST_OK;
}

void
dead_letters_expire(struct shard *sh, struct shard *target, int64_t now_ms)
{
    struct move_seals seals;
    enum status st;

    move_seals_init(&seals);
    do {
        if (target < sh)
            lock_acquire(&target->lock);
        now_ms = shard_enter(sh, now_ms);
        if (target > sh)
            lock_acquire(&target->lock);
        st = expire_with_letters(sh, target, now_ms, &seals);
        if (target != sh)
            shard_leave(target);
        shard_leave(sh);
        if (st == ST_SEALED)
            move_make_seals(&seals, sh->core);
    } while (st == ST_SEALED);
    move_seals_fini(&seals, sh->core);
    store_log_flush(sh->core->log);
}
