/*
 * claim_finish: ends the work on messages of a claim, and posts messages, in one step.
 * It changes the queue of the claim, its dead-letter queue and the queues of the posts.
 *
 *     1. finish_init() makes the messages of the posts, without locks.
 *     2. lock_all() locks the shards of all these queues in their order, and expires
 *        claims. Only the queue of the claim names the dead-letter queue. If that is in
 *        a lower shard, it begins again.
 *     3. keyed_begin() looks for the Idempotency-Key. If it is known, read_result()
 *        returns the first result.
 *     4. reserve_all() does everything that can fail. find_messages() finds the messages
 *        that the claim holds. An atomic finish ends here if it lacks one.
 *        find_exhausted() makes dead letters of released messages without an attempt
 *        left. reserve_own(), reserve_post() and reserve_move() follow.
 *     5. After a failure undo_all() releases the reservations. After ST_SEALED
 *        move_make_seals() encrypts copies without locks, and all begins with step 2. If
 *        there are exhausted messages, keep_exhausted() tries again without moving them.
 *        The next claim moves them.
 *     6. commit_all() posts, moves, releases, deletes and renews, which cannot fail.
 *        changelog_end_group() appends all of it as one group, so a crash keeps all or
 *        nothing.
 *     7. unlock_all() notifies waiters, and releases the locks.
 *
 * Read move.h and post.h next.
 */
#include "claimd/base/sometimes.h"
#include "engine/claim_ops.h"
#include "engine/dead_letter.h"
#include "engine/keyed.h"
#include "engine/post.h"
#include "engine/unique.h"

enum {
    SHARDS_MOST = STORE_FINISH_POSTS + 1, /* besides that of the claim's queue */
    POST_CHANGES = 4,                     /* QUEUE, POST, DETAILS, numbers */
    OWN_CHANGES = 5,                      /* DELETE, RETRY, DETAILS, RENEW, KEY */
    NUMBER_BYTES = 8,                     /* of the result that a key keeps: */
    ID_BYTES = 12
};

#define NEW_BIT UINT32_C(0x80000000) /* of an id in that result: see write_result() */

/* An item, with what it needs. */
struct item {
    struct store_finish_item *request;
    /* A release becomes a DEAD_LETTER if it is exhausted. */
    enum store_finish_action action;
    struct message *message; /* NULL: the claim does not hold it */
    struct details *details; /* owned: new ones; NULL: none */
};

struct finish {
    struct store_finish *request;
    struct txn from; /* of the claim's queue */
    struct claim *claim;
    struct shard *others[SHARDS_MOST]; /* locked, besides from.shard; in order */
    size_t other_count;
    struct item *items; /* owned */
    size_t counts[STORE_FINISH_DEAD_LETTER + 1];
    bool keeps;                /* the claim holds a message afterwards */
    struct message **released; /* owned: space for all items, twice */
    struct message **detailed; /* those of them with new details, in the second half */
    struct txn posts[STORE_FINISH_POSTS];
    struct store_queue places[STORE_FINISH_POSTS];
    struct list messages[STORE_FINISH_POSTS]; /* owned, by due.link */
    size_t reserved;                          /* posts that are reserved */
    struct move move;
    bool moving;
    size_t exhausted;    /* released messages that the move has */
    bool keep_exhausted; /* they cannot move now, and the next claim moves them */
    struct discarded discarded;
    struct change_group group;
    struct keyed key;
    char *result; /* owned; for the key; NULL: there is none */
};

/* ------------------------------------------------------------------ without locks */

static size_t
result_bytes(const struct store_finish *request)
{
    return NUMBER_BYTES + request->count + ID_BYTES * request->post_count;
}

