#include "engine/post.h"
#include "claimd/base/sometimes.h"
#include "engine/keyed.h"
#include "engine/run_unload.h"
#include "engine/subscription.h"

/* Bytes of the bodies of a post: its size in the log, and its charge to the project. */
static size_t
post_body_bytes(const struct store_post *post)
{
    size_t total = 0;

    for (size_t i = 0; i < post->count; i++)
        total += post->drafts[i].body.len;
    return total;
}

size_t
post_bytes(const struct store_post *post)
{
    return post->count * (sizeof(struct message) + 32) + post_body_bytes(post);
}

enum status
post_make_messages(struct mem *mem, const struct store_post *post, struct list *messages)
{
    for (size_t i = 0; i < post->count; i++) {
        struct message *m = message_new(
            mem, post->drafts[i].body,
            post->checksums == NULL ? NULL : &post->checksums[i], post->client);

        SOMETIMES_IF(m == NULL && i > 0, POST_CUT);
        if (m == NULL) {
            message_unpin_all(mem, messages);
            return ST_NO_MEMORY;
        }
        list_add_before(messages, &m->due.link);
    }
    return ST_OK;
}

static struct store_lifetime
draft_lifetime(const struct core *core, const struct queue *q,
               const struct store_draft *draft)
{
    return store_draft_lifetime(draft, queue_settings(q),
                                (struct store_lifetime){core->config.message_ttl_s,
                                                        core->config.message_delay_s});
}

/* Adds the messages to the end of the queue. Cannot fail: memory is reserved. */
static void
append_messages(struct queue *q, const struct store_post *post, struct list *messages,
                int64_t now_ms)
{
    struct shard *sh = q->shard;
    const struct core *core = sh->core;
    const bool listened = feed_listens(q->feed);

    for (size_t i = 0; i < post->count; i++) {
        const struct store_lifetime life = draft_lifetime(core, q, &post->drafts[i]);
        struct message *m = container_of(list_pop(messages), struct message, due.link);
        int64_t due_ms;

        m->seq = ++q->last_seq;
        m->posted_ms = now_ms;
        m->expires_ms = core_deadline_ms(core, now_ms, life.ttl_s);
        m->delayed = life.delay_s > 0;
        due_ms =
            m->delayed ? core_deadline_ms(core, now_ms, life.delay_s) : m->expires_ms;
        backlog_add(q->backlog, &sh->pool, m);
        shard_arm_message(sh, &m->due, due_ms);
        if (listened)
            feed_append(q->feed, &sh->pool, m, life.ttl_s, life.delay_s);
    }
    ENSURE(list_empty(messages));
    shard_consider_unload(sh, q->backlog);
    if (listened)
        feed_grown(sh, q->feed);
}

size_t
post_nodes(const struct queue *q, const struct store_post *post)
{
    return seqmap_nodes_for(&q->backlog->messages, q->last_seq + 1, post->count) +
           (feed_listens(q->feed) ? feed_nodes(q->feed, q->last_seq, post->count) : 0);
}

enum status
post_reserve(struct txn *t, const struct store_post *post, size_t spare)
{
    struct queue *q = t->queue;
    const struct store_settings *set = queue_settings(q);
    size_t bytes = post_body_bytes(post);
    enum status st = ST_OK;

    for (size_t i = 0; i < post->count; i++)
        if (!store_lifetime_is_useful(
                draft_lifetime(&t->engine->core, q, &post->drafts[i])))
            return ST_NEVER_READY;
    if (queue_is_paused(q, STORE_PAUSE_POSTS))
        return ST_PAUSED;
    if (set->max_post_bytes != STORE_UNSET &&
        post->request_bytes > (uint64_t)set->max_post_bytes)
        return ST_TOO_LARGE;
    for (size_t i = 0; set->encrypt && i < post->count; i++)
        if (!store_is_sealed(post->drafts[i].body))
            return ST_NOT_SEALED;
    if (feed_listens(q->feed))
        st = feed_stock(q->feed, t->engine->core.mem, post->count);
    if (st == ST_OK)
        st = seqmap_pool_stock(&t->shard->pool, post_nodes(q, post) + spare);
    if (st == ST_OK)
        st = t->queue_is_new ? txn_reserve_queue(t)
                             : changelog_reserve_numbers(q, post->count, 0);
    if (st == ST_OK)
        st = directory_charge(&q->entry, post->count, bytes, &t->engine->core.limits);
    if (st != ST_OK)
        return st;
    st = txn_reserve_messages(t, STORE_CHANGE_POST, post->count, bytes);
    if (st != ST_OK) {
        SOMETIMES(POST_NOT_LOGGED);
        post_unreserve(t, post);
    }
    return st;
}

