#include "engine/dead_letter.h"
#include "claimd/base/sometimes.h"

/* Bytes of bodies after which a slice of moved messages, or of encrypted messages,
 * ends. */
enum { MOVE_BYTES = 1 << 20, SEAL_BYTES = 1 << 16 };

/* Slices after which a claim returns ST_AGAIN, so that other requests of the thread run. */
enum { MOVE_SLICES = 16 };

/* Finds the dead-letter queue of the source and its shard. Needs the lock of the
 * source. */
static void
find_dead_letter_shard(struct dead_letter *dl)
{
    const struct queue *q = dl->from.queue;

    dl->target = NULL;
    if (q == NULL || queue_settings(q)->max_claim_count == STORE_UNSET ||
        !bytes_present(queue_settings(q)->dead_letter))
        return;
    dl->where = q->where;
    dl->where.name = queue_settings(q)->dead_letter;
    dl->hash = core_hash(&dl->from.engine->core, &dl->where);
    dl->target = engine_shard(dl->from.engine, dl->hash);
}

enum status
dead_letter_begin(struct dead_letter *dl, struct store *s, struct store_op *op,
                  const struct store_queue *where)
{
    struct shard *lower = NULL; /* locked before the source */

    for (;;) {
        enum status st = txn_begin(&dl->from, s, op, where, EXPIRE_ALL);

        if (st != ST_OK) {
            if (lower != NULL)
                shard_leave(lower);
            return st;
        }
        find_dead_letter_shard(dl);
        if (dl->target == NULL || dl->target >= dl->from.shard || dl->target == lower)
            break;
        /* Locks are taken from lower to higher shards: begin again with the lower one. */
        shard_leave(dl->from.shard);
        if (lower != NULL)
            shard_leave(lower);
        lower = dl->target;
        SOMETIMES(LETTER_SHARD_BELOW);
        lock_acquire(&lower->lock);
    }
    if (lower != NULL && lower != dl->target)
        shard_leave(lower); /* the metadata changed meanwhile */
    if (dl->target != NULL && dl->target > dl->from.shard)
        lock_acquire(&dl->target->lock);
    return ST_OK;
}

void
dead_letter_end(struct dead_letter *dl)
{
    if (dl->target != NULL && dl->target != dl->from.shard)
        shard_leave(dl->target);
    txn_end(&dl->from);
}

/* True if the delivery count of m has reached the limit of its queue. */
static bool
is_dead_letter(const struct dead_letter *dl, const struct message *m)
{
    return (int64_t)m->claim_count >= queue_settings(dl->from.queue)->max_claim_count;
}

/*
 * Number of messages, of the first `count` that dl->from may take, in front of the first
 * dead letter, whose number is *seq then; `count` if there is no dead letter (or there
 * are fewer messages).
 */
static size_t
count_before_dead_letter(const struct dead_letter *dl, size_t count, uint64_t *seq)
{
    uint64_t at = dl->from.from_seq;

    if (dl->target == NULL)
        return count;
    for (size_t i = 0; i < count; i++, at++) {
        const struct message *m =
            seqmap_next_ready(&dl->from.queue->backlog->messages, &at);

        if (m == NULL)
            return count;
        if (is_dead_letter(dl, m)) {
            *seq = at;
            return i;
        }
    }
    return count;
}

struct move {
    struct message *messages[DEAD_LETTER_SLICE];
    uint64_t numbers[DEAD_LETTER_SLICE];         /* in the source */
    struct original *records[DEAD_LETTER_SLICE]; /* for messages without an original id */
    struct message *sealed[DEAD_LETTER_SLICE];   /* moves instead; NULL: none */
    size_t count, record_count;
    size_t bytes; /* of the bodies in the target */
    struct queue *target;
    bool made; /* the target is new and not linked yet */
};

/* True if m must be encrypted for the target. */
static bool
must_be_sealed(const struct move *move, const struct message *m)
{
    return queue_settings(move->target)->encrypt && !store_is_sealed(message_body(m));
}

