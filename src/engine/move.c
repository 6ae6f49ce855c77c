#include "engine/move.h"
#include "claimd/base/sometimes.h"
#include "engine/run_ops.h"
#include "engine/subscription.h"
#include "engine/unique.h"

/* Bytes of bodies after which a move of messages, or of messages that must be encrypted,
 * has enough. */
enum { MOVE_BYTES = 1 << 20, SEAL_BYTES = 1 << 16 };

struct store_details
details_with_reason(const struct message *m, struct bytes reason, struct bytes client,
                    int64_t now_ms)
{
    struct store_details out = {.released_ms = 0};

    if (message_details(m) != NULL)
        out = message_details(m)->view;
    else if (message_is_dead_letter(m))
        out.dead_lettered_ms = m->posted_ms; /* the time was not kept */
    if (reason.len > 0) {
        out.reason = reason;
        out.client = client;
        out.released_ms = now_ms;
    }
    return out;
}

void
move_begin_to(struct move *move, struct queue *target)
{
    move->count = 0;
    move->bytes = move->logged = 0;
    move->made = false;
    move->target = target;
}

enum status
move_begin(struct move *move)
{
    move_begin_to(move, shard_find(move->shard, &move->where, move->hash));
    if (move->target != NULL)
        return ST_OK;
    move->target = shard_new_queue(move->shard, &move->where, NULL);
    move->made = move->target != NULL;
    return move->made ? ST_OK : ST_NO_MEMORY;
}

/* Bytes that a message takes in the log at most, as one that moves and with its
 * details. */
static size_t
logged_bytes(const struct move *move, const struct message *m)
{
    return 2 * STORE_LOG_EACH + m->body_len + details_bytes(m) +
           move->from->where->name.len;
}

/* Bytes of messages that one write of the log has space for. */
static size_t
log_capacity(const struct core *core)
{
    enum { HEADS = 2048 }; /* of the records, and a record of the target */

    return core->log == NULL || core->log->largest <= HEADS ? SIZE_MAX
                                                            : core->log->largest - HEADS;
}

bool
move_add(struct move *move, struct message *m, enum store_cause cause,
         struct bytes reason)
{
    const size_t most = queue_settings(move->target)->encrypt ? SEAL_BYTES : MOVE_BYTES;
    const size_t logged = logged_bytes(move, m);

    if (move->count == MOVE_SLICE || (!move->whole && move->bytes >= most))
        return false;
    if (!move->whole && move->count > 0 &&
        move->logged + logged > log_capacity(move->shard->core))
        return false;
    move->logged += logged;
    move->messages[move->count] = m;
    move->numbers[move->count] = m->seq;
    move->all[move->count++] = (struct moving){.reason = reason, .cause = cause};
    move->bytes += m->body_len;
    return true;
}

/* ------------------------------------------------------------------ encryption */

/* True if m must be encrypted for the target. */
static bool
must_be_sealed(const struct move *move, const struct message *m)
{
    return queue_settings(move->target)->encrypt && !store_is_sealed(message_body(m));
}

/* Takes over the encrypted copy of m for this target; NULL: there is none. */
static struct message *
take_sealed(struct move_seals *seals, const struct move *move, const struct message *m)
{
    struct message *sealed;

    for (size_t i = 0; i < seals->count; i++)
        if (seals->pairs[i].clear == m && seals->hash == move->hash) {
            sealed = seals->pairs[i].sealed;
            seals->pairs[i].sealed = NULL;
            return sealed;
        }
    return NULL;
}

/* Notes the messages that move_make_seals() must encrypt. Drops copies for an earlier
 * move. */
static enum status
order_seals(struct move_seals *seals, const struct move *move)
{
    const struct core *core = move->shard->core;
    const struct store_details name = {.origin = move->where.name,
                                       .client = move->where.project};

    move_seals_fini(seals, core);
    seals->name = details_new(core->mem, &name);
    if (seals->name == NULL)
        return ST_NO_MEMORY;
    seals->where = (struct store_queue){seals->name->view.client,
                                        seals->name->view.origin, move->where.kind};
    seals->hash = move->hash;
    for (size_t i = 0; i < move->count; i++)
        if (must_be_sealed(move, move->messages[i])) {
            message_pin(move->messages[i]);
            seals->pairs[seals->count].sealed = NULL;
            seals->pairs[seals->count++].clear = move->messages[i];
        }
    return ST_SEALED;
}

/* Takes over encrypted copies. Unless it is whole, the move ends in front of the first
 * message without one, if that is not the first of all. */
