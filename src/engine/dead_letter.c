#include "engine/dead_letter.h"
#include "claimd/base/sometimes.h"

/* Slices after which a claim returns ST_AGAIN, so that other requests of the thread run. */
enum { MOVE_SLICES = 16 };

/* The find() of the pair. */
static bool
find_dead_letter_queue(struct move_pair *pair)
{
    const struct store_settings *set = queue_settings(pair->from.queue);

    pair->where.name = set->dead_letter;
    return set->max_claim_count != STORE_UNSET && bytes_present(set->dead_letter);
}

enum status
dead_letter_begin(struct dead_letter *dl, struct store *s, struct store_op *op,
                  const struct store_queue *where)
{
    dl->pair.find = find_dead_letter_queue;
    return move_pair_begin(&dl->pair, s, op, where);
}

/* True if the delivery count of m has reached the limit of its queue. */
static bool
is_dead_letter(const struct dead_letter *dl, const struct message *m)
{
    return (int64_t)m->claim_count >=
           queue_settings(dl->pair.from.queue)->max_claim_count;
}

/*
 * Number of messages, of the first `count` that dl->pair.from may take, in front of the first
 * dead letter, whose number is *seq then; `count` if there is no dead letter (or there
 * are fewer messages).
 */
static size_t
count_before_dead_letter(const struct dead_letter *dl, size_t count, uint64_t *seq)
{
    uint64_t at = dl->pair.from.from_seq;

    if (dl->pair.target == NULL)
        return count;
    for (size_t i = 0; i < count; i++, at++) {
        const struct message *m =
            seqmap_next_ready(&dl->pair.from.queue->backlog->messages, &at);

        if (m == NULL)
            return count;
        if (is_dead_letter(dl, m)) {
            *seq = at;
            return i;
        }
    }
    return count;
}

/* Collects the dead letters in a row from number seq on. */
static void
collect_dead_letters(const struct dead_letter *dl, uint64_t seq, struct move *move)
{
    for (;; seq++) {
        struct message *m =
            seqmap_next_ready(&dl->pair.from.queue->backlog->messages, &seq);

        if (m == NULL || !is_dead_letter(dl, m) || !move_add(move, m, BYTES_NONE))
            return;
    }
}

/*
 * Moves a slice of the dead letters in a row from number seq on; there is at least one.
 * Makes the dead-letter queue if needed. Moves nothing on failure. ST_SEALED: call
 * move_pair_end() and move_make_seals(), and try again.
 */
static enum status
move_slice(struct dead_letter *dl, uint64_t seq)
{
    struct move move = {.from = &dl->pair.from,
                        .shard = dl->pair.target,
                        .where = dl->pair.where,
                        .hash = dl->pair.hash,
                        .spare = claim_nodes(dl->pair.from.queue)};
    enum status st = move_begin(&move);

    if (st != ST_OK)
        return st;
    collect_dead_letters(dl, seq, &move);
    return move_execute(&move, &dl->seals);
}

enum status
dead_letters_move(struct dead_letter *dl, size_t *count)
{
    struct txn *t = &dl->pair.from;
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
        move_pair_end(&dl->pair);
        if (st == ST_SEALED)
            move_make_seals(&dl->seals, &t->engine->core);
        st = ++slices < MOVE_SLICES
                 ? dead_letter_begin(dl, &t->engine->store, t->op, t->where)
                 : ST_AGAIN;
        if (st != ST_OK)
            return st;
    }
}