/* Collects the dead letters in a row from number seq on. */
static void
collect_dead_letters(const struct dead_letter *dl, uint64_t seq, struct move *move)
{
    size_t most = queue_settings(move->target)->encrypt ? SEAL_BYTES : MOVE_BYTES;

    while (move->count < DEAD_LETTER_SLICE && move->bytes < most) {
        struct message *m = seqmap_next_ready(&dl->from.queue->backlog->messages, &seq);

        if (m == NULL || !is_dead_letter(dl, m))
            return;
        move->numbers[move->count] = m->seq;
        move->messages[move->count++] = m;
        move->bytes += m->body_len;
        seq++;
    }
}

/* Takes over the encrypted copy of m for this dead-letter queue; NULL: there is none. */
static struct message *
take_sealed(struct dead_letter *dl, const struct message *m)
{
    struct dead_letter_seals *seals = &dl->seals;
    struct message *sealed;

    for (size_t i = 0; i < seals->count; i++)
        if (seals->pairs[i].clear == m && seals->hash == dl->hash) {
            sealed = seals->pairs[i].sealed;
            seals->pairs[i].sealed = NULL;
            return sealed;
        }
    return NULL;
}

/* Notes the messages that make_seals() must encrypt. Drops copies for an earlier
 * slice. */
static enum status
order_seals(struct dead_letter *dl, const struct move *move)
{
    struct dead_letter_seals *seals = &dl->seals;

    dead_letter_fini(dl);
    seals->metadata = metadata_pin(dl->from.queue->metadata);
    seals->hash = dl->hash;
    for (size_t i = 0; i < move->count; i++)
        if (must_be_sealed(move, move->messages[i])) {
            message_pin(move->messages[i]);
            seals->pairs[seals->count].sealed = NULL;
            seals->pairs[seals->count++].clear = move->messages[i];
        }
    return ST_SEALED;
}

/* Takes over encrypted copies. The slice ends in front of the first message without one.
 * ST_SEALED: this is the first message. Else the status of a failed encryption. */
static enum status
use_seals(struct dead_letter *dl, struct move *move)
{
    for (size_t i = 0; i < move->count; i++) {
        if (!must_be_sealed(move, move->messages[i]))
            continue;
        if (dl->seals.failed != ST_OK)
            return dl->seals.failed;
        move->sealed[i] = take_sealed(dl, move->messages[i]);
        if (move->sealed[i] == NULL && i == 0)
            return order_seals(dl, move);
        if (move->sealed[i] == NULL) {
            move->count = i;
            return ST_OK;
        }
        move->bytes += dl->target->core->sealer->overhead;
    }
    return ST_OK;
}

/* Encrypts the messages that the last move_slice() needs encrypted, up to 64 KiB. Without
 * locks. */
static void
make_seals(struct dead_letter *dl)
{
    const struct core *core = &dl->from.engine->core;
    const struct store_sealer *sealer = core->sealer;
    struct dead_letter_seals *seals = &dl->seals;
    const struct store_queue where = {dl->from.where->project,
                                      seals->metadata->document.settings.dead_letter,
                                      dl->from.where->kind};

    if (sealer == NULL)
        seals->failed = ST_NO_KEY;
    for (size_t i = 0; seals->failed == ST_OK && i < seals->count; i++) {
        const struct message *m = seals->pairs[i].clear;
        struct message *sealed = message_make(core->mem, m->body_len + sealer->overhead,
                                              message_checksum(m), m->client);

        seals->pairs[i].sealed = sealed;
        seals->failed = sealed == NULL ? ST_NO_MEMORY
                                       : sealer->seal(sealer->arg, &where,
                                                      message_body(m), sealed->body);
    }
}