static enum status
use_seals(struct move_seals *seals, struct move *move)
{
    for (size_t i = 0; i < move->count; i++) {
        struct moving *one = &move->all[i];

        if (!must_be_sealed(move, move->messages[i]))
            continue;
        if (seals->failed != ST_OK)
            return seals->failed;
        one->sealed = take_sealed(seals, move, move->messages[i]);
        if (one->sealed == NULL && (move->whole || i == 0))
            return order_seals(seals, move);
        if (one->sealed == NULL) {
            move->count = i;
            return ST_OK;
        }
        move->bytes += move->shard->core->sealer->overhead;
    }
    return ST_OK;
}

void
move_make_seals(struct move_seals *seals, const struct core *core)
{
    const struct store_sealer *sealer = core->sealer;

    if (sealer == NULL)
        seals->failed = ST_NO_KEY;
    for (size_t i = 0; seals->failed == ST_OK && i < seals->count; i++) {
        const struct message *m = seals->pairs[i].clear;
        struct message *sealed = message_make(core->mem, m->body_len + sealer->overhead,
                                              message_checksum(m), m->client);

        seals->pairs[i].sealed = sealed;
        seals->failed = sealed == NULL ? ST_NO_MEMORY
                                       : sealer->seal(sealer->arg, &seals->where,
                                                      message_body(m), sealed->body);
    }
}

void
move_seals_fini(struct move_seals *seals, const struct core *core)
{
    for (; seals->count > 0; seals->count--) {
        message_unpin(core->mem, seals->pairs[seals->count - 1].clear);
        if (seals->pairs[seals->count - 1].sealed != NULL)
            message_unpin(core->mem, seals->pairs[seals->count - 1].sealed);
    }
    if (seals->name != NULL)
        details_unpin(core->mem, seals->name);
    seals->name = NULL;
}

/* ------------------------------------------------------------------ reserving */

/* Makes what a message has in the target: an `extra`, and its details. One that goes back
 * has details, too, which say that it is no dead letter. */
static enum status
prepare_message(struct move *move, size_t i, size_t *bytes, size_t *keys)
{
    struct mem *mem = move->shard->core->mem;
    const struct message *m = move->messages[i];
    struct moving *one = &move->all[i];
    struct store_details view =
        details_with_reason(m, one->reason, move->client, move->from->now_ms);

    if (move->back) {
        view.origin = BYTES_NONE;
        view.dead_lettered_ms = 0;
        view.cause = STORE_CAUSE_UNKNOWN;
        view.attempts = 0;
        if (view.released_ms == 0)
            view.client = BYTES_NONE;
    } else {
        if (view.origin.len == 0)
            view.origin = move->from->queue->where.name;
        if (view.released_ms == 0)
            view.client = m->claim == NULL ? BYTES_NONE : claim_client(m->claim);
        view.dead_lettered_ms = move->from->now_ms;
        view.cause = one->cause;
        view.attempts = m->claim_count;
    }
    if (m->extra == NULL) {
        one->extra = mem_alloc(mem, sizeof(*one->extra));
        if (one->extra == NULL)
            return ST_NO_MEMORY;
        *one->extra = (struct extra){.has_id = false};
    }
    one->details = details_new(mem, &view);
    *bytes += store_details_bytes(&view);
    *keys += store_holds_key(&view);
    return one->details == NULL ? ST_NO_MEMORY : ST_OK;
}

static enum status
reserve_log(const struct move *move, size_t details_bytes)
{
    const struct txn *from = move->from;
    const bool unlogged = queue_transient(from->queue) && queue_transient(move->target);
    enum status st = ST_OK;

    if (move->made)
        st = changelog_reserve(move->shard, STORE_CHANGE_QUEUE, 0,
                               queue_bytes(&move->where, NULL));
    else if (changelog_has_numbers(move->target, move->posted, 0))
        st = changelog_reserve_numbers(move->target, move->posted + move->count, 0);
    /* Otherwise the post has reserved space, and gets enough numbers for both. */
    if (st == ST_OK && !unlogged)
        st = txn_reserve(from, STORE_CHANGE_MOVE, move->count, move->bytes);
    if (st == ST_OK && !queue_transient(move->target))
        st = txn_reserve(from, STORE_CHANGE_DETAILS, move->count, details_bytes);
    return st;
}

/* Nodes of the target's pool that the move takes at most. */
static size_t
move_nodes(const struct move *move)
{
    const struct queue *target = move->target;
    const size_t count = move->posted + move->count;

    return seqmap_nodes_for(&target->backlog->messages, target->last_seq + 1, count) +
           (feed_listens(target->feed) ? feed_nodes(target->feed, target->last_seq, count)
                                       : 0);
}

