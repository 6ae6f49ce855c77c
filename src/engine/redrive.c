/*
 * redrive: puts dead letters back, a slice in each call (claimd/store/store.h). Declared
 * in txn.h. A slice is a move between two queues (move.h), like that of a claim that
 * meets dead letters. Read dead_letter.c next.
 */
#include "engine/move.h"
#include "engine/unique.h"

/* Messages that one call looks at, at most: those that it skips do not count as its
 * result. */
enum { LOOK_SLICE = 1024 };

struct redrive {
    struct move_pair pair;
    struct store_redrive *which;
    struct move_seals seals;
};

/*
 * The next message from *at on that may go back, which is a place of the queue or of the
 * list of ids. *left: messages that may be skipped. NULL: there is none, or the call has
 * looked at enough.
 */
static struct message *
next_letter(const struct redrive *r, uint64_t *at, size_t *left)
{
    const struct txn *t = &r->pair.from;
    struct message *m;

    for (; *left > 0; ++*at, --*left) {
        if (r->which->ids == NULL)
            m = seqmap_next_ready(&t->queue->backlog->messages, at);
        else
            m = *at < r->which->id_count ? txn_find_message(t, r->which->ids[*at]) : NULL;
        if (m == NULL && (r->which->ids == NULL || *at >= r->which->id_count)) {
            *at = UINT64_MAX; /* the end */
            return NULL;
        }
        if (m != NULL && m->claim == NULL && !m->delayed && message_is_dead_letter(m))
            return m;
    }
    return NULL;
}

/* The name of the queue to which a message goes back; absent: not known. */
static struct bytes
target_of(const struct redrive *r, const struct message *m)
{
    const struct details *d = message_details(m);

    if (bytes_present(r->which->to))
        return r->which->to;
    return d == NULL || bytes_equal(d->view.origin, r->pair.from.where->name)
               ? BYTES_NONE
               : d->view.origin;
}

/* The find() of the pair: the target of the first message that has one. */
static bool
find_redrive_target(struct move_pair *pair)
{
    const struct redrive *r = container_of(pair, const struct redrive, pair);
    uint64_t at = r->which->resume;
    size_t left = LOOK_SLICE;
    struct message *m;

    for (; (m = next_letter(r, &at, &left)) != NULL; at++) {
        pair->where.name = target_of(r, m);
        if (bytes_present(pair->where.name))
            return true;
        left--;
    }
    return false;
}

/* True if the move has this message: an id may be named twice. */
static bool
move_has(const struct move *move, const struct message *m)
{
    for (size_t i = 0; i < move->count; i++)
        if (move->messages[i] == m)
            return true;
    return false;
}

/* True if a message of the target, or another one of the move, holds the key of m. */
static bool
key_is_held(const struct redrive *r, const struct move *move, const struct message *m)
{
    const struct bytes key = message_key(m);
    const struct queue *target;

    if (key.len == 0)
        return false;
    for (size_t i = 0; move != NULL && i < move->count; i++)
        if (bytes_equal(message_key(move->messages[i]), key))
            return true;
    target = shard_find(r->pair.target, &r->pair.where, r->pair.hash);
    return target != NULL && unique_find(target, key, r->pair.from.now_ms) != NULL;
}

/* Adds the messages for the target to the move, or counts them in a dry run, and moves
 * `resume` behind them. */
static void
collect_letters(const struct redrive *r, struct move *move, struct store_redriven *out)
{
    struct store_redrive *which = r->which;
    size_t left = LOOK_SLICE;
    struct message *m;

    out->more = true;
    for (; out->moved < which->limit; which->resume++, left--) {
        struct bytes target;

        m = left == 0 ? NULL : next_letter(r, &which->resume, &left);
        if (m == NULL)
            break;
        target = target_of(r, m);
        if (!bytes_present(target)) {
            out->unknown_origin++;
            continue;
        }
        if (which->ids != NULL && move != NULL && move_has(move, m))
            continue;
        if (bytes_equal(target, r->pair.where.name) && key_is_held(r, move, m)) {
            out->key_held++;
            continue;
        }
        if (!bytes_equal(target, r->pair.where.name) ||
            (move != NULL && !move_add(move, m, STORE_CAUSE_UNKNOWN, BYTES_NONE)))
            break;
        out->moved++;
    }
    if (which->resume == UINT64_MAX)
        out->more = false;
}

static enum status
run_slice(struct redrive *r, struct store_redriven *out)
{
    struct move_pair *pair = &r->pair;
    const uint64_t resume = r->which->resume;
    struct move move = {.from = &pair->from,
                        .shard = pair->target,
                        .where = pair->where,
                        .hash = pair->hash,
                        .back = true,
                        .keeps_count = r->which->keeps_count};
    enum status st;

    if (bytes_present(r->which->to) && bytes_equal(r->which->to, pair->from.where->name))
        return ST_CONFLICT;
    out->target = bytes_of(out->target_text, 0);
    if (pair->target != NULL && pair->where.name.len <= sizeof(out->target_text)) {
        /* The name may be a text of a message that moves. */
        memcpy(out->target_text, pair->where.name.data, pair->where.name.len);
        out->target.len = pair->where.name.len;
    }
    if (pair->target == NULL || r->which->dry_run) {
        collect_letters(r, NULL, out);
    } else {
        st = move_begin(&move);
        if (st != ST_OK)
            return st;
        collect_letters(r, &move, out);
        if (move.count > 0)
            st = move_execute(&move, &r->seals);
        else
            move_undo(&move); /* the keys of all are held */
        if (st != ST_OK) {
            r->which->resume = resume;
            return st;
        }
        if (move.count < out->moved) { /* the others are not encrypted yet */
            r->which->resume = resume;
            out->more = true;
            out->moved = move.count;
            out->unknown_origin = out->key_held = 0;
        }
    }
    if (out->moved == 0)
        out->target.len = 0;
    out->remaining = pair->from.queue->backlog->dead_letters;
    return ST_OK;
}

enum status
engine_redrive(struct store *s, struct store_op *op, const struct store_queue *where,
               struct store_redrive *which, struct store_redriven *out)
{
    struct engine *e = engine_of(s);
    struct redrive r = {.pair.find = find_redrive_target, .which = which};
    enum status st;

    ENSURE(which->limit > 0);
    move_seals_init(&r.seals);
    do {
        out->moved = out->unknown_origin = out->key_held = 0;
        st = move_pair_begin(&r.pair, s, op, where);
        if (st != ST_OK)
            break;
        st = r.pair.from.queue == NULL ? ST_NOT_FOUND : run_slice(&r, out);
        move_pair_end(&r.pair);
        if (st == ST_SEALED)
            move_make_seals(&r.seals, &e->core);
    } while (st == ST_SEALED);
    move_seals_fini(&r.seals, &e->core);
    return st;
}