void
dead_letter_fini(struct dead_letter *dl)
{
    struct dead_letter_seals *seals = &dl->seals;
    struct mem *mem = dl->from.engine->core.mem;

    for (; seals->count > 0; seals->count--) {
        message_unpin(mem, seals->pairs[seals->count - 1].clear);
        if (seals->pairs[seals->count - 1].sealed != NULL)
            message_unpin(mem, seals->pairs[seals->count - 1].sealed);
    }
    if (seals->metadata != NULL)
        metadata_unpin(mem, seals->metadata);
    seals->metadata = NULL;
}

/* Leaves in the pool the nodes that the claim has reserved. */
static enum status
reserve_move(struct dead_letter *dl, struct move *move)
{
    struct mem *mem = dl->target->core->mem;
    enum status st = use_seals(dl, move);

    for (size_t i = 0; st == ST_OK && i < move->count; i++) {
        if (move->messages[i]->original != NULL)
            continue;
        move->records[move->record_count] = mem_alloc(mem, sizeof(struct original));
        if (move->records[move->record_count] == NULL)
            return ST_NO_MEMORY;
        move->record_count++;
    }
    if (st == ST_OK)
        st = hashmap_reserve(&move->target->backlog->originals, move->count);
    if (st == ST_OK)
        st = backlog_reserve(move->target->backlog, &dl->target->pool,
                             move->target->last_seq, move->count,
                             claim_nodes(dl->from.queue));
    if (st == ST_OK && move->made)
        st = shard_enlist(dl->target, move->target, 0);
    if (st == ST_OK && move->made)
        st = changelog_reserve(dl->target, STORE_CHANGE_QUEUE, 0,
                               queue_bytes(&dl->where, NULL));
    if (st == ST_OK && !move->made)
        st = changelog_reserve_numbers(move->target, move->count, 0);
    if (st == ST_OK &&
        !(queue_transient(dl->from.queue) && queue_transient(move->target)))
        st = txn_reserve(&dl->from, STORE_CHANGE_MOVE, move->count, move->bytes);
    return st;
}

static void
undo_move(const struct dead_letter *dl, struct move *move)
{
    struct mem *mem = dl->target->core->mem;

    SOMETIMES(LETTER_REFUSED);
    SOMETIMES_IF(move->made, LETTER_QUEUE_UNDONE);
    while (move->record_count > 0)
        mem_free(mem, move->records[--move->record_count]);
    for (size_t i = 0; i < move->count; i++)
        if (move->sealed[i] != NULL)
            message_unpin(mem, move->sealed[i]);
    if (move->made)
        shard_discard(dl->target, move->target);
}

/* Replaces the i-th message, which is out of its queue, by its encrypted copy, if it has
 * one. Batches may still show the old one. Returns the message that moves. */
static struct message *
replace_by_sealed(const struct dead_letter *dl, struct move *move, size_t i)
{
    struct message *m = move->messages[i], *sealed = move->sealed[i];

    if (sealed == NULL)
        return m;
    sealed->seq = m->seq;
    sealed->posted_ms = m->posted_ms;
    sealed->expires_ms = m->expires_ms;
    sealed->original = m->original;
    if (sealed->original != NULL)
        sealed->original->message = sealed;
    m->original = NULL;
    /* Dead letters move even if the project exceeds its limits by this. */
    (void)directory_charge(&move->target->entry, 0, sealed->body_len - m->body_len, NULL);
    message_unpin(dl->target->core->mem, m);
    move->messages[i] = sealed;
    return sealed;
}

/* Sets the TTL that the source queue has for dead letters, or ensures the server's
 * minimum. */
static void
extend_life(const struct dead_letter *dl, struct message *m)
{
    const struct core *core = dl->from.shard->core;
    const int64_t ttl_s = queue_settings(dl->from.queue)->dead_letter_ttl_s;
    const bool is_set = ttl_s != STORE_UNSET;
    const int64_t until_ms = core_deadline_ms(
        core, dl->from.now_ms, is_set ? ttl_s : core->config.dead_letter_ttl_s);

    if (is_set)
        m->posted_ms = dl->from.now_ms;
    if (is_set || m->expires_ms < until_ms)
        m->expires_ms = until_ms;
}