static enum status
finish_init(struct finish *f, struct engine *e, const struct store_op *op,
            const struct store_queue *where, struct store_finish *request)
{
    struct mem *mem = e->core.mem;
    const size_t changes =
        OWN_CHANGES + MOVE_CHANGES + POST_CHANGES * request->post_count;
    enum status st = ST_OK;

    ENSURE(request->post_count <= STORE_FINISH_POSTS);
    f->request = request;
    f->other_count = f->reserved = f->discarded.count = 0;
    f->moving = f->keep_exhausted = false;
    list_init(&f->discarded.messages);
    for (size_t i = 0; i < request->post_count; i++)
        list_init(&f->messages[i]);
    f->group = (struct change_group){
        .all = mem_alloc(mem, changes * sizeof(*f->group.all)), .capacity = changes};
    f->items = mem_calloc(mem, request->count + 1, sizeof(*f->items));
    f->released = mem_calloc(mem, 2 * request->count + 1, sizeof(struct message *));
    f->result = NULL;
    if (op->key != NULL)
        f->result = mem_alloc(mem, result_bytes(request));
    if (op->key != NULL && f->result == NULL)
        return ST_NO_MEMORY;
    if (f->group.all == NULL || f->items == NULL || f->released == NULL)
        return ST_NO_MEMORY;
    f->detailed = f->released + request->count;
    for (size_t i = 0; i < request->count; i++)
        f->items[i].request = &request->items[i];
    for (size_t i = 0; st == ST_OK && i < request->post_count; i++) {
        f->places[i] = *where;
        f->places[i].kind = store_post_kind(where->kind);
        f->places[i].name = request->posts[i].queue;
        st = post_make_messages(mem, &request->posts[i].post, &f->messages[i]);
    }
    return st;
}

static void
finish_fini(struct finish *f, struct mem *mem)
{
    for (size_t i = 0; f->items != NULL && i < f->request->count; i++)
        if (f->items[i].details != NULL)
            details_unpin(mem, f->items[i].details);
    for (size_t i = 0; i < f->request->post_count; i++)
        message_unpin_all(mem, &f->messages[i]);
    message_unpin_all(mem, &f->discarded.messages);
    mem_free(mem, f->items);
    mem_free(mem, f->released);
    mem_free(mem, f->group.all);
    mem_free(mem, f->result);
}

/* ------------------------------------------------------------------ locks */

/* Adds a shard to the others, unless it is there or is that of the claim's queue. */
static void
add_shard(struct finish *f, struct shard *own, struct shard *sh)
{
    size_t at = f->other_count;

    while (at > 0 && f->others[at - 1] > sh)
        at--;
    if (sh == own || (at > 0 && f->others[at - 1] == sh))
        return;
    memmove(&f->others[at + 1], &f->others[at],
            (f->other_count - at) * sizeof(struct shard *));
    f->others[at] = sh;
    f->other_count++;
}

/* True if the request may dead-letter a message; *where is the queue's dead-letter queue,
 * whose name is absent if there is none. */
static bool
find_dead_letter_queue(const struct finish *f, struct store_queue *where)
{
    const struct queue *q = f->from.queue;

    *where = *f->from.where;
    where->name = q == NULL ? BYTES_NONE : queue_settings(q)->dead_letter;
    for (size_t i = 0; i < f->request->count; i++) {
        const enum store_finish_action action = f->request->items[i].action;

        if (action == STORE_FINISH_DEAD_LETTER ||
            (action == STORE_FINISH_RELEASE && q != NULL && limits_claims(q)))
            return true;
    }
    return false;
}

static void
unlock_others(struct finish *f, const struct shard *from, const struct shard *to)
{
    for (size_t i = 0; i < f->other_count; i++)
        if (f->others[i] >= from && f->others[i] < to)
            shard_leave(f->others[i]);
}

static void
lock_others(struct finish *f, const struct shard *from, const struct shard *to,
            int64_t now_ms)
{
    for (size_t i = 0; i < f->other_count; i++)
        if (f->others[i] >= from && f->others[i] < to)
            (void)shard_enter(f->others[i], now_ms);
}

