/*
 * housekeeping: expires what is due in a shard, and frees what was deleted.
 * housekeeping.h says what each operation expires.
 *
 * The end of a claim:
 *
 *     1. shard_arm_claim() puts the end into the claim wheel, and lowers shard.next_ms
 *        and core.next_ms. So the event loops know when to wake up.
 *     2. An operation that depends on claims calls expire_enter() before it reads. If no
 *        operation comes, a worker calls engine_housekeep() (instance.c), and that calls
 *        housekeep_shard().
 *     3. expire_claims() drains the wheel up to the time of the caller, a slice at a
 *        time.
 *     4. dead_letters_target() finds the shard of the dead-letter queue, if a message of
 *        the claim has no attempt left. postpone_claim() puts such a claim back.
 *        leave_for_letters() releases the lock, because dead_letters_expire() takes the
 *        locks of both shards in their order (dead_letter.c).
 *     5. claim_expire() ends any other claim. The log gets CLAIM_OVER, for which the
 *        journal writes no record, because a replay arms the same deadline. claim_end()
 *        makes the messages ready at their old places, and marks the wait queue.
 *     6. shard_leave() notifies the first waiters, and releases the lock.
 *
 * expire_messages() does the same for delays and lifetimes. It comes after
 * expire_claims(), because a message whose last claim ended before its life did is a
 * dead letter.
 *
 * Read dead_letter.c next.
 */
#include "engine/housekeeping.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "engine/changelog.h"
#include "engine/claim.h"
#include "engine/keys.h"
#include "engine/run_unload.h"
#include "engine/subscription.h"

/* Slices after which an operation returns ST_AGAIN, so that other requests of its thread
 * run. */
enum { SLICES = 4 };

void
message_detach(struct shard *sh, struct message *m)
{
    struct claim *holder = m->claim;

    lock_assert_held(&sh->lock);
    ENSURE(m->backlog != NULL);
    if (m->backlog->queue != NULL)
        directory_uncharge(&m->backlog->queue->entry, 1, m->body_len);
    wheel_disarm(sh->message_wheel, &m->due);
    run_forget(sh, m->backlog, m->seq);
    backlog_remove(m->backlog, &sh->pool, m);
    if (holder != NULL)
        claim_drop_message(sh, holder);
    seqmap_pool_trim(&sh->pool);
}

void
claim_expire(struct shard *sh, struct claim *c, int64_t now_ms)
{
    struct queue *q = c->backlog->queue; /* NULL: on the reclaim list */

    lock_assert_held(&sh->lock);
    SOMETIMES_IF(q == NULL, CLAIM_OF_PURGED);
    if (q != NULL) {
        metrics_count(&sh->metrics, STORE_COUNT_BACK_EXPIRED, c->held);
        queue_count(q, STORE_QUEUE_REQUEUED, c->held);
    }
    if (has_log(sh->core) && q != NULL && !c->over)
        changelog_claim(q, STORE_CHANGE_CLAIM_OVER, c, now_ms);
    claim_end(sh, c);
}

/* A due claim has dead letters for a queue of another shard or of this one. It stays
 * due. */
static void __attribute__((noinline))
postpone_claim(struct shard *sh, struct claim *c, struct shard *target, int64_t now_ms)
{
    if (has_log(sh->core) && !c->over)
        changelog_claim(c->backlog->queue, STORE_CHANGE_CLAIM_OVER, c, now_ms);
    c->over = true;
    wheel_put_back(sh->claim_wheel, &c->due);
    sh->letters_to = target;
}

/* Expires the claims that are due, as far as the budget goes. True: none of them is left.
 * If one has dead letters, sh->letters_to is their shard, and they have to move first. */
static bool
expire_claims(struct shard *sh, int64_t now_ms, size_t *budget)
{
    bool whole = wheel_advance(sh->claim_wheel, now_ms, *budget);

    lock_assert_held(&sh->lock);

    while (*budget > 0) {
        struct deadline *d = wheel_drain(sh->claim_wheel);
        struct shard *target;
        struct claim *c;

        if (d == NULL)
            return whole;
        c = container_of(d, struct claim, due);
        *budget -= c->held < *budget ? 1 + c->held : *budget;
        target = dead_letters_target(c);
        if (target != NULL) {
            postpone_claim(sh, c, target, now_ms);
            return false;
        }
        claim_expire(sh, c, now_ms);
    }
    return false;
}

