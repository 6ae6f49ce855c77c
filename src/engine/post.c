#include "engine/post.h"
#include "claimd/base/sometimes.h"
#include "engine/keyed.h"
#include "engine/run_unload.h"
#include "engine/subscription.h"
#include "engine/unique.h"

/* QUEUE, POST, DETAILS, DELETE, the numbers of a transient queue. */
enum { UNIQUE_CHANGES = 5 };

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

/* Gives its key to the only message of a post. */
static enum status
add_key(struct mem *mem, const struct store_unique *unique, struct list *messages)
{
    const struct store_details view = {.unique = *unique};
    struct message *m = container_of(messages->next, struct message, due.link);
    enum status st = message_copy_details(mem, m, &view);

    if (st != ST_OK)
        message_unpin_all(mem, messages);
    return st;
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
    return post->unique == NULL ? ST_OK : add_key(mem, post->unique, messages);
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

static enum status
refuse_post(const struct txn *t, const struct store_post *post)
{
    const struct queue *q = t->queue;
    const struct store_settings *set = queue_settings(q);

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
    return ST_OK;
}

/* Reserves what a key needs besides its message, and the deletion of the one that is
 * replaced. */
static enum status
reserve_key(const struct txn *t, const struct store_post *post)
{
    const bool replaces = bytes_present(post->replaces);
    const size_t bytes =
        post->unique->key.len + (replaces ? STORE_REASON_MAX + STORE_CLIENT_MAX : 0);
    enum status st = hashmap_reserve(&t->queue->backlog->unique, 1);

    if (st == ST_OK)
        st = txn_reserve_messages(t, STORE_CHANGE_DETAILS, 1, bytes);
    return st == ST_OK && replaces ? txn_reserve_messages(t, STORE_CHANGE_DELETE, 1, 0)
                                   : st;
}

enum status
post_reserve(struct txn *t, const struct store_post *post, size_t spare)
{
    struct queue *q = t->queue;
    size_t bytes = post_body_bytes(post);
    enum status st = refuse_post(t, post);

    if (st == ST_OK && post->unique != NULL)
        st = reserve_key(t, post);
    if (st == ST_OK && feed_listens(q->feed))
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

/* The message, which was appended, holds its key, and may have another delay. */
static void
enter_unique(const struct txn *t, const struct store_post *post, struct message *m)
{
    unique_hold(t->queue, m);
    if (post->ready_ms == 0)
        return;
    if (!m->delayed)
        backlog_delay(m->backlog, m);
    shard_arm_message(t->shard, &m->due,
                      post->ready_ms < m->expires_ms ? post->ready_ms : m->expires_ms);
}

void
post_commit(struct txn *t, const struct store_post *post, struct list *messages)
{
    const uint64_t first = t->queue->last_seq + 1;
    const bool made = txn_link_queue(t);

    append_messages(t->queue, post, messages, t->now_ms);
    ENSURE(t->queue->last_seq == first + post->count - 1);
    if (post->unique != NULL)
        enter_unique(t, post, seqmap_find(&t->queue->backlog->messages, first));
    metrics_count(&t->shard->metrics, STORE_COUNT_POSTED, post->count);
    queue_count(t->queue, STORE_QUEUE_POSTED, post->count);
    queue_wake_waiters(t->queue);
    if (!has_log(&t->engine->core))
        return;
    if (made)
        changelog_queue(t->queue, STORE_CHANGE_QUEUE, t->now_ms);
    changelog_row(t->queue, STORE_CHANGE_POST, first, post->count, t->now_ms);
    if (post->unique != NULL)
        changelog_row_details(t->queue, first, 1, t->now_ms);
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
    if (st == ST_OK && post->unique != NULL &&
        !changelog_group_fits(t->shard->group, t->shard->core))
        st = ST_BEYOND_LOG;
    if (st != ST_OK) {
        post_unreserve(t, post);
        return st;
    }
    *id = (struct ident){t->queue->tag, t->queue->last_seq};
    post_commit(t, post, messages);
    keyed_commit_post(key, id->low + 1, post->count);
    return ST_OK;
}

struct message *
post_existing(const struct txn *t, const struct store_post *post)
{
    return post->unique == NULL || refuse_post(t, post) != ST_OK
               ? NULL
               : unique_find(t->queue, post->unique->key, t->now_ms);
}

/* Gives the new message the reason of the one that it replaces. ST_NO_MEMORY. */
static enum status
copy_reason(struct txn *t, const struct store_post *post, const struct message *old,
            struct list *messages)
{
    struct message *m = container_of(messages->next, struct message, due.link);
    struct store_details view = message_details(old)->view;

    view.unique = *post->unique;
    return message_copy_details(t->engine->core.mem, m, &view);
}

/* The post of a message whose key `old` holds, or none (NULL). */
static enum status
replace_message(struct txn *t, const struct store_post *post, struct message *old,
                struct list *messages, struct discarded *d, struct ident *id)
{
    struct keyed no_key = {.txn = t};
    enum status st = old == NULL ? ST_OK : copy_reason(t, post, old, messages);

    if (st == ST_OK)
        st = add_messages(t, post, messages, &no_key, id);
    if (st != ST_OK || old == NULL)
        return st;
    txn_remove_message(t, old, d);
    metrics_count(&t->shard->metrics, STORE_COUNT_DELETED, 1);
    queue_count(t->queue, STORE_QUEUE_DELETED, 1);
    if (has_log(t->shard->core))
        changelog_delete(t->queue, &d->messages, 1, t->now_ms);
    return ST_OK;
}

/* The post of a message with a key, in a transaction that has begun. A crash must not
 * separate the two, so they are a group of the log. */
static enum status
add_unique_message(struct txn *t, const struct store_post *post, struct list *messages,
                   struct discarded *d, struct ident *id)
{
    struct grouped_change changes[UNIQUE_CHANGES];
    struct change_group group = {
        .all = changes, .capacity = UNIQUE_CHANGES, .space = &t->shard->log_reserved};
    struct message *m = t->queue == NULL ? NULL : post_existing(t, post);
    const bool replaces = bytes_present(post->replaces);
    enum status st;

    t->op->existing = m != NULL && !replaces;
    if (replaces && (m == NULL || txn_find_message(t, post->replaces) != m))
        return t->queue == NULL || refuse_post(t, post) == ST_OK ? ST_CHANGED
                                                                 : refuse_post(t, post);
    if (t->op->existing) {
        *id = message_ident(m, t->queue->tag);
        id->low--;
        return ST_OK;
    }
    t->shard->group = &group;
    st = replace_message(t, post, replaces ? m : NULL, messages, d, id);
    changelog_end_group(&group, t->shard->core);
    t->shard->group = NULL;
    return st;
}

enum status
engine_message_post(struct store *s, struct store_op *op, const struct store_queue *where,
                    const struct store_post *post, struct store_id *ids)
{
    struct engine *e = engine_of(s);
    struct discarded discarded = {.count = 0};
    struct ident id = {0, 0};
    struct list messages;
    struct keyed key;
    struct txn t;
    enum status st;

    ENSURE(post->count > 0 &&
           (post->unique == NULL || (post->count == 1 && op->key == NULL)));
    housekeep_pay(e, op->now_ms, post->count, post_bytes(post));
    if (!mem_admits(e->core.mem, post_bytes(post)))
        return ST_OVER_BUDGET;
    list_init(&messages);
    list_init(&discarded.messages);
    st = post_make_messages(e->core.mem, post, &messages);
    if (st != ST_OK)
        return st;
    (void)txn_begin(&t, s, op, where, EXPIRE_NOTHING); /* which cannot fail */
    st = keyed_begin(&key, &t, STORE_KEY_POST);
    if (post->unique != NULL)
        st = add_unique_message(&t, post, &messages, &discarded, &id);
    else if (st == ST_OK && key.known == NULL)
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
    message_unpin_all(e->core.mem, &discarded.messages);
    for (size_t i = 0; st == ST_OK && i < post->count; i++) {
        id.low++;
        ident_write(&ids[i], id);
    }
    return st;
}