/* Locks all shards, and expires the claims that are due. ST_AGAIN: as txn_begin(). */
static enum status
lock_all(struct finish *f, struct engine *e, struct store_op *op,
         const struct store_queue *where)
{
    const struct shard *first = e->shards, *end = e->shards + e->shard_count;
    struct shard *own = engine_shard(e, core_hash(&e->core, where)), *dead;
    struct store_queue target;
    int64_t now_ms;
    bool known;

    f->other_count = 0;
    for (size_t i = 0; i < f->request->post_count; i++)
        add_shard(f, own, engine_shard(e, core_hash(&e->core, &f->places[i])));
    for (;;) {
        enum status st;

        lock_others(f, first, own, op->now_ms);
        st = txn_begin_locked(&f->from, &e->store, op, where, EXPIRE_CLAIMS);
        if (st != ST_OK)
            unlock_others(f, first, own);
        if (st == ST_CHANGED) { /* dead letters of expired claims go first */
            now_ms = op->now_ms;
            st = expire_enter(own, &now_ms, EXPIRE_CLAIMS);
            if (st == ST_OK) {
                shard_leave(own);
                continue;
            }
        }
        if (st != ST_OK)
            return st;
        if (!find_dead_letter_queue(f, &target) || !bytes_present(target.name))
            break;
        dead = engine_shard(e, core_hash(&e->core, &target));
        known = dead == own;
        for (size_t i = 0; i < f->other_count; i++)
            known = known || f->others[i] == dead;
        if (known || dead > own) {
            add_shard(f, own, dead);
            break;
        }
        /* Locks are taken from lower to higher shards: begin again with this one. */
        SOMETIMES(FINISH_SHARD_BELOW);
        shard_leave(own);
        unlock_others(f, first, own);
        f->other_count = 0;
        for (size_t i = 0; i < f->request->post_count; i++)
            add_shard(f, own, engine_shard(e, core_hash(&e->core, &f->places[i])));
        add_shard(f, own, dead);
    }
    lock_others(f, own, end, f->from.now_ms);
    f->group.count = 0;
    f->group.space = &own->log_reserved;
    own->group = &f->group;
    for (size_t i = 0; i < f->other_count; i++)
        f->others[i]->group = &f->group;
    return ST_OK;
}

static void
unlock_all(struct finish *f, struct engine *e)
{
    for (size_t i = 0; i < f->other_count; i++)
        f->others[i]->group = NULL;
    f->from.shard->group = NULL;
    unlock_others(f, e->shards, e->shards + e->shard_count);
    txn_end(&f->from);
}

/* ------------------------------------------------------------------ reserving */

/* Released messages without an attempt left are dead letters, as many as a move can
 * have. */
static void
find_exhausted(struct finish *f)
{
    for (size_t i = 0; i < f->request->count; i++) {
        struct item *item = &f->items[i];

        if (item->message == NULL || item->action != STORE_FINISH_RELEASE ||
            item->request->uncounted || !is_exhausted(f->from.queue, item->message) ||
            f->counts[STORE_FINISH_DEAD_LETTER] == MOVE_SLICE)
            continue;
        item->action = STORE_FINISH_DEAD_LETTER;
        item->request->exhausted = true;
        f->counts[STORE_FINISH_RELEASE]--;
        f->counts[STORE_FINISH_DEAD_LETTER]++;
        f->exhausted++;
    }
}

static enum status
find_messages(struct finish *f)
{
    struct store_finish *request = f->request;
    struct txn *t = &f->from;
    bool all = true;

    memset(f->counts, 0, sizeof(f->counts));
    f->claim =
        t->queue == NULL ? NULL : claim_find(t->queue, request->claim_id, t->now_ms);
    for (size_t i = 0; i < request->count; i++) {
        struct item *item = &f->items[i];

        item->message = f->claim == NULL ? NULL : txn_find_message(t, item->request->id);
        if (item->message != NULL && item->message->claim != f->claim)
            item->message = NULL;
        item->action = item->request->action;
        item->request->exhausted = false;
        item->request->held = item->message != NULL;
        all = all && item->request->held;
        f->counts[item->action] += item->request->held;
    }
    if (!all)
        metrics_count(&t->shard->metrics, STORE_COUNT_LATE_DELETES, 1);
    SOMETIMES_IF(!all && request->atomic && f->claim != NULL, FINISH_NOT_HELD);
    if (!all && request->atomic)
        return ST_NOT_CLAIMED;
    if (f->claim == NULL)
        return ST_NOT_FOUND;
    f->keeps = f->claim->held > f->counts[STORE_FINISH_DELETE] +
                                    f->counts[STORE_FINISH_RELEASE] +
                                    f->counts[STORE_FINISH_DEAD_LETTER];
    if (!f->keep_exhausted)
        find_exhausted(f);
    return ST_OK;
}