static void
message_due(struct shard *sh, struct message *m, int64_t now_ms)
{
    struct queue *q = m->backlog->queue; /* NULL: on the reclaim list */
    bool logged = has_log(sh->core) && q != NULL;

    SOMETIMES_IF(q == NULL, EXPIRES_PURGED);
    if (!message_live(m, now_ms)) {
        if (q != NULL) {
            metrics_count(&sh->metrics, STORE_COUNT_EXPIRED, 1);
            queue_count_expired(q, m->claim_count == 0 && !feed_listens(q->feed),
                                message_is_dead_letter(m));
        }
        if (logged)
            changelog_single(q, STORE_CHANGE_EXPIRED, m, now_ms);
        message_detach(sh, m);
        message_unpin(sh->core->mem, m);
        return;
    }
    backlog_end_delay(m->backlog, m);
    if (q != NULL)
        shard_consider_unload(sh, m->backlog);
    shard_arm_message(sh, &m->due, m->expires_ms);
    if (logged)
        changelog_single(q, STORE_CHANGE_DELAY_OVER, m, now_ms);
    if (q != NULL)
        queue_wake_waiters(q);
}

/* The same for delays and lifetimes of messages. */
static bool
expire_messages(struct shard *sh, int64_t now_ms, size_t *budget)
{
    bool whole = wheel_advance(sh->message_wheel, now_ms, *budget);

    lock_assert_held(&sh->lock);

    while (*budget > 0) {
        struct deadline *d = wheel_drain(sh->message_wheel);

        if (d == NULL)
            return whole;
        --*budget;
        message_due(sh, container_of(d, struct message, due), now_ms);
    }
    return false;
}

void
expire_messages_only(struct shard *sh, int64_t now_ms)
{
    size_t budget;

    now_ms = shard_enter(sh, now_ms);
    do
        budget = EXPIRE_SLICE;
    while (!expire_messages(sh, now_ms, &budget) || !expire_runs(sh, now_ms, &budget));
    shard_leave(sh);
}

/* Leaves a shard, as far as its dead letters need it without a lock. NULL: they do
 * not. */
static struct shard *
leave_for_letters(struct shard *sh)
{
    struct shard *target = sh->letters_to;

    sh->letters_to = NULL;
    shard_leave(sh);
    return target;
}

static enum status
expire_slices(struct shard *sh, int64_t *now_ms, enum expiry which, bool locked)
{
    for (int i = 0; i < SLICES; i++) {
        size_t claims = EXPIRE_SLICE, messages = EXPIRE_SLICE;
        struct shard *target;

        SOMETIMES_IF(i > 0, EXPIRY_SLICED);
        *now_ms = shard_enter(sh, *now_ms);
        if ((which < EXPIRE_CLAIMS || expire_claims(sh, *now_ms, &claims)) &&
            (which < EXPIRE_ALL || (expire_messages(sh, *now_ms, &messages) &&
                                    expire_runs(sh, *now_ms, &messages))))
            return ST_OK;
        target = leave_for_letters(sh); /* other operations run between the slices */
        if (target != NULL && locked)
            return ST_CHANGED;
        if (target != NULL)
            dead_letters_expire(sh, target, *now_ms);
    }
    return ST_AGAIN;
}

enum status
expire_enter(struct shard *sh, int64_t *now_ms, enum expiry which)
{
    return expire_slices(sh, now_ms, which, false);
}

enum status
expire_enter_locked(struct shard *sh, int64_t *now_ms, enum expiry which)
{
    return expire_slices(sh, now_ms, which, true);
}

void
reclaim_backlog(struct shard *sh, struct queue *q, struct backlog *fresh)
{
    struct backlog *b = q->backlog;

    lock_assert_held(&sh->lock);
    ENSURE(b != NULL && (fresh == NULL || backlog_live(fresh) == 0));
    unload_forget(sh, b);
    if (list_linked(&b->unload_link))
        list_remove(&b->unload_link);
    b->queue = NULL;
    q->backlog = fresh;
    if (fresh != NULL)
        fresh->queue = q;
    directory_uncharge(&q->entry, backlog_live(b), b->bytes);
    if (backlog_live(b) == 0 && b->runs.live == 0) {
        backlog_free(sh->core->mem, b);
        return;
    }
    backlog_count_in(b, &sh->reclaiming);
    list_add_before(&sh->reclaim_list, &b->reclaim_link);
    shard_wake_at(sh, sh->now_ms);
}