enum status
move_reserve(struct move *move, struct move_seals *seals)
{
    enum status st = use_seals(seals, move);
    size_t details_bytes = 0, keys = 0;

    ENSURE(move->count > 0);
    lock_assert_held(&move->from->shard->lock);
    for (size_t i = 0; st == ST_OK && i < move->count; i++)
        st = prepare_message(move, i, &details_bytes, &keys);
    if (st == ST_OK && feed_listens(move->target->feed))
        st = feed_stock(move->target->feed, move->shard->core->mem,
                        move->posted + move->count);
    if (st == ST_OK)
        st = hashmap_reserve(&move->target->backlog->originals, move->count);
    if (st == ST_OK && keys > 0)
        st = hashmap_reserve(&move->target->backlog->unique, keys);
    if (st == ST_OK)
        st = seqmap_pool_stock(&move->shard->pool, move_nodes(move) + move->spare);
    if (st == ST_OK && move->made)
        st =
            shard_enlist(move->shard, move->target,
                         move->back ? atomic_load(&move->shard->core->limits.queues) : 0);
    return st == ST_OK ? reserve_log(move, details_bytes) : st;
}

void
move_undo(struct move *move)
{
    struct mem *mem = move->shard->core->mem;

    for (size_t i = 0; i < move->count; i++) {
        struct moving *one = &move->all[i];

        mem_free(mem, one->extra);
        if (one->details != NULL)
            details_unpin(mem, one->details);
        if (one->sealed != NULL)
            message_unpin(mem, one->sealed);
    }
    move->count = 0;
    if (move->made)
        shard_discard(move->shard, move->target);
    move->made = false;
}

/* ------------------------------------------------------------------ moving */

/* Replaces a message, which is out of its queue, by its encrypted copy, if it has one.
 * Batches may still show the old one. Returns the message that moves. */
static struct message *
replace_by_sealed(struct move *move, size_t i)
{
    struct message *m = move->messages[i], *sealed = move->all[i].sealed;

    if (sealed == NULL)
        return m;
    sealed->seq = m->seq;
    sealed->posted_ms = m->posted_ms;
    sealed->expires_ms = m->expires_ms;
    sealed->claim_count = m->claim_count;
    sealed->extra = m->extra;
    if (sealed->extra != NULL)
        sealed->extra->message = sealed;
    m->extra = NULL;
    /* Dead letters move even if the project exceeds its limits by this. */
    (void)directory_charge(&move->target->entry, 0, sealed->body_len - m->body_len, NULL);
    message_unpin(move->shard->core->mem, m);
    move->messages[i] = sealed;
    return sealed;
}

/* Sets the TTL that the source queue has for dead letters, or ensures the server's
 * minimum. */
static void
extend_dead_letter(const struct move *move, struct message *m)
{
    const struct core *core = move->shard->core;
    const int64_t ttl_s = queue_settings(move->from->queue)->dead_letter_ttl_s;
    const bool is_set = ttl_s != STORE_UNSET;
    const int64_t until_ms = core_deadline_ms(
        core, move->from->now_ms, is_set ? ttl_s : core->config.dead_letter_ttl_s);

    if (is_set)
        m->posted_ms = move->from->now_ms;
    if (is_set || m->expires_ms < until_ms)
        m->expires_ms = until_ms;
}

/* Ensures the default life of messages of the target. The age begins again. */
static void
extend_returned(const struct move *move, struct message *m)
{
    const struct core *core = move->shard->core;
    const int64_t set_s = queue_settings(move->target)->message_ttl_s;
    const int64_t until_ms =
        core_deadline_ms(core, move->from->now_ms,
                         set_s == STORE_UNSET ? core->config.message_ttl_s : set_s);

    m->posted_ms = move->from->now_ms;
    if (m->expires_ms < until_ms)
        m->expires_ms = until_ms;
}

static void
move_message(struct move *move, size_t i)
{
    struct queue *target = move->target;
    struct shard *from = move->from->shard;
    struct moving *one = &move->all[i];
    struct message *m = move->messages[i];

    wheel_disarm(from->message_wheel, &m->due);
    run_forget(from, m->backlog, m->seq);
    backlog_remove(m->backlog, &from->pool, m); /* under its old id */
    m = replace_by_sealed(move, i);
    SOMETIMES_IF(message_has_original(m), LETTER_AGAIN);
    if (m->extra == NULL) {
        m->extra = one->extra;
        m->extra->message = m;
    }
    if (!m->extra->has_id)
        m->extra->id = (struct ident){move->from->queue->tag, m->seq};
    m->extra->has_id = true;
    message_set_details(move->shard->core->mem, m, one->details);
    m->seq = ++target->last_seq;
    if (!move->back || !move->keeps_count)
        m->claim_count = 0;
    if (move->back)
        extend_returned(move, m);
    else
        extend_dead_letter(move, m);
    backlog_add(target->backlog, &move->shard->pool, m);
    backlog_add_original(target->backlog, m);
    unique_hold(target, m);
    shard_arm_message(move->shard, &m->due, m->expires_ms);
    if (feed_listens(target->feed))
        feed_append(target->feed, &move->shard->pool, m,
                    (m->expires_ms - m->posted_ms) / 1000, 0);
}