/* Makes the new details of released messages. *bytes: of their texts. */
static enum status
make_details(struct finish *f, size_t *count, size_t *bytes)
{
    struct mem *mem = f->from.engine->core.mem;

    *count = *bytes = 0;
    for (size_t i = 0; i < f->request->count; i++) {
        struct item *item = &f->items[i];
        const struct store_finish_item *request = item->request;
        struct store_details view;

        if (item->message == NULL || item->action != STORE_FINISH_RELEASE ||
            request->reason.len == 0)
            continue;
        if (item->details != NULL) /* of an earlier round */
            details_unpin(mem, item->details);
        view = details_with_reason(item->message, request->reason, f->request->client,
                                   f->from.now_ms);
        item->details = details_new(mem, &view);
        if (item->details == NULL || message_ensure_extra(mem, item->message) != ST_OK)
            return ST_NO_MEMORY;
        ++*count;
        *bytes += store_details_bytes(&view);
    }
    return ST_OK;
}

static enum status
reserve_own(struct finish *f)
{
    const struct txn *t = &f->from;
    const size_t *counts = f->counts;
    size_t details, bytes;
    enum status st = make_details(f, &details, &bytes);

    if (st == ST_OK && counts[STORE_FINISH_DELETE] > 0)
        st = txn_reserve_messages(t, STORE_CHANGE_DELETE, counts[STORE_FINISH_DELETE], 0);
    if (st == ST_OK && counts[STORE_FINISH_RELEASE] > 0)
        st = txn_reserve_messages(t, STORE_CHANGE_RETRY, counts[STORE_FINISH_RELEASE], 0);
    if (st == ST_OK && details > 0)
        st = txn_reserve_messages(t, STORE_CHANGE_DETAILS, details, bytes);
    if (st == ST_OK && f->request->renew != NULL && f->keeps)
        st = txn_reserve_messages(t, STORE_CHANGE_RENEW, f->claim->held, 0);
    return st;
}

/* Nodes that the posts which are reserved take from the pool of a shard. */
static size_t
nodes_of_posts(const struct finish *f, const struct shard *sh)
{
    size_t nodes = 0;

    for (size_t i = 0; i < f->reserved; i++)
        if (f->posts[i].shard == sh && !f->request->posts[i].existing)
            nodes += post_nodes(f->posts[i].queue, &f->request->posts[i].post);
    return nodes;
}

/* True if the step deletes or dead-letters m. */
static bool
removes_message(const struct finish *f, const struct message *m)
{
    for (size_t i = 0; i < f->request->count; i++)
        if (f->items[i].message == m)
            return f->items[i].action != STORE_FINISH_RELEASE;
    return false;
}

/* Returns the message with the key of the post, if one stays in the queue. */
static const struct message *
find_existing(const struct finish *f, const struct txn *t, const struct store_post *post)
{
    const struct message *m = t->queue_is_new ? NULL : post_existing(t, post);

    return m == NULL || removes_message(f, m) ? NULL : m;
}

static enum status
reserve_post(struct finish *f, size_t i)
{
    struct store_finish_post *p = &f->request->posts[i];
    const struct message *existing = NULL;
    struct engine *e = f->from.engine;
    struct txn *t = &f->posts[i];
    enum status st = ST_OK;

    *t = f->from;
    t->where = &f->places[i];
    t->hash = core_hash(&e->core, t->where);
    t->shard = engine_shard(e, t->hash);
    t->now_ms = t->shard->now_ms;
    t->queue_is_new = false;
    t->queue = shard_find(t->shard, t->where, t->hash);
    if (t->queue == NULL)
        st = p->post.create_queue ? txn_make_queue(t, NULL) : ST_NOT_FOUND;
    if (st == ST_OK)
        existing = find_existing(f, t, &p->post);
    p->existing = existing != NULL;
    if (existing != NULL) {
        ident_write(&p->ids[0], message_ident(existing, t->queue->tag));
        f->reserved++;
        return ST_OK;
    }
    if (st == ST_OK) /* one entry for each queue that the step may make */
        st = hashmap_reserve(&t->shard->queues, f->request->post_count + 1);
    if (st == ST_OK)
        st = post_reserve(t, &p->post, nodes_of_posts(f, t->shard));
    if (st != ST_OK && t->queue_is_new)
        shard_discard(t->shard, t->queue);
    f->reserved += st == ST_OK;
    return st;
}

/* The post that adds to this queue; NULL: there is none. */
static const struct txn *
find_post(const struct finish *f, const struct store_queue *where)
{
    for (size_t i = 0; i < f->reserved; i++)
        if (!f->request->posts[i].existing && store_queue_equal(&f->places[i], where))
            return &f->posts[i];
    return NULL;
}