void
post_unreserve(struct txn *t, const struct store_post *post)
{
    directory_uncharge(&t->queue->entry, post->count, post_body_bytes(post));
}

void
post_commit(struct txn *t, const struct store_post *post, struct list *messages)
{
    const uint64_t first = t->queue->last_seq + 1;
    const bool made = txn_link_queue(t);

    append_messages(t->queue, post, messages, t->now_ms);
    ENSURE(t->queue->last_seq == first + post->count - 1);
    metrics_count(&t->shard->metrics, STORE_COUNT_POSTED, post->count);
    queue_count(t->queue, STORE_QUEUE_POSTED, post->count);
    queue_wake_waiters(t->queue);
    if (!has_log(&t->engine->core))
        return;
    if (made)
        changelog_queue(t->queue, STORE_CHANGE_QUEUE, t->now_ms);
    changelog_row(t->queue, STORE_CHANGE_POST, first, post->count, t->now_ms);
    changelog_numbers(t->queue, t->now_ms);
}

/* Posts in a transaction that has begun. *id: the one before that of the first
 * message. */
static enum status
add_messages(struct txn *t, const struct store_post *post, struct list *messages,
             struct keyed *key, struct ident *id)
{
    enum status st = ST_OK;

    if (t->queue == NULL)
        st = post->create_queue ? txn_make_queue(t, NULL) : ST_NOT_FOUND;
    if (st == ST_OK)
        st = post_reserve(t, post, 0);
    if (st != ST_OK)
        return st;
    st = keyed_reserve(key, STORE_KEY_POST, 0, 0);
    if (st != ST_OK) {
        post_unreserve(t, post);
        return st;
    }
    *id = (struct ident){t->queue->tag, t->queue->last_seq};
    post_commit(t, post, messages);
    keyed_commit_post(key, id->low + 1, post->count);
    return ST_OK;
}

enum status
engine_message_post(struct store *s, struct store_op *op, const struct store_queue *where,
                    const struct store_post *post, struct store_id *ids)
{
    struct engine *e = engine_of(s);
    struct ident id = {0, 0};
    struct list messages;
    struct keyed key;
    struct txn t;
    enum status st;

    ENSURE(post->count > 0);
    housekeep_pay(e, op->now_ms, post->count, post_bytes(post));
    if (!mem_admits(e->core.mem, post_bytes(post)))
        return ST_OVER_BUDGET;
    list_init(&messages);
    st = post_make_messages(e->core.mem, post, &messages);
    if (st != ST_OK)
        return st;
    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING); /* which cannot fail */
    st = keyed_begin(&key, &t, STORE_KEY_POST);
    if (st == ST_OK && key.known == NULL)
        st = add_messages(&t, post, &messages, &key, &id);
    else if (st == ST_OK && key.known->count != post->count)
        st = ST_KEY_REUSED;
    else if (st == ST_OK)
        id = (struct ident){t.queue->tag, key.known->first - 1};
    keyed_end(&key);
    unload_pay(t.shard, post->count);
    txn_end(&t);
    if (st == ST_BEYOND_LOG)
        op->log_most = e->core.log->largest;
    message_unpin_all(e->core.mem, &messages);
    for (size_t i = 0; st == ST_OK && i < post->count; i++) {
        id.low++;
        ident_write(&ids[i], id);
    }
    return st;
}