static void
move_message(const struct dead_letter *dl, size_t i, struct move *move)
{
    struct queue *target = move->target;
    struct message *m = move->messages[i];

    wheel_disarm(dl->from.shard->message_wheel, &m->due);
    backlog_remove(m->backlog, &dl->from.shard->pool, m); /* under its old id */
    m = replace_by_sealed(dl, move, i);
    SOMETIMES_IF(m->original != NULL, LETTER_AGAIN);
    if (m->original == NULL) {
        m->original = move->records[--move->record_count];
        *m->original =
            (struct original){.id = {dl->from.queue->tag, m->seq}, .message = m};
    }
    m->seq = ++target->last_seq;
    m->claim_count = 0;
    extend_life(dl, m);
    backlog_add(target->backlog, &dl->target->pool, m);
    backlog_add_original(target->backlog, m);
    shard_arm_message(dl->target, &m->due, m->expires_ms);
}

/*
 * Moves a slice of the dead letters in a row from number seq on; there is at least one.
 * Makes the dead-letter queue if needed. Moves nothing on failure. ST_SEALED: call
 * dead_letter_end() and make_seals(), and try again.
 */
static enum status
move_slice(struct dead_letter *dl, uint64_t seq)
{
    struct move move = {.target = shard_find(dl->target, &dl->where, dl->hash)};
    enum status st;

    if (move.target == NULL) {
        move.target = shard_new_queue(dl->target, &dl->where, NULL);
        if (move.target == NULL)
            return ST_NO_MEMORY;
        move.made = true;
    }
    lock_assert_held(&dl->from.shard->lock);
    collect_dead_letters(dl, seq, &move);
    ENSURE(move.count > 0);
    st = reserve_move(dl, &move);
    if (st != ST_OK) {
        SOMETIMES_IF(st == ST_FULL, LETTER_DISK_FULL);
        undo_move(dl, &move);
        return st;
    }
    SOMETIMES_IF(move.made, LETTER_MAKES_QUEUE);
    if (move.made)
        shard_link(dl->target, move.target, dl->hash);
    for (size_t i = 0; i < move.count; i++)
        move_message(dl, i, &move);
    metrics_count(&dl->from.shard->metrics, STORE_COUNT_DEAD_LETTERS, move.count);
    metrics_count(&dl->target->metrics, STORE_COUNT_QUEUES_MADE, move.made);
    queue_wake_waiters(move.target);
    if (has_log(&dl->from.engine->core)) {
        if (move.made)
            changelog_queue(move.target, STORE_CHANGE_QUEUE, dl->from.now_ms);
        changelog_move(dl->from.queue, move.target, move.messages, move.numbers,
                       move.count, dl->from.now_ms);
        changelog_numbers(move.target, dl->from.now_ms);
    }
    return ST_OK;
}

enum status
dead_letters_move(struct dead_letter *dl, size_t *count)
{
    struct txn *t = &dl->from;
    bool moved = false;

    for (int slices = 0;;) {
        uint64_t seq = 0;
        size_t available = txn_available(t);
        size_t clear;
        enum status st;

        if (*count > available)
            *count = available;
        clear = count_before_dead_letter(dl, *count, &seq);
        if (clear == *count)
            return ST_OK;
        st = move_slice(dl, seq);
        if (st != ST_OK && st != ST_SEALED) {
            *count = clear;
            SOMETIMES_IF(clear > 0, LETTER_BLOCKS_CLAIM);
            return clear > 0 || moved ? ST_OK : st;
        }
        moved = moved || st == ST_OK;
        dead_letter_end(dl);
        if (st == ST_SEALED)
            make_seals(dl);
        st = ++slices < MOVE_SLICES
                 ? dead_letter_begin(dl, &t->engine->store, t->op, t->where)
                 : ST_AGAIN;
        if (st != ST_OK)
            return st;
    }
}