static enum status
reserve_move(struct finish *f, struct move_seals *seals)
{
    const struct txn *post;
    struct move *move = &f->move;

    move->from = &f->from;
    move->client = f->request->client;
    move->back = move->keeps_count = false;
    move->whole = true;
    move->posted = 0;
    if (!find_dead_letter_queue(f, &move->where))
        return ST_OK;
    if (!bytes_present(move->where.name))
        return ST_CONFLICT;
    if (f->counts[STORE_FINISH_DEAD_LETTER] == 0)
        return ST_OK;
    move->hash = core_hash(&f->from.engine->core, &move->where);
    move->shard = engine_shard(f->from.engine, move->hash);
    post = find_post(f, &move->where);
    if (post != NULL) /* which makes the queue, if it does not exist */
        move_begin_to(move, post->queue);
    else if (move_begin(move) != ST_OK)
        return ST_NO_MEMORY;
    f->moving = true;
    move->spare = nodes_of_posts(f, move->shard);
    SOMETIMES_IF(post != NULL, FINISH_MOVES_AND_POSTS);
    if (post != NULL) /* the numbers of both follow each other */
        move->posted = f->request->posts[post - f->posts].post.count;
    for (size_t i = 0; i < f->request->count; i++)
        if (f->items[i].message != NULL &&
            f->items[i].action == STORE_FINISH_DEAD_LETTER &&
            !move_add(move, f->items[i].message,
                      f->items[i].request->action == STORE_FINISH_RELEASE
                          ? STORE_CAUSE_ATTEMPTS
                          : STORE_CAUSE_WORKER,
                      f->items[i].request->reason))
            return ST_TOO_LARGE;
    return move_reserve(move, seals);
}

/* Does everything that can fail, before anything changes. */
static enum status
reserve_all(struct finish *f, struct move_seals *seals)
{
    struct store_finish *request = f->request;
    enum status st = find_messages(f);

    request->failed_post = request->post_count;
    if (st == ST_OK)
        st = reserve_own(f);
    for (size_t i = 0; st == ST_OK && i < request->post_count; i++) {
        st = reserve_post(f, i);
        if (st != ST_OK)
            request->failed_post = i;
    }
    if (st == ST_OK)
        st = reserve_move(f, seals);
    if (st == ST_OK)
        st = keyed_reserve(&f->key, STORE_KEY_FINISH, 0, result_bytes(request));
    if (st == ST_OK && !changelog_group_fits(&f->group, &f->from.engine->core))
        st = ST_BEYOND_LOG;
    SOMETIMES_IF(st == ST_BEYOND_LOG, FINISH_BEYOND_LOG);
    SOMETIMES_IF(st == ST_FULL, FINISH_DISK_FULL);
    return st;
}

static void
undo_all(struct finish *f)
{
    SOMETIMES_IF(f->reserved > 0, FINISH_UNDONE);
    if (f->moving)
        move_undo(&f->move);
    f->moving = false;
    while (f->reserved > 0) {
        struct txn *t = &f->posts[--f->reserved];

        if (f->request->posts[f->reserved].existing)
            continue;
        post_unreserve(t, &f->request->posts[f->reserved].post);
        if (t->queue_is_new)
            shard_discard(t->shard, t->queue);
    }
}

/* ------------------------------------------------------------------ the step */

static void
commit_posts(struct finish *f)
{
    for (size_t i = 0; i < f->reserved; i++) {
        struct store_finish_post *p = &f->request->posts[i];
        struct ident id = {f->posts[i].queue->tag, f->posts[i].queue->last_seq};

        p->pending = false;
        if (p->existing)
            continue;
        SOMETIMES_IF(f->posts[i].queue_is_new, FINISH_MAKES_QUEUE);
        post_commit(&f->posts[i], &p->post, &f->messages[i]);
        for (size_t k = 0; k < p->post.count; k++) {
            id.low++;
            ident_write(&p->ids[k], id);
        }
    }
}

/* Replaces the details of a message, which goes on holding its key. */
static void
set_details(struct queue *q, struct message *m, struct details *details)
{
    const bool held = m->extra->holds_key;

    backlog_set_details(q->backlog, q->shard->core->mem, m, details);
    if (held)
        unique_hold(q, m);
}

/* Gives a message back: delayed, then ready at its old place. The caller updates the
 * claim. */