void
reclaim_queue(struct shard *sh, struct queue *q)
{
    reclaim_backlog(sh, q, NULL);
    feed_detach_all(sh, q);
    shard_unlink(sh, q);
    queue_free(sh->core->mem, q);
}

/* Frees a run of a backlog that has no message in memory. */
static void
reclaim_run(struct shard *sh, struct run *r)
{
    (void)run_remove(sh, r, r->unloaded); /* with the run, since all are unloaded */
}

bool
reclaim_slice(struct shard *sh, int64_t now_ms, size_t *budget)
{
    (void)now_ms; /* these messages do not expire */
    lock_assert_held(&sh->lock);
    for (; *budget > 0 && !list_empty(&sh->reclaim_list); --*budget) {
        struct backlog *b =
            container_of(sh->reclaim_list.next, struct backlog, reclaim_link);
        uint64_t seq = 0;
        struct message *m = seqmap_next_live(&b->messages, &seq);
        struct run *r = m != NULL ? NULL : seqmap_next_live(&b->runs, &seq);

        if (r != NULL) {
            reclaim_run(sh, r);
            continue;
        }
        if (m == NULL) {
            list_remove(&b->reclaim_link);
            backlog_free(sh->core->mem, b);
            continue;
        }
        message_detach(sh, m);
        message_unpin(sh->core->mem, m);
    }
    return list_empty(&sh->reclaim_list);
}

bool
reclaim_audit(const struct shard *sh)
{
    const struct list *link;
    size_t count = 0;

    for (link = sh->reclaim_list.next; link != &sh->reclaim_list; link = link->next) {
        const struct backlog *b = container_of(link, const struct backlog, reclaim_link);

        if (b->queue != NULL || !backlog_audit(b) || !claims_audit(b))
            return false;
        count += backlog_live(b);
    }
    return count == sh->reclaiming.messages;
}

/* A task of housekeeping, as far as the budget goes. True: nothing is left to do. */
typedef bool chore_fn(struct shard *sh, int64_t now_ms, size_t *budget);

int64_t
housekeep_shard(struct shard *sh, int64_t now_ms, size_t *budget)
{
    static chore_fn *const chores[] = {expire_claims, expire_messages,      expire_runs,
                                       reclaim_slice, expire_subscriptions, feed_chores,
                                       keys_chore,    unload_chore};
    int64_t next_ms, messages_ms;
    struct shard *target;
    bool complete = true;

    now_ms = shard_enter(sh, now_ms);
    for (size_t i = 0; i < sizeof(chores) / sizeof(chores[0]); i++) {
        size_t slice = *budget < EXPIRE_SLICE ? *budget : EXPIRE_SLICE, left = slice;

        if (chores[i] == expire_messages && !complete)
            continue; /* a dead letter may be among them, whose claim ended before */
        complete = chores[i](sh, now_ms, &left) && complete;
        *budget -= slice - left;
    }
    seqmap_pool_trim(&sh->pool);
    next_ms = wheel_next_ms(sh->claim_wheel);
    messages_ms = wheel_next_ms(sh->message_wheel);
    if (next_ms > messages_ms)
        next_ms = messages_ms;
    if (next_ms > sh->unload_ms)
        next_ms = sh->unload_ms;
    if (sh->run_wheel != NULL && next_ms > wheel_next_ms(sh->run_wheel))
        next_ms = wheel_next_ms(sh->run_wheel);
    if (sh->subscription_wheel != NULL && next_ms > wheel_next_ms(sh->subscription_wheel))
        next_ms = wheel_next_ms(sh->subscription_wheel);
    if (next_ms > keys_next_ms(sh))
        next_ms = keys_next_ms(sh);
    if (!complete)
        next_ms = now_ms;
    atomic_store(&sh->next_ms, next_ms);
    target = leave_for_letters(sh); /* this may lower sh->next_ms */
    if (target != NULL)
        dead_letters_expire(sh, target, now_ms);
    return next_ms;
}