void
move_commit(struct move *move)
{
    struct queue *source = move->from->queue, *target = move->target;
    const int64_t now_ms = move->from->now_ms;

    ENSURE(move->count > 0);
    SOMETIMES_IF(move->made && !move->back, LETTER_MAKES_QUEUE);
    SOMETIMES_IF(move->made && move->back, REDRIVE_MAKES_QUEUE);
    if (move->made)
        shard_link(move->shard, target, move->hash);
    for (size_t i = 0; i < move->count; i++)
        move_message(move, i);
    if (feed_listens(target->feed))
        feed_grown(move->shard, target->feed);
    if (!move->back) {
        metrics_count(&move->from->shard->metrics, STORE_COUNT_DEAD_LETTERS, move->count);
        queue_count(source, STORE_QUEUE_DEAD_LETTERED, move->count);
    }
    metrics_count(&move->shard->metrics, STORE_COUNT_QUEUES_MADE, move->made);
    queue_wake_waiters(target);
    if (has_log(move->shard->core)) {
        if (move->made)
            changelog_queue(target, STORE_CHANGE_QUEUE, now_ms);
        changelog_move(source, target, move->messages, move->numbers, move->count,
                       now_ms);
        changelog_array(target, STORE_CHANGE_DETAILS, move->messages, move->count,
                        now_ms);
        changelog_numbers(target, now_ms);
    }
    move->made = false;
}

enum status
move_execute(struct move *move, struct move_seals *seals)
{
    struct grouped_change changes[MOVE_CHANGES];
    struct shard *from = move->from->shard;
    struct change_group group = {
        .all = changes, .capacity = MOVE_CHANGES, .space = &from->log_reserved};
    enum status st;

    from->group = move->shard->group = &group;
    st = move_reserve(move, seals);
    if (st == ST_OK)
        move_commit(move);
    if (st != ST_OK) {
        SOMETIMES_IF(!move->back, LETTER_REFUSED);
        SOMETIMES_IF(move->back, REDRIVE_REFUSED);
        SOMETIMES_IF(move->made, LETTER_QUEUE_UNDONE);
        SOMETIMES_IF(st == ST_FULL, LETTER_DISK_FULL);
        move_undo(move);
    }
    changelog_end_group(&group, from->core);
    from->group = move->shard->group = NULL;
    return st;
}

/* ------------------------------------------------------------------ both locks */

/* Finds the target and its shard. Needs the lock of the source. */
static void
find_target(struct move_pair *pair)
{
    pair->target = NULL;
    pair->where = *pair->from.where;
    if (pair->from.queue == NULL || !pair->find(pair))
        return;
    pair->hash = core_hash(&pair->from.engine->core, &pair->where);
    pair->target = engine_shard(pair->from.engine, pair->hash);
}

enum status
move_pair_begin(struct move_pair *pair, struct store *s, struct store_op *op,
                const struct store_queue *where)
{
    struct shard *lower = NULL; /* locked before the source */

    for (;;) {
        enum status st = (lower != NULL ? txn_begin_locked : txn_begin)(
            &pair->from, s, op, where, EXPIRE_ALL);

        if (st != ST_OK && lower != NULL)
            shard_leave(lower);
        lower = st == ST_OK ? lower : NULL;
        if (st == ST_CHANGED)
            continue; /* dead letters of expired claims go first */
        if (st != ST_OK)
            return st;
        find_target(pair);
        if (pair->target == NULL || pair->target >= pair->from.shard ||
            pair->target == lower)
            break;
        /* Locks are taken from lower to higher shards: begin again with the lower one. */
        shard_leave(pair->from.shard);
        if (lower != NULL)
            shard_leave(lower);
        lower = pair->target;
        SOMETIMES(LETTER_SHARD_BELOW);
        lock_acquire(&lower->lock);
    }
    if (lower != NULL && lower != pair->target)
        shard_leave(lower); /* the target changed meanwhile */
    if (pair->target != NULL && pair->target > pair->from.shard)
        lock_acquire(&pair->target->lock);
    return ST_OK;
}

void
move_pair_end(struct move_pair *pair)
{
    if (pair->target != NULL && pair->target != pair->from.shard)
        shard_leave(pair->target);
    txn_end(&pair->from);
}