static void
release_message(struct finish *f, struct item *item)
{
    const struct txn *t = &f->from;
    const struct core *core = t->shard->core;
    const int64_t delay_s = item->request->delay_s, ready_ms = item->request->ready_ms;
    struct message *m = item->message;
    int64_t due_ms, most_ms;

    if (item->details != NULL)
        set_details(t->queue, m, item->details);
    item->details = NULL;
    if (item->request->uncounted)
        m->claim_count -= m->claim_count > 0;
    backlog_release(m->backlog, m);
    if (ready_ms == 0 ? delay_s == 0 : ready_ms <= t->now_ms)
        return;
    backlog_delay(m->backlog, m);
    due_ms = ready_ms != 0 ? ready_ms : core_deadline_ms(core, t->now_ms, delay_s);
    most_ms = core_deadline_ms(core, t->now_ms, core->config.max_message_ttl_s);
    if (m->expires_ms < most_ms) {
        m->expires_ms += delay_s * 1000;
        SOMETIMES_IF(m->expires_ms > most_ms, RETRY_OUTLIVES);
        if (m->expires_ms > most_ms)
            m->expires_ms = most_ms;
    }
    shard_arm_message(t->shard, &m->due, due_ms < m->expires_ms ? due_ms : m->expires_ms);
}

static void
commit_own(struct finish *f)
{
    struct txn *t = &f->from;
    struct queue *q = t->queue;
    const size_t *counts = f->counts;
    const size_t given = counts[STORE_FINISH_RELEASE] + counts[STORE_FINISH_DEAD_LETTER];
    size_t released = 0, detailed = 0;

    f->request->number = 0;
    for (size_t i = 0; i < f->request->count; i++)
        if (f->items[i].message != NULL && f->items[i].action == STORE_FINISH_RELEASE) {
            f->released[released++] = f->items[i].message;
            if (f->items[i].details != NULL)
                f->detailed[detailed++] = f->items[i].message;
            release_message(f, &f->items[i]);
        }
    ENSURE(released == counts[STORE_FINISH_RELEASE] && f->claim->held >= given);
    for (size_t i = 0; i < given; i++) /* the last one may end the claim */
        claim_drop_message(t->shard, f->claim);
    for (size_t i = 0; i < f->request->count; i++)
        if (f->items[i].message != NULL &&
            f->items[i].request->action == STORE_FINISH_DELETE)
            txn_remove_message(t, f->items[i].message, &f->discarded);
    metrics_count(&t->shard->metrics, STORE_COUNT_BACK_RELEASED, released);
    metrics_count(&t->shard->metrics, STORE_COUNT_DELETED, f->discarded.count);
    queue_count(q, STORE_QUEUE_REQUEUED, released);
    queue_count(q, STORE_QUEUE_DELETED, f->discarded.count);
    if (released > 0)
        queue_wake_waiters(q);
    if (has_log(&t->engine->core)) {
        if (f->discarded.count > 0)
            changelog_delete(q, &f->discarded.messages, f->discarded.count, t->now_ms);
        if (released > 0)
            changelog_array(q, STORE_CHANGE_RETRY, f->released, released, t->now_ms);
        if (detailed > 0)
            changelog_array(q, STORE_CHANGE_DETAILS, f->detailed, detailed, t->now_ms);
    }
    if (f->request->renew != NULL && f->keeps) {
        f->request->number = claim_fence(q, f->claim);
        claim_commit_renewal(t, f->claim, f->request->renew);
    }
}

/*
 * Writes what a key keeps: the number of the renewed claim, a byte for each item, the id
 * of the first message of each post. The first digit of an id is a letter, so its first
 * bit is free to say that the message existed.
 */
static struct bytes
write_result(struct finish *f)
{
    const struct store_finish *request = f->request;
    char *at = f->result;

    memcpy(at, &request->number, NUMBER_BYTES);
    at += NUMBER_BYTES;
    for (size_t i = 0; i < request->count; i++)
        *at++ = (char)(request->items[i].held ? 1 + request->items[i].exhausted : 0);
    for (size_t i = 0; i < request->post_count; i++) {
        struct ident id = {0, 0};

        (void)ident_read(store_id_bytes(&request->posts[i].ids[0]), &id);
        if (request->posts[i].existing)
            id.high &= ~NEW_BIT;
        memcpy(at, &id.high, sizeof(id.high));
        memcpy(at + sizeof(id.high), &id.low, sizeof(id.low));
        at += ID_BYTES;
    }
    return bytes_of(f->result, result_bytes(request));
}

/* Reads it into an equal request. ST_KEY_REUSED: the request is another one. */
static enum status
read_result(struct store_finish *request, struct bytes result)
{
    const char *at = result.data;

    if (result.len != result_bytes(request))
        return ST_KEY_REUSED;
    memcpy(&request->number, at, NUMBER_BYTES);
    at += NUMBER_BYTES;
    for (size_t i = 0; i < request->count; i++) {
        request->items[i].held = *at != 0;
        request->items[i].exhausted = *at++ == 2;
    }
    for (size_t i = 0; i < request->post_count; i++) {
        struct store_finish_post *p = &request->posts[i];
        struct ident id;

        memcpy(&id.high, at, sizeof(id.high));
        memcpy(&id.low, at + sizeof(id.high), sizeof(id.low));
        at += ID_BYTES;
        p->existing = (id.high & NEW_BIT) == 0;
        id.high |= NEW_BIT;
        p->pending = false;
        for (size_t k = 0; k < p->post.count; k++, id.low++)
            ident_write(&p->ids[k], id);
    }
    return ST_OK;
}

static void
commit_all(struct finish *f)
{
    struct store_op *op = f->from.op;

    SOMETIMES_IF(f->other_count > 1, FINISH_SPANS);
    commit_posts(f);
    if (f->moving)
        move_commit(&f->move);
    commit_own(f);
    if (f->key.fresh != NULL)
        keyed_keep_result(&f->key, write_result(f));
    changelog_end_group(&f->group, &f->from.engine->core);
    for (size_t i = 0; i < f->reserved; i++)
        if (op->lsn < f->posts[i].queue->lsn)
            op->lsn = f->posts[i].queue->lsn;
}

/* True if a step that failed can leave out the move of exhausted messages, which need not
 * move now. */
static bool
keep_exhausted(struct finish *f, enum status st)
{
    if (st == ST_OK || st == ST_SEALED || f->exhausted == 0)
        return false;
    SOMETIMES(FINISH_KEEPS_EXHAUSTED);
    return f->keep_exhausted = true;
}

static enum status
run_step(struct finish *f, struct engine *e, struct store_op *op,
         const struct store_queue *where)
{
    struct store_finish *request = f->request;
    struct move_seals seals;
    enum status st;
    bool again;

    move_seals_init(&seals);
    do {
        f->exhausted = 0;
        st = lock_all(f, e, op, where);
        if (st != ST_OK)
            break;
        st = keyed_begin(&f->key, &f->from, STORE_KEY_FINISH);
        if (st == ST_OK && f->key.known != NULL) {
            st = read_result(request, key_result(f->key.known));
        } else if (st == ST_OK) {
            st = reserve_all(f, &seals);
            if (st == ST_OK)
                commit_all(f);
            else
                undo_all(f);
        }
        keyed_end(&f->key);
        unlock_all(f, e);
        if (st == ST_SEALED)
            move_make_seals(&seals, &e->core);
        again = st == ST_SEALED || keep_exhausted(f, st);
    } while (again);
    move_seals_fini(&seals, &e->core);
    return st;
}

enum status
engine_claim_finish(struct store *s, struct store_op *op, const struct store_queue *where,
                    struct store_finish *request)
{
    struct engine *e = engine_of(s);
    struct finish *f = mem_alloc(e->core.mem, sizeof(*f));
    size_t bytes = 0, count = 0;
    enum status st;

    if (f == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < request->post_count; i++) {
        bytes += post_bytes(&request->posts[i].post);
        count += request->posts[i].post.count;
    }
    if (count > 0)
        housekeep_pay(e, op->now_ms, count, bytes);
    /* Without posts it frees more than it adds, so it goes on. */
    if (count > 0 && !mem_admits(e->core.mem, bytes)) {
        mem_free(e->core.mem, f);
        return ST_OVER_BUDGET;
    }
    st = finish_init(f, e, op, where, request);
    if (st == ST_OK)
        st = run_step(f, e, op, where);
    if (st == ST_BEYOND_LOG)
        op->log_most = e->core.log->largest;
    finish_fini(f, e->core.mem);
    mem_free(e->core.mem, f);
    return st;
}
